"""The writer of a lake's table: data files of the rows between two checkpoints."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from firesteel.common.types import Row
from firesteel.connectors.lakes.changes import KIND, change_schema
from firesteel.connectors.lakes.columns import ColumnRows, to_schema
from firesteel.connectors.lakes.committable import LakeCommittable
from firesteel.connectors.lakes.table import LakeTable, OutputFile
from firesteel.spi.sink import SinkWriter, WriterContext
from firesteel.types.arrow import require_pyarrow
from firesteel.types.arrow_encoding import ArrowBatchEncoder

__all__ = ["LakeWriter", "file_name"]

GROUP_BYTES = 32 * 1024 * 1024
"""Bytes of columns that are gathered before they are written."""
_MAX_OPEN_FILES = 32


def file_name(committable_id: str, number: int) -> str:
    """The name of a data file: it says which sink, attempt and writer it is of."""
    return f"{committable_id}-{number:05d}.parquet"


def _kind(value: Any) -> int:
    return value.get_row_kind().value if isinstance(value, Row) else 0


class LakeWriter(SinkWriter[LakeCommittable]):
    """Writes rows, or columns of rows, into files of the table's partitions.

    Files are complete at each checkpoint. They are in the place of the table, but not part of it before they are
    committed. With a key, rows and their kinds are written into files of changes instead.
    """

    def __init__(
        self, table: LakeTable, context: WriterContext, key: Sequence[str] = (), *, overwrites: bool = False
    ) -> None:
        self._table = table
        self._context = context
        self._by_key = bool(key)
        self._overwrites = overwrites
        self._is_due = False
        self._writer = f"{context.subtask_index}-{uuid.uuid4().hex[:8]}"
        self._name = f"{context.sink_id}-{context.attempt_id}-{self._writer}"
        self._schema = table.arrow_schema()
        self._encoder = ArrowBatchEncoder(self._schema)
        self._target_size = table.target_file_size()
        self._gathered: list[Any] = []
        self._bytes = 0
        self._files_begun = 0
        self._number = 0
        self._open: dict[Any, OutputFile] = {}
        self._complete: list[Mapping[str, Any]] = []
        self._paths: list[str] = []
        """Of complete files that no committable has."""

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Takes Rows, tuples and dicts, or ColumnRows."""
        if isinstance(values, ColumnRows):
            self._add(values)
        elif values and isinstance(values[0], ColumnRows):
            for value in values:
                self._add(value)
        elif len(values):
            kinds = [_kind(value) for value in values] if self._by_key else None
            self._add(ColumnRows(self._encoder.to_batch(values), kinds))

    def _add(self, rows: ColumnRows) -> None:
        data = to_schema(rows.data, self._schema)
        if self._by_key:
            pa = require_pyarrow("Lakes")
            kinds = pa.array(rows.kinds if rows.kinds is not None else [0] * len(rows), pa.int8())
            data = data.append_column(pa.field(KIND, pa.int8(), nullable=False), kinds)
        self._gathered.append(data)
        self._bytes += data.nbytes
        if self._bytes >= GROUP_BYTES:
            self._write_out()

    def _write_out(self) -> None:
        if not self._gathered:
            return
        pa = require_pyarrow("Lakes")
        data = pa.concat_tables(self._gathered)
        self._gathered, self._bytes = [], 0
        if self._by_key:
            self._write_to(None, data)
            return
        for partition, rows in self._table.partitions(data):
            self._write_to(partition, rows)
        if len(self._open) > _MAX_OPEN_FILES:
            self._complete_files()

    def _write_to(self, partition: Any, rows: Any) -> None:
        file = self._open.get(partition)
        if file is None:
            name = file_name(self._name, self._files_begun)
            self._files_begun += 1
            if self._by_key:
                file = self._table.new_change_file(name, change_schema(self._schema))
            else:
                file = self._table.new_file(partition, name)
            self._open[partition] = file
        file.write(rows)
        if file.size >= self._target_size:
            del self._open[partition]
            self._end(file)

    def _complete_files(self) -> None:
        for partition in list(self._open):
            self._end(self._open.pop(partition))

    def _end(self, file: OutputFile) -> None:
        self._paths.append(file.path)
        self._complete.append(file.close())

    def flush(self, end_of_input: bool) -> None:
        """Completes all files."""
        self._write_out()
        self._complete_files()
        self._is_due = self._overwrites and end_of_input

    def prepare_commit(self) -> list[LakeCommittable]:
        """The files since the last time, if there are any; what is overwritten by no rows has none."""
        if not self._complete and not self._is_due:
            return []
        self._is_due = False
        files, self._complete = tuple(self._complete), []
        paths, self._paths = tuple(self._paths), []
        self._number += 1
        context = self._context
        return [
            LakeCommittable(
                context.sink_id,
                context.attempt_id,
                context.attempt_number,
                self._writer,
                self._number,
                *(((), paths) if self._by_key else (files, ())),
            )
        ]

    def close(self) -> None:
        """Deletes what no committable has."""
        for file in self._open.values():
            file.discard()
        for path in self._paths:
            with suppress(Exception):  # it stays behind, and is removed by the next attempt
                self._table.delete_file(path)
        self._open, self._paths = {}, []
        self._table.close()
