"""The sink of rows of Delta's tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.delta.table import DeltaTable
from firesteel.connectors.delta.types import fits
from firesteel.connectors.lakes.columns import select_columns
from firesteel.connectors.lakes.sink import LakeSink, check_columns
from firesteel.types.logical import RowType

__all__ = ["DeltaSink", "DeltaSinkBuilder"]


class DeltaSink(LakeSink):
    """Appends rows to a table or, with ``upsert``, merges them by their key; exactly once."""

    name: ClassVar[str] = "Delta Sink"

    @staticmethod
    def for_row_data(
        table_path: str, row_type: RowType | None = None, storage_options: Mapping[str, str] | None = None
    ) -> DeltaSinkBuilder:
        """Configures a sink of Rows, tuples or dicts. With a type, the table is created if there is none."""
        return DeltaSinkBuilder(DeltaTable(table_path, storage_options), row_type)


class DeltaSinkBuilder:
    """Configures a DeltaSink; the methods are those of Delta's connector for Flink."""

    def __init__(self, table: DeltaTable, row_type: RowType | None) -> None:
        self._table = table
        self._row_type = row_type
        self._partitions: tuple[str, ...] = ()
        self._merges_schema = False
        self._key: tuple[str, ...] = ()

    def with_partition_columns(self, *columns: str) -> DeltaSinkBuilder:
        """The columns by whose values a new table is partitioned."""
        self._partitions = columns
        return self

    def with_merge_schema(self, merge_schema: bool) -> DeltaSinkBuilder:
        """Whether columns of the type that the table lacks are added to it, instead of an error."""
        self._merges_schema = merge_schema
        return self

    def upsert(self, key: Sequence[str]) -> DeltaSinkBuilder:
        """Has a row replace the one with its key; a Row of kind DELETE or UPDATE_BEFORE deletes it.

        Rows of a key must come to one subtask: use ``key_by`` before the sink. Not in Delta's connector for Flink.
        """
        self._key = tuple(key)
        return self

    def build(self) -> DeltaSink:
        """The sink; creates the table if a type was given, and compares its columns."""
        table = self._table
        if self._row_type is not None:
            if not table.exists():
                table.create(self._row_type, self._partitions, {})
            check_columns(table, self._row_type, "apply" if self._merges_schema else "refuse", fits=fits)
        elif self._merges_schema or self._partitions:
            raise InvalidProgramError("DeltaSink needs the type of the rows for that.", hint="Give it a row type.")
        select_columns(table, self._key or None)  # which disconnects
        return DeltaSink(table, key=self._key)
