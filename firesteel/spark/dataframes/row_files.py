"""Spools the rows of a DataFrame to files, for jobs whose tasks outlive any Spark job.

A streaming job's tasks hold Spark's slots for as long as it runs, and after a failure read again from where the last
checkpoint was. Neither goes with a plan that Spark would have to run meanwhile and, to read again, to run again,
perhaps with other results. So it is run once, before the slots are taken, and what it gave is kept until the job is
over.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from pyspark import SparkContext
from pyspark.core.rdd import RDD
from pyspark.serializers import NoOpSerializer

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.base.split_enumerators import SharedSplitEnumerator
from firesteel.connectors.base.split_reader import SequentialSplitReader
from firesteel.spark.dataframes.errors import DataFrameError
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput, SplitEnumeratorContext

__all__ = ["RowFileReader", "RowFileSplit", "RowFiles", "RowFilesEnumerator"]

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class RowFileSplit:
    """One partition's file, from the batch at byte ``position`` on, of which ``skip`` records have been read."""

    split_id: str
    path: str
    position: int = 0
    skip: int = 0


class RowFiles:
    """A directory with one file per partition that has rows."""

    def __init__(self, directory: str, paths: list[str]) -> None:
        self.directory = directory
        self.paths = paths

    @classmethod
    def write(cls, context: SparkContext, rows: Any) -> RowFiles:
        """Runs the plan behind a JavaRDD of pairs of bytes."""
        if not context.master.startswith("local") or context.master.startswith("local-cluster"):
            raise InvalidProgramError(
                "A DataFrame can be a source of a streaming job only where all slots share this machine's disk.",
                hint="Run the job as a batch (execution.runtime-mode BATCH or AUTOMATIC), or write the DataFrame to "
                "Parquet files that all hosts see and read them with env.read_parquet(path).",
            )
        directory = tempfile.mkdtemp(prefix="firesteel-dataframe-")
        try:
            written = RDD(rows, context, NoOpSerializer()).mapPartitionsWithIndex(_WritePartition(directory)).collect()
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return cls(directory, written)

    def splits(self) -> list[RowFileSplit]:
        """One for each file, in the order of the partitions."""
        return [RowFileSplit(str(index), path) for index, path in enumerate(self.paths)]

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


class _WritePartition:
    """Writes alternating schemas and batches to a file, each behind its length."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def __call__(self, index: int, rows: Iterable[bytes]) -> Iterator[str]:
        path = Path(self._directory, f"part-{index:05d}")
        with path.open("wb") as file:
            for row in rows:
                file.write(_LENGTH.pack(len(row)))
                file.write(row)
            if file.tell():
                yield str(path)


class RowFilesEnumerator(SharedSplitEnumerator[RowFileSplit]):
    """Assigns files; fails if there are none because they were not written."""

    def __init__(self, context: SplitEnumeratorContext, splits: list[RowFileSplit] | None) -> None:
        super().__init__(context, splits or ())
        self._written = splits is not None

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Assigns one file, or signals that there are none left."""
        if not self._written:
            raise InvalidProgramError(
                "A DataFrame can only be read by a job that runs on Spark.",
                hint="Run the job with Spark's executor; for one in this process read the rows first: "
                "env.from_collection([...]).",
            )
        super().handle_split_request(subtask, host)


class RowFileReader(SequentialSplitReader[RowFileSplit]):
    """Reads files batch by batch."""

    def __init__(
        self,
        context: ReaderContext,
        read_rows: Callable[[Iterable[bytes]], Iterator[tuple[Sequence[Any], None]]],
    ) -> None:
        super().__init__(context)
        self._read_rows = read_rows
        self._file: IO[bytes] | None = None
        self._batches: Iterator[tuple[Sequence[Any], None]] = iter(())
        self._records: Sequence[Any] = ()
        self._emitted = 0
        self._begin = self._end = 0

    def open_split(self, split: RowFileSplit) -> None:
        """Opens the file and decodes the batch that was begun."""
        try:
            self._file = Path(split.path).open("rb")  # noqa: SIM115 - closed with the split
        except FileNotFoundError as error:
            raise DataFrameError(
                f"The rows of the DataFrame in '{split.path}' no longer exist.",
                hint="They are kept while the job lives. To start it again from a savepoint in another process, read "
                "Parquet files with env.read_parquet(path) instead.",
            ) from error
        self._file.seek(split.position)
        self._begin = self._end = split.position
        self._batches = self._read_rows(self._rows(self._file))
        self._records, self._emitted = (), 0
        if split.skip:
            self._next_batch()
            self._emitted = split.skip

    def read_split(self, split: RowFileSplit, output: ReaderOutput, max_records: int) -> InputStatus:
        if self._emitted >= len(self._records) and not self._next_batch():
            return InputStatus.END_OF_INPUT
        records = self._records[self._emitted : self._emitted + max_records]
        self._emitted += len(records)
        output.collect(split.split_id, records)
        return InputStatus.MORE_AVAILABLE

    def snapshot_split(self, split: RowFileSplit) -> RowFileSplit:
        """The split from the next record on."""
        return replace(split, position=self._begin, skip=self._emitted)

    def close_split(self) -> None:
        self._records, self._batches = (), iter(())
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_batch(self) -> bool:
        self._begin = self._end
        self._records, self._emitted = next(self._batches, ((), None))[0], 0
        return bool(self._records)

    def _rows(self, file: IO[bytes]) -> Iterator[bytes]:
        while length := file.read(_LENGTH.size):
            row = file.read(_LENGTH.unpack(length)[0])
            self._end += len(length) + len(row)
            yield row
