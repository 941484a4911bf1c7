"""Top-N of a changelog, the last row of each key, and sums over windows of event time, on columns."""

from __future__ import annotations

from typing import Any

from firesteel.common import Row, RowKind
from firesteel.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec, RowsToColumnsSpec
from firesteel.table.plan.nodes import SortKey
from firesteel.table.plan.over import Bound, BoundKind, Frame, OverCall, OverGroup
from firesteel.table.runtime.operators.over.rowtime import RowtimeOverSpec
from firesteel.table.runtime.operators.ranks.deduplicate import KeepLastSpec
from firesteel.table.runtime.operators.ranks.retractable import RetractableTopNSpec
from firesteel.types.logical import BigIntType, RowField, RowType, VarCharType

STREAMING_ONLY = True
BIGINT = BigIntType()
TYPE = RowType.of(["word", "number", "time"], [VarCharType(), BIGINT, BIGINT])
NUMBERED = RowType([*TYPE.fields, RowField("n", BIGINT)])
KEYS = ColumnKeySelector((0,))
FRAME = Frame(True, Bound(BoundKind.PRECEDING, 2), Bound(BoundKind.CURRENT_ROW))
OVER = OverGroup((0,), (SortKey(2),), FRAME, (OverCall("SUM", (1,), BIGINT, "n"),))
ORDER = (SortKey(1, descending=True, nulls_last=True),)


def _row(number: int) -> tuple[Any, ...]:
    return (("to", "be", None)[number % 3], None if number % 5 == 4 else number * 7 % 11, number)


def _inserted() -> list[Row]:
    return [Row.of_kind(RowKind.INSERT, *_row(number)) for number in range(30)]


def _changes() -> list[Row]:
    rows: list[Row] = []
    for number in range(30):
        rows.append(Row.of_kind(RowKind.INSERT, *_row(number)))
        if number % 4 == 3:
            rows.append(Row.of_kind(RowKind.DELETE, *_row(number - 2)))
    return rows


def _stream(env: StreamExecutionEnvironment, rows: list[Row], spec: OperatorSpec, name: str) -> DataStream:
    columns = env.from_collection(rows)._transform("RowsToColumns", RowsToColumnsSpec(TYPE), None).set_parallelism(1)
    keyed = KeyedStream(env, columns._partition(KeyGroupPartitioner(KEYS)), KEYS, None, columns)  # type: ignore[arg-type]
    made = keyed._transform(name, spec, None)._transform("ColumnsToRows", ColumnsToRowsSpec(), None)
    return made.map(lambda row: (name, row.get_row_kind().name, *row))


def build(env: StreamExecutionEnvironment) -> DataStream:
    top = RetractableTopNSpec((0,), TYPE, NUMBERED, ORDER, 1, 3, None, True, per_row=True)
    last = KeepLastSpec((0,), TYPE, 2, True, per_row=True)
    over = RowtimeOverSpec(OVER, TYPE, NUMBERED)
    return _stream(env, _changes(), top, "TopN").union(
        _stream(env, _inserted(), last, "KeepLast"), _stream(env, _inserted(), over, "Over")
    )


def key_of(result: Any) -> Any:
    return result[0], result[2]
