"""The operators +, -, *, /, % and the sign. Integers wrap, division of integers truncates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.nodes import Call, Expression
from firesteel.table.bound.session import Session
from firesteel.table.functions import datetime_arithmetic
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall, Signature
from firesteel.table.functions.signatures import NUMERIC, any_nullable, check_count, illegal_null, mismatch, signature
from firesteel.table.functions.spark.failures import checked_divisor
from firesteel.table.functions.spark.texts import ieee_quotient, spark_type
from firesteel.table.inference import decimals
from firesteel.table.inference.common_type import common_numeric
from firesteel.table.inference.families import is_approximate, is_interval, is_null, is_numeric
from firesteel.table.values.numbers import CONTEXT, fit_decimal, single, wrap
from firesteel.types import logical as t
from firesteel.types.internal import arrow_type
from firesteel.types.logical import LogicalType, LogicalTypeRoot
from firesteel.types.python import BITS

__all__ = ["FUNCTIONS"]

_SYMBOLS = {"PLUS": "+", "MINUS": "-", "TIMES": "*", "DIVIDE": "/", "MOD": "%"}


# -- types -------------------------------------------------------------------------------------------------

_DECIMAL_RULES = {
    "PLUS": decimals.addition,
    "MINUS": decimals.addition,
    "TIMES": decimals.multiplication,
    "DIVIDE": decimals.division,
    "MOD": decimals.modulo,
}


def _binary(name: str) -> Signature:
    def infer(arguments: Sequence[Expression], _: tuple[str, ...]) -> Inferred:
        check_count(_SYMBOLS[name], arguments, 2, 2)
        left, right = (argument.type for argument in arguments)
        nullable = any_nullable(arguments)
        if is_null(left) or is_null(right):
            raise illegal_null()
        temporal = datetime_arithmetic.infer(name, left, right)
        if temporal is not None:
            return Inferred(temporal.arguments, temporal.result.copy(nullable))
        if not (is_numeric(left) and is_numeric(right)):
            operator = _SYMBOLS[name]
            raise mismatch(operator, arguments, f"'<NUMERIC> {operator} <NUMERIC>'")
        if name == "MOD" and (is_approximate(left) or is_approximate(right)):
            raise mismatch("%", arguments, "'<EXACT_NUMERIC> % <EXACT_NUMERIC>'")
        found = _numeric(name, left, right)
        return Inferred(found.arguments, found.result.copy(nullable))

    return infer


def _numeric(name: str, left: LogicalType, right: LogicalType) -> Inferred:
    operands = (left, right)
    has_decimal = any(isinstance(type_, t.DecimalType) for type_ in operands)
    if has_decimal and not any(map(is_approximate, operands)):
        first, second = decimals.as_decimal(left), decimals.as_decimal(right)
        assert first is not None
        assert second is not None
        return Inferred((first, second), _DECIMAL_RULES[name](first, second))
    common = common_numeric(operands)
    # a remainder is smaller than the divisor, and has its type
    return Inferred((common.copy(left.nullable), common.copy(right.nullable)), right if name == "MOD" else common)


# -- rows --------------------------------------------------------------------------------------------------


def _truncated_quotient(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divide_integers(bits: int) -> Callable[[int, int], int]:
    def divide(left: int, right: int) -> int:
        if not right:
            raise EvaluationError("/ by zero")
        return wrap(_truncated_quotient(left, right), bits)

    return divide


def _divide_floats(left: float, right: float) -> float:
    if right:
        return left / right
    if math.isnan(left) or not left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _remainder(left: int, right: int) -> int:
    if not right:
        raise EvaluationError("/ by zero")
    return left - right * _truncated_quotient(left, right)


def _decimal_operation(name: str, type_: t.DecimalType) -> Callable[[Decimal, Decimal], Decimal | None]:
    def divide(left: Decimal, right: Decimal) -> Decimal | None:
        if not right:
            raise EvaluationError("Division by zero")
        return fit_decimal(CONTEXT.divide(left, right), type_)

    def remainder(left: Decimal, right: Decimal) -> Decimal | None:
        if not right:
            raise EvaluationError("Division by zero")
        return fit_decimal(CONTEXT.remainder(left, right), type_)

    operations = {
        "PLUS": lambda left, right: fit_decimal(CONTEXT.add(left, right), type_),
        "MINUS": lambda left, right: fit_decimal(CONTEXT.subtract(left, right), type_),
        "TIMES": lambda left, right: fit_decimal(CONTEXT.multiply(left, right), type_),
        "DIVIDE": divide,
        "MOD": remainder,
    }
    return operations[name]


def _row(name: str) -> Callable[[Call, Session], Any]:
    def make(call: Call, session: Session) -> Any:
        type_ = call.type
        operand = call.arguments[0].type
        if not is_numeric(operand) or not is_numeric(call.arguments[1].type):
            return datetime_arithmetic.row(name, call)
        if isinstance(type_, t.DecimalType):
            return _decimal_operation(name, type_)
        if type_.root in BITS:
            bits = BITS[type_.root]
            if name == "DIVIDE":
                return _divide_integers(bits)
            if name == "MOD":
                return _remainder
            half = 1 << (bits - 1)
            symbol = _SYMBOLS[name]
            return (
                f"({{v}} if -{half} <= ({{v}} := {{0}} {symbol} {{1}}) < {half} "
                f"else ({{v}} + {half}) % {2 * half} - {half})"
            )
        if type_.root is LogicalTypeRoot.FLOAT:
            operation = _FLOAT_OPERATIONS[name]
            return lambda left, right: single(operation(left, right))
        return _divide_floats if name == "DIVIDE" else f"({{0}} {_SYMBOLS[name]} {{1}})"

    return make


_FLOAT_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "PLUS": lambda left, right: left + right,
    "MINUS": lambda left, right: left - right,
    "TIMES": lambda left, right: left * right,
    "DIVIDE": _divide_floats,
}


# -- columns -----------------------------------------------------------------------------------------------


def _divide(left: Any, right: Any) -> Any:
    try:
        return pc.divide(left, right)
    except pa.ArrowInvalid as error:
        raise EvaluationError("/ by zero") from error


def _remainder_vector(left: Any, right: Any) -> Any:
    """left - right * (left / right), which wraps as Java's remainder does."""
    return pc.subtract(left, pc.multiply(right, _divide(left, right)))


