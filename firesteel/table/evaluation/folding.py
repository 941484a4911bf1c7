"""Evaluates the constant parts of expressions when they are compiled."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.bound.errors import EvaluationError
from firesteel.table.bound.nodes import Call, Case, Cast, Expression, FieldAccess, Literal
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.row_codegen import evaluate_constant
from firesteel.table.functions.registry import definition_of

__all__ = ["fold"]


def fold(expression: Expression, session: Session) -> Expression:
    """The expression with constants in place of what does not depend on a row; what fails is left for the rows."""
    match expression:
        case Call():
            expression = replace(expression, arguments=tuple(fold(part, session) for part in expression.arguments))
        case Cast():
            expression = replace(expression, operand=fold(expression.operand, session))
        case FieldAccess():
            expression = replace(expression, operand=fold(expression.operand, session))
        case Case():
            expression = replace(
                expression,
                conditions=tuple(fold(part, session) for part in expression.conditions),
                results=tuple(fold(part, session) for part in expression.results),
                default=fold(expression.default, session),
            )
        case _:
            return expression
    if not all(isinstance(child, Literal) for child in expression.children()):
        return expression
    if isinstance(expression, Call):
        definition = definition_of(expression)
        if not definition.is_deterministic or not definition.is_foldable:
            return expression
    try:
        return Literal(expression.type, evaluate_constant(expression, session))
    except EvaluationError:
        return expression
