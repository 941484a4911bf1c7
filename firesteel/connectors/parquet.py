"""A source of the rows of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from firesteel.common.arrow_records import ArrowRecords
from firesteel.common.arrow_types import record_type, require_pyarrow
from firesteel.common.connector import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.file_discovery import (
    FileDiscoveryState,
    MonitoringSplitEnumerator,
    check_discovery_interval,
    restore_static_enumerator,
)
from firesteel.connectors.local_paths import FileReadError, find_files, to_local_path
from firesteel.connectors.split_enumerators import SharedSplitEnumerator
from firesteel.connectors.split_reader import SequentialSplitReader

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ParquetReader", "ParquetSource", "ParquetSplit"]

_BATCH_ROWS = 16_384


@dataclass(frozen=True)
class ParquetSplit:
    """The rows of one row group of a file, from the ``position``-th on."""

    split_id: str
    path: str
    row_group: int
    position: int = 0


class ParquetSource(Source[ParquetSplit]):
    """Reads all Parquet files at and beneath its paths; ends when all are read unless it monitors them.

    Each row becomes a Row with the columns' names, or with ``as_tuples`` a tuple, which is faster; ``columns`` are
    those to read, in that order. Directories are searched recursively; what begins with ``.`` or ``_`` is passed over
    there. Timestamps that are kept in UTC, among them those of 96 bits that Spark writes, become Instants, others a
    ``datetime`` without a zone. With a ``discovery_interval`` the source looks for new files so often, without end;
    see ``FileSourceBuilder.monitor_continuously``.
    """

    name: ClassVar[str] = "Parquet Source"

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        columns: Sequence[str] | None = None,
        as_tuples: bool = False,
        discovery_interval: Duration | Time | timedelta | int | None = None,
    ) -> None:
        require_pyarrow("ParquetSource")
        if not paths:
            raise InvalidProgramError("ParquetSource needs at least one path to a file or directory.")
        if isinstance(columns, str) or (columns is not None and not columns):
            raise InvalidProgramError(f"ParquetSource: columns must be a list of at least one name, not {columns!r}.")
        self.paths = tuple(to_local_path(path) for path in paths)
        self.columns = None if columns is None else tuple(columns)
        self.as_tuples = as_tuples
        self.discovery_interval_ms = (
            None if discovery_interval is None else check_discovery_interval(discovery_interval)
        )

    def __repr__(self) -> str:
        columns = "" if self.columns is None else f"; columns {', '.join(self.columns)}"
        paths = ", ".join(map(str, self.paths[:3])) + (", …" if len(self.paths) > 3 else "")
        return f"ParquetSource({paths}{columns})"

    def get_boundedness(self) -> Boundedness:
        """Bounded, the files that are there at the start, unless the paths are monitored for new ones."""
        return Boundedness.BOUNDED if self.discovery_interval_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    def get_type(self) -> TypeInformation | None:
        """The type of the records, as the first file has it; None if there is no file."""
        for root in self.paths:
            for file in find_files(root):
                with _ParquetFile(str(file), self.columns) as opened:
                    return record_type(opened.schema, self.as_tuples)
        return None

    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator[ParquetSplit]:
        """Finds the files and their row groups now, or again and again; any reader may get any of them."""
        if self.discovery_interval_ms is not None:
            return MonitoringSplitEnumerator(context, self.paths, self._split_file, self.discovery_interval_ms)
        splits: list[ParquetSplit] = []
        for root in self.paths:
            for file in find_files(root):
                splits += self._split_file(str(file), len(splits))
        return SharedSplitEnumerator(context, splits)

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[ParquetSplit] | FileDiscoveryState[ParquetSplit]
    ) -> SplitEnumerator[ParquetSplit]:
        """Goes on with the row groups that no reader had, and files that were not known."""
        if self.discovery_interval_ms is not None:
            return MonitoringSplitEnumerator(
                context, self.paths, self._split_file, self.discovery_interval_ms, restored=state
            )
        return restore_static_enumerator(context, state)

    def create_reader(self, context: ReaderContext) -> ParquetReader:
        """A reader of one row group after another."""
        return ParquetReader(context, self.columns, self.as_tuples, self.discovery_interval_ms)

    def _split_file(self, path: str, first: int = 0) -> list[ParquetSplit]:
        with _ParquetFile(path, self.columns) as opened:
            groups = opened.row_groups
        return [ParquetSplit(f"{first + group}:{path}:{group}", path, group) for group in range(groups)]


class ParquetReader(SequentialSplitReader[ParquetSplit]):
    """Decodes a row group piece by piece."""

    def __init__(
        self,
        context: ReaderContext,
        columns: tuple[str, ...] | None,
        as_tuples: bool,
        ask_interval_ms: int | None = None,
    ) -> None:
        super().__init__(context, ask_interval_ms)
        self._columns = columns
        self._as_tuples = as_tuples
        self._file: _ParquetFile | None = None
        self._records: ArrowRecords | None = None
        self._batches: Iterator[Any] = iter(())
        self._decoded: Sequence[Any] = ()
        self._next = 0
        self._position = 0

    def open_split(self, split: ParquetSplit) -> None:
        """Opens the file, unless the row group before was of the same one, and goes to the position."""
        if self._file is None or self._file.path != split.path:
            self._close_file()
            self._file = _ParquetFile(split.path, self._columns)
            self._records = ArrowRecords(self._file.schema, self._as_tuples)
        self._batches = self._file.batches(split.row_group, split.position)
        self._decoded, self._next = (), 0
        self._position = split.position

    def read_split(self, split: ParquetSplit, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits the next records."""
        if self._next >= len(self._decoded) and not self._decode_more():
            return InputStatus.END_OF_INPUT
        records = self._decoded[self._next : self._next + max_records]
        self._next += len(records)
        self._position += len(records)
        output.collect(split.split_id, records)
        return InputStatus.MORE_AVAILABLE

    def snapshot_split(self, split: ParquetSplit) -> ParquetSplit:
        """The split from the next row on."""
        return replace(split, position=self._position)

    def close_split(self) -> None:
        """Forgets what was decoded; the file stays open for its next row group."""
        self._batches = iter(())
        self._decoded, self._next = (), 0

    def close(self) -> None:
        """Closes the file."""
        super().close()
        self._close_file()

    def _decode_more(self) -> bool:
        assert self._records is not None
        for batch in self._batches:
            if batch.num_rows:
                self._decoded, self._next = self._records.decode(batch), 0
                return True
        return False

    def _close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class _ParquetFile:
    """An open file: its schema as far as it is read, and its row groups."""

    def __init__(self, path: str, columns: tuple[str, ...] | None) -> None:
        self.path = path
        parquet = _parquet_module()
        try:
            # of the 96-bit timestamps none fit nanoseconds before 1677 or after 2262
            self._file = parquet.ParquetFile(path, coerce_int96_timestamp_unit="us")
        except Exception as error:
            raise _unreadable(path, error) from error
        try:
            self.schema = self._read_schema(columns)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def row_groups(self) -> int:
        """How many there are."""
        return int(self._file.num_row_groups)

    def batches(self, row_group: int, position: int) -> Iterator[Any]:
        """Record batches of the schema, from the position-th row of the group on."""
        if row_group >= self.row_groups:
            raise FileReadError(
                f"The input file '{self.path}' has {self.row_groups} row groups; row group {row_group} was to be read.",
                path=self.path,
                hint="The file was changed since; a job can only go on in files that stay as they were.",
            )
        skip = position
        names = self.schema.names
        try:
            for batch in self._file.iter_batches(_BATCH_ROWS, row_groups=[row_group], columns=names):
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                yield batch.select(names).slice(skip).cast(self.schema)
                skip = 0
        except FileReadError:
            raise
        except Exception as error:
            raise _unreadable(self.path, error) from error

    def close(self) -> None:
        """Closes the file."""
        self._file.close(force=True)

    def _read_schema(self, columns: tuple[str, ...] | None) -> Any:
        pa = require_pyarrow("ParquetSource")
        schema = self._file.schema_arrow
        missing = [name for name in columns or () if name not in schema.names]
        if missing:
            raise InvalidProgramError(
                f"The file '{self.path}' has no column {', '.join(map(repr, missing))}.",
                hint=f"It has {', '.join(schema.names)}.",
            )
        parquet_schema = self._file.schema
        leaves = [parquet_schema.column(index) for index in range(len(parquet_schema.names))]
        in_utc = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
        fields = [schema.field(name) for name in columns or schema.names]
        return pa.schema(
            field.with_type(pa.timestamp("us", "UTC")) if field.name in in_utc else field for field in fields
        )


def _parquet_module() -> Any:
    require_pyarrow("ParquetSource")
    import pyarrow.parquet

    return pyarrow.parquet


def _unreadable(path: str, error: Exception) -> FileReadError:
    hint = None if Path(path).suffix == ".parquet" else "Its name does not end in .parquet: is it a Parquet file?"
    return FileReadError(f"The input file '{path}' cannot be read as Parquet: {error}", path=path, hint=hint)
