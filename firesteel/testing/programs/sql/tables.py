"""The tables of drawn queries: records of a stream as rows, and the rows that are left as records again."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.common import Types
from firesteel.common.errors import FiresteelWarning
from firesteel.common.types import Row, RowKind
from firesteel.datastream.functions import FlatMapFunction, KeyedProcessFunction, KeySelector
from firesteel.testing.programs.keys import KEYS
from firesteel.testing.programs.records import fields, make
from firesteel.testing.programs.running.faults import Trip, step
from firesteel.testing.programs.sql.expressions import BIGINT, INT, STRING, TIME, Column

__all__ = [
    "FinalRows",
    "TableOf",
    "ToRows",
    "WholeRow",
    "changes_of",
    "final_rows",
    "query_stream",
    "record_of",
    "rows_of",
]

END = 10**12
_TEXTS = ("a", "b", None, "B", "", "abc", "öl")
_COLUMNS = (Column("k", INT), Column("v", BIGINT), Column("s", STRING))


@dataclass(frozen=True)
class TableOf:
    """How a stream is read as a table."""

    name: str
    form: str = "append"
    """``append``, ``changes`` with rows before updates, or ``upsert`` with k as the primary key."""
    is_timed: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns."""
        return (*_COLUMNS, Column("ts", TIME)) if self.is_timed else _COLUMNS


def changes_of(form: str, record: Any) -> list[tuple[RowKind, tuple[Any, ...]]]:
    """The changes of a table that a record stands for."""
    k, v, _, _ = fields(record)
    v %= 1_000_003  # sums of it do not overflow
    if form == "upsert":
        kind = RowKind.DELETE if v % 7 == 3 else RowKind.UPDATE_AFTER
        return [(kind, (k, v, _TEXTS[v % len(_TEXTS)]))]
    row = (None if v % 6 == 4 else k, None if v % 9 == 5 else v, _TEXTS[v % len(_TEXTS)])
    changes = [(RowKind.INSERT, row)]
    if form == "changes":
        if v % 3 == 0:
            changes.append((RowKind.DELETE, row))
        elif v % 3 == 1:
            changes += [(RowKind.UPDATE_BEFORE, row), (RowKind.UPDATE_AFTER, ((k + 1) % KEYS, v, row[2]))]
    return changes


def final_rows(table: TableOf, records: Sequence[tuple[Any, int | None]]) -> list[tuple[Any, ...]]:
    """The rows of a table after all records, which have a value and a time."""
    if table.form == "upsert":
        latest: dict[Any, tuple[Any, ...] | None] = {}
        for record, _ in records:
            kind, row = changes_of(table.form, record)[0]
            latest[row[0]] = None if kind is RowKind.DELETE else row
        return [row for row in latest.values() if row is not None]
    rows = []
    for record, time in records:
        kind, row = changes_of(table.form, record)[-1]
        if kind is not RowKind.DELETE:
            rows.append((*row, time) if table.is_timed else row)
    return rows


@dataclass
class ToRows(FlatMapFunction):
    """Turns a record into the changes of a table."""

    form: str
    trip: Trip | None = None

    def flat_map(self, value: Any) -> Iterator[Row]:
        """Yields rows with their kinds."""
        step(self.trip)
        for kind, values in changes_of(self.form, value):
            yield Row.of_kind(kind, *values)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return round((moment - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() * 1000)
    return value


def _text(values: Sequence[Any]) -> str:
    return repr([_plain(value) for value in values])


def record_of(shape: str, text: str, count: int) -> Any:
    """The record of a row of a result that is there so often."""
    number = zlib.crc32(text.encode())
    return make(shape, number % KEYS, number, count, (count,))


@dataclass
class WholeRow(KeySelector):
    """The text of a row."""

    trip: Trip | None = None

    def get_key(self, value: Row) -> str:
        """All values, and not the kind."""
        step(self.trip)
        return _text(list(value))


@dataclass
class FinalRows(KeyedProcessFunction):
    """Counts how often a row is there, and emits that at the end of event time."""

    shape: str
    trip: Trip | None = None

    def open(self, runtime_context: Any) -> None:
        """The count."""
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        """Counts a change."""
        step(self.trip)
        is_added = value.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
        self._count.update((self._count.value() or 0) + (1 if is_added else -1))
        ctx.timer_service().register_event_time_timer(END)
        return iter(())

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        """Yields a record if the row is there."""
        count = self._count.value()
        if count:
            yield record_of(self.shape, ctx.get_current_key(), count)


def query_stream(
    env: Any,
    streams: tuple[Any, ...],
    tables: tuple[TableOf, ...],
    views: tuple[tuple[str, str], ...],
    query: str,
    options: tuple[tuple[str, str], ...],
) -> Any:
    """Returns the changes of a query over streams of rows."""
    from firesteel.table import Schema, StreamTableEnvironment
    from firesteel.table.changelog_mode import ChangelogMode

    table_env = StreamTableEnvironment.create(env)
    table_env.get_config().set_local_timezone("UTC")
    for key, value in options:
        table_env.get_config().set(key, value)
    for stream, table in zip(streams, tables, strict=True):
        schema = Schema.new_builder()
        if table.form == "upsert":
            schema = schema.column("k", "INT NOT NULL").column("v", "BIGINT").column("s", "STRING").primary_key("k")
            made = table_env.from_changelog_stream(stream, schema.build(), ChangelogMode.upsert())
        elif table.form == "changes":
            made = table_env.from_changelog_stream(stream)
        elif table.is_timed:
            schema = schema.column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "rowtime").watermark(
                "ts", "SOURCE_WATERMARK()"
            )
            made = table_env.from_data_stream(stream, schema.build())
        else:
            made = table_env.from_data_stream(stream)
        table_env.create_temporary_view(table.name, made)
    for name, text in views:
        table_env.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {text}")
    with warnings.catch_warnings():
        # that joins keep all rows
        warnings.simplefilter("ignore", FiresteelWarning)
        return table_env.to_changelog_stream(table_env.sql_query(query))


def rows_of(stream: Any, function: FlatMapFunction, uid: str) -> Any:
    """Returns the rows that a function makes of records."""
    row_type = Types.ROW_NAMED(["k", "v", "s"], [Types.INT(), Types.LONG(), Types.STRING()])
    return stream.flat_map(function, row_type).uid(uid)
