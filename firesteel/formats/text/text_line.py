"""Lines of text files as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.filesystem.local_paths import FileReadError
from firesteel.formats.file_split import CheckpointedPosition
from firesteel.formats.format_reader import FetchedBatch, FormatReader, SplitInput
from firesteel.formats.stream_format import StreamFormat
from firesteel.formats.text.line_blocks import LineBlock, LineBlocks
from firesteel.formats.text.line_codec import LineCodec, check_charset, is_splittable_charset
from firesteel.spi.source import ReaderOutput

__all__ = ["BadLine", "TextLineInputFormat", "lines_one_by_one", "undecodable"]

_PREVIEW_BYTES = 120
_CHARSET_HINT = (
    "If the file has another charset, specify it, for instance StreamFormat.text_line_format('latin-1') or 'cp1252'."
)


class TextLineInputFormat(StreamFormat):
    """Each line is a record, a ``str`` without its line end. (Flink's counts lines; this one knows their offsets.)"""

    def __init__(self, charset_name: str = "UTF-8") -> None:
        self.charset_name = check_charset(charset_name)

    def create_reader(self, stream: BinaryIO, file_length: int, split_end: int) -> StreamFormat.Reader:
        """Not needed: ``open_split`` reads many lines at once."""
        raise NotImplementedError("text lines are read with open_split")

    def open_split(self, source: SplitInput) -> FormatReader:
        """A reader of one split."""
        return _TextLineReader(source, self.charset_name)

    def is_splittable(self) -> bool:
        """Whether a line end can be found from anywhere in the file."""
        return is_splittable_charset(self.charset_name)

    def get_produced_type(self) -> TypeInformation | None:
        """Strings."""
        return Types.STRING()

    def describe(self) -> str:
        """The charset."""
        return f"text lines in {self.charset_name}"


class _TextLineReader(FormatReader):
    """Decodes and splits a block of lines in one go."""

    def __init__(self, source: SplitInput, charset_name: str) -> None:
        self._split = source.split
        self._decoder = source.decoder
        self._skips_bad_records = source.skips_bad_records
        self._blocks = LineBlocks(source.open_stream(), source.split, charset_name, source.fetch_bytes)

    def fetch(self) -> FetchedBatch | None:
        block = self._blocks.next()
        if block is None:
            return None
        return FetchedBatch(block, CheckpointedPosition(block.offset), CheckpointedPosition(block.end), block.is_last)

    def unpack(self, batch: FetchedBatch, output: ReaderOutput) -> Sequence[Any]:
        try:
            return self._blocks.codec.split_lines(batch.items.data)
        except UnicodeDecodeError as error:
            if not self._skips_bad_records:
                raise undecodable(self._split.path, self._blocks, batch.items, error) from error
            batch.data = batch.items
            return lines_one_by_one(self._blocks.codec, batch.items)

    def decode(self, batch: FetchedBatch, items: Sequence[Any], first: int, output: ReaderOutput) -> Sequence[Any]:
        if batch.data is None:
            return items
        for item in items:
            if isinstance(item, BadLine):
                self._decoder.reject(item.raw, self._split.split_id, item.offset, item.error, output)
        return [item for item in items if not isinstance(item, BadLine)]


class BadLine(NamedTuple):
    """A line that is not text in the charset."""

    raw: bytes
    offset: int
    error: UnicodeDecodeError


def lines_one_by_one(codec: LineCodec, block: LineBlock) -> list[str | BadLine]:
    """The lines of a block, some of which cannot be decoded."""
    lines: list[str | BadLine] = []
    begin = 0
    while begin < len(block.data):
        end = codec.find_newline(block.data, begin + codec.unit - 1)
        raw = block.data[begin : len(block.data) if end < 0 else end]
        try:
            lines += codec.split_lines(raw)
        except UnicodeDecodeError as error:
            lines.append(BadLine(raw.rstrip(b"\r\n"), block.offset + begin, error))
        begin += len(raw)
    return lines


def undecodable(
    path: str, blocks: LineBlocks, block: LineBlock, error: UnicodeDecodeError, hint: str = _CHARSET_HINT
) -> FileReadError:
    """The error for bytes that are not text, with the line they are in."""
    codec, data = blocks.codec, block.data
    line_begin = max(codec.find_last_newline(data[: error.start - error.start % codec.unit]), 0)
    line_end = codec.find_newline(data, error.start)
    line = data[line_begin : len(data) if line_end < 0 else line_end]
    window = max(0, error.start - line_begin - _PREVIEW_BYTES // 2)
    window -= window % codec.unit
    preview = line[window : window + _PREVIEW_BYTES].decode(codec.charset, "backslashreplace").rstrip("\r\n")
    offset = block.offset + error.start
    bad = " ".join(f"0x{byte:02x}" for byte in data[error.start : error.end][:4])
    return FileReadError(
        f"The input file '{path}' is not {codec.charset} text at byte {offset}: "
        f"{bad} ({error.reason}).\n"
        f"  line: {'…' if window else ''}{preview}",
        path=path,
        offset=offset,
        hint=hint,
    )
