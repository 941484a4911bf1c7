"""Bounds of the times of two sides of a join, from comparisons such as ``l.ts >= r.ts - INTERVAL '1' HOUR``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from firesteel.table.bound.nodes import Call, Cast, Expression, InputRef, Literal
from firesteel.table.plan.time_attributes import is_proctime, is_rowtime
from firesteel.types.logical import DayTimeIntervalType

__all__ = ["IntervalBounds", "interval_bounds"]

_FLIPPED = {
    "LESS_THAN": "GREATER_THAN",
    "LESS_THAN_OR_EQUAL": "GREATER_THAN_OR_EQUAL",
    "GREATER_THAN": "LESS_THAN",
    "GREATER_THAN_OR_EQUAL": "LESS_THAN_OR_EQUAL",
    "EQUALS": "EQUALS",
}


class IntervalBounds(NamedTuple):
    """``right + lower <= left <= right + upper`` in milliseconds, and the conditions that say nothing of it."""

    left: int
    """The time attribute of the left side, by its place in the columns of both."""
    right: int
    lower: int
    upper: int
    is_event_time: bool
    rest: list[Expression]


class _Bound(NamedTuple):
    left: int
    right: int
    lower: int | None
    upper: int | None
    is_event_time: bool


def interval_bounds(conditions: Sequence[Expression], width: int) -> IntervalBounds | None:
    """The bounds that conditions set; None if they do not bound the time in both directions."""
    rest: list[Expression] = []
    found: list[_Bound] = []
    for condition in conditions:
        bound = _bound(condition, width)
        if bound is None:
            rest.append(condition)
        else:
            found.append(bound)
    if len({(bound.left, bound.right) for bound in found}) != 1 or len(found) > 2:
        return None
    lowers = [bound.lower for bound in found if bound.lower is not None]
    uppers = [bound.upper for bound in found if bound.upper is not None]
    if len(lowers) != 1 or len(uppers) != 1:
        return None
    first = found[0]
    return IntervalBounds(first.left, first.right, lowers[0], uppers[0], first.is_event_time, rest)


def _bound(condition: Expression, width: int) -> _Bound | None:
    if not isinstance(condition, Call) or condition.function not in _FLIPPED:
        return None
    one, other = (_time(argument) for argument in condition.arguments)
    if one is None or other is None or (one[0] < width) == (other[0] < width):
        return None
    comparison = condition.function
    if one[0] >= width:
        one, other, comparison = other, one, _FLIPPED[comparison]
    if one[2] != other[2]:
        return None
    # left + a <= right + b: left <= right + (b - a)
    offset = other[1] - one[1]
    lower = upper = None
    if comparison in ("GREATER_THAN", "GREATER_THAN_OR_EQUAL", "EQUALS"):
        lower = offset + (comparison == "GREATER_THAN")
    if comparison in ("LESS_THAN", "LESS_THAN_OR_EQUAL", "EQUALS"):
        upper = offset - (comparison == "LESS_THAN")
    return _Bound(one[0], other[0], lower, upper, one[2])


def _time(expression: Expression) -> tuple[int, int, bool] | None:
    """Column, milliseconds and whether it is event time, of a time attribute with intervals added to it."""
    match expression:
        case InputRef() if is_rowtime(expression.type) or is_proctime(expression.type):
            return expression.index, 0, is_rowtime(expression.type)
        case Cast():
            return _time(expression.operand) if not isinstance(expression.operand.type, DayTimeIntervalType) else None
        case Call() if expression.function in ("PLUS", "MINUS"):
            one, other = expression.arguments
            if expression.function == "PLUS" and _interval(one) is not None:
                one, other = other, one
            time, interval = _time(one), _interval(other)
            if time is None or interval is None:
                return None
            return time[0], time[1] + (interval if expression.function == "PLUS" else -interval), time[2]
    return None


def _interval(expression: Expression) -> int | None:
    if isinstance(expression, Literal) and isinstance(expression.type, DayTimeIntervalType):
        return expression.value if isinstance(expression.value, int) else None
    if isinstance(expression, Call) and expression.function in ("NEGATE", "MINUS_PREFIX", "UNARY_MINUS"):
        value = _interval(expression.arguments[0])
        return None if value is None else -value
    return None
