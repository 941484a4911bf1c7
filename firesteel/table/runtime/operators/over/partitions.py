"""The results of functions over windows of a whole partition, whose rows are all there and sorted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates.body import AggregateBody
from firesteel.table.plan.over import Bound, BoundKind, Frame, OverCall, OverGroup
from firesteel.table.runtime.operators.over.calls import body_of
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["Partition", "PartitionCalls"]

Rows = Sequence[Sequence[Any]]
_Bounds = list[tuple[int, int]]
_DAY_MS = 86_400_000


class Partition:
    """The sorted rows of a partition, and which of them are equal in the order."""

    def __init__(self, rows: Rows, keys: Sequence[Any]) -> None:
        self.rows = rows
        self.starts: list[int] = []
        """For each row, the first row that is equal to it in the order."""
        for index, key in enumerate(keys):
            self.starts.append(self.starts[-1] if index and keys[index - 1] == key else index)
        self.ends = [len(rows)] * len(rows)
        """For each row, the one after the last row that is equal to it in the order."""
        for index in range(len(rows) - 2, -1, -1):
            is_last = self.starts[index + 1] != self.starts[index]
            self.ends[index] = index + 1 if is_last else self.ends[index + 1]


class PartitionCalls:
    """The calls of one window."""

    def __init__(self, group: OverGroup, types: Sequence[LogicalType], session: Session) -> None:
        """Raises ValidationError for a function or a frame that cannot be computed."""
        self._calls = [_call(call, group, types, session) for call in group.calls]

    def results(self, partition: Partition) -> list[tuple[Any, ...]]:
        """The results of all calls for each row."""
        return list(zip(*(call(partition) for call in self._calls), strict=True))


_Function = Callable[[Partition], list[Any]]


def _call(call: OverCall, group: OverGroup, types: Sequence[LogicalType], session: Session) -> _Function:
    if call.function in _RANKS:
        return lambda partition: _RANKS[call.function](partition, call.arguments)
    frame = _frame(group, types)
    if group.frame.lower.kind is BoundKind.UNBOUNDED_PRECEDING:
        body, removes = body_of(call, types, True, session), False
    else:
        try:
            body, removes = body_of(call, types, False, session), True
        except ValidationError:  # rows cannot leave it: each window is computed by itself
            body, removes = body_of(call, types, True, session), False
    return lambda partition: _aggregated(partition, call.arguments, body, frame(partition), removes)


def _aggregated(
    partition: Partition, arguments: Sequence[int], body: AggregateBody, bounds: _Bounds, removes: bool
) -> list[Any]:
    values = [[row[index] for index in arguments] for row in partition.rows]
    counts = [body.takes_null or None not in each for each in values]
    results: list[Any] = []
    accumulator, low, high = body.create(), 0, 0
    for first, last in bounds:
        if (first > low and not removes) or first >= high:
            accumulator, low, high = body.create(), first, first
        for index in range(high, last):
            if counts[index]:
                body.accumulate(accumulator, *values[index])
        high = max(high, last)
        for index in range(low, first):
            if counts[index]:
                assert body.retract is not None
                body.retract(accumulator, *values[index])
        low = first
        results.append(body.result(accumulator))
    return results


# -- the places of rows ----------------------------------------------------------------------------------------------


def _row_number(partition: Partition, _: Sequence[int]) -> list[Any]:
    return list(range(1, len(partition.rows) + 1))


def _rank(partition: Partition, _: Sequence[int]) -> list[Any]:
    return [start + 1 for start in partition.starts]


def _dense_rank(partition: Partition, _: Sequence[int]) -> list[Any]:
    ranks: list[int] = []
    for index, start in enumerate(partition.starts):
        ranks.append((ranks[-1] if ranks else 0) + (start == index))
    return ranks


def _percent_rank(partition: Partition, _: Sequence[int]) -> list[Any]:
    others = len(partition.rows) - 1
    return [start / others if others else 0.0 for start in partition.starts]


def _cume_dist(partition: Partition, _: Sequence[int]) -> list[Any]:
    """As Flink does, up to the row itself and not up to the last one that is equal in the order."""
    count = len(partition.rows)
    return [(index + 1) / count for index in range(count)]


def _ntile(partition: Partition, arguments: Sequence[int]) -> list[Any]:
    """Tiles of equal size; the first ones have a row more if there are rows left over."""
    count = len(partition.rows)
    results: list[Any] = []
    for index, row in enumerate(partition.rows):
        tiles = row[arguments[0]]
        if tiles is None or tiles < 1:
            raise ValidationError(f"The argument of NTILE must be positive, but was {tiles}.")
        size, larger = divmod(count, tiles)
        border = larger * (size + 1)
        results.append(index // (size + 1) + 1 if index < border else larger + (index - border) // size + 1)
    return results


def _shifted(sign: int) -> Callable[[Partition, Sequence[int]], list[Any]]:
    def shifted(partition: Partition, arguments: Sequence[int]) -> list[Any]:
        rows = partition.rows
        results: list[Any] = []
        for index, row in enumerate(rows):
            place = index + sign * (row[arguments[1]] if len(arguments) > 1 else 1)
            default = row[arguments[2]] if len(arguments) > 2 else None
            results.append(rows[place][arguments[0]] if 0 <= place < len(rows) else default)
        return results

    return shifted


_RANKS: dict[str, Callable[[Partition, Sequence[int]], list[Any]]] = {
    "ROW_NUMBER": _row_number,
    "RANK": _rank,
    "DENSE_RANK": _dense_rank,
    "PERCENT_RANK": _percent_rank,
    "CUME_DIST": _cume_dist,
    "NTILE": _ntile,
    "LAG": _shifted(-1),
    "LEAD": _shifted(1),
}


# -- frames ----------------------------------------------------------------------------------------------------------


def _frame(group: OverGroup, types: Sequence[LogicalType]) -> Callable[[Partition], _Bounds]:
    """What computes the first row of each window and the one after the last; both never decrease."""
    frame = group.frame
    if frame.rows:
        return lambda partition: _frame_of_rows(frame, len(partition.rows))
    if any(bound.kind in (BoundKind.PRECEDING, BoundKind.FOLLOWING) for bound in (frame.lower, frame.upper)):
        return _frame_of_values(group, types)
    lower_is_first = frame.lower.kind is BoundKind.UNBOUNDED_PRECEDING
    upper_is_last = frame.upper.kind is BoundKind.UNBOUNDED_FOLLOWING

    def of_peers(partition: Partition) -> _Bounds:
        count = len(partition.rows)
        firsts = [0] * count if lower_is_first else partition.starts
        return list(zip(firsts, [count] * count if upper_is_last else partition.ends, strict=True))

    return of_peers


def _frame_of_rows(frame: Frame, count: int) -> _Bounds:
    lower, upper = _offset(frame.lower), _offset(frame.upper)
    bounds: _Bounds = []
    for index in range(count):
        first = 0 if lower is None else min(max(index + lower, 0), count)
        last = count if upper is None else min(max(index + upper + 1, 0), count)
        bounds.append((first, max(first, last)))
    return bounds


def _offset(bound: Bound) -> Any:
    """How far a bound is behind the row; None if it is the first or the last row."""
    match bound.kind:
        case BoundKind.PRECEDING:
            return -bound.offset
        case BoundKind.FOLLOWING:
            return bound.offset
        case BoundKind.CURRENT_ROW:
            return 0
    return None


def _frame_of_values(group: OverGroup, types: Sequence[LogicalType]) -> Callable[[Partition], _Bounds]:
    (key,) = group.order
    type_ = types[key.index]
    sign = -1 if key.descending else 1
    lower, upper = (_distance(_offset(bound), type_) for bound in (group.frame.lower, group.frame.upper))

    def of_values(partition: Partition) -> _Bounds:
        column = [row[key.index] for row in partition.rows]
        present = [index for index, value in enumerate(column) if value is not None]
        begin, end = (present[0], present[-1] + 1) if present else (0, 0)
        values = [sign * column[index] for index in range(begin, end)]
        bounds: _Bounds = []
        for index, value in enumerate(column):
            # nulls are equal to each other, and at no distance from any value
            first, last = partition.starts[index], partition.ends[index]
            if value is not None:
                own = sign * value
                first = first if lower == 0 else begin + bisect_left(values, own + (lower or 0))
                last = last if upper == 0 else begin + bisect_right(values, own + (upper or 0))
            first = 0 if lower is None else first
            last = len(column) if upper is None else last
            bounds.append((first, max(first, last)))
        return bounds

    return of_values


def _distance(offset: Any, type_: LogicalType) -> Any:
    """An offset in the unit of the column: of a time it is in milliseconds."""
    if not offset:
        return offset
    if isinstance(type_, t.DateType):
        return offset / _DAY_MS
    return offset * 1_000_000 if isinstance(type_, (t.TimestampType, t.LocalZonedTimestampType)) else offset