def _decimal_vector(operation: Callable[[Any, Any], Any], type_: t.DecimalType) -> Callable[[Any, Any], Any] | None:
    target = arrow_type(type_)

    def evaluate(left: Any, right: Any) -> Any:
        return pc.cast(operation(left, right), target)

    return evaluate


_VECTORS: dict[str, Callable[[Any, Any], Any]] = {
    "PLUS": pc.add,
    "MINUS": pc.subtract,
    "TIMES": pc.multiply,
    "DIVIDE": _divide,
    "MOD": _remainder_vector,
}


def _vector(name: str) -> Callable[[Call, Session], Callable[..., Any] | None]:
    def make(call: Call, session: Session) -> Callable[..., Any] | None:
        type_ = call.type
        left, right = (argument.type for argument in call.arguments)
        if not is_numeric(left) or not is_numeric(right):
            return datetime_arithmetic.vector(name, call)
        if isinstance(type_, t.DecimalType):
            exact = _exact_in_arrow(name, left, right, type_)
            return _decimal_vector(_VECTORS[name], type_) if exact else None
        if name == "MOD":
            target = arrow_type(type_)
            return lambda first, second: _remainder_vector(first, second).cast(target)
        return _VECTORS[name]

    return make


def _exact_in_arrow(name: str, left: LogicalType, right: LogicalType, type_: t.DecimalType) -> bool:
    """Whether Arrow's result has the same digits: nothing is rounded and nothing overflows."""
    assert isinstance(left, t.DecimalType)
    assert isinstance(right, t.DecimalType)
    if name not in ("PLUS", "MINUS", "TIMES"):
        return False
    (p1, s1), (p2, s2) = decimals._parts(left), decimals._parts(right)
    if name == "TIMES":
        return p1 + p2 + 1 <= decimals.MAX_PRECISION and type_.scale == s1 + s2
    return max(p1 - s1, p2 - s2) + max(s1, s2) + 1 <= decimals.MAX_PRECISION


# -- Spark -------------------------------------------------------------------------------------------------


def _spark(name: str) -> Callable[[Call, Sequence[str]], str | None]:
    def text(call: Call, arguments: Sequence[str]) -> str | None:
        left, right = arguments
        type_ = call.type
        if not is_numeric(call.arguments[0].type) or not is_numeric(call.arguments[1].type):
            return datetime_arithmetic.spark(name, call, arguments)
        result = spark_type(type_)
        assert result is not None
        if is_approximate(type_):
            text = ieee_quotient(left, right) if name == "DIVIDE" else f"{left} {_SYMBOLS[name]} {right}"
            return f"CAST({text} AS {result})"
        symbol = "div" if name == "DIVIDE" and type_.root in BITS else _SYMBOLS[name]
        text = f"CAST({left} {symbol} {right} AS {result})"
        return checked_divisor(call, left, right, text, result) if name in ("DIVIDE", "MOD") else text

    return text


def _operator(name: str) -> FunctionDefinition:
    return FunctionDefinition(
        name,
        _binary(name),
        row=PerCall(_row(name)),
        vector=PerCall(_vector(name)),
        spark=_spark(name),
        can_fail=name in ("DIVIDE", "MOD"),
        family="arithmetic",
    )


def _negate_row(call: Call, session: Session) -> Any:
    if isinstance(call.type, t.DecimalType):
        return "({0}.copy_negate() if {0} else {0})"  # -x would round to the context's precision
    bits = BITS.get(call.type.root)
    if bits is None:
        return "(-{0})"
    lowest = -(1 << (bits - 1))
    return f"(-{{0}} if {{0}} != {lowest} else {lowest})"


def _negate_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    return None if is_interval(call.type) or isinstance(call.type, t.DecimalType) else pc.negate


def _sign(name: str) -> Signature:
    def infer(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
        if arguments and is_interval(arguments[0].type):
            return Inferred((arguments[0].type,), arguments[0].type)
        return signature(name, NUMERIC, returns=lambda args: args[0].type)(arguments, symbols)

    return infer


FUNCTIONS = (
    *(_operator(name) for name in _SYMBOLS),
    FunctionDefinition(
        "NEGATE",
        _sign("-"),
        row=PerCall(_negate_row),
        vector=PerCall(_negate_vector),
        spark="(-{0})",
        returns_null=False,
        family="arithmetic",
    ),
)
