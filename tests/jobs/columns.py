"""Columns by key: the border from records, a calc, an exchange by key, a running count per key, the border back.

The operator on columns is defined outside of Firesteel. Its state is that of a stream of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.api.state import ValueStateDescriptor
from firesteel.common import Types
from firesteel.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import ColumnKeySelector, distinct_keys, state_key
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec, RowsToColumnsSpec
from firesteel.runtime.operators.columns.calc import CalcSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.types.logical import BigIntType, RowType, VarCharType

STREAMING_ONLY = True
RECORDS = [(word, number) for number in range(12) for word in ("to", "be", "or", "not", None)]
TYPE = RowType.of(["word", "number"], [VarCharType(), BigIntType()])
KEYS = ColumnKeySelector((0,))


@dataclass(frozen=True)
class CountSpec(OperatorSpec):
    """Emits key, count and sum of each key of a batch, after it."""

    def create(self, runtime: OperatorRuntime) -> ColumnOperator:
        return Count()


class Count(ColumnOperator):
    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._state = context.backend.get_state(ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY()))

    def process_columns(self, batch: ColumnBatch) -> None:
        codes, keys = distinct_keys(batch, KEYS.columns)
        for code, key in enumerate(keys):
            numbers = batch.data.column(1).filter(pa.array(codes == code)).to_pylist()
            self._backend.key = state_key(key)
            count, total = self._state.value() or (0, 0)
            running = []
            for number in numbers:
                count, total = count + 1, total + number
                running.append((key, count, total))
            self._state.update((count, total))
            columns = zip(*running, strict=True)
            types = (pa.string(), pa.int64(), pa.int64())
            arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
            self.emit(ColumnBatch(pa.RecordBatch.from_arrays(arrays, ["word", "count", "sum"])))


def build(env: StreamExecutionEnvironment) -> DataStream:
    records = env.from_collection(RECORDS, Types.TUPLE([Types.STRING(), Types.LONG()]))
    columns = records._transform("RowsToColumns", RowsToColumnsSpec(TYPE), None).set_parallelism(1)
    doubled = columns._transform(
        "Calc",
        CalcSpec(
            lambda data: data.set_column(1, "number", pc.multiply(data.column(1), 2)),
            lambda data: pc.not_equal(data.column(1), 3),
        ),
        None,
    ).set_parallelism(1)
    keyed = KeyedStream(env, doubled._partition(KeyGroupPartitioner(KEYS)), KEYS, None, doubled)  # type: ignore[arg-type]
    counts = keyed._transform("Count", CountSpec(), None)
    return counts._transform("ColumnsToRows", ColumnsToRowsSpec(as_tuples=True), None)


def key_of(result: Any) -> Any:
    return result[0]
