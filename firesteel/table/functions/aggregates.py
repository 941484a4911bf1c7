"""Aggregate functions: their types, and how a row joins and leaves an accumulator.

An accumulator is a list, so that it is changed in place. Arguments that are NULL do not reach ``accumulate``, unless
the function takes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from firesteel.table.expressions.nodes import Call, Expression
from firesteel.table.expressions.session import Session
from firesteel.table.functions.definition import FunctionDefinition, FunctionKind, Inferred, PerCall, Signature
from firesteel.table.functions.signatures import ANY, CHARACTER, INTEGER, NUMERIC, check_count, mismatch, signature
from firesteel.table.inference import decimals
from firesteel.table.inference.families import is_constructed, is_integer
from firesteel.table.values.numbers import CONTEXT, fit_decimal, single, wrap
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType
from firesteel.types.python import BITS

__all__ = ["FUNCTIONS", "AggregateBody"]

_BIGINT = t.BigIntType()


@dataclass(frozen=True)
class AggregateBody:
    """The bodies of an aggregate function for one call."""

    create: Callable[[], list[Any]]
    accumulate: Callable[..., None]
    retract: Callable[..., None] | None
    """None if a row cannot leave the accumulator."""
    merge: Callable[[list[Any], list[Any]], None]
    result: Callable[[list[Any]], Any]
    takes_null: bool = False


def _define(name: str, sign: Signature, body: Callable[[Call, Session], AggregateBody] | None) -> FunctionDefinition:
    row = None if body is None else PerCall(body)
    return FunctionDefinition(name, sign, row=row, kind=FunctionKind.AGGREGATE, family="aggregate")


# -- COUNT, SUM, AVG ---------------------------------------------------------------------------------------


def _infer_count(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
    return Inferred(tuple(argument.type for argument in arguments), _BIGINT.not_null())


def _count(call: Call, session: Session) -> AggregateBody:
    def add(accumulator: list[int], *_: Any) -> None:
        accumulator[0] += 1

    def remove(accumulator: list[int], *_: Any) -> None:
        accumulator[0] -= 1

    def merge(accumulator: list[int], other: list[int]) -> None:
        accumulator[0] += other[0]

    return AggregateBody(lambda: [0], add, remove, merge, lambda accumulator: accumulator[0])


def _arithmetic(type_: LogicalType) -> Callable[[Any], Any]:
    """What fits a sum into its type."""
    match type_:
        case t.DecimalType():
            return lambda value: fit_decimal(value, type_)
        case t.FloatType():
            return single
        case t.DoubleType():
            return float
    bits = BITS[type_.root]
    return lambda value: wrap(value, bits)


def _sum_body(result: Callable[[Any, int], Any], is_decimal: bool) -> AggregateBody:
    """The sum and the number of the values."""
    add_up: Callable[[Any, Any], Any] = CONTEXT.add if is_decimal else lambda one, other: one + other
    take: Callable[[Any, Any], Any] = CONTEXT.subtract if is_decimal else lambda one, other: one - other

    def accumulate(accumulator: list[Any], value: Any) -> None:
        accumulator[0] = add_up(accumulator[0], value)
        accumulator[1] += 1

    def retract(accumulator: list[Any], value: Any) -> None:
        accumulator[0] = take(accumulator[0], value)
        accumulator[1] -= 1

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        accumulator[0] = add_up(accumulator[0], other[0])
        accumulator[1] += other[1]

    return AggregateBody(
        lambda: [Decimal(0) if is_decimal else 0, 0],
        accumulate,
        retract,
        merge,
        lambda accumulator: result(*accumulator),
    )


def _sum(call: Call, session: Session) -> AggregateBody:
    fit = _arithmetic(call.type)
    is_decimal = isinstance(call.type, t.DecimalType)
    return _sum_body(lambda total, count: fit(total) if count else None, is_decimal)


def _avg(call: Call, session: Session) -> AggregateBody:
    type_ = call.type
    if isinstance(type_, t.DecimalType):
        fitted = type_
        return _sum_body(
            lambda total, count: fit_decimal(CONTEXT.divide(total, Decimal(count)), fitted) if count else None, True
        )
    if is_integer(type_):
        return _sum_body(
            lambda total, count: int(abs(total) // count * (1 if total >= 0 else -1)) if count else None, False
        )
    fit = _arithmetic(type_)
    return _sum_body(lambda total, count: fit(total / count) if count else None, False)


# -- variance ----------------------------------------------------------------------------------------------


def _moments(sample: bool, root: bool) -> Callable[[Call, Session], AggregateBody]:
    """Sum and sum of squares; exact, as fractions of integers, would be slower."""

    def make(call: Call, session: Session) -> AggregateBody:
        type_ = call.type
        argument = call.arguments[0].type

        def number(value: Any) -> Any:
            return Decimal(value) if not isinstance(argument, (t.FloatType, t.DoubleType)) else Decimal(repr(value))

        def change(sign: int) -> Callable[[list[Any], Any], None]:
            def apply(accumulator: list[Any], value: Any) -> None:
                converted = number(value)
                accumulator[0] = CONTEXT.add(accumulator[0], sign * converted)
                accumulator[1] = CONTEXT.add(accumulator[1], sign * CONTEXT.multiply(converted, converted))
                accumulator[2] += sign

            return apply

        def merge(accumulator: list[Any], other: list[Any]) -> None:
            for index, value in enumerate(other):
                accumulator[index] += value

        def result(accumulator: list[Any]) -> Any:
            total, squares, count = accumulator
            divisor = count - 1 if sample else count
            if divisor <= 0:
                return None
            mean = CONTEXT.divide(CONTEXT.multiply(total, total), Decimal(count))
            variance = max(CONTEXT.divide(CONTEXT.subtract(squares, mean), Decimal(divisor)), Decimal(0))
            return _to_type(variance.sqrt(CONTEXT) if root else variance, type_)

        return AggregateBody(lambda: [Decimal(0), Decimal(0), 0], change(1), change(-1), merge, result)

    return make


def _to_type(value: Decimal, type_: LogicalType) -> Any:
    if isinstance(type_, t.DecimalType):
        return fit_decimal(value, type_)
    return int(value) if is_integer(type_) else _arithmetic(type_)(float(value))


# -- values ------------------------------------------------------------------------------------------------


def _bag(result: Callable[[Counter[Any]], Any]) -> AggregateBody:
    """How often each value is there."""

    def accumulate(accumulator: list[Any], value: Any) -> None:
        accumulator[0][value] += 1

    def retract(accumulator: list[Any], value: Any) -> None:
        accumulator[0][value] -= 1
        if not accumulator[0][value]:
            del accumulator[0][value]

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        accumulator[0].update(other[0])

    return AggregateBody(lambda: [Counter()], accumulate, retract, merge, lambda accumulator: result(accumulator[0]))


def _extreme(choose: Callable[..., Any]) -> Callable[[Call, Session], AggregateBody]:
    return lambda call, session: _bag(lambda values: choose(values, default=None))


def _collect(call: Call, session: Session) -> AggregateBody:
    return _bag(dict)


def _listed(result: Callable[[list[Any]], Any], takes_null: bool = False) -> AggregateBody:
    """All values in order."""

    def retract(accumulator: list[Any], *values: Any) -> None:
        accumulator.remove(values if len(values) > 1 else values[0])

    def accumulate(accumulator: list[Any], *values: Any) -> None:
        accumulator.append(values if len(values) > 1 else values[0])

    return AggregateBody(list, accumulate, retract, list.extend, result, takes_null)


def _array_agg(call: Call, session: Session) -> AggregateBody:
    return _listed(lambda values: list(values) or None, "IGNORE NULLS" not in call.symbols)


def _edge(index: int) -> Callable[[Call, Session], AggregateBody]:
    return lambda call, session: _listed(lambda values: values[index] if values else None)


def _listagg(call: Call, session: Session) -> AggregateBody:
    has_separator = len(call.arguments) > 1

    def joined(values: list[Any]) -> str | None:
        if not values:
            return None
        if not has_separator:
            return ",".join(values)
        return "".join([text if not number else separator + text for number, (text, separator) in enumerate(values)])

    return _listed(joined)


# -- types -------------------------------------------------------------------------------------------------


def _numeric(name: str, result: Callable[[LogicalType], LogicalType]) -> Signature:
    return signature(name, NUMERIC, returns=lambda arguments: result(arguments[0].type), nullable=True)


def _comparable(name: str) -> Signature:
    def infer(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
        check_count(name, arguments, 1, 1)
        type_ = arguments[0].type
        if is_constructed(type_):
            raise mismatch(name, arguments, f"'{name}(<COMPARABLE_TYPE>)'")
        return Inferred((type_,), type_.copy())

    return infer


def _any(name: str, result: Callable[[LogicalType], LogicalType], nullable: bool = True) -> Signature:
    return signature(name, ANY, returns=lambda arguments: result(arguments[0].type), nullable=nullable)


def _rank(name: str) -> FunctionDefinition:
    return _define(name, signature(name, returns=_BIGINT, nullable=False), None)


def _variance_type(type_: LogicalType) -> LogicalType:
    return decimals.average(type_)


def _shifted(name: str) -> Signature:
    def infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
        check_count(name, arguments, 1, 3)
        if len(arguments) > 1 and not is_integer(arguments[1].type):
            raise mismatch(name, arguments, f"'{name}(<ANY>, <INTEGER>, <ANY>)'")
        types = tuple(argument.type for argument in arguments)
        default = arguments[2].type.nullable if len(arguments) > 2 else True
        return Inferred((*types[:2], *(types[0] for _ in types[2:])), types[0].copy(types[0].nullable or default))

    return infer


FUNCTIONS = (
    _define("COUNT", _infer_count, _count),
    _define("SUM", _numeric("SUM", decimals.total), _sum),
    _define("AVG", _numeric("AVG", decimals.average), _avg),
    _define("MAX", _comparable("MAX"), _extreme(max)),
    _define("MIN", _comparable("MIN"), _extreme(min)),
    _define("STDDEV_POP", _numeric("STDDEV_POP", _variance_type), _moments(sample=False, root=True)),
    _define("STDDEV_SAMP", _numeric("STDDEV_SAMP", _variance_type), _moments(sample=True, root=True)),
    _define("VAR_POP", _numeric("VAR_POP", _variance_type), _moments(sample=False, root=False)),
    _define("VAR_SAMP", _numeric("VAR_SAMP", _variance_type), _moments(sample=True, root=False)),
    _define("VARIANCE", _numeric("VARIANCE", _variance_type), _moments(sample=True, root=False)),
    _define("COLLECT", _any("COLLECT", t.MultisetType, nullable=False), _collect),
    _define("ARRAY_AGG", _any("ARRAY_AGG", t.ArrayType), _array_agg),
    _define("FIRST_VALUE", _any("FIRST_VALUE", lambda type_: type_), _edge(0)),
    _define("LAST_VALUE", _any("LAST_VALUE", lambda type_: type_), _edge(-1)),
    _define(
        "LISTAGG",
        signature("LISTAGG", CHARACTER, CHARACTER, returns=t.VarCharType(), optional=1, nullable=True),
        _listagg,
    ),
    _rank("ROW_NUMBER"),
    _rank("RANK"),
    _rank("DENSE_RANK"),
    _define("NTILE", signature("NTILE", INTEGER, returns=_BIGINT, nullable=False), None),
    _define("CUME_DIST", signature("CUME_DIST", returns=t.DoubleType(), nullable=False), None),
    _define("PERCENT_RANK", signature("PERCENT_RANK", returns=t.DoubleType(), nullable=False), None),
    _define("LEAD", _shifted("LEAD"), None),
    _define("LAG", _shifted("LAG"), None),
)
