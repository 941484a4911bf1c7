"""The splits of a PostgresSource: how a table or query is cut, and the SQL that reads one part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from firesteel.common.connector import SplitEnumeratorContext
from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.number_sequence import split_evenly
from firesteel.connectors.postgres.connection import PostgresConnectionOptions, connect, describe_table, translating
from firesteel.connectors.postgres.errors import PostgresError
from firesteel.connectors.postgres.statements import to_placeholders
from firesteel.connectors.postgres.tables import Table, need_table
from firesteel.connectors.split_enumerators import SharedSplitEnumerator

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

__all__ = ["PostgresSplit", "PostgresSplitEnumerator", "SourceSettings", "plan_splits", "select_statement"]


@dataclass(frozen=True)
class SourceSettings:
    """The settings of a PostgresSource; made by its builder."""

    connection: PostgresConnectionOptions
    table: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    query: str | None = None
    parameters: tuple[tuple[Any, ...], ...] | None = None
    """The values of the query's placeholders, a split each."""
    partition_column: str | None = None
    lower_bound: Any = None
    upper_bound: Any = None
    partitions: int | None = None
    key: tuple[str, ...] | None = None
    poll_interval_ms: int | None = None
    """How often to look for new rows; None if the source ends."""
    fetch_size: int = 2000

    def describe(self) -> str:
        """What is read, for messages."""
        return describe_table(self.table) if self.table else "the query"


@dataclass(frozen=True)
class PostgresSplit:
    """Rows whose partition column is from ``lower`` on, up to ``upper``.

    ``position`` is the key of the last row read; without a key, how many rows were read.
    """

    split_id: str
    key: tuple[str, ...] = ()
    lower: Any = None
    upper: Any = None
    includes_upper: bool = False
    only_null: bool = False
    parameters: tuple[Any, ...] = ()
    position: Any = field(default=None)


class PostgresSplitEnumerator(SharedSplitEnumerator[PostgresSplit]):
    """Asks the server for bounds and keys, beside the JobMaster's thread; readers wait until that is known."""

    def __init__(
        self, context: SplitEnumeratorContext, settings: SourceSettings, splits: Sequence[PostgresSplit] | None = None
    ) -> None:
        super().__init__(context, splits or ())
        self._settings = settings
        self._is_planned = splits is not None
        self._waiting: list[int] = []

    def start(self) -> None:
        """Has the splits planned, unless they were."""
        if not self._is_planned:
            parallelism = self._context.current_parallelism()
            self._context.call_async(partial(plan_splits, self._settings, parallelism), self._take_plan)

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """Assigns a split as soon as there is a plan."""
        if self._is_planned:
            super().handle_split_request(subtask, host)
        else:
            self._waiting.append(subtask)

    def snapshot_state(self, checkpoint_id: int) -> list[PostgresSplit] | None:  # type: ignore[override]
        """The splits no reader has; None if they are not planned."""
        return super().snapshot_state(checkpoint_id) if self._is_planned else None

    def _take_plan(self, splits: list[PostgresSplit], error: Exception | None) -> None:
        if error is not None:
            raise error
        self._pending.extend(splits)
        self._is_planned = True
        waiting, self._waiting = self._waiting, []
        for subtask in waiting:
            super().handle_split_request(subtask, None)


def plan_splits(settings: SourceSettings, parallelism: int) -> list[PostgresSplit]:
    """The splits, with what the server says about the table."""
    server = settings.connection.describe()
    with connect(settings.connection, name="firesteel source") as connection:
        with translating(f"The splits of {settings.describe()} cannot be planned", server):
            table = need_table(connection, settings.table, server) if settings.table else None
            if table is not None:
                _check_columns(table, settings)
            key = _find_key(table, settings)
            if settings.parameters is not None:
                return [PostgresSplit(str(i), key, parameters=each) for i, each in enumerate(settings.parameters)]
            if settings.partition_column is None:
                return [PostgresSplit("0", key)]
            return _cut(connection, settings, key, settings.partitions or parallelism)


