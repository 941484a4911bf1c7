"""Expression: what the methods of a Table take, a value of each row or group."""

from __future__ import annotations

from typing import TypeVar

from firesteel.table.dsl.aggregates import AggregateExpressions
from firesteel.table.dsl.base import ExpressionBase
from firesteel.table.dsl.collections import CollectionExpressions
from firesteel.table.dsl.json import JsonExpressions
from firesteel.table.dsl.numbers import NumberExpressions
from firesteel.table.dsl.operators import OperatorExpressions
from firesteel.table.dsl.strings import StringExpressions
from firesteel.table.dsl.temporal import TemporalExpressions
from firesteel.table.dsl.units import (
    JsonExistsOnError,
    JsonOnNull,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)

__all__ = [
    "Expression",
    "JsonExistsOnError",
    "JsonOnNull",
    "JsonQueryOnEmptyOrError",
    "JsonQueryWrapper",
    "JsonType",
    "JsonValueOnEmptyOrError",
    "TimeIntervalUnit",
    "TimePointUnit",
]

T = TypeVar("T")


class Expression(
    OperatorExpressions,
    NumberExpressions,
    StringExpressions,
    TemporalExpressions,
    CollectionExpressions,
    JsonExpressions,
    AggregateExpressions,
    ExpressionBase[T],
):
    """A column, a literal, a call or an operator. It has a type when a table binds it to its columns.

    >>> from firesteel.table.expressions import col, lit
    >>> print((col("amount") * 2 > lit(10)) & col("name").is_not_null)
    and(greaterThan(times(amount, 2), 10), not(is(name, null)))
    """
