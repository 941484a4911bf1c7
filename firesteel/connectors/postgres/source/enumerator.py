"""Split enumerator of a PostgresSource."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.base.split_enumerators import SharedSplitEnumerator
from firesteel.connectors.generators.number_sequence import split_evenly
from firesteel.connectors.postgres.connection import connect, translating
from firesteel.connectors.postgres.errors import PostgresError
from firesteel.connectors.postgres.source.splits import KeyType, PostgresSplit, SourceSettings, from_clause
from firesteel.connectors.postgres.statements import identifier, identifiers
from firesteel.connectors.postgres.table_description import PostgresTable, need_table
from firesteel.spi.source import SplitEnumeratorContext

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresSplitEnumerator", "boundaries", "plan_splits"]

_REAL_OID = 700
_EXACT = frozenset({16, 17, 20, 21, 23, 25, 26, _REAL_OID, 701, 1042, 1043, 1082, 1114, 1184, 1700, 2950})
"""Types of which Python's value, given back to the server, is the value it was: booleans, bytea, numbers, texts, dates,
timestamps, UUIDs. Of others, such as intervals and enums, a position has the text."""


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
    """The splits, with the server's description of the table."""
    server = settings.connection.describe()
    with connect(settings.connection, name="firesteel source") as connection:
        with translating(f"The splits of {settings.describe()} cannot be planned", server):
            table = need_table(connection, settings.table, server) if settings.table else None
            if table is not None:
                _check_columns(table, settings)
            key = _find_key(table, settings)
            whole = PostgresSplit("0", key, key_types=_key_types(connection, settings, key))
            if settings.parameters is not None:
                return [replace(whole, split_id=str(i), parameters=each) for i, each in enumerate(settings.parameters)]
            if settings.partition_column is None:
                return [whole]
            return _cut(connection, settings, whole, settings.partitions or parallelism)


def _check_columns(table: PostgresTable, settings: SourceSettings) -> None:
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


def _find_key(table: PostgresTable | None, settings: SourceSettings) -> tuple[str, ...]:
    if settings.key is not None:
        return settings.key
    if table is None:
        return ()
    not_null = [column.name for column in table.columns if column.not_null]
    if settings.partition_column in not_null and (settings.partition_column,) in table.unique_keys:
        return (settings.partition_column,)
    return table.primary_key or ()


def _type_oids(connection: psycopg.Connection[Any], settings: SourceSettings, names: Sequence[str]) -> list[int]:
    """The types of columns, those below domains, as a result has them."""
    from psycopg import sql

    # as many NULLs as the query has placeholders
    values = [None] * len(settings.parameters[0]) if settings.parameters else []
    statement = sql.SQL("SELECT {} FROM {} LIMIT 0").format(identifiers(names), from_clause(settings))
    return [column.type_code for column in connection.execute(statement, values).description or ()]


def _key_types(
    connection: psycopg.Connection[Any], settings: SourceSettings, key: tuple[str, ...]
) -> tuple[KeyType, ...]:
    if not key:
        return ()
    oids = _type_oids(connection, settings, key)
    # with -1 instead of NULL: "character" alone would be one character
    rows = connection.execute(
        "SELECT format_type(oid, -1) FROM unnest(%s::oid[]) WITH ORDINALITY AS t(oid, n) ORDER BY n", (oids,)
    )
    return tuple(KeyType(name, oid not in _EXACT) for (name,), oid in zip(rows, oids, strict=True))


def _cut(
    connection: psycopg.Connection[Any], settings: SourceSettings, whole: PostgresSplit, count: int
) -> list[PostgresSplit]:
    """The splits by the partition column.

    Without bounds of the user's, the first and the last split have none at their outer side: what is computed from the
    least and the greatest value only determines where two splits meet, so it does no harm if that is rounded.
    """
    from psycopg import sql

    column = str(settings.partition_column)
    lower, upper = settings.lower_bound, settings.upper_bound
    if lower is not None:
        if _type_oids(connection, settings, [column]) == [_REAL_OID]:
            lower, upper = _as_real(lower), _as_real(upper)
        bounds = boundaries(lower, upper, count)
        last = len(bounds) - 2
        return [
            replace(whole, split_id=str(i), lower=bounds[i], upper=bounds[i + 1], includes_upper=i == last)
            for i in range(last + 1)
        ]
    row = connection.execute(
        sql.SQL("SELECT min({0}), max({0}), bool_or({0} IS NULL) FROM {1}").format(
            identifier(column), from_clause(settings)
        ),
        (),
    ).fetchone()
    lower, upper, has_null = row if row is not None else (None, None, False)
    splits = [replace(whole, split_id="null", only_null=True)] if has_null else []
    if lower is None:
        return splits
    bounds = [None, *boundaries(lower, upper, count)[1:-1], None]
    return splits + [
        replace(whole, split_id=str(i), lower=low, upper=high) for i, (low, high) in enumerate(pairwise(bounds))
    ]


def boundaries(lower: Any, upper: Any, count: int) -> list[Any]:
    """From ``lower`` to ``upper`` in at most so many even steps; in one if they are infinitely far apart.

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
    if isinstance(lower, (float, Decimal)) and not (math.isfinite(lower) and math.isfinite(upper)):
        return [lower, upper]
    parts = range(1, count) if lower < upper else ()
    if isinstance(lower, float):
        # each product is finite, where the difference of the two may not be
        inner = [lower * ((count - i) / count) + upper * (i / count) for i in parts]
    else:
        inner = [lower + (upper - lower) * i / count for i in parts]
    return [lower, *sorted({each for each in inner if lower < each < upper}), upper]


def _as_real(value: Any) -> Any:
    """The number of type real next to a bound that is a fraction: its 0.7 is not that of double precision."""
    if isinstance(value, int):
        return value
    try:
        (rounded,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        rounded = math.copysign(math.inf, value)
    return rounded
