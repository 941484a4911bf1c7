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
    return f"CAST(AVG({argument}) AS {name})" if is_approximate(type_) else None


def _distinct(call: AggregateCall) -> str:
    return "DISTINCT " if call.distinct else ""


_FUNCTIONS: dict[str, Build] = {
    "COUNT": _plain("COUNT"),
    "MIN": _plain("MIN"),
    "MAX": _plain("MAX"),
    "SUM": _sum,
    "AVG": _average,
}


def aggregate_text(
    call: AggregateCall, types: Sequence[LogicalType], arguments: Sequence[str], condition: str | None
) -> str | None:
    """A call in Spark SQL; None if Spark has no function with the same results."""
    build = _FUNCTIONS.get(call.function)
    if build is None:
        return None
    if condition is not None:
        # all of these functions ignore nulls
        arguments = [f"CASE WHEN {condition} THEN {argument} END" for argument in arguments or ["1"]]
    return build(call, types[0] if types else None, arguments)
