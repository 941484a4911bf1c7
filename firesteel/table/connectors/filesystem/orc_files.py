"""Tables of ORC files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

from firesteel.common.serialization import BulkWriterFactory
from firesteel.config.option import ConfigOptions
from firesteel.filesystem.local_paths import FileReadError
from firesteel.formats.file_split import CheckpointedPosition, FileSourceSplit
from firesteel.formats.format_reader import FetchedBatch, FormatReader, SplitInput
from firesteel.formats.stream_format import BulkFormat
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connectors.filesystem.bulk_files import BatchWriter, BulkFiles, compression_of, writing_with
from firesteel.types.arrow import require_pyarrow
from firesteel.types.logical import LogicalType, LogicalTypeRoot, RowType

__all__ = ["COMPRESSION", "OrcFiles"]

COMPRESSION = ConfigOptions.key("orc.compress").string_type().default_value("ZLIB")
_COMPRESSIONS = {"ZLIB": "zlib", "SNAPPY": "snappy", "LZ4": "lz4", "ZSTD": "zstd", "NONE": "uncompressed"}
_R = LogicalTypeRoot
_UNSUPPORTED = (_R.TIME_WITHOUT_TIME_ZONE, _R.INTERVAL_DAY_TIME, _R.INTERVAL_YEAR_MONTH)


class _Columns(BulkFormat):
    """The rows of ORC files as column batches, a stripe at a time."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns

    def open_split(self, source: SplitInput) -> FormatReader:
        return _ColumnReader(self.columns, source)

    def create_reader(self, split: FileSourceSplit, file: BinaryIO) -> BulkFormat.Reader:
        """Not needed: ``open_split`` reads columns."""
        raise NotImplementedError("ORC is read with open_split")

    def is_splittable(self) -> bool:
        return False

    def describe(self) -> str:
        return f"columns {', '.join(self.columns)}"


class _ColumnReader(FormatReader):
    def __init__(self, columns: tuple[str, ...], source: SplitInput) -> None:
        split = source.split
        require_pyarrow("Reading ORC")
        import pyarrow.orc

        try:
            self._file = pyarrow.orc.ORCFile(source.open_file())
        except (OSError, pyarrow.ArrowInvalid) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise FileReadError(
                f"The input file '{split.path}' cannot be read as ORC: {error}", path=split.path
            ) from error
        self._columns = columns
        self._found = [name for name in columns if name in self._file.schema.names]
        self.already_skipped = split.records_to_skip if split.position is not None else 0
        self._batches = self._read(split.position or 0, self.already_skipped)

    def fetch(self) -> FetchedBatch | None:
        return next(self._batches, None)

    def _read(self, first: int, skip: int) -> Iterator[FetchedBatch]:
        pa = require_pyarrow("Reading ORC")
        for stripe in range(first, self._file.nstripes):
            data = self._file.read_stripe(stripe, self._found or None).slice(skip)
            rows = data.num_rows
            arrays = [data.column(name) if name in self._found else pa.nulls(rows) for name in self._columns]
            batch = ColumnBatch(pa.RecordBatch.from_arrays(arrays, list(self._columns)))
            if rows:
                at, then = CheckpointedPosition(stripe, skip), CheckpointedPosition(stripe, skip + rows)
                yield FetchedBatch(batch, at, then)
            skip = 0


class _Writer(BatchWriter):
    def __init__(self, stream: BinaryIO, compression: str) -> None:
        super().__init__(stream)
        import pyarrow.orc

        self._writer = pyarrow.orc.ORCWriter(stream, compression=compression)
        self._is_empty = True

    def write(self, batches: Sequence[Any]) -> None:
        pa = require_pyarrow("SQL")
        self._is_empty = False
        self._writer.write(_storable(pa.Table.from_batches(batches)))

    def end(self) -> None:
        if not self._is_empty:
            self._writer.close()


def _storable(table: Any) -> Any:
    """ORC has no binary values of one length."""
    pa = require_pyarrow("SQL")
    for index, part in enumerate(table.schema):
        if pa.types.is_fixed_size_binary(part.type):
            table = table.set_column(index, part.name, table.column(index).cast(pa.binary()))
    return table


@dataclass(frozen=True)
class OrcFiles(BulkFiles):
    """ORC files."""

    compression: str = "zlib"
    name: ClassVar[str] = "orc"

    @staticmethod
    def of(options: Mapping[str, str]) -> OrcFiles:
        """The format with the options of a table."""
        return OrcFiles(compression_of(options, COMPRESSION, _COMPRESSIONS))

    def reader(self, row_type: RowType) -> BulkFormat:
        return _Columns(row_type.field_names)

    def writer(self, row_type: RowType) -> BulkWriterFactory:
        return writing_with(_Writer, self.compression)

    def check_types(self, row_type: RowType) -> None:
        for part in row_type.fields:
            _check(part.type)


def _check(type_: LogicalType) -> None:
    if type_.root in _UNSUPPORTED:
        raise ValidationError(f"Can't support type {type_.as_summary_string()} in ORC.")
    for part in type_.children():
        _check(part)
