"""Top-N with sort keys in columns has the changes of Top-N with lists of rows."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.plan.nodes import SortKey
from firesteel.table.runtime.operators.ranks.columnar_top_n import ColumnarTopNOperator, is_columnar
from firesteel.table.runtime.operators.ranks.top_n import AppendOnlyTopNOperator, AppendOnlyTopNSpec
from firesteel.testing.operator_context import FakeClock, FakeOperatorContext
from firesteel.types.internal import columns_schema
from firesteel.types.logical import BigIntType, DoubleType, RowField, RowType, VarCharType
from tests.support.aggregate_model import changes_of
from tests.support.state.keyed_backends import Workbench

ROW = RowType([RowField("k", VarCharType()), RowField("v", BigIntType()), RowField("x", DoubleType())], nullable=False)
NUMBERED = RowType([*ROW.fields, RowField("n", BigIntType(nullable=False))], nullable=False)
VALUES: list[Any] = [None, -(1 << 63), (1 << 63) - 1, *range(6)]
FLOATS: list[Any] = [None, float("inf"), -0.0, 0.0, -1.5, 2.5]
ORDERS = [SortKey(1), SortKey(1, descending=True), SortKey(1, nulls_last=True), SortKey(2, True, True)]


class Running:
    """An operator and its changes by key."""

    def __init__(self, operator: Any, backend: Any = None) -> None:
        self._operator = operator
        self._batches: list[ColumnBatch] = []
        context: Any = FakeOperatorContext(lambda value: value, None, backend)
        context.emit = lambda batch, _: self._batches.append(batch)
        operator.open(context)

    def process(self, batch: ColumnBatch) -> dict[Any, list[Any]]:
        self._batches.clear()
        self._operator.process_columns(batch)
        by_key: dict[Any, list[Any]] = defaultdict(list)
        for change in (change for emitted in self._batches for change in changes_of(emitted)):
            by_key[change[1][0]].append((change[0], tuple(map(repr, change[1]))))
        return by_key


def drawn(draw: random.Random, count: int) -> ColumnBatch:
    columns = [draw.choices(["a", "b", None], k=count), draw.choices(VALUES, k=count), draw.choices(FLOATS, k=count)]
    schema = columns_schema(ROW)
    arrays = [pa.array(column, part.type) for column, part in zip(columns, schema, strict=True)]
    return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=schema))


@pytest.mark.parametrize("keys", [(0,), ()])
@pytest.mark.parametrize("order", ORDERS)
def test_changes_are_those_of_lists(keys: tuple[int, ...], order: SortKey) -> None:
    draw = random.Random(11)
    for output, bounds, update_before in itertools.product([ROW, NUMBERED], [(1, 1), (1, 3), (2, 4)], [True, False]):
        spec = AppendOnlyTopNSpec(keys, ROW, output, (order,), *bounds, None, update_before)
        assert is_columnar(spec)
        columnar, lists = Running(ColumnarTopNOperator(spec)), Running(AppendOnlyTopNOperator(spec))
        for size in (1, 2, 15, 40, 1, 30):
            batch = drawn(draw, size)
            assert columnar.process(batch) == lists.process(batch), spec


@pytest.mark.parametrize("kind", ["hashmap", "rocksdb"])
def test_state_is_restored(kind: str) -> None:
    draw = random.Random(5)
    spec = AppendOnlyTopNSpec((0,), ROW, NUMBERED, (ORDERS[1],), 1, 3, None, True)
    bench = Workbench(kind, 128, FakeClock())
    backend = bench.backend()
    columnar, lists = Running(ColumnarTopNOperator(spec), backend), Running(AppendOnlyTopNOperator(spec))
    for _ in range(3):
        batch = drawn(draw, 6)
        assert columnar.process(batch) == lists.process(batch)
        backend = bench.restore([bench.snapshot(backend)])
        columnar = Running(ColumnarTopNOperator(spec), backend)
    bench.close()


def test_what_has_no_columns() -> None:
    spec = AppendOnlyTopNSpec((0,), ROW, ROW, (SortKey(1),), 1, 3, None, True)
    assert not is_columnar(replace(spec, per_row=True))
    assert not is_columnar(replace(spec, end=100))
    assert not is_columnar(replace(spec, end=None, end_column=1))
    assert not is_columnar(replace(spec, order=(SortKey(0),)))
    assert not is_columnar(replace(spec, order=(SortKey(1), SortKey(2))))
