"""PERCENTILE: the value below which a part of the values is."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate as running_sums
from typing import Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Cast, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates.body import AggregateBody, bag_key, define, sort_key
from firesteel.table.functions.definition import Inferred
from firesteel.table.functions.signatures import check_count, mismatch
from firesteel.table.inference.families import is_integer, is_numeric
from firesteel.types import logical as t

__all__ = ["PERCENTILE"]

_DOUBLE = t.DoubleType()
_FORM = "'PERCENTILE(<NUMERIC>, <NUMERIC LITERAL> or <ARRAY OF NUMERIC LITERALS>, <INTEGER>)'"


def _constants(expression: Expression) -> list[Any] | None:
    """The numbers of a literal, or of an array of literals; None if it is neither."""
    if isinstance(expression, Cast):
        return _constants(expression.operand)
    if isinstance(expression, Literal):
        return [expression.value]
    if isinstance(expression, Call) and expression.function == "ARRAY":
        parts = [_constants(argument) for argument in expression.arguments]
        return None if None in parts else [value for part in parts if part is not None for value in part]
    return None


def _infer(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
    check_count("PERCENTILE", arguments, 2, 3)
    value, percentage = arguments[0].type, arguments[1].type
    many = isinstance(percentage, t.ArrayType)
    number = percentage.element_type if isinstance(percentage, t.ArrayType) else percentage
    if not is_numeric(value) or not is_numeric(number) or not all(is_integer(part.type) for part in arguments[2:]):
        raise mismatch("PERCENTILE", arguments, _FORM)
    constants = _constants(arguments[1])
    if constants is None or not all(constant is not None and 0 <= constant <= 1 for constant in constants):
        raise ValidationError(
            "The percentage of PERCENTILE must be a literal between 0 and 1.", hint=f"Supported form: {_FORM}"
        )
    target = t.ArrayType(_DOUBLE) if many else _DOUBLE
    return Inferred((value, target, *(part.type for part in arguments[2:])), target)


def _percentile(call: Call, session: Session) -> AggregateBody:
    """The accumulator has the percentages, then values and how often they are there."""
    key_of = bag_key(call.arguments[0].type)
    many = isinstance(call.type, t.ArrayType)

    def change(accumulator: list[Any], value: Any, percentage: Any, frequency: int) -> None:
        if frequency == 0:
            return
        accumulator[0] = percentage
        entries, key = accumulator[1], key_of(value)
        entry = entries.setdefault(key, [float(value), 0])
        entry[1] += frequency
        if not entry[1]:
            del entries[key]

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        if accumulator[0] is None:
            accumulator[0] = other[0]
        for key, (value, number) in other[1].items():
            entry = accumulator[1].setdefault(key, [value, 0])
            entry[1] += number
            if not entry[1]:
                del accumulator[1][key]

    def result(accumulator: list[Any]) -> Any:
        percentages, entries = accumulator
        present = [entry for entry in entries.values() if entry[1] > 0]
        if not present:
            return None
        present.sort(key=lambda entry: sort_key(entry[0]))
        values, ends = [value for value, _ in present], list(running_sums(number for _, number in present))
        if many:
            return [_interpolated(values, ends, percentage) for percentage in percentages]
        return _interpolated(values, ends, percentages)

    return AggregateBody(
        lambda: [None, {}],
        lambda accumulator, value, percentage, frequency=1: change(accumulator, value, percentage, max(frequency, 0)),
        lambda accumulator, value, percentage, frequency=1: change(accumulator, value, percentage, -max(frequency, 0)),
        merge,
        result,
    )


def _interpolated(values: list[float], ends: list[int], percentage: float) -> float:
    # counted from 1, as in Flink: the digits of the result depend on it
    position = (ends[-1] - 1) * percentage + 1.0
    lower, higher = math.floor(position), math.ceil(position)
    low, high = values[bisect_right(ends, lower - 1)], values[bisect_right(ends, higher - 1)]
    if lower == higher or low == high:
        return low
    return (higher - position) * low + (position - lower) * high


PERCENTILE = define("PERCENTILE", _infer, _percentile)
