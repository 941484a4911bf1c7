"""Group aggregates in plain Python, rows drawn for them, and operators that run without a job."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.common.types import RowKind
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.table.plan.nodes import AggregateCall
from firesteel.testing.operator_context import FAKE_RUNTIME, FakeClock, FakeOperatorContext
from firesteel.types import logical as t
from firesteel.types.internal import arrow_type
from firesteel.types.logical import RowType

INPUT = RowType.of(
    ["k", "name", "price", "day", "at", "flag", "x", "b", "number", "single"],
    [
        t.BigIntType(),
        t.VarCharType(),
        t.DecimalType(10, 2),
        t.DateType(),
        t.TimestampType(3),
        t.BooleanType(),
        t.DoubleType(),
        t.BigIntType(),
        t.IntType(nullable=False),
        t.FloatType(),
    ],
)
K, NAME, PRICE, DAY, AT, FLAG, X, B, NUMBER, SINGLE = range(10)
BIGINT = t.BigIntType()
KINDS = RowKind.INSERT.value, RowKind.UPDATE_BEFORE.value, RowKind.UPDATE_AFTER.value, RowKind.DELETE.value
INSERT, BEFORE, AFTER, DELETE = KINDS


def call(function: str, *arguments: int, type: Any = BIGINT, **options: Any) -> AggregateCall:
    """A call with a name of its own."""
    name = f"{function}_{arguments}_{sorted(options.items())}"
    return AggregateCall(function, arguments, type, name, **options)


def _sum_int(values: list[int], bits: int) -> int | None:
    half = 1 << (bits - 1)
    return (sum(values) + half) % (1 << bits) - half if values else None


def _average(values: list[int]) -> int | None:
    total = _sum_int(values, 64)
    return None if total is None else abs(total) // len(values) * (1 if total > 0 else -1)


def _decimal(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)


CALLS: list[tuple[AggregateCall, Callable[[list[Any]], Any]]] = [
    (call("COUNT"), len),
    (call("COUNT", NAME), len),
    (call("COUNT", filter=FLAG), len),
    (call("SUM", B), lambda values: _sum_int(values, 64)),
    (call("SUM", NUMBER, type=t.IntType()), lambda values: _sum_int(values, 32)),
    (call("$SUM0", B), lambda values: _sum_int(values, 64) or 0),
    (call("SUM", X, type=t.DoubleType()), lambda values: sum(values) if values else None),
    (call("SUM", SINGLE, type=t.FloatType()), lambda values: sum(values) if values else None),
    (call("AVG", NUMBER, type=t.IntType()), _average),
    (call("AVG", B, filter=FLAG), _average),
    (call("AVG", X, type=t.DoubleType()), lambda values: sum(values) / len(values) if values else None),
    (call("SUM", PRICE, type=t.DecimalType(38, 2)), lambda values: sum(values) if values else None),
    (
        call("AVG", PRICE, type=t.DecimalType(38, 6)),
        lambda values: _decimal(sum(values) / len(values), 6) if values else None,
    ),
    *(
        (call(name, column, type=INPUT.fields[column].type.copy(True)), lambda values, f=f: f(values, default=None))
        for name, f in (("MIN", min), ("MAX", max))
        for column in (NAME, PRICE, DAY, AT, FLAG, X, B, NUMBER)
    ),
    (call("COUNT", NAME, distinct=True), lambda values: len(set(values))),
    (call("COUNT", B, NAME, distinct=True), lambda values: len(set(values))),
    (call("SUM", B, distinct=True, filter=FLAG), lambda values: _sum_int(list(set(values)), 64)),
    (call("COUNT", B, distinct=True), lambda values: len(set(values))),
    (call("COUNT", B, distinct=True, filter=FLAG), lambda values: len(set(values))),
    (call("COUNT", NAME, distinct=True, filter=FLAG), lambda values: len(set(values))),
    (call("MAX", NAME, distinct=True, type=t.VarCharType()), lambda values: max(values, default=None)),
    (call("FIRST_VALUE", NAME, type=t.VarCharType()), lambda values: values[0] if values else None),
    (call("LAST_VALUE", AT, type=t.TimestampType(3)), lambda values: values[-1] if values else None),
    (call("LISTAGG", NAME, type=t.VarCharType()), lambda values: ",".join(values) if values else None),
    (call("FIRST_VALUE", PRICE, type=t.DecimalType(10, 2)), lambda values: values[0] if values else None),
]
"""Calls and what they are of the values that are not null, in order."""


def expected(changes: Sequence[tuple[int, Any]], calls: Iterable[tuple[AggregateCall, Any]]) -> tuple[Any, ...]:
    """The results of one group, of all that happened to it: what leaves is the earliest row with the same values."""
    results = []
    for each, compute in calls:
        values: list[Any] = []
        for kind, row in changes:
            value = tuple(row[index] for index in each.arguments)
            if None not in value and (each.filter is None or row[each.filter]):
                value = value[0] if len(value) == 1 else value
                (values.remove if kind in (BEFORE, DELETE) else values.append)(value)
        results.append(compute(values))
    return tuple(results)


def tables(history: Sequence[tuple[int, Any]], grouping: tuple[int, ...], calls: Any = None) -> dict[Any, Any]:
    """The results of all groups that have rows."""
    groups: dict[Any, list[Any]] = {}
    for kind, row in history:
        groups.setdefault(tuple(row[index] for index in grouping), []).append((kind, row))
    return {
        repr(key): (*key, *expected(changes, CALLS if calls is None else calls))
        for key, changes in groups.items()
        if sum(-1 if kind in (BEFORE, DELETE) else 1 for kind, _ in changes)
    }


class History:
    """All changes of an input."""

    def __init__(self, seed: Any, retracts: bool):
        self._draw = random.Random(str(seed))
        self._retracts = retracts
        self._live: list[Any] = []
        self.changes: list[tuple[int, Any]] = []

    def draw(self, count: int) -> ColumnBatch:
        """More rows: insertions, and deletions of rows that are there."""
        draw, live = self._draw, self._live
        drawn = []
        for _ in range(count):
            if self._retracts and live and draw.random() < 0.45:
                row = live.pop(draw.randrange(len(live)))
                kind = draw.choice([BEFORE, DELETE])
            else:
                row = draw_row(draw)
                live.append(row)
                kind = draw.choice([INSERT, AFTER]) if self._retracts else INSERT
            drawn.append((kind, row))
        self.changes += drawn
        return batch_of([row for _, row in drawn], [kind for kind, _ in drawn])


def draw_row(draw: random.Random) -> tuple[Any, ...]:
    """A row of INPUT; sums of its floats are exact."""

    def or_null(value: Any) -> Any:
        return None if draw.random() < 0.15 else value

    return (
        or_null(draw.choice([1, 2, 3, -5, 2**62])),
        or_null(draw.choice(["a", "b", "", "é", "z" * 20])),
        or_null(Decimal(draw.randrange(-1000, 1000)).scaleb(-2)),
        or_null(dt.date(2024, 1, draw.randrange(1, 5))),
        or_null(dt.datetime(2024, 1, 1, 0, 0, draw.randrange(4))),  # noqa: DTZ001 - of a column without a zone
        or_null(draw.random() < 0.5),
        or_null(draw.randrange(-8, 8) / 4),
        or_null(draw.choice([draw.randrange(-10, 10), 2**63 - 1, -(2**63)])),
        draw.choice([draw.randrange(-10, 10), 2**31 - 1]),
        or_null(draw.randrange(-8, 8) / 4),
    )


def batch_of(rows: Sequence[Sequence[Any]], kinds: Sequence[int] | None = None, type_: RowType = INPUT) -> ColumnBatch:
    """Columns of rows."""
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(column, arrow_type(part.type)) for column, part in zip(columns, type_.fields, strict=True)]
    data = pa.RecordBatch.from_arrays(arrays, type_.field_names)
    return ColumnBatch(data, None if kinds is None or not any(kinds) else np.array(kinds, np.int8))


class RunningOperator:
    """An operator on columns, and what it has emitted."""

    def __init__(self, spec: OperatorSpec, backend: KeyedStateBackend | None = None, clock: FakeClock | None = None):
        self.batches: list[ColumnBatch] = []
        context: Any = FakeOperatorContext(lambda value: value, clock, backend)
        context.emit = lambda batch, _: self.batches.append(batch)
        self.context = context
        operator: Any = spec.create(FAKE_RUNTIME)
        self.operator = operator
        self.operator.open(context)

    def process(self, batch: ColumnBatch) -> list[tuple[int, tuple[Any, ...]]]:
        """The changes that a batch leads to: kinds and rows."""
        self.batches.clear()
        self.operator.process_columns(batch)
        return [change for emitted in self.batches for change in changes_of(emitted)]


def changes_of(batch: ColumnBatch) -> list[tuple[int, tuple[Any, ...]]]:
    """The kinds and rows of a batch."""
    columns = [column.to_pylist() for column in batch.data.columns]
    kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
    return list(zip(kinds, zip(*columns, strict=True), strict=True))


class Table:
    """A table that a changelog is applied to; each change must fit what is there."""

    def __init__(self, keys: int, has_before: bool = True):
        self.rows: dict[Any, tuple[Any, ...]] = {}
        self._keys = keys
        self._has_before = has_before
        self._awaits: Any = None

    def apply(self, changes: Iterable[tuple[int, tuple[Any, ...]]]) -> None:
        for kind, row in changes:
            key = repr(row[: self._keys])
            if kind == INSERT:
                assert key not in self.rows, f"{row} is inserted twice"
                self.rows[key] = row
            elif kind == BEFORE:
                assert self._has_before
                assert self.rows[key] == row
                self._awaits = key
            elif kind == AFTER:
                assert self._awaits == key or not self._has_before
                assert key in self.rows
                self.rows[key] = row
                self._awaits = None
            else:
                assert self.rows.pop(key) == row
