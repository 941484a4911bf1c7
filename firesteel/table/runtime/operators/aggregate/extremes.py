"""MIN, MAX, FIRST_VALUE and LAST_VALUE of rows that never leave: one value per key."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.table.runtime.operators.aggregate.accumulators import Accumulator, Columns
from firesteel.table.runtime.operators.aggregate.domains import Domain
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.table.runtime.operators.aggregate.steps import Steps
from firesteel.types.internal import arrow_type
from firesteel.types.logical import LogicalType

__all__ = ["EdgeValue", "Extreme", "FloatExtreme", "ObjectExtreme", "OneValue", "extreme"]

_INT64 = np.iinfo(np.int64)
_NAN = pa.array([float("nan")])


class OneValue(Accumulator):
    """A value, and whether there is one."""

    def __init__(self, type_: LogicalType):
        self.domain = Domain(type_)
        self.dtypes = (self.domain.dtype, "?")  # type: ignore[misc]

    def result(self, columns: Columns, slots: Any) -> Any:
        """The values of slots as a column."""
        values, is_there = columns
        return self.domain.decode(values[slots], ~is_there[slots])

    def merge(self, columns: Columns, rows: Rows) -> None:
        array = rows.arrays[0]
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            rows = Rows(rows.codes[valid], None, [array.drop_null()], rows.slots)
        self.accumulate(columns, rows)

    def partial(self, columns: Columns, slots: Any) -> list[Any]:
        return [self.result(columns, slots)]

    def partial_types(self) -> list[Any]:
        return [arrow_type(self.domain.type)]

    def run(self, columns: Columns, steps: Steps) -> list[Any]:
        values, is_there = columns
        (array,) = steps.arguments()
        encoded = self.domain.encode(array)
        compared = self._compared(array, encoded)
        best: list[Any] = values[steps.slots].tolist()
        known: list[Any] = is_there[steps.slots].tolist()
        against = self._compared(self.result(columns, steps.slots), best)
        after, is_after = [], []
        pairs = np.fromiter(zip(encoded.tolist(), compared, strict=True), object, len(encoded))
        for code, sign, pair in steps.pairs(pairs):
            if sign and (not known[code] or self._replaces(pair[1], against[code])):
                best[code], against[code] = pair
                known[code] = True
            after.append(best[code])
            is_after.append(known[code])
        values[steps.slots] = np.fromiter(best, values.dtype, len(best))
        is_there[steps.slots] = known
        return [np.fromiter(after, values.dtype, len(after)), np.array(is_after, bool)]

    def _compared(self, array: Any, encoded: Any) -> list[Any]:
        """What values are compared by, given a column of them and what the state has."""
        return list(encoded)

    @abstractmethod
    def _replaces(self, value: Any, best: Any) -> bool:
        """Whether a value takes the place of another."""


class EdgeValue(OneValue):
    """The first or the last value."""

    def __init__(self, type_: LogicalType, is_last: bool):
        super().__init__(type_)
        self._is_last = is_last

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        values, is_there = columns
        count = len(rows.codes)
        chosen = np.full(len(rows.slots), -1, np.intp)
        if self._is_last:
            chosen[rows.codes] = np.arange(count)
        else:
            chosen[rows.codes[::-1]] = np.arange(count - 1, -1, -1)
            chosen[is_there[rows.slots]] = -1
        codes = np.flatnonzero(chosen >= 0)
        if len(codes):
            slots = rows.slots[codes]
            values[slots] = self.domain.encode(rows.arrays[0].take(pa.array(chosen[codes])))
            is_there[slots] = True

    def _replaces(self, value: Any, best: Any) -> bool:
        return self._is_last


class Extreme(OneValue):
    """The least or greatest of integers."""

    def __init__(self, type_: LogicalType, is_max: bool):
        super().__init__(type_)
        self._is_max = is_max

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        values, is_there = columns
        best = np.full(len(rows.slots), _INT64.min if self._is_max else _INT64.max, np.int64)
        (np.maximum if self._is_max else np.minimum).at(best, rows.codes, self.domain.encode(rows.arrays[0]))
        occurs = np.zeros(len(rows.slots), bool)
        occurs[rows.codes] = True
        current = values[rows.slots]
        is_better = best > current if self._is_max else best < current
        changes = occurs & (is_better | ~is_there[rows.slots])
        slots = rows.slots[changes]
        values[slots] = best[changes]
        is_there[slots] = True

    def _replaces(self, value: Any, best: Any) -> bool:
        return bool(value > best if self._is_max else value < best)


class FloatExtreme(Extreme):
    """The least or greatest of floats by < and >, one after the other: a NaN stays only if it is the first value."""

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        values, is_there = columns
        array = rows.arrays[0]
        numbers = array.to_numpy(zero_copy_only=False)
        is_nan = np.isnan(numbers)
        if not is_nan.any() and (numbers != 0).all():
            current = values[rows.slots]
            nan_there = is_there[rows.slots] & (current == self.domain.encode(_NAN)[0])
            if not nan_there.any():
                super().accumulate(columns, rows)
                return
        # rare: the order matters, so the rows of each key are compared one after the other
        found = dict(zip(rows.slots.tolist(), self._floats(values, is_there, rows.slots), strict=True))
        for slot, number in zip(rows.row_slots.tolist(), numbers.tolist(), strict=True):
            best = found[slot]
            if best is None or (number > best if self._is_max else number < best):
                found[slot] = number
        slots = np.fromiter(found, np.intp, len(found))
        there = np.fromiter((value is not None for value in found.values()), bool, len(found))
        floats = np.fromiter((0.0 if value is None else value for value in found.values()), np.float64, len(found))
        values[slots[there]] = self.domain.encode(pa.array(floats[there]))
        is_there[slots[there]] = True

    def _compared(self, array: Any, encoded: Any) -> list[Any]:
        floats: list[Any] = array.to_pylist()
        return floats

    def _floats(self, values: Any, is_there: Any, slots: Any) -> list[Any]:
        found: list[Any] = self.domain.decode(values[slots], ~is_there[slots]).to_pylist()
        return found


class ObjectExtreme(Extreme):
    """The least or greatest of strings, bytes or decimals."""

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        if not len(rows.codes):
            return
        values, is_there = columns
        places, ordered = self.domain.ranked(rows.arrays[0])
        best = np.full(len(rows.slots), -1 if self._is_max else len(ordered), np.intp)
        (np.maximum if self._is_max else np.minimum).at(best, rows.codes, places)
        codes = np.flatnonzero((best >= 0) & (best < len(ordered)))
        slots = rows.slots[codes]
        candidates = self.domain.encode(ordered.take(pa.array(best[codes])))
        changes = ~is_there[slots]
        known = np.flatnonzero(~changes)
        if len(known):
            mine, others = candidates[known], values[slots[known]]
            changes[known] = (mine > others if self._is_max else mine < others).astype(bool)
        values[slots[changes]] = candidates[changes]
        is_there[slots] = True


def extreme(type_: LogicalType, is_max: bool) -> Extreme:
    """The accumulator of MIN or MAX."""
    domain = Domain(type_)
    kind = ObjectExtreme if domain.has_objects else FloatExtreme if domain.is_float else Extreme
    return kind(type_, is_max)
