"""Scans of Iceberg's tables: a snapshot, the appends between two, or those of all that come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.iceberg.data_files import data_file, describe_data_file
from firesteel.connectors.iceberg.table import IcebergTable
from firesteel.connectors.lakes.columns import ColumnRows
from firesteel.connectors.lakes.conditions import Condition
from firesteel.connectors.lakes.errors import LakeReadError, SchemaMismatchError
from firesteel.connectors.lakes.scan import Discovery, LakeScan, LakeSplit, as_columns
from firesteel.types.logical import RowType

__all__ = ["IcebergScan", "ReadOptions", "StartingStrategy"]


class StartingStrategy(Enum):
    """Where an unbounded scan begins; the names are those of Iceberg's connector for Flink."""

    TABLE_SCAN_THEN_INCREMENTAL = "TABLE_SCAN_THEN_INCREMENTAL"
    """With all rows of the current snapshot."""
    INCREMENTAL_FROM_LATEST_SNAPSHOT = "INCREMENTAL_FROM_LATEST_SNAPSHOT"
    """With what the current snapshot has appended."""
    INCREMENTAL_FROM_LATEST_SNAPSHOT_EXCLUSIVE = "INCREMENTAL_FROM_LATEST_SNAPSHOT_EXCLUSIVE"
    INCREMENTAL_FROM_EARLIEST_SNAPSHOT = "INCREMENTAL_FROM_EARLIEST_SNAPSHOT"
    INCREMENTAL_FROM_SNAPSHOT_ID = "INCREMENTAL_FROM_SNAPSHOT_ID"
    INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP = "INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP"


@dataclass(frozen=True)
class ReadOptions:
    """Which snapshots are read."""

    interval_ms: int | None = None
    """None for a scan that ends."""
    strategy: StartingStrategy = StartingStrategy.INCREMENTAL_FROM_LATEST_SNAPSHOT
    snapshot_id: int | None = None
    as_of_timestamp: int | None = None
    branch: str | None = None
    tag: str | None = None
    start_snapshot_id: int | None = None
    start_snapshot_timestamp: int | None = None
    end_snapshot_id: int | None = None
    skips_overwrites: bool = False
    skips_deletes: bool = False
    refuses_new_columns: bool = False


@dataclass(frozen=True)
class _Position:
    """The last snapshot that was read, None if the table had none; and the schema it was read with."""

    snapshot_id: int | None
    schema_id: int


