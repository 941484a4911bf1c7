"""Changes to the expressions and nodes of plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from firesteel.table.bound.nodes import Call, Case, Cast, Expression, FieldAccess, InputRef
from firesteel.table.plan.subqueries import InSubquery

__all__ = ["inlined", "moved_inputs", "named_inputs", "transform"]

Change = Callable[[Expression], Expression]


def transform(expression: Expression, change: Change) -> Expression:
    """The expression with each part changed, operands first."""
    match expression:
        case Call():
            expression = replace(expression, arguments=_all(expression.arguments, change))
        case Cast() | FieldAccess():
            expression = replace(expression, operand=transform(expression.operand, change))
        case Case():
            expression = replace(
                expression,
                conditions=_all(expression.conditions, change),
                results=_all(expression.results, change),
                default=transform(expression.default, change),
            )
        case InSubquery():
            expression = replace(expression, operands=_all(expression.operands, change))
    return change(expression)


def _all(expressions: Sequence[Expression], change: Change) -> tuple[Expression, ...]:
    return tuple(transform(expression, change) for expression in expressions)


def named_inputs(expression: Expression, names: Sequence[str]) -> Expression:
    """The expression with references to columns by the names that they have in the input."""

    def named(part: Expression) -> Expression:
        return replace(part, name=names[part.index]) if isinstance(part, InputRef) else part

    return transform(expression, named)


def moved_inputs(expression: Expression, places: Mapping[int, int]) -> Expression:
    """The expression with columns at other places of the input."""

    def moved(part: Expression) -> Expression:
        return replace(part, index=places[part.index]) if isinstance(part, InputRef) else part

    return transform(expression, moved)


def inlined(expression: Expression, columns: Sequence[Expression]) -> Expression:
    """The expression with what its columns are made of in their place."""
    return transform(expression, lambda part: columns[part.index] if isinstance(part, InputRef) else part)
