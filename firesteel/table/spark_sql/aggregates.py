"""Aggregate functions in Spark SQL, with Flink's results.

Spark widens sums and averages of integers; Flink keeps the type of the argument. With ANSI mode off, casts to it wrap
as additions in that type do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from firesteel.table.evaluation.spark_text import spark_type
from firesteel.table.inference.families import is_approximate, is_integer
from firesteel.table.plan.nodes import AggregateCall
from firesteel.types.logical import DecimalType, LogicalType

__all__ = ["aggregate_text"]

Build = Callable[[AggregateCall, LogicalType | None, Sequence[str]], str | None]


def _plain(function: str) -> Build:
    def build(call: AggregateCall, _type: LogicalType | None, arguments: Sequence[str]) -> str:
        return f"{function}({'DISTINCT ' if call.distinct else ''}{', '.join(arguments) or '*'})"

    return build


def _sum(call: AggregateCall, type_: LogicalType | None, arguments: Sequence[str]) -> str | None:
    name = spark_type(call.type)
    assert type_ is not None
    if isinstance(type_, DecimalType):
        return f"SUM({_distinct(call)}CAST({arguments[0]} AS {name}))"
    # additions of floats in another order give other digits, in Flink too
    return f"CAST(SUM({_distinct(call)}{arguments[0]}) AS {name})" if name else None


def _average(call: AggregateCall, type_: LogicalType | None, arguments: Sequence[str]) -> str | None:
    name = spark_type(call.type)
    assert type_ is not None
    argument = f"{_distinct(call)}{arguments[0]}"
    if is_integer(type_):
        return f"CAST(SUM({argument}) DIV COUNT({argument}) AS {name})"
    if isinstance(type_, DecimalType):
        total = f"SUM({_distinct(call)}CAST({arguments[0]} AS DECIMAL(38, {type_.scale})))"
        return f"CAST({total} / COUNT({argument}) AS {name})"
    return f"CAST(AVG({argument}) AS {name})" if is_approximate(type_) else None


def _of_doubles(function: str) -> Build:
    """The variance and its root, which both compute from doubles."""

    def build(call: AggregateCall, _type: LogicalType | None, arguments: Sequence[str]) -> str:
        return f"CAST({function}({_distinct(call)}CAST({arguments[0]} AS DOUBLE)) AS {spark_type(call.type)})"

    return build


def _listagg(call: AggregateCall, _type: LogicalType | None, arguments: Sequence[str]) -> str | None:
    separator = arguments[1] if len(arguments) > 1 else "','"
    return f"listagg({_distinct(call)}{arguments[0]}, {separator})" if separator.startswith("'") else None


def _first(function: str) -> Build:
    return lambda call, _type, arguments: None if call.distinct else f"{function}({arguments[0]}, true)"


def _array(call: AggregateCall, type_: LogicalType | None, arguments: Sequence[str]) -> str | None:
    """Spark leaves out nulls."""
    assert type_ is not None
    if type_.nullable and "IGNORE NULLS" not in call.symbols:
        return None
    values = f"collect_list({_distinct(call)}{arguments[0]})"
    return f"CASE WHEN size({values}) > 0 THEN {values} END"


def _single_value(_call: AggregateCall, _type: LogicalType | None, arguments: Sequence[str]) -> str:
    error = "raise_error('SINGLE_VALUE received more than one element.')"
    return f"CASE WHEN COUNT(*) > 1 THEN {error} ELSE first({arguments[0]}) END"


def _distinct(call: AggregateCall) -> str:
    return "DISTINCT " if call.distinct else ""


_FUNCTIONS: dict[str, Build] = {
    "COUNT": _plain("COUNT"),
    "MIN": _plain("MIN"),
    "MAX": _plain("MAX"),
    "SUM": _sum,
    "AVG": _average,
    "STDDEV_POP": _of_doubles("stddev_pop"),
    "STDDEV_SAMP": _of_doubles("stddev_samp"),
    "STDDEV": _of_doubles("stddev_samp"),
    "VAR_POP": _of_doubles("var_pop"),
    "VAR_SAMP": _of_doubles("var_samp"),
    "VARIANCE": _of_doubles("var_samp"),
    "LISTAGG": _listagg,
    "FIRST_VALUE": _first("first"),
    "LAST_VALUE": _first("last"),
    "ARRAY_AGG": _array,
    "SINGLE_VALUE": _single_value,
}


def aggregate_text(
    call: AggregateCall, types: Sequence[LogicalType], arguments: Sequence[str], condition: str | None
) -> str | None:
    """A call in Spark SQL; None if Spark has no function with the same results."""
    build = _FUNCTIONS.get(call.function)
    if build is None:
        return None
    if call.distinct and is_approximate(types[0]):
        return None  # Spark takes 0.0 and -0.0 for one value
    if condition is not None:
        # all of these functions ignore nulls of their first argument
        first, *rest = arguments or ["1"]
        arguments = [f"CASE WHEN {condition} THEN {first} END", *rest]
    return build(call, types[0] if types else None, arguments)
