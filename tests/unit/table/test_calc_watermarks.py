"""CURRENT_WATERMARK in the operator that projects and filters."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.operators.columns.calc import CalcSpec
from firesteel.table.binder.expressions import ExpressionBinder
from firesteel.table.binder.scope import Scope
from firesteel.table.bound.session import Session
from firesteel.table.parser import parse_expression
from firesteel.table.runtime.operators.calc import ConditionFunction, ProjectionFunction
from firesteel.types.internal import columns_schema
from firesteel.types.logical import BooleanType, RowType, TimestampKind, TimestampType

INPUT = RowType.of(["ts"], [TimestampType(3, TimestampKind.ROWTIME)])
RESULT = RowType.of(["watermark", "is_late"], [TimestampType(3), BooleanType()])


class FakeContext:
    """Keeps what is emitted."""

    runtime_context = None

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.watermarks: list[int] = []

    def emit(self, batch: ColumnBatch, timestamps: None) -> None:
        columns = [column.cast(pa.int64()).to_pylist() for column in batch.data.columns]
        self.rows += zip(*columns, strict=True)

    def emit_watermark(self, timestamp: int) -> None:
        self.watermarks.append(timestamp)


def bind(sql: str) -> Any:
    return ExpressionBinder(Scope.of(INPUT, "t"), sql).bind(parse_expression(sql))


def test_the_watermark_of_the_operator() -> None:
    projection = [bind("CURRENT_WATERMARK(ts)"), bind("ts <= CURRENT_WATERMARK(ts)")]
    condition = bind("CURRENT_WATERMARK(ts) IS NULL OR ts > CURRENT_WATERMARK(ts)")
    session = Session()
    context = FakeContext()
    operator = CalcSpec(ProjectionFunction(projection, RESULT, session), ConditionFunction(condition, session)).create(
        None
    )  # type: ignore[arg-type]
    operator.open(context)  # type: ignore[arg-type]

    def process(*times: int) -> None:
        array = pa.array(times, pa.int64()).cast(pa.timestamp("ms"))
        operator.process_columns(ColumnBatch(pa.RecordBatch.from_arrays([array], schema=columns_schema(INPUT))))

    process(5, 1)
    operator.process_watermark(5)
    process(4, 5, 6)
    assert context.rows == [(None, None), (None, None), (5, 0)]
    assert context.watermarks == [5]
