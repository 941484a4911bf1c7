"""The sink of rows of Iceberg's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.iceberg.catalog import catalog_properties
from firesteel.connectors.iceberg.table import IcebergTable
from firesteel.connectors.lakes.columns import select_columns
from firesteel.connectors.lakes.sink import LakeSink

__all__ = ["IcebergSink", "IcebergSinkBuilder", "TableLoader"]


class TableLoader:
    """Names a table of a catalog."""

    @staticmethod
    def from_catalog(catalog_name: str, options: Mapping[str, str], identifier: str) -> IcebergTable:
        """The table ``database.table`` of a catalog with the options that SQL has: catalog-type, uri, warehouse, …"""
        parts = identifier.split(".")
        if len(parts) < 2 or not all(parts):
            raise InvalidProgramError(f"'{identifier}' is no name of a table.", hint="Write 'database.table'.")
        return IcebergTable(catalog_name, catalog_properties(options), parts)


class IcebergSink(LakeSink):
    """Appends rows to a table or, with ``upsert``, replaces and deletes rows by their key; exactly once."""

    name: ClassVar[str] = "Iceberg Sink"

    @staticmethod
    def builder() -> IcebergSinkBuilder:
        """Configures a sink of Rows, tuples or dicts."""
        return IcebergSinkBuilder()

    for_row_data = builder


class IcebergSinkBuilder:
    """Configures an IcebergSink; the methods are those of Iceberg's connector for Flink."""

    def __init__(self) -> None:
        self._table: IcebergTable | None = None
        self._key: tuple[str, ...] = ()
        self._upserts = False
        self._overwrites = False

    def table_loader(self, table: IcebergTable) -> IcebergSinkBuilder:
        """The table; see ``TableLoader``."""
        self._table = table
        return self

    def equality_field_columns(self, columns: list[str]) -> IcebergSinkBuilder:
        """The key of the rows."""
        self._key = tuple(columns)
        return self

    def upsert(self, enabled: bool) -> IcebergSinkBuilder:
        """Whether a row replaces the one with its key; a Row of kind DELETE or UPDATE_BEFORE deletes it.

        Rows of a key must come to one subtask: use ``key_by`` before the sink.
        """
        self._upserts = enabled
        return self

    def overwrite(self, enabled: bool) -> IcebergSinkBuilder:
        """Whether the rows of a batch replace those of the partitions that they are of."""
        self._overwrites = enabled
        return self

    def build(self) -> IcebergSink:
        """The sink; reads the columns of the table."""
        if self._table is None:
            raise InvalidProgramError("IcebergSink needs a table.", hint="Call table_loader(TableLoader…).")
        if self._upserts and self._overwrites:
            raise InvalidProgramError("OVERWRITE mode shouldn't be enabled when configuring to use UPSERT data stream.")
        key = self._key if self._upserts else ()
        if self._upserts and not key:
            schema = self._table.loaded.schema()
            key = tuple(sorted(schema.identifier_field_names()))
            if not key:
                raise InvalidProgramError(
                    "Upserts need a key.",
                    hint="Call equality_field_columns([…]), or set the table's identifier fields.",
                )
        select_columns(self._table, key or None)  # which disconnects
        return IcebergSink(self._table, key=key, overwrites=self._overwrites, by_partition=True)
