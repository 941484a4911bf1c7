"""The lines of CSV files as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, NamedTuple

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.common.typeinfo import TypeInformation
from firesteel.filesystem.local_paths import FileReadError
from firesteel.formats.csv.messages import CsvParser, CsvSchema
from firesteel.formats.csv.row_ends import RowEnds
from firesteel.formats.file_split import CheckpointedPosition
from firesteel.formats.format_reader import FetchedBatch, FormatReader, SplitInput
from firesteel.formats.stream_format import StreamFormat
from firesteel.formats.text.line_blocks import LineBlock, LineBlocks, LineOffsets
from firesteel.formats.text.line_codec import check_charset, is_splittable_charset
from firesteel.formats.text.text_line import undecodable
from firesteel.spi.source import ReaderOutput

__all__ = ["CsvReaderFormat", "CsvRowReader"]

MAX_RECORD_BYTES = 4 << 20
"""A quote that is open for longer was never meant to be one."""
_CHARSET_HINT = (
    "If the file has another charset, specify it: CsvReaderFormat.for_schema(schema, charset_name='latin-1'). To "
    "skip such rows, call set_bad_records(BadRecords.drop()) on the source's builder."
)


class CsvReaderFormat(StreamFormat):
    r"""Each line of a CSV file is a Row of the schema; made with ``for_schema``.

    A line ends with ``\n`` or ``\r\n``; a column in quotes may have line ends in it, and so may any column if they are
    escaped. Then nobody can tell from the
    middle of a file where a row begins, so a file is read by one reader, as in Flink. If a schema has no quotes, or it
    is said that none of them has a line end in it (``multiline=False``), several readers share a large file. Empty
    lines are passed over, and a byte order mark.
    """

    def __init__(self, schema: CsvSchema, *, charset_name: str = "UTF-8", multiline: bool = True) -> None:
        if not isinstance(schema, CsvSchema):
            raise InvalidProgramError(
                f"CsvReaderFormat needs a CsvSchema, got {schema!r}.", hint="Make one with CsvSchema.builder()."
            )
        self.csv_schema = schema
        self.charset_name = check_charset(charset_name)
        self.multiline = multiline and schema.quote_char is not None

    @staticmethod
    def for_schema(schema: CsvSchema, *, charset_name: str = "UTF-8", multiline: bool = True) -> CsvReaderFormat:
        """The format for files with these columns."""
        return CsvReaderFormat(schema, charset_name=charset_name, multiline=multiline)

    def create_reader(self, stream: BinaryIO, file_length: int, split_end: int) -> StreamFormat.Reader:
        """Not needed: ``open_split`` reads many lines at once."""
        raise NotImplementedError("CSV is read with open_split")

    def open_split(self, source: SplitInput) -> FormatReader:
        """A reader of one split."""
        return CsvRowReader(source, self)

    def is_splittable(self) -> bool:
        """If a line end is always the end of a row."""
        return not self.multiline and is_splittable_charset(self.charset_name)

    def get_produced_type(self) -> TypeInformation | None:
        """Rows with the schema's columns."""
        return self.csv_schema.row_type

    def describe(self) -> str:
        """The columns."""
        return f"CSV with columns {', '.join(self.csv_schema.column_names)}"


class _Rows(NamedTuple):
    first_lines: Sequence[int]
    """In which line of the block each row begins."""
    offsets: LineOffsets
    is_text: bool


