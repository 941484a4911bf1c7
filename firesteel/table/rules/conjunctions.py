"""Conditions as parts that all have to be true."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from firesteel.table.binder.calls import call
from firesteel.table.bound.nodes import Call, Cast, Expression, InputRef, Literal, walk
from firesteel.table.functions.registry import definition_of
from firesteel.table.plan.subqueries import OuterRef, Subquery

__all__ = ["columns_of", "conjunction", "conjuncts", "has_subquery", "is_deterministic", "rejects_nulls"]


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The parts of a condition; none for TRUE."""
    if condition is None or (isinstance(condition, Literal) and condition.value is True):
        return
    if isinstance(condition, Call) and condition.function == "AND":
        for part in condition.arguments:
            yield from conjuncts(part)
    else:
        yield condition


def conjunction(parts: Iterable[Expression]) -> Expression | None:
    """The condition that all parts are true; None if there are none."""
    found = list(dict.fromkeys(parts))
    return reduce(lambda one, other: call("AND", [one, other]), found) if found else None


def columns_of(expression: Expression) -> set[int]:
    """The columns of the input to which an expression refers."""
    return {part.index for part in walk(expression) if isinstance(part, InputRef)}


def has_subquery(expression: Expression) -> bool:
    """Whether an expression contains a query, or a column of a query around it."""
    return any(isinstance(part, (Subquery, OuterRef)) for part in walk(expression))


def is_deterministic(expression: Expression) -> bool:
    """Whether an expression has the same value each time it is evaluated on a row."""
    return all(definition_of(part).is_deterministic for part in walk(expression) if isinstance(part, Call))


def rejects_nulls(condition: Expression, columns: set[int]) -> bool:
    """Whether a condition cannot be true if all of these columns are null."""
    if isinstance(condition, Call):
        if condition.function == "AND":
            return any(rejects_nulls(part, columns) for part in condition.arguments)
        if condition.function == "OR":
            return all(rejects_nulls(part, columns) for part in condition.arguments)
        if condition.function in ("IS_NOT_NULL", "IS_TRUE", "IS_FALSE"):
            return _is_null_with(condition.arguments[0], columns)
    return _is_null_with(condition, columns)


def _is_null_with(expression: Expression, columns: set[int]) -> bool:
    match expression:
        case InputRef():
            return expression.index in columns
        case Cast():
            return _is_null_with(expression.operand, columns)
        case Call() if expression.function not in ("AND", "OR"):
            strict = definition_of(expression).strict
            return strict and any(_is_null_with(part, columns) for part in expression.arguments)
    return False
