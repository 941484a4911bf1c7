"""Accumulators in columns: the base class, counts and sums."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from firesteel.table.runtime.operators.aggregate.domains import to_integers
from firesteel.table.runtime.operators.aggregate.feeds import Rows, signed_counts
from firesteel.table.runtime.operators.aggregate.steps import Steps

__all__ = ["Accumulator", "Columns", "Count", "FloatSum", "IntegerSum", "SingleSum", "pickled", "unpickled"]

Columns = Sequence[Any]
"""The columns of one accumulator in the state, indexed by slot."""


class Accumulator(ABC):
    """What a state keeps per key for a call, and how rows and partial results change it."""

    dtypes: ClassVar[tuple[str, ...]]
    runs: ClassVar[bool] = True
    """Whether ``run`` is supported."""

    def run(self, columns: Columns, steps: Steps) -> list[Any]:
        """Takes up rows one after the other; the columns after each row."""
        raise NotImplementedError

    @abstractmethod
    def accumulate(self, columns: Columns, rows: Rows) -> None:
        """Takes up rows; those that leave too."""

    @abstractmethod
    def merge(self, columns: Columns, rows: Rows) -> None:
        """Takes up partial results: the columns of rows are those of ``partial``."""

    @abstractmethod
    def partial(self, columns: Columns, slots: Any) -> list[Any]:
        """The accumulators of slots as columns of Arrow, for the global phase."""

    @abstractmethod
    def partial_types(self) -> list[Any]:
        """The types of these columns."""


class _Numbers(Accumulator):
    """Columns of numbers that partial results are added to."""

    def merge(self, columns: Columns, rows: Rows) -> None:
        for column, array in zip(columns, rows.arrays, strict=True):
            np.add.at(column, rows.row_slots, array.to_numpy(zero_copy_only=False))

    def partial(self, columns: Columns, slots: Any) -> list[Any]:
        return [pa.array(column[slots]) for column in columns]

    def partial_types(self) -> list[Any]:
        return [pa.from_numpy_dtype(np.dtype(dtype)) for dtype in self.dtypes]


class Count(_Numbers):
    """The number of rows."""

    dtypes = ("i8",)

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        columns[0][rows.slots] += signed_counts(rows)

    def run(self, columns: Columns, steps: Steps) -> list[Any]:
        return [_summed(columns[0], steps, steps.signs)]


class IntegerSum(_Numbers):
    """The sum of integers, which wraps."""

    dtypes = ("i8",)

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        numbers = to_integers(rows.arrays[0])
        if rows.signs is not None:
            numbers = numbers * rows.signs
        added = np.zeros(len(rows.slots), np.int64)
        np.add.at(added, rows.codes, numbers)
        columns[0][rows.slots] += added

    def run(self, columns: Columns, steps: Steps) -> list[Any]:
        numbers = np.zeros(len(steps.codes), np.int64)
        numbers[steps.fed] = to_integers(steps.arguments()[0])
        return [_summed(columns[0], steps, numbers * steps.signs)]


class FloatSum(_Numbers):
    """The sum of floats, added one after the other as they come."""

    dtypes = ("f8",)

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        (column,) = columns
        numbers = rows.arrays[0].to_numpy(zero_copy_only=False).astype(column.dtype, copy=False)
        if rows.signs is not None:
            numbers = numbers * rows.signs.astype(column.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(column, rows.row_slots, numbers)

    def run(self, columns: Columns, steps: Steps) -> list[Any]:
        (column,) = columns
        row_slots = steps.slots[steps.codes].tolist()
        numbers = np.zeros(len(steps.codes), column.dtype)
        fed = steps.fed
        numbers[fed] = steps.arguments()[0].to_numpy(zero_copy_only=False).astype(column.dtype, copy=False)
        numbers[fed] *= steps.signs[fed].astype(column.dtype)
        is_fed = steps.signs != 0
        after = np.empty(len(numbers), column.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for row, (slot, matters) in enumerate(zip(row_slots, is_fed.tolist(), strict=True)):
                if matters:
                    column[slot] += numbers[row]
                after[row] = column[slot]
        return [after]


class SingleSum(FloatSum):
    """The sum of floats of 32 bits, rounded after each addition."""

    dtypes = ("f4",)


def _summed(column: Any, steps: Steps, numbers: Any) -> Any:
    """The column after each row, to which numbers are added."""
    after = column[steps.slots][steps.codes] + steps.order.totals(numbers)
    # of equal slots the last one is assigned
    column[steps.slots[steps.codes]] = after
    return after


def pickled(values: Sequence[Any]) -> Any:
    """A column of accumulators that are objects."""
    return pa.array([None if value is None else pickle.dumps(value, 5) for value in values], pa.binary())


def unpickled(array: Any) -> list[Any]:
    """The objects of such a column."""
    return [None if data is None else pickle.loads(data) for data in array.to_pylist()]
