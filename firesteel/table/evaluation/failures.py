"""Which expression failed on which row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.nodes import Call, Case, Expression, InputRef, walk
from firesteel.table.bound.session import Session
from firesteel.table.casts.text import text_function

__all__ = ["located"]

Evaluate = Callable[[Expression], Any]


def located(
    error: EvaluationError,
    expressions: Sequence[Expression],
    row: Sequence[Any],
    session: Session,
    evaluate: Evaluate,
) -> EvaluationError:
    """The error with the innermost expression that fails on a row; ``evaluate`` evaluates on that row."""
    if error.expression is not None:
        return error
    for expression in expressions:
        failed = _failure(expression, evaluate)
        if failed is not None:
            found, cause = _innermost(expression, failed, evaluate)
            return cause.at(str(found), _row_text(found, row, session), found.place)
    return error


def _failure(expression: Expression, evaluate: Evaluate) -> EvaluationError | None:
    try:
        evaluate(expression)
    except EvaluationError as error:
        return error
    return None


def _innermost(
    expression: Expression, error: EvaluationError, evaluate: Evaluate
) -> tuple[Expression, EvaluationError]:
    for child in expression.children():
        failed = _failure(child, evaluate)
        # an operand of AND, OR or CASE may not have been evaluated
        is_lazy = isinstance(expression, Case) or (
            isinstance(expression, Call) and expression.function in ("AND", "OR")
        )
        if failed is not None and (not is_lazy or failed.message == error.message):
            return _innermost(child, failed, evaluate)
    return expression, error


def _row_text(expression: Expression, row: Sequence[Any], session: Session) -> str:
    """The columns that an expression reads.

    >>> from firesteel.types.logical import IntType
    >>> _row_text(InputRef(IntType(), 0, "a"), (7,), Session())
    '(a = 7)'
    """
    columns = {part.index: part for part in walk(expression) if isinstance(part, InputRef)}
    parts = [f"{column.name} = {_value_text(row[index], column, session)}" for index, column in sorted(columns.items())]
    return f"({', '.join(parts)})" if parts else ""


def _value_text(value: Any, column: InputRef, session: Session) -> str:
    if value is None:
        return "NULL"
    text = text_function(column.type, session)(value)
    return repr(text) if isinstance(value, str) else text
