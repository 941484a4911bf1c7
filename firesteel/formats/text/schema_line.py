"""Files of messages, one on each line: JSON lines, for instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import DeserializationSchema
from firesteel.common.typeinfo import TypeInformation
from firesteel.formats.file_split import CheckpointedPosition
from firesteel.formats.format_reader import FetchedBatch, FormatReader, SplitInput
from firesteel.formats.stream_format import StreamFormat
from firesteel.formats.text.line_blocks import LineBlocks, LineOffsets
from firesteel.spi.source import ReaderOutput

__all__ = ["SchemaLineFormat", "json_line_format"]


class SchemaLineFormat(StreamFormat):
    r"""Each line is a message, without its line end (``\n`` or ``\r\n``); empty lines are passed over."""

    def __init__(self, schema: DeserializationSchema) -> None:
        if not isinstance(schema, DeserializationSchema):
            raise InvalidProgramError(f"A format of lines needs a DeserializationSchema, got {schema!r}.")
        self._schema = schema

    def create_reader(self, stream: BinaryIO, file_length: int, split_end: int) -> StreamFormat.Reader:
        """Not needed: ``open_split`` reads many lines at once."""
        raise NotImplementedError("messages on lines are read with open_split")

    def open_split(self, source: SplitInput) -> FormatReader:
        """A reader of one split."""
        return _SchemaLineReader(source)

    def is_splittable(self) -> bool:
        """A line can be found from anywhere in the file."""
        return True

    @property
    def schema(self) -> DeserializationSchema:
        """What makes a record of a line."""
        return self._schema

    def get_produced_type(self) -> TypeInformation | None:
        """What the schema makes."""
        return self._schema.get_produced_type()

    def describe(self) -> str:
        """The schema."""
        return f"lines read by {type(self._schema).__name__}"


class _SchemaLineReader(FormatReader):
    def __init__(self, source: SplitInput) -> None:
        self._split_id = source.split.split_id
        self._decoder = source.decoder
        self._blocks = LineBlocks(source.open_stream(), source.split, "utf-8", source.fetch_bytes, passes_mark=True)

    def fetch(self) -> FetchedBatch | None:
        block = self._blocks.next()
        if block is None:
            return None
        return FetchedBatch(block, CheckpointedPosition(block.offset), CheckpointedPosition(block.end), block.is_last)

    def unpack(self, batch: FetchedBatch, output: ReaderOutput) -> Sequence[Any]:
        data = batch.items.data
        lines: list[bytes] = data.split(b"\n")
        if not lines[-1]:
            del lines[-1]
        if b"\r\n" in data or data.endswith(b"\r"):
            lines = [line[:-1] if line.endswith(b"\r") else line for line in lines]
        return lines

    def decode(self, batch: FetchedBatch, items: Sequence[Any], first: int, output: ReaderOutput) -> Sequence[Any]:
        numbers: Sequence[int] = range(first, first + len(items))
        if b"" in items:
            numbers = [first + index for index, item in enumerate(items) if item]
            items = [item for item in items if item]

        def locate(index: int) -> tuple[str, int]:
            if batch.data is None:
                batch.data = LineOffsets(batch.items, self._blocks.codec)
            return self._split_id, batch.data[numbers[index]]

        return self._decoder.decode(items, None, output, locate)[0]


def json_line_format(type_info: TypeInformation | None = None) -> SchemaLineFormat:
    """Lines of JSON: Rows of this type, or plain values."""
    from firesteel.formats.json.messages import JsonDeserializationSchema, JsonRowDeserializationSchema

    if type_info is None:
        return SchemaLineFormat(JsonDeserializationSchema())
    return SchemaLineFormat(JsonRowDeserializationSchema.builder().type_info(type_info).build())
