"""The source of rows of Delta's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from firesteel.connectors.delta.scan import DeltaScan, ReadOptions
from firesteel.connectors.delta.table import DeltaTable
from firesteel.connectors.lakes.columns import select_columns
from firesteel.connectors.lakes.conditions import Condition
from firesteel.connectors.lakes.source import LakeSource

__all__ = ["DEFAULT_CHECK_INTERVAL_MS", "DeltaSource", "DeltaSourceBuilder"]

DEFAULT_CHECK_INTERVAL_MS = 5_000


class DeltaSource(LakeSource):
    """Rows of a table: of a version, or of all that are appended to it."""

    name: ClassVar[str] = "Delta Source"

    @staticmethod
    def for_bounded_row_data(table_path: str, storage_options: Mapping[str, str] | None = None) -> DeltaSourceBuilder:
        """Reads a version of the table, and ends."""
        return DeltaSourceBuilder(DeltaTable(table_path, storage_options), ReadOptions())

    @staticmethod
    def for_continuous_row_data(
        table_path: str, storage_options: Mapping[str, str] | None = None
    ) -> DeltaSourceBuilder:
        """Reads the table, and goes on with what is appended to it."""
        options = ReadOptions(interval_ms=DEFAULT_CHECK_INTERVAL_MS)
        return DeltaSourceBuilder(DeltaTable(table_path, storage_options), options)


class DeltaSourceBuilder:
    """Configures a DeltaSource; the methods are those of Delta's connector for Flink."""

    def __init__(self, table: DeltaTable, options: ReadOptions) -> None:
        self._table = table
        self._options = options
        self._columns: tuple[str, ...] | None = None
        self._conditions: list[Condition] = []

    def column_names(self, *columns: str) -> DeltaSourceBuilder:
        """The columns to read, in this order."""
        self._columns = columns
        return self

    def version_as_of(self, version: int) -> DeltaSourceBuilder:
        """The version that a bounded source reads."""
        return self._set(version=version)

    def timestamp_as_of(self, timestamp: str) -> DeltaSourceBuilder:
        """The time, such as ``2024-01-31T12:00:00``, whose version a bounded source reads."""
        return self._set(timestamp=timestamp)

    def starting_version(self, version: int | str) -> DeltaSourceBuilder:
        """The first version whose rows a continuous source has, or ``latest``, instead of all rows."""
        return self._set(starting_version=version)

    def starting_timestamp(self, timestamp: str) -> DeltaSourceBuilder:
        """The time from which on a continuous source has versions."""
        return self._set(starting_timestamp=timestamp)

    def update_check_interval_millis(self, interval: int) -> DeltaSourceBuilder:
        """How often to look for new versions."""
        return self._set(interval_ms=interval)

    def ignore_deletes(self, ignore: bool) -> DeltaSourceBuilder:
        """Whether a continuous source leaves out versions that deleted rows, instead of failing."""
        return self._set(ignores_deletes=ignore)

    def ignore_changes(self, ignore: bool) -> DeltaSourceBuilder:
        """Whether a continuous source reads all files of versions that changed rows, instead of failing."""
        return self._set(ignores_changes=ignore)

    def filter(self, column: str, operator: str, *values: Any) -> DeltaSourceBuilder:
        """Only rows for which the column compares so with the values, such as ``filter("id", ">=", 100)``."""
        self._conditions.append(Condition(column, operator, values))
        return self

    def build(self) -> DeltaSource:
        """The source; reads the columns of the table."""
        row_type = select_columns(self._table, self._columns)
        return DeltaSource(DeltaScan(self._table, row_type, self._options, tuple(self._conditions)))

    def _set(self, **options: Any) -> DeltaSourceBuilder:
        self._options = replace(self._options, **options)
        return self
