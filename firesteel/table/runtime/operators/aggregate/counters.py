"""How often each value occurs: for DISTINCT, and for MIN and MAX of rows that may leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.state.columnar.state import MAPS
from firesteel.table.runtime.operators.aggregate.accumulators import Accumulator, Columns, pickled, unpickled
from firesteel.table.runtime.operators.aggregate.domains import Domain
from firesteel.table.runtime.operators.aggregate.feeds import Rows
from firesteel.table.runtime.operators.aggregate.steps import Steps
from firesteel.types.logical import LogicalType

__all__ = ["Change", "RetractableExtreme", "ValueCounter"]

Change = tuple[int, Any, int]
"""The number of a key, a value, and how many more of it there are."""


class ValueCounter:
    """A dictionary per key from values to the number of their occurrences. Several arguments make a tuple."""

    def __init__(self, types: Sequence[LogicalType]):
        self._domains = [Domain(type_) for type_ in types]

    @property
    def has_objects(self) -> bool:
        """Whether values are objects; else they are integers."""
        return len(self._domains) > 1 or self._domains[0].has_objects

    def pairs(self, codes: Any, arrays: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The distinct pairs of a key and a value: which one each row has, then their keys and their values.

        Null is a value like others, of one argument.
        """
        numbers, values = self._numbered(len(codes), arrays)
        if not len(codes):
            return codes, codes, values[:0]
        first = codes[0]
        if (codes == first).all():
            return numbers, np.full(len(values), first, np.intp), values
        pairs = pa.array(codes * len(values) + numbers).dictionary_encode()
        keys, found = np.divmod(pairs.dictionary.to_numpy(), len(values))
        return pairs.indices.to_numpy(zero_copy_only=False).astype(np.intp), keys, values[found]

    def changes(self, rows: Rows) -> list[Change]:
        """What rows amount to; null is a value like others where a feed keeps it, of one argument."""
        if not len(rows.codes):
            return []
        codes, keys, values = self.pairs(rows.codes, rows.arrays)
        if rows.signs is None:
            counts = np.bincount(codes, minlength=len(keys))
        else:
            joins = rows.signs > 0
            counts = np.bincount(codes[joins], minlength=len(keys))
            counts -= np.bincount(codes[~joins], minlength=len(keys))
        triples = zip(keys.tolist(), values.tolist(), counts.tolist(), strict=True)
        return [(key, value, count) for key, value, count in triples if count]

    def _numbered(self, count: int, arrays: Sequence[Any]) -> tuple[Any, Any]:
        """Which value each row has, and the values as an array; those of several arguments are tuples."""
        if len(self._domains) == 1:
            (array,) = arrays
            if not array.null_count:
                return self._domains[0].numbered(array)
            is_valid = array.is_valid().to_numpy(zero_copy_only=False)
            known, distinct = self._domains[0].numbered(array.drop_null())
            with_null = np.full(len(array), len(distinct), np.intp)
            with_null[is_valid] = known
            return with_null, np.fromiter([*distinct.tolist(), None], object, len(distinct) + 1)
        numbers = np.zeros(count, np.intp)
        values: list[Any] = [()]
        for domain, array in zip(self._domains, arrays, strict=True):
            more, distinct = domain.numbered(array)
            own = distinct.tolist()
            pairs = pa.array(numbers * len(own) + more).dictionary_encode()
            numbers = pairs.indices.to_numpy(zero_copy_only=False).astype(np.intp)
            parts = (divmod(pair, len(own)) for pair in pairs.dictionary.to_pylist())
            values = [(*values[before], own[index]) for before, index in parts]
        return numbers, np.fromiter(values, object, len(values))

    def decode(self, values: Any) -> list[Any]:
        """An array of values as columns."""
        if not self.has_objects and values.dtype != object:
            return [self._domains[0].decode(values)]
        if len(self._domains) == 1:
            return [self._decoded(0, values.tolist())]
        parts = list(zip(*values.tolist(), strict=True)) or [()] * len(self._domains)
        return [self._decoded(index, part) for index, part in enumerate(parts)]

    def _decoded(self, index: int, values: Sequence[Any]) -> Any:
        domain = self._domains[index]
        is_null: Any = np.fromiter((value is None for value in values), bool, len(values))
        if not is_null.any():
            is_null = None
        elif not domain.has_objects:
            values = [0 if value is None else value for value in values]
        return domain.decode(np.fromiter(values, object if domain.has_objects else np.int64, len(values)), is_null)


