"""The functions of an OVER window: how rows enter and leave it, and their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, InputRef
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates.body import AggregateBody, bag_key, sort_key
from firesteel.table.functions.definition import PerCall
from firesteel.table.functions.registry import function
from firesteel.table.plan.over import OverCall
from firesteel.types.logical import LogicalType

__all__ = ["Calls", "body_of"]

_BATCH_ONLY = ("LEAD", "NTILE", "PERCENT_RANK", "CUME_DIST")


class Calls:
    """The calls of a window. What they have accumulated is a list with an accumulator for each.

    Rows are tuples with the columns of ``columns`` only.
    """

    def __init__(
        self, calls: Sequence[OverCall], types: Sequence[LogicalType], order: int, grows: bool, session: Session
    ) -> None:
        """``grows`` is whether rows never leave the window; ``order`` is the column by which rows are sorted."""
        self.columns = sorted({order, *(index for call in calls for index in call.arguments)})
        """The columns that calls read."""
        places = {column: place for place, column in enumerate(self.columns)}
        self._calls = [_bound(call, types, places, places[order], grows, session) for call in calls]

    def create(self) -> list[Any]:
        """The accumulators of an empty window."""
        return [call.body.create() for call in self._calls]

    def add(self, accumulators: list[Any], row: Sequence[Any]) -> None:
        """A row enters the window."""
        for call, accumulator in zip(self._calls, accumulators, strict=True):
            arguments = [row[place] for place in call.places]
            if call.body.takes_null or None not in arguments:
                call.body.accumulate(accumulator, *arguments)

    def remove(self, accumulators: list[Any], row: Sequence[Any]) -> None:
        """A row leaves the window."""
        for call, accumulator in zip(self._calls, accumulators, strict=True):
            arguments = [row[place] for place in call.places]
            if call.body.takes_null or None not in arguments:
                assert call.body.retract is not None
                call.body.retract(accumulator, *arguments)

    def results(self, accumulators: list[Any]) -> tuple[Any, ...]:
        """The results of the calls."""
        return tuple([call.body.result(acc) for call, acc in zip(self._calls, accumulators, strict=True)])


@dataclass(frozen=True)
class _Bound:
    body: AggregateBody
    places: tuple[int, ...]


def _bound(
    call: OverCall, types: Sequence[LogicalType], places: dict[int, int], order: int, grows: bool, session: Session
) -> _Bound:
    body = body_of(call, types, grows, session)
    if call.function in ("RANK", "DENSE_RANK"):
        return _Bound(body, (order,))
    return _Bound(body, tuple(places[index] for index in call.arguments))


def body_of(call: OverCall, types: Sequence[LogicalType], grows: bool, session: Session) -> AggregateBody:
    """The body of a call. Raises ValidationError for a function that streams do not have."""
    name = call.function
    if name in _BATCH_ONLY:
        raise ValidationError(f"{name} Function is not supported in stream mode.")
    body = _SPECIAL.get(name) or (_GROWING.get(name) if grows else None)
    if body is None:
        arguments = tuple(InputRef(types[index], index, f"f{index}") for index in call.arguments)
        row = (function(name) if call.definition is None else call.definition).row
        if not isinstance(row, PerCall):
            raise ValidationError(f"{name} Function is not supported in stream mode.")
        body = row.make(Call(call.type, name, arguments, call.symbols, call.definition, place=call.place), session)
    if not grows and body.retract is None:
        raise ValidationError(f"{name} is not supported over a window from which rows are removed.")
    return _distinct(body, [types[index] for index in call.arguments]) if call.distinct else body


def _merge(_one: list[Any], _other: list[Any]) -> None:
    raise AssertionError("windows are not merged")


def _distinct(body: AggregateBody, types: Sequence[LogicalType]) -> AggregateBody:
    """Each value once, as long as any row with it is in the window."""
    keys = [bag_key(type_) for type_ in types]

    def key_of(values: Sequence[Any]) -> Any:
        return tuple([None if value is None else key(value) for key, value in zip(keys, values, strict=True)])

    def accumulate(accumulator: list[Any], *values: Any) -> None:
        counts, inner = accumulator
        key = key_of(values)
        if key not in counts:
            counts[key] = 0
            body.accumulate(inner, *values)
        counts[key] += 1

    def retract(accumulator: list[Any], *values: Any) -> None:
        counts, inner = accumulator
        key = key_of(values)
        counts[key] -= 1
        if not counts[key]:
            del counts[key]
            assert body.retract is not None
            body.retract(inner, *values)

    return AggregateBody(
        lambda: [{}, body.create()], accumulate, retract, _merge, lambda acc: body.result(acc[1]), body.takes_null
    )


# -- functions that need less if rows never leave, and those of the place of a row -----------------------------------


def _simple(
    initial: Callable[[], list[Any]],
    accumulate: Callable[..., None],
    result: Callable[[list[Any]], Any],
    takes_null: bool = False,
) -> AggregateBody:
    return AggregateBody(initial, accumulate, None, _merge, result, takes_null)


def _first(accumulator: list[Any], value: Any) -> None:
    if accumulator[0] is None:
        accumulator[0] = value


def _last(accumulator: list[Any], value: Any) -> None:
    accumulator[0] = value


def _greatest(accumulator: list[Any], value: Any) -> None:
    if accumulator[0] is None or sort_key(value) > sort_key(accumulator[0]):
        accumulator[0] = value


def _least(accumulator: list[Any], value: Any) -> None:
    if accumulator[0] is None or sort_key(value) < sort_key(accumulator[0]):
        accumulator[0] = value


def _value(accumulator: list[Any]) -> Any:
    return accumulator[0]


def _keeping(accumulate: Callable[..., None]) -> AggregateBody:
    return _simple(lambda: [None], accumulate, _value)


def _count(accumulator: list[Any]) -> None:
    accumulator[0] += 1


def _lag() -> AggregateBody:
    def accumulate(accumulator: list[Any], value: Any, offset: int = 1, default: Any = None) -> None:
        accumulator[0].append(value)
        accumulator[1] = default
        if len(accumulator[0]) > offset + 1:
            del accumulator[0][0]
        accumulator[2] = offset

    def result(accumulator: list[Any]) -> Any:
        values, default, offset = accumulator
        return values[0] if len(values) > offset else default

    return _simple(lambda: [[], None, 1], accumulate, result, takes_null=True)


def _rank(accumulator: list[Any], time: Any) -> None:
    """The number of rows, the rank, and the time that has it."""
    accumulator[1] += 1
    if accumulator[2] != time:
        accumulator[0], accumulator[2] = accumulator[1], time


def _dense_rank(accumulator: list[Any], time: Any) -> None:
    if accumulator[2] != time:
        accumulator[0], accumulator[2] = accumulator[0] + 1, time


_SPECIAL: dict[str, AggregateBody] = {
    "ROW_NUMBER": _simple(lambda: [0], _count, _value),
    "RANK": _simple(lambda: [0, 0, ()], _rank, _value, takes_null=True),
    "DENSE_RANK": _simple(lambda: [0, 0, ()], _dense_rank, _value, takes_null=True),
    "LAG": _lag(),
}
_GROWING: dict[str, AggregateBody] = {
    "FIRST_VALUE": _keeping(_first),
    "LAST_VALUE": _keeping(_last),
    "MAX": _keeping(_greatest),
    "MIN": _keeping(_least),
}
