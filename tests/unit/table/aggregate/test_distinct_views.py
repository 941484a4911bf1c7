"""COUNT(DISTINCT) with many filters against a model in plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.state.columnar.pairs import Pairs
from firesteel.table.runtime.operators.aggregate.group_aggregate import GlobalGroupAggregateSpec, GroupAggregateSpec
from firesteel.table.runtime.operators.aggregate.local_aggregate import LocalGroupAggregateSpec
from firesteel.types.internal import columns_schema
from firesteel.types.logical import BigIntType, BooleanType, RowField, RowType, VarCharType
from tests.support.aggregate_model import AFTER, DELETE, INSERT, RunningOperator, call


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("is_split", [False, True])
def test_distinct_values_are_kept_once_for_all_filters(retracts: bool, is_split: bool) -> None:
    width = 70
    flags = [RowField(f"f{index}", BooleanType()) for index in range(width)]
    type_ = RowType([RowField("k", BigIntType()), RowField("v", VarCharType()), *flags], nullable=False)
    filters = [None, *range(2, width + 2)]
    calls = tuple(call("COUNT", 1, distinct=True, filter=place) for place in filters)
    options: Any = {"consumes_retractions": retracts}
    spec = (GlobalGroupAggregateSpec if is_split else GroupAggregateSpec)(type_, (0,), calls, **options)
    running = RunningOperator(spec)
    local = RunningOperator(LocalGroupAggregateSpec(type_, (0,), calls, retracts)) if is_split else None
    draw = random.Random(3)
    rows: list[tuple[Any, ...]] = []
    seen: dict[int, Any] = {}
    for _ in range(4):
        added = [(draw.randrange(3), draw.choice(["a", "b", "c", None]), *_flags(draw, width)) for _ in range(6)]
        leaving = draw.sample(range(len(rows)), min(4, len(rows))) if retracts else []
        changes = [*((DELETE, rows[index]) for index in leaving), *((INSERT, row) for row in added)]
        rows = [row for index, row in enumerate(rows) if index not in leaving] + added
        columns = zip(*(row for _, row in changes), strict=True)
        arrays = [pa.array(column, part.type) for column, part in zip(columns, columns_schema(type_), strict=True)]
        batch = ColumnBatch(
            pa.RecordBatch.from_arrays(arrays, schema=columns_schema(type_)),
            np.array([kind for kind, _ in changes], np.int8),
        )
        if local is not None:
            local.process(batch)
            (batch,) = local.batches
        for kind, row in running.process(batch):
            if kind in (INSERT, AFTER):
                seen[row[0]] = row[1:]
            elif kind == DELETE:
                del seen[row[0]]
        assert seen == {
            key: tuple(
                len({row[1] for row in rows if row[0] == key and row[1] and (place is None or row[place])})
                for place in filters
            )
            for key in {row[0] for row in rows}
        }
    assert len([dtype for dtype in spec.create_handler().dtypes if isinstance(dtype, Pairs)]) == 1


def _flags(draw: random.Random, count: int) -> list[Any]:
    return [draw.choice([True, False, None]) for _ in range(count)]