def counters_at(column: Any, slots: Any) -> list[Any]:
    """The counters of slots, new ones where there are none."""
    counters: list[Any] = column[slots].tolist()
    for index, counter in enumerate(counters):
        if counter is None:
            counters[index] = column[slots[index]] = {}
    return counters


def merged_changes(rows: Rows) -> Iterator[Change]:
    """The changes in a column of counters."""
    for code, counter in zip(rows.codes.tolist(), unpickled(rows.arrays[0]), strict=True):
        if counter:
            yield from ((code, value, count) for value, count in counter.items())


class _Counters(Accumulator):
    """A column of counters, which goes pickled to the global phase."""

    def partial(self, columns: Columns, slots: Any) -> list[Any]:
        return [pickled(columns[0][slots].tolist())]

    def partial_types(self) -> list[Any]:
        return [pa.binary()]


class RetractableExtreme(_Counters):
    """The least or greatest value, with the counts of all."""

    dtypes = (MAPS, "O")

    def __init__(self, type_: LogicalType, is_max: bool):
        self._domain = Domain(type_)
        self._counter = ValueCounter([type_])
        self._choose = max if is_max else min

    def accumulate(self, columns: Columns, rows: Rows) -> None:
        self._apply(columns, rows, self._counter.changes(rows))

    def merge(self, columns: Columns, rows: Rows) -> None:
        self._apply(columns, rows, list(merged_changes(rows)))

    def _apply(self, columns: Columns, rows: Rows, changes: list[Change]) -> None:
        counts, extremes = columns
        counters = counters_at(counts, rows.slots)
        best: list[Any] = extremes[rows.slots].tolist()
        choose = self._choose
        lost: set[int] = set()
        for code, value, change in changes:
            counter = counters[code]
            after = counter.get(value, 0) + change
            if not after:
                counter.pop(value, None)
            else:
                counter[value] = after
            if after > 0:
                best[code] = value if best[code] is None else choose(best[code], value)
            elif best[code] == value:
                lost.add(code)
        for code in lost:
            best[code] = choose((value for value, count in counters[code].items() if count > 0), default=None)
        extremes[rows.slots] = np.fromiter(best, object, len(best))

    def run(self, columns: Columns, steps: Steps) -> list[Any]:
        counts, extremes = columns
        counters = counters_at(counts, steps.slots)
        best: list[Any] = extremes[steps.slots].tolist()
        choose = self._choose
        after = []
        for code, sign, value in steps.pairs(self._domain.encode(steps.arguments()[0])):
            if sign:
                counter = counters[code]
                count = counter.get(value, 0) + sign
                if count:
                    counter[value] = count
                else:
                    counter.pop(value, None)
                if count > 0:
                    best[code] = value if best[code] is None else choose(best[code], value)
                elif best[code] == value:
                    best[code] = choose((other for other, n in counter.items() if n > 0), default=None)
            after.append(best[code])
        extremes[steps.slots] = np.fromiter(best, object, len(best))
        return [None, np.fromiter(after, object, len(after))]

    def result(self, columns: Columns, slots: Any) -> Any:
        """The values of slots as a column."""
        values = columns[1][slots]
        is_null = np.fromiter((value is None for value in values), bool, len(values))
        if not self._domain.has_objects:
            values = np.fromiter((0 if value is None else value for value in values), np.int64, len(values))
        return self._domain.decode(values, is_null)
