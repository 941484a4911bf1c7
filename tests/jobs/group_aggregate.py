"""A group aggregate on columns whose input has updates: counts, sums, extremes, distinct values."""

from __future__ import annotations

from typing import Any

from firesteel.common import Row, RowKind
from firesteel.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec, RowsToColumnsSpec
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.runtime.operators.aggregate.group_aggregate import GroupAggregateSpec
from firesteel.types.logical import BigIntType, RowType, VarCharType

STREAMING_ONLY = True
TYPE = RowType.of(["word", "number", "text"], [VarCharType(), BigIntType(), VarCharType()])
BIGINT = BigIntType()
CALLS = (
    AggregateCall("COUNT", (), BigIntType(nullable=False), "rows"),
    AggregateCall("SUM", (1,), BIGINT, "total"),
    AggregateCall("MAX", (1,), BIGINT, "greatest"),
    AggregateCall("COUNT", (2,), BigIntType(nullable=False), "texts", distinct=True),
    AggregateCall("LISTAGG", (2,), VarCharType(), "all"),
)
KEYS = ColumnKeySelector((0,))


def _rows() -> list[Row]:
    rows: list[Row] = []
    for number in range(24):
        word = ("to", "be", None)[number % 3]
        row = (word, None if number % 5 == 4 else number, "xyz"[number % 2])
        rows.append(Row.of_kind(RowKind.INSERT, *row))
        if number % 4 == 3:
            rows.append(Row.of_kind(RowKind.UPDATE_BEFORE, *row))
            rows.append(Row.of_kind(RowKind.UPDATE_AFTER, word, 100 - number, "u"))
        if number % 8 == 6:
            rows.append(Row.of_kind(RowKind.DELETE, *row))
    return rows


def build(env: StreamExecutionEnvironment) -> DataStream:
    records = env.from_collection(_rows())
    columns = records._transform("RowsToColumns", RowsToColumnsSpec(TYPE), None).set_parallelism(1)
    keyed = KeyedStream(env, columns._partition(KeyGroupPartitioner(KEYS)), KEYS, None, columns)  # type: ignore[arg-type]
    spec = GroupAggregateSpec(TYPE, (0,), CALLS, consumes_retractions=True, per_row=True)
    rows = keyed._transform("GroupAggregate", spec, None)._transform("ColumnsToRows", ColumnsToRowsSpec(), None)
    return rows.map(lambda row: (row.get_row_kind().name, *row))


def key_of(result: Any) -> Any:
    return result[1]
