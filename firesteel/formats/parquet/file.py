"""The rows of Parquet files as records, read by row groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types, from_logical
from firesteel.filesystem.filesystem import FileStatus
from firesteel.filesystem.input_paths import is_remote
from firesteel.filesystem.local_paths import FileReadError
from firesteel.filesystem.stores import get_filesystem
from firesteel.formats.file_split import CheckpointedPosition, FileSourceSplit
from firesteel.formats.format_reader import FetchedBatch, FileFormat, FormatReader, SplitInput
from firesteel.formats.stream_format import BulkFormat, StreamFormat
from firesteel.spi.source import ReaderOutput
from firesteel.types.arrow import require_pyarrow
from firesteel.types.arrow_decoding import ArrowRecords, record_type
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AvroParquetReaders", "ParquetColumnarRowInputFormat", "ParquetFile", "ParquetFormat", "ParquetReader"]

_BATCH_ROWS = 16_384


class _Parquet(FileFormat):
    """What all formats of Parquet files share."""

    columns: tuple[str, ...] | None = None
    as_tuples = False
    as_dicts = False
    fills_missing = False
    """Whether a column that a file does not have is null in all its rows, instead of an error."""
    is_case_sensitive = True
    batch_rows: int | None = None

    def open_split(self, source: SplitInput) -> FormatReader:
        """A reader of one split."""
        return ParquetReader(self, source)

    def is_splittable(self) -> bool:
        """Between row groups."""
        return True

    def ranges(self, file: FileStatus, split_bytes: int | None) -> list[tuple[int, int | None]]:
        """Row groups one by one, unless a store would have to be asked where they are."""
        if split_bytes is None:
            return [(0, file.size)]
        if is_remote(file.path):
            return [(start, min(start + split_bytes, file.size)) for start in range(0, max(file.size, 1), split_bytes)]
        with get_filesystem(file.path).open(file.path, read_ahead=0) as opened, ParquetFile(file.path, opened) as found:
            middles = found.middles()
        if middles != sorted(set(middles)):
            return [(0, file.size)]
        bounds = [0, *((one + other) // 2 + 1 for one, other in pairwise(middles)), file.size]
        return list(pairwise(bounds)) if middles else []


class ParquetFormat(_Parquet, BulkFormat):
    """Each row is a Row with the columns' names or, with ``as_tuples``, which is faster, a tuple.

    ``columns`` are those to read, in that order. A large file is read in parts by several readers: a row group by the
    one whose part its middle is in.
    """

    def __init__(self, columns: Sequence[str] | None = None, *, as_tuples: bool = False) -> None:
        require_pyarrow("Reading Parquet")
        if isinstance(columns, str) or (columns is not None and not columns):
            raise InvalidProgramError(f"Parquet: columns must be a list of at least one name, not {columns!r}.")
        self.columns = None if columns is None else tuple(columns)
        self.as_tuples = as_tuples

    def create_reader(self, split: FileSourceSplit, file: BinaryIO) -> BulkFormat.Reader:
        """Not needed: ``open_split`` decodes outside the thread that reads."""
        raise NotImplementedError("Parquet is read with open_split")

    def describe(self) -> str:
        """The columns."""
        return "Parquet" if self.columns is None else f"columns {', '.join(self.columns)}"


class ParquetColumnarRowInputFormat(ParquetFormat):
    """Rows of a type: its fields are the columns to read; a column that a file lacks is null.

    ``row_type`` is a ``DataTypes.ROW`` or a ``Types.ROW_NAMED``. Types are those of the file, as in ``ParquetSource``:
    timestamps kept in UTC become Instants, whatever ``is_utc_timestamp`` says. There is no Hadoop to configure.
    """

    fills_missing = True

    def __init__(
        self,
        row_type: RowTypeInfo | RowType,
        hadoop_config: Any = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        if isinstance(row_type, RowType):
            row_type = Types.ROW_NAMED(row_type.field_names, [from_logical(part) for part in row_type.children()])
        if not isinstance(row_type, RowTypeInfo):
            raise InvalidProgramError(
                f"ParquetColumnarRowInputFormat needs the type of its rows, got {row_type!r}.",
                hint="For example Types.ROW_NAMED(['id', 'name'], [Types.LONG(), Types.STRING()]).",
            )
        super().__init__(row_type.get_field_names())
        if batch_size < 1:
            raise InvalidProgramError(f"The batch size must be at least 1, not {batch_size}.")
        self.row_type = row_type
        self.batch_rows = batch_size
        self.is_utc_timestamp = is_utc_timestamp
        self.is_case_sensitive = is_case_sensitive

    def get_produced_type(self) -> TypeInformation | None:
        """The type that was given."""
        return self.row_type


class AvroParquetReaders:
    """Parquet files as records of an Avro schema."""

    @staticmethod
    def for_generic_record(schema: Any) -> StreamFormat:
        """Each row is a dict with the fields of the schema, as Avro records are elsewhere."""
        return _AvroParquetFormat(schema)


class _AvroParquetFormat(_Parquet, StreamFormat):
    as_dicts = True
    fills_missing = True

    def __init__(self, schema: Any) -> None:
        require_pyarrow("Reading Parquet")
        parsed = json.loads(str(schema))
        if not isinstance(parsed, dict) or parsed.get("type") != "record" or not parsed.get("fields"):
            raise InvalidProgramError("AvroParquetReaders needs the schema of a record with fields.")
        self.columns = tuple(field["name"] for field in parsed["fields"])

    def create_reader(self, stream: BinaryIO, file_length: int, split_end: int) -> StreamFormat.Reader:
        raise NotImplementedError("Parquet is read with open_split")

    def describe(self) -> str:
        return "Parquet as Avro records"


class ParquetReader(FormatReader):
    """Has Arrow decode a row group piece by piece; makes records of a piece when the task takes it."""

    def __init__(self, parquet: _Parquet, source: SplitInput) -> None:
        split = source.split
        self._file = ParquetFile(split.path, source.open_file(), parquet)
        self._records = None if parquet.as_dicts else ArrowRecords(self._file.schema, parquet.as_tuples)
        self._groups = [
            group
            for group, middle in enumerate(self._file.middles())
            if split.start <= middle and (split.end is None or middle < split.end)
        ]
        skip = 0
        if split.position is not None:
            self._groups = [group for group in self._groups if group >= split.position]
            self.already_skipped = skip = split.records_to_skip
        self._batches = self._read(skip, parquet.batch_rows or _BATCH_ROWS)

    def fetch(self) -> FetchedBatch | None:
        return next(self._batches, None)

    def unpack(self, batch: FetchedBatch, output: ReaderOutput) -> Sequence[Any]:
        if self._records is not None:
            return self._records.decode(batch.items)
        records: list[Any] = batch.items.to_pylist()
        return records

    def close(self) -> None:
        self._batches = iter(())
        self._file.close()

    def _read(self, skip: int, rows: int) -> Iterator[FetchedBatch]:
        for group in self._groups:
            row = skip
            for piece in self._file.batches(group, skip, rows):
                if piece.num_rows:
                    at = CheckpointedPosition(group, row)
                    row += piece.num_rows
                    yield FetchedBatch(piece, at, CheckpointedPosition(group, row))
            skip = 0


class ParquetFile:
    """An open file: its schema as far as it is read, and its row groups."""

    def __init__(self, path: str, file: BinaryIO, parquet: _Parquet | None = None) -> None:
        self.path = path
        self._parquet = parquet or ParquetFormat()
        module = _parquet_module()
        try:
            # of the 96-bit timestamps none fit nanoseconds before 1677 or after 2262
            self._file = module.ParquetFile(file, coerce_int96_timestamp_unit="us")
        except FileNotFoundError:
            raise
        except Exception as error:
            raise _unreadable(path, error) from error
        try:
            self.schema, self._names = self._read_schema()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def record_type(self) -> TypeInformation:
        """The type of the records."""
        return record_type(self.schema, self._parquet.as_tuples)

    def middles(self) -> list[int]:
        """The byte in the middle of each row group."""
        metadata = self._file.metadata
        middles = []
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            columns = [group.column(index) for index in range(group.num_columns)]
            begin = min(
                min(column.data_page_offset, column.dictionary_page_offset or column.data_page_offset)
                for column in columns
            )
            middles.append(begin + sum(column.total_compressed_size for column in columns) // 2)
        return middles

    def batches(self, row_group: int, position: int, rows: int) -> Iterator[Any]:
        """Record batches of the schema, from the position-th row of the group on."""
        pa = require_pyarrow("Reading Parquet")
        names = [name for name in self._names if name is not None]
        skip = position
        try:
            for batch in self._file.iter_batches(rows, row_groups=[row_group], columns=names):
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                piece, skip = batch.slice(skip), 0
                columns = [pa.nulls(piece.num_rows) if name is None else piece.column(name) for name in self._names]
                yield pa.RecordBatch.from_arrays(
                    [
                        column if column.type == field.type else column.cast(field.type)
                        for column, field in zip(columns, self.schema, strict=True)
                    ],
                    schema=self.schema,
                )
        except OSError as error:
            if isinstance(error, FileNotFoundError) or error.errno is not None:
                raise  # of the store
            raise _unreadable(self.path, error) from error
        except Exception as error:
            raise _unreadable(self.path, error) from error

    def close(self) -> None:
        """Forgets what was read of the file; it stays open."""
        self._file.close(force=False)

    def _read_schema(self) -> tuple[Any, list[str | None]]:
        """The schema of the records, and for each field the column it is in."""
        pa = require_pyarrow("Reading Parquet")
        schema = self._file.schema_arrow
        wanted = self._parquet.columns or tuple(schema.names)
        names = [self._column_of(name, schema.names) for name in wanted]
        missing = [name for name, found in zip(wanted, names, strict=True) if found is None]
        if missing and not self._parquet.fills_missing:
            raise InvalidProgramError(
                f"The file '{self.path}' has no column {', '.join(map(repr, missing))}.",
                hint=f"It has {', '.join(schema.names)}.",
            )
        parquet_schema = self._file.schema
        leaves = [parquet_schema.column(index) for index in range(len(parquet_schema.names))]
        in_utc = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
        fields = []
        for name, found in zip(wanted, names, strict=True):
            field = pa.field(name, pa.null()) if found is None else schema.field(found).with_name(name)
            fields.append(field.with_type(pa.timestamp("us", "UTC")) if found in in_utc else field)
        return pa.schema(fields), names

    def _column_of(self, name: str, names: Sequence[str]) -> str | None:
        if self._parquet.is_case_sensitive:
            return name if name in names else None
        found = [each for each in names if each.lower() == name.lower()]
        if len(found) > 1:
            raise InvalidProgramError(
                f"The file '{self.path}' has several columns for '{name}': {', '.join(found)}.",
                hint="Read it with is_case_sensitive=True.",
            )
        return found[0] if found else None


def _parquet_module() -> Any:
    require_pyarrow("Reading Parquet")
    import pyarrow.parquet

    return pyarrow.parquet


def _unreadable(path: str, error: Exception) -> FileReadError:
    suffix = PurePosixPath(path).suffix
    hint = None if suffix == ".parquet" else "Its name does not end in .parquet: check that it is a Parquet file."
    return FileReadError(f"The input file '{path}' cannot be read as Parquet: {error}", path=path, hint=hint)
