"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.bound.nodes import Call
from firesteel.table.functions.spark.temporal import rounded
from firesteel.table.functions.spark.texts import SparkText, ieee_quotient, literal_value, quoted_text, spark_type
from firesteel.table.inference.families import is_approximate, is_integer
from firesteel.types import logical as t

__all__ = ["TEXTS"]

_SCALA_DIGITS = 34
"""Spark negates decimals with so many digits."""
_WHOLE_DOUBLES = "9.0E15D"
"""Doubles above are whole numbers."""


def _logarithm(function: str, argument: str) -> str:
    return (
        f"CASE WHEN {argument} = 0 THEN CAST('-Infinity' AS DOUBLE) WHEN {argument} < 0 THEN CAST('NaN' AS DOUBLE) "
        f"ELSE {function}({argument}) END"
    )


def _log(call: Call, arguments: Sequence[str]) -> str:
    if len(arguments) == 1:
        return _logarithm("ln", arguments[0])
    base, value = (f"({_logarithm('ln', argument)})" for argument in arguments)
    return ieee_quotient(value, base)


def _sign(call: Call, arguments: Sequence[str]) -> str:
    return f"CAST(sign({arguments[0]}) AS {spark_type(call.type)})"


def _absolute(call: Call, arguments: Sequence[str]) -> str | None:
    return None if _is_long(call) else f"abs({arguments[0]})"


def _negate(call: Call, arguments: Sequence[str]) -> str | None:
    return None if _is_long(call) or spark_type(call.type) is None else f"(-{arguments[0]})"


def _is_long(call: Call) -> bool:
    return isinstance(call.type, t.DecimalType) and (call.type.precision or 0) > _SCALA_DIGITS


def _whole(function: str) -> SparkText:
    def text(call: Call, arguments: Sequence[str]) -> str | None:
        (value,) = arguments
        if call.symbols:
            return rounded(function == "ceil")(call, arguments)
        if is_integer(call.type):
            return value
        name = spark_type(call.type)
        whole = f"CAST({function}({value}) AS {name})"
        if is_approximate(call.type):
            return f"CASE WHEN abs({value}) < {_WHOLE_DOUBLES} THEN {whole} ELSE {value} END"
        return whole

    return text


def _round(call: Call, arguments: Sequence[str]) -> str | None:
    digits = literal_value(call.arguments[1]) if len(arguments) > 1 else 0
    return None if digits is None else f"CAST(round({arguments[0]}, {digits}) AS {spark_type(call.type)})"


def _truncate(call: Call, arguments: Sequence[str]) -> str | None:
    digits = literal_value(call.arguments[1]) if len(arguments) > 1 else 0
    value = arguments[0]
    if digits is None or is_approximate(call.type):
        return None
    name = spark_type(call.type)
    if is_integer(call.type):
        unit = 10 ** max(-digits, 0)
        return value if unit == 1 else f"CAST(({value} div {unit}) * {unit} AS {name})"
    return f"CAST(CASE WHEN {value} >= 0 THEN floor({value}, {digits}) ELSE ceil({value}, {digits}) END AS {name})"


def _random(call: Call, arguments: Sequence[str]) -> str | None:
    return None if arguments else "rand()"  # another generator has other numbers


def _random_integer(call: Call, arguments: Sequence[str]) -> str | None:
    return f"CAST(floor(rand() * {arguments[0]}) AS INT)" if len(arguments) == 1 else None


def _extreme(function: str) -> SparkText:
    def text(call: Call, arguments: Sequence[str]) -> str:
        if len(arguments) == 1:
            return arguments[0]
        null = " OR ".join(f"{argument} IS NULL" for argument in arguments)
        return f"CASE WHEN {null} THEN NULL ELSE {function}({', '.join(arguments)}) END"

    return text


def _type_name(call: Call, arguments: Sequence[str]) -> str | None:
    return quoted_text(call.arguments[0].type.as_summary_string()) if len(arguments) == 1 else None


def _sha2(call: Call, arguments: Sequence[str]) -> str | None:
    length = literal_value(call.arguments[1])
    return f"sha2({arguments[0]}, {length})" if length in (224, 256, 384, 512) else None


TEXTS: dict[str, SparkText] = {
    "LN": lambda call, arguments: _logarithm("ln", arguments[0]),
    "LOG10": lambda call, arguments: _logarithm("log10", arguments[0]),
    "LOG2": lambda call, arguments: _logarithm("log2", arguments[0]),
    "LOG": _log,
    "POWER": "power({0}, {1})",
    "COT": "cot({0})",
    "SIGN": _sign,
    "ABS": _absolute,
    "NEGATE": _negate,
    "CEIL": _whole("ceil"),
    "CEILING": _whole("ceil"),
    "FLOOR": _whole("floor"),
    "ROUND": _round,
    "TRUNCATE": _truncate,
    "RAND": _random,
    "RAND_INTEGER": _random_integer,
    "UUID": "uuid()",
    "UNHEX": "CASE WHEN length({0}) % 2 = 1 THEN unhex(concat('00', substr({0}, 2))) ELSE unhex({0}) END",
    "GREATEST": _extreme("greatest"),
    "LEAST": _extreme("least"),
    "TYPEOF": _type_name,
    "SHA2": _sha2,
}
