"""Interval and temporal joins on columns against those that keep tuples, which are compared with Flink.

Both get the same drawn rows and watermarks. On the way each is restored with what the other has stored.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.operator_spec import OperatorRuntime
from firesteel.spi.execution_traits import PIPELINED
from firesteel.table.bound.nodes import Call, InputRef
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import JoinKind
from firesteel.table.runtime.operators.joins.interval import SqlIntervalJoinOperator, SqlIntervalJoinSpec
from firesteel.table.runtime.operators.joins.interval_columns import ColumnIntervalJoinOperator
from firesteel.table.runtime.operators.joins.temporal import TemporalJoinOperator, TemporalJoinSpec
from firesteel.table.runtime.operators.joins.temporal_columns import ColumnTemporalJoinOperator
from firesteel.testing.clock import FakeClock
from firesteel.testing.operator_context import FakeOperatorContext
from firesteel.types import logical as t
from firesteel.types.internal import from_column, to_column
from firesteel.types.logical import RowType
from tests.support.state.keyed_backends import Workbench

BIGINT, STRING = t.BigIntType(), t.VarCharType(100)
ROWTIME = t.TimestampType(3, t.TimestampKind.ROWTIME)
TYPE = RowType.of(["k", "s", "v", "ts"], [t.IntType(), STRING, BIGINT, ROWTIME], nullable=False)
BOTH = RowType.of([f"r{index}" for index in range(8)], [part.type for part in (*TYPE.fields, *TYPE.fields)])
KEYS = {"integer": (0,), "string": (1,), "both": (0, 1), "none": ()}
LESS = Call(t.BooleanType(), "LESS_THAN", (InputRef(BIGINT, 2, "x"), InputRef(BIGINT, 6, "y")))
OPERATORS = (SqlIntervalJoinOperator, ColumnIntervalJoinOperator, TemporalJoinOperator, ColumnTemporalJoinOperator)


class Running:
    """One of the operators of a join, and what it has emitted."""

    def __init__(self, spec: Any, bench: Workbench, *, on_columns: bool):
        self._spec = spec
        self._bench = bench
        self._watermark: int | None = None
        self._open(bench.backend(), on_columns)

    def _open(self, backend: Any, on_columns: bool) -> None:
        self.changes: list[Any] = []
        self.watermarks: list[int] = []
        self._backend = backend
        context: Any = FakeOperatorContext(None, FakeClock(), backend)
        context.emit = lambda batch, _: self._keep(batch)
        context.emit_watermark = self.watermarks.append
        self.operator: Any = self._spec.create(OperatorRuntime(PIPELINED, 200, on_columns))
        assert isinstance(self.operator, OPERATORS[on_columns::2])
        self.operator.open(context)

    def _keep(self, batch: ColumnBatch) -> None:
        columns = [from_column(batch.data.column(at), part.type) for at, part in enumerate(BOTH.fields)]
        kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        self.changes += map(repr, zip(kinds, *columns, strict=True))

    def process(self, side: int, batch: ColumnBatch) -> None:
        (self.operator.process_columns, self.operator.process_second_columns)[side](batch)

    def take(self) -> list[Any]:
        taken = sorted(self.changes)
        self.changes.clear()
        return taken

    def restore(self, kind: SnapshotKind, *, on_columns: bool, watermark: int) -> None:
        for _ in range(2):  # the second one has changes only
            handle = self._bench.snapshot(self._backend, kind)
            self._backend.notify_checkpoint_complete(self._bench.number)
        self._open(self._bench.restore([handle], reusable=kind is SnapshotKind.CHECKPOINT), on_columns)
        self.operator.process_watermark(watermark)


@pytest.fixture
def bench() -> Iterator[Workbench]:
    made = Workbench("hashmap", 8, FakeClock())
    yield made
    made.close()


def _batch(draw: random.Random, watermark: int, with_kinds: bool) -> ColumnBatch:
    rows, kinds = [], []
    for _ in range(draw.choice((1, 4, 20))):
        time = max(watermark + draw.randrange(-12, 25), 0)
        key = (draw.choice([1, 2, 3, None]), draw.choice(["a", "b", None]))
        rows.append((*key, draw.randrange(4), time * 10**6))
        kinds.append(draw.randrange(4) if with_kinds else 0)
    columns = zip(*rows, strict=True)
    arrays = [to_column(values, part.type) for values, part in zip(columns, TYPE.fields, strict=True)]
    data = pa.RecordBatch.from_arrays(arrays, TYPE.field_names)
    return ColumnBatch(data, np.array(kinds, np.int8) if with_kinds else None, 3)


def _compare(spec: Any, bench: Workbench, draw: random.Random, kinds: bool) -> int:
    pair = [Running(spec, bench, on_columns=on_columns) for on_columns in (False, True)]
    watermark = 0
    found = 0
    for step in range(24):
        side = draw.randrange(2)
        batch = _batch(draw, watermark, kinds)
        watermark += draw.choice((0, 1, 5, 15))
        results = []
        for running in pair:
            running.process(side, batch)
            running.operator.process_watermark(watermark if step < 23 else MAX_WATERMARK)
            results.append((running.take(), running.watermarks[-1]))
        assert results[0] == results[1], step
        found += len(results[0][0])
        if step in (8, 14):
            # each goes on with the state of the other's kind
            kind = SnapshotKind.SAVEPOINT if step == 8 else SnapshotKind.CHECKPOINT
            for index, running in enumerate(pair):
                running.restore(kind, on_columns=(index == 1) is (step == 14), watermark=watermark)
            assert pair[0].take() == pair[1].take()
    return found


@pytest.mark.parametrize("keys", KEYS)
def test_interval_joins_are_those_of_tuples(keys: str, bench: Workbench) -> None:
    columns, found = (KEYS[keys],) * 2, 0
    for number, kind in enumerate((JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)):
        draw = random.Random(f"{keys} {number}")
        lower, upper = draw.choice([(-5, 5), (-10, 0), (2, 9), (0, 0)])
        safe = (bool(number % 2),) * len(KEYS[keys])
        condition = LESS if number > 1 else None
        spec = SqlIntervalJoinSpec(
            TYPE, TYPE, columns, safe, (3, 3), lower, upper, True, kind, condition, BOTH, None, Session()
        )
        found += _compare(spec, bench, draw, kinds=False)
    assert found > 100


@pytest.mark.parametrize("keys", KEYS)
def test_temporal_joins_are_those_of_tuples(keys: str, bench: Workbench) -> None:
    columns, found = (KEYS[keys],) * 2, 0
    for number in range(4):
        draw = random.Random(f"{keys} {number}")
        condition = LESS if number > 1 else None
        spec = TemporalJoinSpec(TYPE, TYPE, columns, (3, 3), bool(number % 2), condition, BOTH, None, Session())
        found += _compare(spec, bench, draw, kinds=number != 2)
    assert found > 100