class CsvRowReader(FormatReader):
    """Cuts blocks of lines into rows, which takes a closer look only where there are quotes."""

    def __init__(self, source: SplitInput, csv_format: CsvReaderFormat) -> None:
        split = source.split
        self._split = split
        self._decoder = source.decoder
        self._skips_bad_records = source.skips_bad_records
        self._schema = csv_format.csv_schema
        self._multiline = csv_format.multiline
        self._parser = CsvParser(self._schema)
        if self._multiline:
            self._row_ends = RowEnds(self._schema)
        self._blocks = LineBlocks(
            source.open_stream(), split, csv_format.charset_name, source.fetch_bytes, passes_mark=True
        )
        self._header_lines = self._parser.lines_to_skip if split.position is None and split.start == 0 else 0
        self._open = b""  # of a row that the last block ended in the middle of

    def fetch(self) -> FetchedBatch | None:
        block = self._blocks.next()
        if block is None:
            return None
        if self._header_lines:
            block = self._without_header(block)
        return FetchedBatch(block, CheckpointedPosition(block.offset), CheckpointedPosition(block.end), block.is_last)

    def unpack(self, batch: FetchedBatch, output: ReaderOutput) -> Sequence[Any]:
        block: LineBlock = batch.items
        if self._open:
            block = LineBlock(self._open + block.data, block.offset - len(self._open), block.is_last)
            self._open = b""
        lines, is_text = self._lines_of(block)
        offsets = LineOffsets(block, self._blocks.codec)
        first_lines: Sequence[int] = range(len(lines))
        end = block.end
        if self._multiline and self._has_quotes(block.data):
            lines, first_lines, open_line = self._joined(lines, offsets)
            if open_line is not None:
                end = offsets[open_line]
                self._open = block.data[end - block.offset :]
        batch.at, batch.then = CheckpointedPosition(block.offset), CheckpointedPosition(end)
        batch.data = _Rows(first_lines, offsets, is_text)
        if b"\r" in block.data:
            lines = [line.removesuffix("\r") for line in lines]
        return lines

    def decode(self, batch: FetchedBatch, items: Sequence[Any], first: int, output: ReaderOutput) -> Sequence[Any]:
        numbers: Sequence[int] = range(first, first + len(items))
        if "" in items:
            numbers = [first + index for index, item in enumerate(items) if item]
            items = [item for item in items if item]
        try:
            if not batch.data.is_text:
                raise ValueError("some bytes are not text")
            rows: Sequence[Any] = self._parser.parse(items)
        except Exception:  # noqa: BLE001 - which one it was is found out one by one
            rows = self._rows_one_by_one(batch.data, items, numbers, output)
        if self._schema.allow_comments or None in rows:
            rows = [row for row in rows if row is not None]
        return rows

    def _rows_one_by_one(
        self, found: _Rows, lines: Sequence[str], numbers: Sequence[int], output: ReaderOutput
    ) -> list[Any]:
        rows = []
        for number, line in zip(numbers, lines, strict=True):
            raw = line.encode(self._blocks.codec.charset, "surrogateescape")
            try:
                if not found.is_text:
                    raw.decode(self._blocks.codec.charset)
                rows.append(self._parser.parse_line(line))
            except (FiresteelError, ValueError) as error:
                offset = found.offsets[found.first_lines[number]]
                self._decoder.reject(raw, self._split.split_id, offset, error, output)
        return rows

    def _lines_of(self, block: LineBlock) -> tuple[list[str], bool]:
        """The lines, and whether all of them are text in the charset."""
        codec, is_text = self._blocks.codec, True
        try:
            text = block.data.decode(codec.charset)
        except UnicodeDecodeError as error:
            if not self._skips_bad_records or codec.unit > 1:
                raise undecodable(self._split.path, self._blocks, block, error, _CHARSET_HINT) from error
            # such lines are found again, and rejected, when they are parsed
            text, is_text = block.data.decode(codec.charset, "surrogateescape"), False
        lines = text.split("\n")
        if not lines[-1]:
            del lines[-1]
        return lines, is_text

    def _without_header(self, block: LineBlock) -> LineBlock:
        while self._header_lines and block.data:
            end = self._first_row_end(block)
            if end is None:
                following = self._blocks.next()
                assert following is not None  # the block is not the last one
                block = LineBlock(block.data + following.data, block.offset, following.is_last)
                continue
            if self._schema.use_header and self._header_lines == self._parser.lines_to_skip:
                self._check_header(block.data[:end])
            block = LineBlock(block.data[end:], block.offset + end, block.is_last)
            self._header_lines -= 1
        return block

    def _first_row_end(self, block: LineBlock) -> int | None:
        """Where the first row of a block ends, which may have several lines; None if that is in a later block."""
        codec, data = self._blocks.codec, block.data
        line_end = codec.find_newline(data, codec.unit - 1)
        if line_end < 0 or not self._multiline:
            return line_end if line_end >= 0 else len(data)
        lines = data.decode(codec.charset, "replace").split("\n")
        if not lines[-1]:
            del lines[-1]
        count = next(self._row_ends.find(lines, 0), None)
        if count is None:
            # one that never ends is a bad line
            return line_end if block.is_last or len(data) > MAX_RECORD_BYTES else None
        return len(data) if count == len(lines) else LineOffsets(block, codec)[count] - block.offset

    def _check_header(self, line: bytes) -> None:
        try:
            self._parser.check_header(line.decode(self._blocks.codec.charset, "replace").rstrip("\r\n"))
        except FiresteelError as error:
            raise FileReadError(
                f"The header of the input file '{self._split.path}' does not fit the schema: {error.message}",
                path=self._split.path,
                offset=0,
                hint="Add the columns in the order of the file, or leave out set_strict_headers().",
            ) from error

    # -- rows of several lines ----------------------------------------------------------------------

    def _has_quotes(self, data: bytes) -> bool:
        """Whether there are quotes, or escapes, by which a line may go on."""
        signs = (self._schema.quote_char, self._schema.escape_char)
        return any(sign.encode(self._blocks.codec.charset) in data for sign in signs if sign is not None)

    def _joined(self, lines: list[str], offsets: LineOffsets) -> tuple[list[str], Sequence[int], int | None]:
        """The rows, the number of each one's first line, and the line from which on a row is not complete."""
        block = offsets.block
        if not self._row_ends.may_span_lines(lines):
            return lines, range(len(lines)), None
        rows: list[str] = []
        first_lines: list[int] = []
        begin = 0
        while begin < len(lines):
            for end in self._row_ends.find(lines, begin):
                rows.append(lines[begin] if end == begin + 1 else "\n".join(lines[begin:end]))
                first_lines.append(begin)
                begin = end
            if begin < len(lines):
                if not block.is_last and block.end - offsets[begin] <= MAX_RECORD_BYTES:
                    return rows, first_lines, begin
                # it never ends: a bad line, and what follows is looked at without it
                rows.append(lines[begin])
                first_lines.append(begin)
                begin += 1
        return rows, first_lines, None
