"""Functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow.compute as pc

from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.definition import FunctionDefinition, Inferred, PerCall, Signature
from firesteel.table.functions.signatures import INTEGER, NUMERIC, Parameter, signature
from firesteel.table.functions.temporal_rounding import round_temporal
from firesteel.table.inference import decimals
from firesteel.table.inference.families import is_character, is_datetime, is_integer
from firesteel.table.values.numbers import CONTEXT, fit_decimal, single, wrap
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType
from firesteel.types.python import BITS

__all__ = ["FUNCTIONS"]

_DOUBLE = t.DoubleType()
_STRING = t.VarCharType()
_AS_DOUBLE = NUMERIC.cast_to(_DOUBLE)


def _define(
    name: str, sign: Signature, row: Any, vector: Any = None, spark: Any = None, **options: Any
) -> FunctionDefinition:
    return FunctionDefinition(name, sign, row=row, vector=vector, spark=spark, family="arithmetic", **options)


def _java(function: Callable[..., float]) -> Callable[..., float]:
    """A function of Python's math with Java's results where Python raises an error."""

    def evaluate(*values: float) -> float:
        try:
            return function(*values)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return evaluate


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def evaluate(value: float) -> float:
        if value > 0:
            return function(value)
        return -math.inf if value == 0 else math.nan

    return evaluate


def _power(base: float, exponent: float) -> float:
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        if base == 0:
            odd = exponent % 2 == 1
            return math.copysign(math.inf, base) if odd else math.inf
        return math.nan


def _log(base: float, value: float | None = None) -> float:
    natural = _logarithm(math.log)
    if value is None:
        return natural(base)
    divisor, dividend = natural(base), natural(value)
    if divisor == 0:
        return math.nan if dividend == 0 or math.isnan(dividend) else math.copysign(math.inf, dividend)
    return dividend / divisor


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _cot(value: float) -> float:
    tangent = _java(math.tan)(value)
    return 1.0 / tangent if tangent else math.copysign(math.inf, tangent)


def _float_function(name: str, row: Any, vector: Any = None, spark: str | None = None) -> FunctionDefinition:
    sign = signature(name, _AS_DOUBLE, returns=_DOUBLE)
    return _define(name, sign, row, vector, spark, returns_null=False)


_FLOAT_FUNCTIONS = (
    _float_function("SQRT", _java(math.sqrt), pc.sqrt, "sqrt({0})"),
    _float_function("LN", _logarithm(math.log), pc.ln),
    _float_function("LOG10", _logarithm(math.log10), pc.log10),
    _float_function("LOG2", _logarithm(lambda value: math.log(value) / math.log(2))),
    _float_function("EXP", _java(math.exp), pc.exp, "exp({0})"),
    _float_function("SIN", _java(math.sin), pc.sin, "sin({0})"),
    _float_function("COS", _java(math.cos), pc.cos, "cos({0})"),
    _float_function("TAN", _java(math.tan), pc.tan, "tan({0})"),
    _float_function("COT", _cot),
    _float_function("ASIN", _java(math.asin), pc.asin, "asin({0})"),
    _float_function("ACOS", _java(math.acos), pc.acos, "acos({0})"),
    _float_function("ATAN", _java(math.atan), pc.atan, "atan({0})"),
    _float_function("SINH", _sinh, None, "sinh({0})"),
    _float_function("COSH", _java(math.cosh), None, "cosh({0})"),
    _float_function("TANH", _java(math.tanh), None, "tanh({0})"),
    _float_function("DEGREES", lambda value: value * (180.0 / math.pi), None, "degrees({0})"),
    _float_function("RADIANS", lambda value: value / 180.0 * math.pi, None, "radians({0})"),
)


# -- rounding ----------------------------------------------------------------------------------------------


def _rounded(mode: str, call: Call) -> Any:
    """CEIL and FLOOR to an integer."""
    type_ = call.arguments[0].type
    if is_integer(type_):
        return "{0}"
    if isinstance(type_, t.DecimalType):
        result = call.type
        assert isinstance(result, t.DecimalType)
        return lambda value: fit_decimal(value.to_integral_value(mode), result)
    whole = math.ceil if mode == ROUND_CEILING else math.floor

    def evaluate(value: float) -> float:
        if not math.isfinite(value):
            return value
        return math.copysign(float(whole(value)), value)

    return evaluate


def _rounding(name: str, mode: str) -> FunctionDefinition:
    numeric = signature(name, NUMERIC, returns=_ceiling_type)

    def infer(arguments: Sequence[Expression], symbols: tuple[str, ...]) -> Inferred:
        if symbols and arguments and is_datetime(arguments[0].type):
            return Inferred((arguments[0].type,), arguments[0].type)
        return numeric(arguments, symbols)

    def row(call: Call, session: Session) -> Any:
        if call.symbols:
            return round_temporal(call, mode == ROUND_CEILING, session)
        return _rounded(mode, call)

    return _define(name, infer, PerCall(row))


def _ceiling_type(arguments: Sequence[Expression]) -> LogicalType:
    type_ = arguments[0].type
    if isinstance(type_, t.DecimalType):
        assert type_.precision is not None
        return t.DecimalType(type_.precision, 0)
    return type_


def _round_number(call: Call, mode: str) -> Any:
    type_ = call.arguments[0].type
    result = call.type
    if isinstance(type_, t.DecimalType):
        assert isinstance(result, t.DecimalType)
        fit = result

        def round_decimal(value: Decimal, digits: int = 0) -> Decimal | None:
            return fit_decimal(_quantized(value, digits, mode), fit)

        return round_decimal
    if is_integer(type_):
        bits = BITS[type_.root]
        return lambda value, digits=0: wrap(int(_quantized(Decimal(value), digits, mode)), bits)
    narrow = single if isinstance(type_, t.FloatType) else float

    def round_float(value: float, digits: int = 0) -> float:
        if not math.isfinite(value):
            return value
        return narrow(float(_quantized(Decimal(repr(value)), digits, mode)))

    return round_float


def _quantized(value: Decimal, digits: int, mode: str) -> Decimal:
    if -value.as_tuple().exponent <= digits:  # type: ignore[operator]
        return value
    return value.quantize(Decimal(1).scaleb(-digits), rounding=mode, context=CONTEXT)


def _round_type(arguments: Sequence[Expression]) -> LogicalType:
    type_ = arguments[0].type
    if not isinstance(type_, t.DecimalType):
        return type_
    digits: Any = 0
    if len(arguments) > 1:
        given = arguments[1]
        digits = given.value if isinstance(given, Literal) else None
    if digits is None:
        return type_
    return decimals.rounding(type_, digits)


def _round(name: str, mode: str) -> FunctionDefinition:
    return _define(
        name,
        signature(name, NUMERIC, INTEGER, returns=_round_type, optional=1),
        PerCall(lambda call, session: _round_number(call, mode)),
    )


# -- the rest ----------------------------------------------------------------------------------------------


def _absolute(call: Call, session: Session) -> Any:
    bits = BITS.get(call.type.root)
    if isinstance(call.type, t.DecimalType):
        return "{0}.copy_abs()"  # abs would round to the context's precision
    return "abs({0})" if bits is None else lambda value: wrap(abs(value), bits)


def _absolute_vector(call: Call, session: Session) -> Callable[..., Any] | None:
    return None if isinstance(call.type, t.DecimalType) else pc.abs


def _sign(call: Call, session: Session) -> Any:
    if isinstance(call.type, t.DecimalType):
        type_ = call.type
        return lambda value: fit_decimal(Decimal((value > 0) - (value < 0)), type_)
    if is_integer(call.type):
        return "(({0} > 0) - ({0} < 0))"
    return lambda value: value if math.isnan(value) or value == 0 else math.copysign(1.0, value)


def _bin(value: int) -> str:
    return f"{value & 0xFFFFFFFFFFFFFFFF:b}"


def _hex(value: int | str) -> str:
    if isinstance(value, int):
        return f"{value & 0xFFFFFFFFFFFFFFFF:X}"
    return value.encode().hex().upper()


def _unhex(text: str) -> bytes | None:
    try:
        decoded = bytes.fromhex(f"00{text[1:]}" if len(text) % 2 else text)
    except ValueError:
        return None
    return decoded if text.isalnum() or not text else None


_HEX = Parameter("<INTEGER> or <CHARACTER>", lambda type_: is_integer(type_) or is_character(type_), _STRING)
_CHARACTERS = Parameter("<CHARACTER>", is_character, _STRING)

FUNCTIONS = (
    *_FLOAT_FUNCTIONS,
    _define("POWER", signature("POWER", _AS_DOUBLE, _AS_DOUBLE, returns=_DOUBLE), _power),
    _define("LOG", signature("LOG", _AS_DOUBLE, _AS_DOUBLE, returns=_DOUBLE, optional=1), _log),
    _define(
        "ATAN2", signature("ATAN2", _AS_DOUBLE, _AS_DOUBLE, returns=_DOUBLE), math.atan2, pc.atan2, "atan2({0}, {1})"
    ),
    _define("PI", signature("PI", returns=_DOUBLE), lambda: math.pi, None, "pi()"),
    _define("E", signature("E", returns=_DOUBLE), lambda: math.e, None, "e()"),
    _define(
        "ABS",
        signature("ABS", NUMERIC, returns=lambda arguments: arguments[0].type),
        PerCall(_absolute),
        PerCall(_absolute_vector),
        "abs({0})",
        returns_null=False,
    ),
    _define("SIGN", signature("SIGN", NUMERIC, returns=lambda arguments: arguments[0].type), PerCall(_sign)),
    _rounding("CEIL", ROUND_CEILING),
    _rounding("CEILING", ROUND_CEILING),
    _rounding("FLOOR", ROUND_FLOOR),
    _round("ROUND", ROUND_HALF_UP),
    _round("TRUNCATE", ROUND_DOWN),
    _define("BIN", signature("BIN", INTEGER, returns=_STRING), _bin, None, "bin({0})"),
    _define("HEX", signature("HEX", _HEX, returns=_STRING), _hex, None, "hex({0})"),
    _define("UNHEX", signature("UNHEX", _CHARACTERS, returns=t.VarBinaryType(), nullable=True), _unhex),
)
