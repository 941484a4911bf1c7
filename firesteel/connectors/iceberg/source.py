"""The source of rows of Iceberg's tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time, to_millis
from firesteel.connectors.iceberg.scan import IcebergScan, ReadOptions, StartingStrategy
from firesteel.connectors.iceberg.table import IcebergTable
from firesteel.connectors.lakes.columns import select_columns
from firesteel.connectors.lakes.conditions import Condition
from firesteel.connectors.lakes.source import LakeSource

__all__ = ["DEFAULT_MONITOR_INTERVAL_MS", "IcebergSource", "IcebergSourceBuilder"]

DEFAULT_MONITOR_INTERVAL_MS = 60_000


class IcebergSource(LakeSource):
    """Rows of a table: of a snapshot, or with ``streaming`` of all that are appended to it."""

    name: ClassVar[str] = "Iceberg Source"

    @staticmethod
    def for_row() -> IcebergSourceBuilder:
        """Emits a Row for each row of the table."""
        return IcebergSourceBuilder()

    for_row_data = for_row


class IcebergSourceBuilder:
    """Configures an IcebergSource; the methods are those of Iceberg's connector for Flink."""

    def __init__(self) -> None:
        self._table: IcebergTable | None = None
        self._options = ReadOptions()
        self._streaming = False
        self._interval_ms = DEFAULT_MONITOR_INTERVAL_MS
        self._columns: Sequence[str] | None = None
        self._conditions: list[Condition] = []

    def table_loader(self, table: IcebergTable) -> IcebergSourceBuilder:
        """The table; see ``TableLoader``."""
        self._table = table
        return self

    def streaming(self, streaming: bool) -> IcebergSourceBuilder:
        """Whether it goes on with snapshots that come; else it reads one and ends."""
        self._streaming = streaming
        return self

    def monitor_interval(self, interval: Duration | Time | timedelta | int) -> IcebergSourceBuilder:
        """How often to look for new snapshots; a number is in milliseconds."""
        self._interval_ms = to_millis(interval)
        if self._interval_ms <= 0:
            raise InvalidProgramError("The monitor interval must be at least a millisecond.")
        return self

    def streaming_starting_strategy(self, strategy: StartingStrategy) -> IcebergSourceBuilder:
        """Where a stream begins."""
        return self._set(strategy=strategy)

    def start_snapshot_id(self, snapshot_id: int) -> IcebergSourceBuilder:
        """The snapshot after which a bounded scan begins, or with which a stream does that starts from an id."""
        return self._set(start_snapshot_id=snapshot_id)

    def start_snapshot_timestamp(self, timestamp: int) -> IcebergSourceBuilder:
        """The time in milliseconds from which on a stream has snapshots, if its strategy starts from one."""
        return self._set(start_snapshot_timestamp=timestamp)

    def end_snapshot_id(self, snapshot_id: int) -> IcebergSourceBuilder:
        """The last snapshot of a bounded scan of what was appended."""
        return self._set(end_snapshot_id=snapshot_id)

    def use_snapshot_id(self, snapshot_id: int) -> IcebergSourceBuilder:
        """The snapshot that a bounded scan reads."""
        return self._set(snapshot_id=snapshot_id)

    def as_of_timestamp(self, timestamp: int) -> IcebergSourceBuilder:
        """The time in milliseconds whose current snapshot a bounded scan reads."""
        return self._set(as_of_timestamp=timestamp)

    def branch(self, branch: str) -> IcebergSourceBuilder:
        """The branch that a bounded scan reads."""
        return self._set(branch=branch)

    def tag(self, tag: str) -> IcebergSourceBuilder:
        """The tag that a bounded scan reads."""
        return self._set(tag=tag)

    def skip_overwrite_snapshots(self, skip: bool) -> IcebergSourceBuilder:
        """Whether a stream leaves out snapshots that replaced rows, instead of failing."""
        return self._set(skips_overwrites=skip)

    def skip_delete_snapshots(self, skip: bool) -> IcebergSourceBuilder:
        """Whether a stream leaves out snapshots that deleted rows, instead of failing."""
        return self._set(skips_deletes=skip)

    def project(self, *columns: str) -> IcebergSourceBuilder:
        """The columns to read, in this order."""
        self._columns = columns
        return self

    def filter(self, column: str, operator: str, *values: Any) -> IcebergSourceBuilder:
        """Only rows for which the column compares so with the values, such as ``filter("id", ">=", 100)``."""
        self._conditions.append(Condition(column, operator, values))
        return self

    def build(self) -> IcebergSource:
        """The source; reads the columns of the table."""
        if self._table is None:
            raise InvalidProgramError("IcebergSource needs a table.", hint="Call table_loader(TableLoader…).")
        options = replace(self._options, interval_ms=self._interval_ms if self._streaming else None)
        row_type = select_columns(self._table, self._columns)
        return IcebergSource(IcebergScan(self._table, row_type, options, tuple(self._conditions)))

    def _set(self, **options: Any) -> IcebergSourceBuilder:
        self._options = replace(self._options, **options)
        return self
