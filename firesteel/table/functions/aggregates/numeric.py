"""COUNT, SUM, AVG and the functions of variance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates.body import AggregateBody, Make, define
from firesteel.table.functions.definition import FunctionDefinition, Inferred, Signature
from firesteel.table.functions.signatures import NUMERIC, illegal_null, signature
from firesteel.table.inference import decimals
from firesteel.table.inference.families import is_integer, is_null
from firesteel.table.values.numbers import CONTEXT, fit_decimal, single, truncate_to, wrap
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType
from firesteel.types.python import BITS

__all__ = ["NUMERIC_AGGREGATES"]

_BIGINT = t.BigIntType()


# -- COUNT -------------------------------------------------------------------------------------------------


def _infer_count(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    if any(is_null(argument.type) for argument in arguments):
        raise illegal_null()
    return Inferred(tuple(argument.type for argument in arguments), _BIGINT.not_null())


def _count(call: Call, session: Session) -> AggregateBody:
    def add(accumulator: list[int], *_: Any) -> None:
        accumulator[0] += 1

    def remove(accumulator: list[int], *_: Any) -> None:
        accumulator[0] -= 1

    def merge(accumulator: list[int], other: list[int]) -> None:
        accumulator[0] += other[0]

    return AggregateBody(lambda: [0], add, remove, merge, lambda accumulator: accumulator[0])


def _approximate_count(call: Call, session: Session) -> AggregateBody:
    """Exact, which is a good approximation; the zeros of floats are one value."""

    def add(accumulator: list[Any], value: Any) -> None:
        accumulator[0].add(value if value == value else math.nan)

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        accumulator[0] |= other[0]

    return AggregateBody(lambda: [set()], add, None, merge, lambda accumulator: len(accumulator[0]))


# -- SUM, AVG ----------------------------------------------------------------------------------------------


def _sum_body(total: LogicalType, result: Callable[[Any, int], Any]) -> AggregateBody:
    """The sum and the number of the values."""
    zero: Any = 0
    add: Callable[[Any, Any], Any] = lambda one, other: one + other
    take: Callable[[Any, Any], Any] = lambda one, other: one - other
    match total:
        case t.DecimalType():
            zero, add, take = Decimal(0), CONTEXT.add, CONTEXT.subtract
        case t.FloatType():
            add, take = lambda one, other: single(one + other), lambda one, other: single(one - other)

    def accumulate(accumulator: list[Any], value: Any) -> None:
        accumulator[0] = add(accumulator[0], value)
        accumulator[1] += 1

    def retract(accumulator: list[Any], value: Any) -> None:
        accumulator[0] = take(accumulator[0], value)
        accumulator[1] -= 1

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        accumulator[0] = add(accumulator[0], other[0])
        accumulator[1] += other[1]

    return AggregateBody(
        lambda: [zero, 0], accumulate, retract, merge, lambda accumulator: result(accumulator[0], accumulator[1])
    )


def _sum(call: Call, session: Session) -> AggregateBody:
    fit = _fit(call.type)
    return _sum_body(call.type, lambda total, count: fit(total) if count else None)


def _fit(type_: LogicalType) -> Callable[[Any], Any]:
    """What makes a value of a type of a sum."""
    match type_:
        case t.DecimalType():
            return lambda value: fit_decimal(value, type_)
        case t.FloatType():
            return single
        case t.DoubleType():
            return float
    bits = BITS[type_.root]
    return lambda value: wrap(value, bits)


def _avg(call: Call, session: Session) -> AggregateBody:
    type_ = call.type
    if isinstance(type_, t.DecimalType):
        fitted = type_
        sums = decimals.total(call.arguments[0].type)
        assert isinstance(sums, t.DecimalType)
        total_type = sums

        def average(total: Decimal, count: int) -> Decimal | None:
            if not count or fit_decimal(total, total_type) is None:
                return None
            return fit_decimal(CONTEXT.divide(total, Decimal(count)), fitted)

        return _sum_body(sums, average)
    if is_integer(type_):
        return _sum_body(_BIGINT, lambda total, count: _truncated(wrap(total, 64), count) if count else None)
    fit = _fit(type_)
    return _sum_body(t.DoubleType(), lambda total, count: fit(total / count) if count else None)


def _truncated(total: int, count: int) -> int:
    quotient = abs(total) // count
    return quotient if total >= 0 else -quotient


# -- variance ----------------------------------------------------------------------------------------------


def _moments(sample: bool, root: bool) -> Make:
    """Welford's method on doubles: the number of values, their mean, and the sum of squared distances from it.

    The accumulator also has values that leave before they come: a local one begins anew with each batch.
    """

    def make(call: Call, session: Session) -> AggregateBody:
        convert = _from_double(call.type)

        def result(accumulator: list[Any]) -> Any:
            count, _, squares, _ = accumulator
            divisor = count - 1 if sample else count
            if divisor <= 0 or squares < 0:  # Flink returns NULL where rounding makes them negative
                return None
            variance = squares / divisor
            return convert(math.sqrt(variance) if root else variance)

        return AggregateBody(lambda: [0, 0.0, 0.0, []], _add_moment, _remove_moment, _merge_moments, result)

    return make


def _add_moment(accumulator: list[Any], value: Any) -> None:
    number = float(value)
    accumulator[0] += 1
    distance = number - accumulator[1]
    accumulator[1] += distance / accumulator[0]
    accumulator[2] += distance * (number - accumulator[1])


def _remove_moment(accumulator: list[Any], value: Any) -> None:
    number = float(value)
    if not accumulator[0]:
        accumulator[3].append(number)
        return
    accumulator[0] -= 1
    if not accumulator[0]:
        accumulator[1:3] = [0.0, 0.0]
        return
    distance = number - accumulator[1]
    accumulator[1] -= distance / accumulator[0]
    accumulator[2] -= distance * (number - accumulator[1])


def _merge_moments(accumulator: list[Any], other: list[Any]) -> None:
    (count, mean, squares, left), (more, other_mean, other_squares, other_left) = accumulator, other
    total = count + more
    if not count:
        accumulator[:3] = other[:3]
    elif more:
        distance = other_mean - mean
        accumulator[:3] = [
            total,
            mean + distance * more / total,
            squares + other_squares + distance * distance * count * more / total,
        ]
    gone = [*left, *other_left]
    accumulator[3] = []
    for number in gone:
        _remove_moment(accumulator, number)


def _from_double(type_: LogicalType) -> Callable[[float], Any]:
    match type_:
        case t.DecimalType():
            return lambda value: fit_decimal(Decimal(repr(value)), type_) if math.isfinite(value) else None
        case t.FloatType():
            return single
        case t.DoubleType():
            return float
    bits = BITS[type_.root]
    return lambda value: truncate_to(value, bits)


# -- types -------------------------------------------------------------------------------------------------


def _numeric(name: str, result: Callable[[LogicalType], LogicalType]) -> Signature:
    return signature(name, NUMERIC, returns=lambda arguments: result(arguments[0].type), nullable=True)


def _variance(name: str, sample: bool, root: bool) -> FunctionDefinition:
    return define(name, _numeric(name, decimals.average), _moments(sample, root))


NUMERIC_AGGREGATES = (
    define("COUNT", _infer_count, _count),
    define("APPROX_COUNT_DISTINCT", _infer_count, _approximate_count),
    define("SUM", _numeric("SUM", decimals.total), _sum),
    define("AVG", _numeric("AVG", decimals.average), _avg),
    _variance("STDDEV_POP", sample=False, root=True),
    _variance("STDDEV_SAMP", sample=True, root=True),
    _variance("STDDEV", sample=True, root=True),
    _variance("VAR_POP", sample=False, root=False),
    _variance("VAR_SAMP", sample=True, root=False),
    _variance("VARIANCE", sample=True, root=False),
)
