"""A stream of columns with state by key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from firesteel.api.state import ValueStateDescriptor
from firesteel.common import Types
from firesteel.datastream import DataStream, KeyedStream
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import ColumnKeySelector, distinct_keys
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.operators.columns.operator import ColumnOperator
from firesteel.types.logical import BigIntType, RowType, VarCharType

__all__ = ["TYPE", "number_rows"]

TYPE = RowType.of(["key", "split", "value"], [VarCharType(), BigIntType(), BigIntType()])
KEYS = ColumnKeySelector((0,))


def number_rows(columns: DataStream) -> DataStream:
    """Numbers the rows of each key, which is in the first column."""
    partition = columns._partition(KeyGroupPartitioner(KEYS))
    keyed = KeyedStream(columns._environment, partition, KEYS, None, columns)  # type: ignore[arg-type]
    return keyed._transform("Number", NumberSpec(), None).uid("numbered")


@dataclass(frozen=True)
class NumberSpec(OperatorSpec):
    """Numbers the rows of each key."""

    def create(self, runtime: OperatorRuntime) -> ColumnOperator:
        return Number()


class Number(ColumnOperator):
    """Has the number of the next row of each key in state of records."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._count = context.backend.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_columns(self, batch: ColumnBatch) -> None:
        codes, keys = distinct_keys(batch, KEYS.columns)
        numbers = np.empty(len(batch), np.int64)
        for code, key in enumerate(keys):
            rows = np.flatnonzero(codes == code)
            self._backend.key = key
            count = self._count.value() or 0
            self._count.update(count + len(rows))
            numbers[rows] = np.arange(count, count + len(rows))
        self.emit(ColumnBatch(batch.data.append_column("number", pa.array(numbers)), batch.kinds))
