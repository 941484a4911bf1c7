"""Bulk load of sorted rows into RocksDB, as ingested files that bypass the write buffers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from rocksdict import IngestExternalFileOptions, SstFileWriter

from firesteel.runtime.state.rocksdb.database import SST, ColumnFamilyTable
from firesteel.runtime.state.rocksdb.options import RocksDBOptions

__all__ = ["BulkLoad"]

_FILE_BYTES = 64 << 20
_CHECK_ROWS = 8_192
"""How many rows are written between two looks at a file's length."""

_numbers = itertools.count(1)


class BulkLoad:
    """Rows for one table, in ascending order; they are in the table after :meth:`finish`."""

    def __init__(self, table: ColumnFamilyTable, directory: Path, options: RocksDBOptions):
        self._table = table
        self._directory = directory
        self._options = options
        self._files: list[str] = []
        self._writer: SstFileWriter | None = None

    def add(self, rows: Iterable[tuple[bytes, bytes]]) -> None:
        iterator = iter(rows)
        while batch := list(itertools.islice(iterator, _CHECK_ROWS)):
            writer = self._writer or self._open()
            for key, value in batch:
                writer[key] = value
            if writer.file_size() > _FILE_BYTES:
                writer.finish()
                self._writer = None

    def finish(self) -> None:
        """Makes the rows part of the table."""
        if self._writer is not None:
            self._writer.finish()
            self._writer = None
        if self._files:
            options = IngestExternalFileOptions()
            options.set_move_files(True)
            self._table.family.ingest_external_file(self._files, options)
            for file in self._files:
                Path(file).unlink(missing_ok=True)
            self._files.clear()

    def _open(self) -> SstFileWriter:
        path = str(self._directory / f"load-{next(_numbers)}{SST}")
        self._writer = SstFileWriter(self._options.column_family())
        self._writer.open(path)
        self._files.append(path)
        return self._writer
