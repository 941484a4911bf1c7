"""Operands of conditions that sources evaluate: columns and literals."""

from __future__ import annotations

from firesteel.table.bound.nodes import Cast, Expression, Literal
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.folding import fold
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["COMPARISONS", "MIRRORED", "plain_operand"]

COMPARISONS = {
    "EQUALS": "=",
    "NOT_EQUALS": "<>",
    "LESS_THAN": "<",
    "LESS_THAN_OR_EQUAL": "<=",
    "GREATER_THAN": ">",
    "GREATER_THAN_OR_EQUAL": ">=",
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INTEGERS: dict[type[LogicalType], int] = {t.TinyIntType: 3, t.SmallIntType: 5, t.IntType: 10, t.BigIntType: 19}


def plain_operand(expression: Expression) -> Expression:
    """A column or a literal without casts that change no value."""
    if not isinstance(expression, Cast):
        return expression
    if isinstance(expression.operand, Literal):
        return fold(expression, Session())
    digits, wider = _digits(expression.operand.type), _digits(expression.type)
    is_lossless = digits is not None and wider is not None and all(a <= b for a, b in zip(digits, wider, strict=True))
    return expression.operand if is_lossless else expression


def _digits(type_: LogicalType) -> tuple[int, int] | None:
    """The digits before and after the point."""
    if isinstance(type_, t.DecimalType):
        precision, scale = type_.precision, type_.scale
        return None if precision is None or scale is None else (precision - scale, scale)
    return next(((digits, 0) for kind, digits in _INTEGERS.items() if isinstance(type_, kind)), None)