def select_statement(settings: SourceSettings, split: PostgresSplit) -> tuple[sql.Composed, list[Any]]:
    """The rows of a split behind its position, and the values of the statement's placeholders."""
    from psycopg import sql

    conditions: list[sql.Composable] = []
    values: list[Any] = list(split.parameters)
    if settings.partition_column is not None:
        column = sql.Identifier(settings.partition_column)
        if split.only_null:
            conditions.append(sql.SQL("{} IS NULL").format(column))
        else:
            comparison = sql.SQL("<=" if split.includes_upper else "<")
            conditions.append(sql.SQL("{0} >= %s AND {0} {1} %s").format(column, comparison))
            values += [split.lower, split.upper]
    order = sql.SQL("")
    if split.key:
        key = sql.SQL(", ").join(map(sql.Identifier, split.key))
        order = sql.SQL(" ORDER BY {}").format(key)  # type: ignore[assignment]
        if split.position is not None:
            conditions.append(sql.SQL("({}) > ({})").format(key, sql.SQL(", ").join([sql.SQL("%s")] * len(split.key))))
            values += split.position
    where = sql.SQL(" WHERE {}").format(sql.SQL(" AND ").join(conditions)) if conditions else sql.SQL("")
    statement = sql.SQL("SELECT {} FROM {}{}{}").format(_columns(settings, split), _from(settings), where, order)
    return statement, values


def _columns(settings: SourceSettings, split: PostgresSplit) -> sql.Composable:
    from psycopg import sql

    if settings.columns is None:
        return sql.SQL("*")
    # the key is needed for the position; what was not asked for is cut off again
    names = [*settings.columns, *(name for name in split.key if name not in settings.columns)]
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _from(settings: SourceSettings) -> sql.Composable:
    from psycopg import sql

    if settings.query is None:
        return sql.Identifier(*settings.table)
    query = settings.query.strip().rstrip(";")
    query = to_placeholders(query)[0] if settings.parameters is not None else query.replace("%", "%%")
    return sql.SQL("({}\n) AS firesteel_query").format(sql.SQL(query))


def _check_columns(table: Table, settings: SourceSettings) -> None:
    wanted = [*(settings.columns or ()), *(settings.key or ())]
    if settings.partition_column is not None:
        wanted.append(settings.partition_column)
    there = [column.name for column in table.columns]
    if missing := [name for name in wanted if name not in there]:
        raise PostgresError(
            f"The table {table.full_name} has no column {', '.join(map(repr, missing))} ({table.server}).",
            server=table.server,
            table=table.full_name,
            sqlstate="42703",
            hint=f"Its columns are: {', '.join(there)}.",
        )


def _find_key(table: Table | None, settings: SourceSettings) -> tuple[str, ...]:
    if settings.key is not None:
        return settings.key
    if table is None:
        return ()
    not_null = [column.name for column in table.columns if column.not_null]
    if settings.partition_column in not_null and (settings.partition_column,) in table.unique_keys:
        return (settings.partition_column,)
    return table.primary_key or ()


def _cut(
    connection: psycopg.Connection[Any], settings: SourceSettings, key: tuple[str, ...], count: int
) -> list[PostgresSplit]:
    from psycopg import sql

    lower, upper = settings.lower_bound, settings.upper_bound
    splits: list[PostgresSplit] = []
    if lower is None:
        column = sql.Identifier(str(settings.partition_column))
        row = connection.execute(
            sql.SQL("SELECT min({0}), max({0}), bool_or({0} IS NULL) FROM {1}").format(column, _from(settings)), ()
        ).fetchone()
        lower, upper, has_null = row if row is not None else (None, None, False)
        if has_null:
            splits.append(PostgresSplit("null", key, only_null=True))
        if lower is None:
            return splits
    bounds = boundaries(lower, upper, count)
    last = len(bounds) - 2
    return splits + [
        PostgresSplit(str(i), key, bounds[i], bounds[i + 1], includes_upper=i == last) for i in range(last + 1)
    ]


def boundaries(lower: Any, upper: Any, count: int) -> list[Any]:
    """From ``lower`` to ``upper`` in at most so many even steps.

    >>> boundaries(0, 9, 3)
    [0, 4, 7, 9]
    """
    known = isinstance(lower, (int, float, Decimal, date)) and not isinstance(lower, bool)
    if not known or type(lower) is not type(upper):
        raise InvalidProgramError(
            f"PostgresSource: a partition column cannot be cut from {lower!r} to {upper!r}.",
            hint="It must be a number, a date or a timestamp, and both bounds of the same type.",
        )
    if isinstance(lower, int):
        return [start for start, _ in split_evenly(lower, upper + 1, count)] + [upper]
    if isinstance(lower, date) and not isinstance(lower, datetime):
        days = boundaries(lower.toordinal(), upper.toordinal(), count)
        return [date.fromordinal(day) for day in days]
    first: Any = lower
    steps = [first + (upper - first) * i / count for i in range(count)] if first < upper else [first]
    return [*steps, upper]
