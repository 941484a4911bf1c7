"""Sums of decimals."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.table.runtime.operators.aggregate.accumulators import Accumulator, Columns
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.table.runtime.operators.aggregate.steps import Steps

__all__ = ["DecimalSum"]

_LIMBS = 4
_LIMIT = 10**38
_WIDE = Context(prec=100)
_STAYS = "overflow"
"""In place of a sum that is NULL for ever."""


class DecimalSum(Accumulator):
    """The sum as a Python integer in units of the last digit; None before the first value, and after an overflow.

    A sum of more than 38 digits is NULL. As in Flink, that of SUM starts over with the next value; that of AVG stays
    NULL.
    """

    dtypes = ("O",)

    def __init__(self, scale: int, starts_over: bool):
        self._scale = scale
        self._overflow = None if starts_over else _STAYS

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        array = rows.arrays[0]
        if not len(array):
            return
        limbs = _limbs(array)
        highest = limbs[:, _LIMBS - 1].astype(np.int32).astype(np.int64)  # the sign is here
        bound = (int(np.abs(highest).max()) + 1 << 96) * len(array)
        before = columns[0][rows.slots].tolist()
        if _STAYS in before or bound + max(map(abs, filter(None, before)), default=0) >= _LIMIT:
            values = [int(value.scaleb(self._scale, _WIDE)) for value in array.to_pylist()]
            self._add_one_by_one(columns, rows, values)
            return
        count = len(rows.slots)
        totals = [0] * count
        for index in range(_LIMBS):
            part = highest if index == _LIMBS - 1 else limbs[:, index].astype(np.int64)
            if rows.signs is not None:
                part = part * rows.signs
            added = np.zeros(count, np.int64)
            np.add.at(added, rows.codes, part)
            if added.any():
                shift = 32 * index
                totals = [total + (number << shift) for total, number in zip(totals, added.tolist(), strict=True)]
        columns[0][rows.slots] = np.fromiter(
            ((old or 0) + added for old, added in zip(before, totals, strict=True)), object, count
        )

    def merge(self, columns: Columns, rows: Rows) -> None:
        values = [
            None if text is None else text if text == _STAYS else int(text) for text in rows.arrays[0].to_pylist()
        ]
        self._add_one_by_one(columns, rows, values)

    def _add_one_by_one(self, columns: Columns, rows: Rows, values: Sequence[Any]) -> None:
        totals = columns[0][rows.slots].tolist()
        signs = repeat(1) if rows.signs is None else rows.signs.tolist()
        for code, value, sign in zip(rows.codes.tolist(), values, signs, strict=False):
            totals[code] = self._added(totals[code], value, sign)
        columns[0][rows.slots] = np.fromiter(totals, object, len(totals))

    def run(self, columns: Columns, steps: Steps) -> list[Any]:
        totals = columns[0][steps.slots].tolist()
        values = [int(value.scaleb(self._scale, _WIDE)) for value in steps.arguments()[0].to_pylist()]
        after = []
        for code, sign, value in steps.pairs(np.fromiter(values, object, len(values))):
            total = totals[code] = self._added(totals[code], value, sign)
            after.append(total)
        columns[0][steps.slots] = np.fromiter(totals, object, len(totals))
        return [np.fromiter(after, object, len(after))]

    def _added(self, total: Any, value: Any, sign: int) -> Any:
        if value is None or total == _STAYS:
            return total
        if value == _STAYS:
            return value
        total = (total or 0) + sign * value
        return total if abs(total) < _LIMIT else self._overflow

    def partial(self, columns: Columns, slots: Any) -> list[Any]:
        values = columns[0][slots].tolist()
        return [pa.array([None if value is None else str(value) for value in values], pa.string())]

    def partial_types(self) -> list[Any]:
        return [pa.string()]

    def totals(self, columns: Columns, slots: Any) -> list[Decimal | None]:
        """The sums."""
        scale = -self._scale
        return [
            None if value is None or value == _STAYS else Decimal(value).scaleb(scale, _WIDE)
            for value in columns[0][slots].tolist()
        ]


def _limbs(array: Any) -> Any:
    """The numbers of a decimal128 column without nulls as rows of 4 integers of 32 bits, the lowest first."""
    if array.type.bit_width != 128:
        array = array.cast(pa.decimal128(38, array.type.scale))
    data = np.frombuffer(array.buffers()[1], np.uint32).reshape(-1, _LIMBS)
    return data[array.offset : array.offset + len(array)]
