"""Sums of decimals."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.table.runtime.operators.aggregate.accumulators import Accumulator, Columns
from firesteel.table.runtime.operators.aggregate.feeds import Rows

__all__ = ["DecimalSum"]

_LIMBS = 4
_WIDE = Context(prec=100)


class DecimalSum(Accumulator):
    """The sum as a Python integer in units of the last digit, of any size; None before the first value."""

    dtypes = ("O",)

    def __init__(self, scale: int):
        self._scale = scale

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        array = rows.arrays[0]
        if not len(array):
            return
        count = len(rows.slots)
        limbs = _limbs(array)
        totals = [0] * count
        for index in range(_LIMBS):
            part = limbs[:, index].astype(np.int64)
            if index == _LIMBS - 1:
                part = limbs[:, index].astype(np.int32).astype(np.int64)  # the sign is in the highest
            if rows.signs is not None:
                part = part * rows.signs
            added = np.zeros(count, np.int64)
            np.add.at(added, rows.codes, part)
            if added.any():
                shift = 32 * index
                totals = [total + (number << shift) for total, number in zip(totals, added.tolist(), strict=True)]
        self._add(columns, rows, totals)

    def merge(self, columns: Columns, rows: Rows) -> None:
        totals = [0] * len(rows.slots)
        for code, text in zip(rows.codes.tolist(), rows.arrays[0].to_pylist(), strict=True):
            totals[code] += int(text)
        self._add(columns, rows, totals)

    def partial(self, columns: Columns, slots: Any) -> list[Any]:
        # a sum may have more digits than a decimal of Arrow
        return [pa.array([str(value or 0) for value in columns[0][slots].tolist()], pa.string())]

    def partial_types(self) -> list[Any]:
        return [pa.string()]

    def totals(self, columns: Columns, slots: Any) -> list[Decimal]:
        """The sums."""
        scale = -self._scale
        return [Decimal(value or 0).scaleb(scale, _WIDE) for value in columns[0][slots].tolist()]

    def _add(self, columns: Columns, rows: Rows, totals: list[int]) -> None:
        before = columns[0][rows.slots].tolist()
        columns[0][rows.slots] = np.fromiter(
            ((old or 0) + added for old, added in zip(before, totals, strict=True)), object, len(totals)
        )


def _limbs(array: Any) -> Any:
    """The numbers of a decimal128 column without nulls as rows of 4 integers of 32 bits, the lowest first."""
    if array.type.bit_width != 128:
        array = array.cast(pa.decimal128(38, array.type.scale))
    data = np.frombuffer(array.buffers()[1], np.uint32).reshape(-1, _LIMBS)
    return data[array.offset : array.offset + len(array)]
