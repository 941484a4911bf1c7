"""Aggregate functions without a kernel: their row bodies, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.table.functions.aggregates import AggregateBody
from firesteel.table.runtime.operators.aggregate.accumulators import Accumulator, Columns, pickled, unpickled
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.types.internal import from_column, to_column
from firesteel.types.logical import LogicalType

__all__ = ["RowAccumulator"]


class RowAccumulator(Accumulator):
    """The accumulator of a row body."""

    dtypes = ("O",)
    runs = False

    def __init__(self, body: AggregateBody, types: Sequence[LogicalType], result_type: LogicalType):
        self._body = body
        self._types = types
        self._result_type = result_type

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        if not len(rows.codes):
            return
        accumulators = self._at(columns[0], rows.slots)
        accumulate, retract = self._body.accumulate, self._body.retract
        arguments = [from_column(array, type_) for array, type_ in zip(rows.arrays, self._types, strict=True)]
        values = zip(*arguments, strict=True) if arguments else [()] * len(rows.codes)
        if rows.signs is None:
            for code, row in zip(rows.codes.tolist(), values, strict=True):
                accumulate(accumulators[code], *row)
            return
        assert retract is not None
        for code, sign, row in zip(rows.codes.tolist(), rows.signs.tolist(), values, strict=True):
            (accumulate if sign > 0 else retract)(accumulators[code], *row)

    def merge(self, columns: Columns, rows: Rows) -> None:
        accumulators = self._at(columns[0], rows.slots)
        for code, other in zip(rows.codes.tolist(), unpickled(rows.arrays[0]), strict=True):
            if other is not None:
                self._body.merge(accumulators[code], other)

    def result(self, columns: Columns, slots: Any) -> Any:
        """The results of slots as a column."""
        result, create = self._body.result, self._body.create
        accumulators = columns[0][slots].tolist()
        return to_column(
            [result(create() if accumulator is None else accumulator) for accumulator in accumulators],
            self._result_type,
        )

    def partial(self, columns: Columns, slots: Any) -> list[Any]:
        return [pickled(columns[0][slots].tolist())]

    def partial_types(self) -> list[Any]:
        return [pa.binary()]

    def _at(self, column: Any, slots: Any) -> list[Any]:
        found: list[Any] = column[slots].tolist()
        create = self._body.create
        if None in found:
            found = [create() if accumulator is None else accumulator for accumulator in found]
            column[slots] = np.fromiter(found, object, len(found))
        return found