@dataclass(frozen=True)
class IcebergScan(LakeScan):
    """Reads columns of a table."""

    table: IcebergTable
    row_type: RowType
    options: ReadOptions = ReadOptions()
    conditions: tuple[Condition, ...] = ()

    @property
    def interval_ms(self) -> int | None:  # type: ignore[override]
        return self.options.interval_ms

    def close(self) -> None:
        self.table.close()

    def is_remote(self) -> bool:
        return not self.table.loaded.location().startswith(("file:", "/"))

    # -- finding files -----------------------------------------------------------------------------

    def discover(self, position: _Position | None) -> Discovery:
        self.table.refresh()
        table = self.table.loaded
        self._check_columns(table)
        schema_id = table.schema().schema_id
        if position is None:
            is_bounded = self.options.interval_ms is None
            tasks, reached = (self._bounded(table), None) if is_bounded else self._begin(table)
        else:
            if self.options.refuses_new_columns and schema_id != position.schema_id:
                raise LakeReadError(
                    f"The columns of {self.table.describe()} have changed: {table.schema().as_struct()}.",
                    hint="Start the job again, or set 'schema-evolution' = 'apply' to go on with the columns it had.",
                )
            tasks, reached = self._since(table, position.snapshot_id)
        splits = [self._split(reached, task) for task in tasks]
        return Discovery(splits, _Position(reached, schema_id))

    def _check_columns(self, table: Any) -> None:
        there = [one.name for one in table.schema().fields]
        missing = [name for name in self.row_type.field_names if name not in there]
        if missing:
            raise SchemaMismatchError(
                f"{self.table.describe()} has no column {', '.join(map(repr, missing))}.",
                columns=missing,
                hint=f"Its columns are: {', '.join(there)}.",
            )

    def _bounded(self, table: Any) -> list[Any]:
        options = self.options
        if options.start_snapshot_id is not None:
            scan = table.incremental_append_scan(
                row_filter=self._filter(),
                from_snapshot_id_exclusive=options.start_snapshot_id,
                to_snapshot_id_inclusive=options.end_snapshot_id,
            )
            return self._planned(scan)
        snapshot_id = options.snapshot_id
        if options.as_of_timestamp is not None:
            found = table.snapshot_as_of_timestamp(options.as_of_timestamp)
            if found is None:
                raise LakeReadError(
                    f"{self.table.describe()} had no snapshot at {options.as_of_timestamp}.", hint=_history(table)
                )
            snapshot_id = found.snapshot_id
        if snapshot_id is not None and table.snapshot_by_id(snapshot_id) is None:
            raise LakeReadError(f"{self.table.describe()} has no snapshot {snapshot_id}.", hint=_history(table))
        name = options.tag or options.branch
        if name is not None:
            found = table.snapshot_by_name(name)
            if found is None:
                raise LakeReadError(
                    f"{self.table.describe()} has no tag or branch '{name}'.",
                    hint=f"It has: {', '.join(table.refs())}.",
                )
            snapshot_id = found.snapshot_id
        return self._planned(table.scan(row_filter=self._filter(), snapshot_id=snapshot_id))

    def _begin(self, table: Any) -> tuple[list[Any], int | None]:
        options, strategy = self.options, self.options.strategy
        current = table.current_snapshot()
        if current is None:
            return [], None
        if strategy is StartingStrategy.TABLE_SCAN_THEN_INCREMENTAL:
            return self._planned(table.scan(row_filter=self._filter())), current.snapshot_id
        if strategy is StartingStrategy.INCREMENTAL_FROM_LATEST_SNAPSHOT_EXCLUSIVE:
            return [], current.snapshot_id
        if strategy is StartingStrategy.INCREMENTAL_FROM_EARLIEST_SNAPSHOT:
            return self._since(table, None)
        if strategy is StartingStrategy.INCREMENTAL_FROM_SNAPSHOT_ID:
            first = table.snapshot_by_id(options.start_snapshot_id)
        elif strategy is StartingStrategy.INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP:
            at = options.start_snapshot_timestamp or 0
            later = [one for one in _ancestors(table) if one.timestamp_ms >= at]
            if not later:
                return [], current.snapshot_id
            first = later[-1]
        else:
            first = current
        if first is None:
            raise LakeReadError(
                f"{self.table.describe()} has no snapshot {options.start_snapshot_id}.", hint=_history(table)
            )
        return self._since(table, first.parent_snapshot_id)

    def _since(self, table: Any, last: int | None) -> tuple[list[Any], int | None]:
        """What was appended after a snapshot; from the first one on if it is None."""
        current = table.current_snapshot()
        if current is None or current.snapshot_id == last:
            return [], last
        new = []
        for snapshot in _ancestors(table):
            if snapshot.snapshot_id == last:
                break
            new.append(snapshot)
            if last is not None and snapshot.parent_snapshot_id == last:
                break
        else:
            if last is not None:
                raise LakeReadError(
                    f"Snapshot {last} of {self.table.describe()}, up to which it was read, is no ancestor of its "
                    f"current snapshot {current.snapshot_id}.",
                    hint="The snapshot has expired, or the table was rolled back. Start again from another snapshot.",
                )
        for snapshot in new:
            self._check_snapshot(snapshot)
        scan = table.incremental_append_scan(
            row_filter=self._filter(),
            from_snapshot_id_exclusive=last,
            to_snapshot_id_inclusive=current.snapshot_id,
        )
        return self._planned(scan), current.snapshot_id

    def _check_snapshot(self, snapshot: Any) -> None:
        operation = snapshot.summary.operation.value if snapshot.summary is not None else "append"
        if operation in ("append", "replace"):
            return
        skips = self.options.skips_deletes if operation == "delete" else self.options.skips_overwrites
        if not skips:
            raise LakeReadError(
                f"Snapshot {snapshot.snapshot_id} of {self.table.describe()} is an {operation}, which a stream of "
                "appended rows cannot have.".replace("an delete", "a delete"),
                hint=f"'streaming-skip-{operation}-snapshots' = 'true' leaves such snapshots out.",
            )

    def _planned(self, scan: Any) -> list[Any]:
        try:
            tasks = list(scan.plan_files())
        except (NotImplementedError, ValueError) as error:
            raise LakeReadError(f"{self.table.describe()} cannot be read: {error}.") from error
        return sorted(tasks, key=lambda task: str(task.file.file_path))

    def _filter(self) -> Any:
        from pyiceberg.expressions import AlwaysTrue, And

        found: Any = AlwaysTrue()
        for condition in self.conditions:
            found = And(found, _expression(condition))
        return found

    def _split(self, snapshot_id: int | None, task: Any) -> LakeSplit:
        file = describe_data_file(task.file)
        deletes = [describe_data_file(each) for each in task.delete_files]
        return LakeSplit(f"{snapshot_id or 0}:{file['file_path']}", {"data": file, "deletes": deletes})

    # -- reading -----------------------------------------------------------------------------------

    def read(self, split: LakeSplit) -> Iterator[ColumnRows]:
        from pyiceberg.io.pyarrow import ArrowScan, _read_all_delete_files
        from pyiceberg.table import FileScanTask

        table = self.table.loaded
        missing = set(self.row_type.field_names) - {one.name for one in table.schema().fields}
        if missing:
            self.table.refresh()
        version = table.format_version
        task = FileScanTask(
            data_file(split.file["data"], version), {data_file(each, version) for each in split.file["deletes"]}
        )
        schema = table.schema().select(*self.row_type.field_names)
        scan = ArrowScan(table.metadata, table.io, schema, self._filter())
        deletes = _read_all_delete_files(table.io, [task])
        # a batch at a time: to_record_batches would have the whole file in memory
        for batch in scan._record_batches_from_scan_tasks_and_deletes([task], deletes):
            yield ColumnRows(as_columns(batch, self.row_type))


def _ancestors(table: Any) -> Iterator[Any]:
    """The current snapshot and those before it, as far as they have not expired."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)


def _history(table: Any) -> str:
    known = ", ".join(f"{one.snapshot_id} at {one.timestamp_ms}" for one in table.history()[-5:])
    return f"Its last snapshots: {known}." if known else "The table has no snapshot."


def _expression(condition: Condition) -> Any:
    from pyiceberg import expressions as e

    value: Any = condition.values[0] if condition.values else None
    match condition.operator:
        case "=":
            return e.EqualTo(condition.column, value)
        case "<>":
            return e.NotEqualTo(condition.column, value)
        case "<":
            return e.LessThan(condition.column, value)
        case "<=":
            return e.LessThanOrEqual(condition.column, value)
        case ">":
            return e.GreaterThan(condition.column, value)
        case ">=":
            return e.GreaterThanOrEqual(condition.column, value)
        case "in":
            return e.In(condition.column, set(condition.values))
        case "is null":
            return e.IsNull(condition.column)
        case "is not null":
            return e.NotNull(condition.column)
    raise InvalidProgramError(f"Unknown comparison '{condition.operator}'.")
