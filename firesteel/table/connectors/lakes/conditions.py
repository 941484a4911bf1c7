"""Conditions of queries that scans of lakes use to leave out files and rows.

>>> from firesteel.table.binder.calls import call
>>> from firesteel.types.logical import BigIntType
>>> lake_condition(call("LESS_THAN", [Literal(BigIntType(), 5), InputRef(BigIntType(), 0, "a")]))
Condition(column='a', operator='>', values=(5,))
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from firesteel.connectors.lakes.conditions import Condition
from firesteel.table.bound.nodes import Call, Expression, InputRef, Literal
from firesteel.table.connectors.operands import COMPARISONS, MIRRORED, plain_operand
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["lake_condition"]

_NULL_TESTS = {"IS_NULL": "is null", "IS_NOT_NULL": "is not null"}
_INTEGERS = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps
_DAY_ZERO = dt.date(1970, 1, 1)


def lake_condition(condition: Expression) -> Condition | None:
    """The condition of a scan; None if there is none. It is evaluated again on the rows."""
    if not isinstance(condition, Call):
        return None
    arguments = condition.arguments
    if condition.function in _NULL_TESTS and isinstance(arguments[0], InputRef):
        return Condition(arguments[0].name, _NULL_TESTS[condition.function])
    plain = [plain_operand(argument) for argument in arguments]
    operator = COMPARISONS.get(condition.function)
    match plain:
        case (InputRef() as column, Literal() as value) if operator:
            return _comparison(column, operator, [value])
        case (Literal() as value, InputRef() as column) if operator:
            return _comparison(column, MIRRORED.get(operator, operator), [value])
        case (InputRef() as column, *values) if condition.function == "IN":
            literals = [value for value in values if isinstance(value, Literal)]
            return _comparison(column, "in", literals) if len(literals) == len(values) else None
    return None


def _comparison(column: InputRef, operator: str, literals: Sequence[Literal]) -> Condition | None:
    values = [_value(column.type, literal.value, literal.type) for literal in literals]
    return None if None in values else Condition(column.name, operator, tuple(values))


def _value(type_: LogicalType, value: Any, literal_type: LogicalType) -> Any:
    """The value as libraries take it; None if they may compare it in another way."""
    if value is None:
        return None
    match type_, literal_type:
        case t.VarCharType(), (t.CharType() | t.VarCharType()):
            return value
        case t.DateType(), t.DateType():
            return _DAY_ZERO + dt.timedelta(days=value)
        case t.TimestampType(), t.TimestampType() if value % 1000 == 0:
            return _EPOCH + dt.timedelta(microseconds=value // 1000)
    if isinstance(type_, _INTEGERS) and isinstance(literal_type, _INTEGERS):
        limit = 2**31 if not isinstance(type_, t.BigIntType) else 2**63
        return int(value) if -limit <= value < limit else None
    return None
