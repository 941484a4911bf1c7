"""Conditions in PostgreSQL's SQL, for rows that need not be fetched.

A condition is printed only if the server keeps at least the rows for which it is true here; it is evaluated again. So
texts are compared for equality only, since their order depends on the collation, and floating point numbers not at all,
since NaN is the greatest of them there.

>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.bound.nodes import InputRef, Literal
>>> from firesteel.types.logical import BigIntType, VarCharType
>>> number, text = InputRef(BigIntType(), 0, "a"), InputRef(VarCharType(), 1, "b")
>>> condition_text(call("GREATER_THAN", [number, Literal(BigIntType(), 5)]))
'"a" > 5'
>>> condition_text(call("EQUALS", [text, Literal(VarCharType(), "it's")]))
'"b" = \\'it\\'\\'s\\''
>>> condition_text(call("GREATER_THAN", [text, Literal(VarCharType(), "x")])) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from firesteel.table.bound.nodes import Call, Expression, InputRef, Literal
from firesteel.table.connectors.operands import COMPARISONS, MIRRORED, plain_operand
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["condition_text", "quoted_name"]

_NULL_TESTS = {"IS_NULL": "IS NULL", "IS_NOT_NULL": "IS NOT NULL"}
_EXACT = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType, t.DecimalType)
_NANOS = 1000


def quoted_name(name: str) -> str:
    """A name in double quotes.

    >>> quoted_name('a"b')
    '"a""b"'
    """
    return f'"{name.replace(chr(34), chr(34) * 2)}"'


def condition_text(condition: Expression) -> str | None:
    """The condition with the names of its columns; None if it cannot be given to the server."""
    if not isinstance(condition, Call):
        return None
    arguments = condition.arguments
    if condition.function == "OR":
        return _disjunction(arguments)
    if condition.function in _NULL_TESTS and isinstance(arguments[0], InputRef):
        return f"{quoted_name(arguments[0].name)} {_NULL_TESTS[condition.function]}"
    plain = [plain_operand(argument) for argument in arguments]
    if condition.function == "IN":
        return _in_list(plain)
    operator = COMPARISONS.get(condition.function)
    match plain:
        case (InputRef() as column, Literal() as value) if operator:
            return _comparison(column, operator, value)
        case (Literal() as value, InputRef() as column) if operator:
            return _comparison(column, MIRRORED.get(operator, operator), value)
    return None


def _in_list(parts: Sequence[Expression]) -> str | None:
    column, *values = parts
    if not isinstance(column, InputRef):
        return None
    texts = [_literal(column.type, "=", one.value, one.type) if isinstance(one, Literal) else None for one in values]
    return None if None in texts else f"{quoted_name(column.name)} IN ({', '.join(text for text in texts if text)})"


def _disjunction(parts: Sequence[Expression]) -> str | None:
    texts = [condition_text(part) for part in parts]
    return None if None in texts else f"({' OR '.join(text for text in texts if text)})"


def _comparison(column: InputRef, operator: str, value: Literal) -> str | None:
    text = _literal(column.type, operator, value.value, value.type)
    return None if text is None else f"{quoted_name(column.name)} {operator} {text}"


def _literal(type_: LogicalType, operator: str, value: Any, literal_type: LogicalType) -> str | None:
    if value is None:
        return None
    match type_, literal_type:
        case t.VarCharType(), t.CharType() | t.VarCharType() if operator == "=" and "\0" not in value:
            text = value.replace("'", "''")
            # a backslash is one whatever standard_conforming_strings says
            return "E'{}'".format(text.replace("\\", r"\\")) if "\\" in text else f"'{text}'"
        case t.DateType(), t.DateType():
            return f"(DATE '1970-01-01' + {int(value)})"
        case t.TimestampType(), t.TimestampType() if value % _NANOS == 0:
            return f"(TIMESTAMP '1970-01-01' + INTERVAL '{value // _NANOS} microseconds')"
    if isinstance(type_, _EXACT) and isinstance(literal_type, _EXACT):
        return f"{value:f}" if isinstance(value, Decimal) else str(int(value))
    return None
