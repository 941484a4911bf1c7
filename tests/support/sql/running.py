"""Runs queries over the generated tables as streams in this process, with failures, and as Spark SQL."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from firesteel.common import Row, WatermarkStrategy
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec, RowsToColumnsSpec
from firesteel.table.binder.calls import call
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import InputRef, Literal
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.plan.streaming import WatermarkAssigner
from firesteel.table.rules.optimizer import optimize
from firesteel.table.rules.options import OptimizerOptions
from firesteel.table.translate.catalogue import Translator
from firesteel.testing import ABORT, PAUSE, TestingSource
from firesteel.types.internal import to_column
from firesteel.types.logical import DayTimeIntervalType, DayTimeResolution, RowField, RowType
from tests.support.jobs.running_jobs import HOUR, RunningJob, clock_of_today, environment
from tests.support.sql.tables import DELAY_MS, TABLES, GeneratedTable, materialized

__all__ = ["bound", "comparable", "final_rows", "run_broken", "run_whole"]

Prepare = Callable[[GeneratedTable], list[list[Any]]]
"""What the splits of a table emit."""
_DEFAULTS = OptimizerOptions()


@dataclass(frozen=True)
class GeneratedSource(ScanTableSource):
    """Emits the rows of a generated table; ``prepare`` says in which splits, and with what between them."""

    table: GeneratedTable
    prepare: Prepare = field(compare=False)
    supports_watermark_push_down = True

    @property
    def produced_type(self) -> RowType:
        return self.table.row_type

    @property
    def is_bounded(self) -> bool:
        return True

    @property
    def changelog_mode(self) -> ChangelogMode:
        return ChangelogMode.insert_only() if self.table.is_append_only else ChangelogMode.all()

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        testing = TestingSource.with_splits(*self.prepare(self.table), bounded=True)
        name = self.table.name
        rows = context.environment.from_source(testing, WatermarkStrategy.no_watermarks(), name).uid(f"source-{name}")
        if not self.table.is_append_only:
            rows.set_parallelism(1)
        # columns of batches take null
        row_type = RowType([RowField(part.name, part.type.copy()) for part in self.table.row_type.fields])
        columns = rows._transform("RowsToColumns", RowsToColumnsSpec(row_type), None)
        if not self.table.is_append_only:
            columns.set_parallelism(1)
        return columns

    def as_summary_string(self) -> str:
        return self.table.name


def _external(table: GeneratedTable, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    columns = zip(*rows, strict=True)
    arrays = [to_column(column, part.type) for column, part in zip(columns, table.row_type.fields, strict=True)]
    return list(zip(*(array.to_pylist() for array in arrays), strict=True))


def external_rows(table: GeneratedTable) -> list[Row]:
    """The changes of a table as records."""
    rows = []
    for (kind, _), values in zip(table.changes, _external(table, [row for _, row in table.changes]), strict=True):
        row = Row(*values)
        row.set_row_kind(kind)
        rows.append(row)
    return rows


def final_rows(table: GeneratedTable) -> list[tuple[Any, ...]]:
    """The rows of a table after all changes, with values as programs have them."""
    return _external(table, table.rows)


def bound(sql: str, prepare: Prepare | None = None) -> LogicalNode:
    """The plan of a query over the generated tables."""

    def resolve(path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
        if path[-1] not in TABLES:
            raise ValidationError(f"Object '{path[-1]}' not found.")
        table = TABLES[path[-1]]
        source = GeneratedSource(table, prepare or (lambda table: [external_rows(table)]))
        identifier = ObjectIdentifier("default_catalog", "default_database", table.name)
        scan = TableScan(identifier, table.row_type, options, source, table.primary_key)
        if table.rowtime is None:
            return scan
        part = table.row_type.fields[table.rowtime]
        delay = Literal(DayTimeIntervalType(DayTimeResolution.SECOND, nullable=False), DELAY_MS)
        watermark = call("MINUS", [InputRef(part.type, table.rowtime, part.name), delay])
        return WatermarkAssigner(scan, table.row_type, table.rowtime, watermark)

    return QueryBinder(resolve, sql).bind(parse_query(sql))


def _stream(
    env: StreamExecutionEnvironment, sql: str, prepare: Prepare, options: OptimizerOptions = _DEFAULTS
) -> DataStream[Any]:
    root = optimize(bound(sql, prepare), options)
    translator = Translator(env, [root])
    return translator.apply(
        translator.translate(root), "ColumnsToRows", ColumnsToRowsSpec(has_timestamps=False), is_single=True
    )


def _start(stream: DataStream[Any]) -> RunningJob:
    channel = f"results-{uuid.uuid4().hex}"
    stream.sink_to(CollectSink(channel)).uid("sink").set_parallelism(1)
    return RunningJob(stream.get_execution_environment().execute_async("query"), channel)


def comparable(value: Any) -> Any:
    """A value that equals that of another system if it is the same in SQL."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(timezone.utc).replace(tzinfo=None)).isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(comparable, value))
    if isinstance(value, dict):
        return tuple(sorted((comparable(key), comparable(item)) for key, item in value.items()))
    return value


def _result(rows: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    return materialized((row.get_row_kind(), [comparable(value) for value in row]) for row in rows)


def run_whole(
    sql: str, directory: Path, parallelism: int = 2, options: OptimizerOptions = _DEFAULTS
) -> Counter[tuple[Any, ...]]:
    """The rows that are left when the stream has ended."""
    env = environment(directory, parallelism)
    prepare: Prepare = lambda table: [_in_batches(external_rows(table))]
    return _result(_start(_stream(env, sql, prepare, options)).wait())


def _in_batches(rows: list[Row]) -> list[Any]:
    """Rows that a source emits as a small batch, a larger one and a large one: a pause that is over ends a batch."""
    over = PAUSE(until=0)
    return [*rows[:1], over, *rows[1:9], over, *rows[9:]]


def run_broken(sql: str, directory: Path, options: OptimizerOptions = _DEFAULTS) -> Counter[tuple[Any, ...]]:
    """The same, with a checkpoint, a failure, a savepoint and a restore with another parallelism on the way."""
    clock = clock_of_today()
    began = clock.now

    def prepare(table: GeneratedTable) -> list[list[Any]]:
        rows = external_rows(table)
        first, second = len(rows) // 3, 2 * len(rows) // 3
        # the failure comes after the checkpoint and takes some rows with it
        middle = [*rows[first : first + 3], ABORT(), *rows[first + 3 : second]]
        pauses = [PAUSE(until=began + HOUR), PAUSE(until=began + 2 * HOUR)]
        return [[*rows[:first], pauses[0], *middle, pauses[1], *rows[second:]]]

    env = environment(directory, 2, clock)
    job = _start(_stream(env, sql, prepare, options)).runs(clock)
    job.checkpoint()
    clock.advance(HOUR)
    job.runs(clock)
    path = job.stop()
    before = list(job.results)
    env = environment(directory, 3, clock, execution__savepoint__path=path)
    job = _start(_stream(env, sql, prepare, options)).runs(clock)
    clock.advance(HOUR)
    return _result([*before, *job.wait()])
