"""What all expressions of the Table API share: values as nodes, and calls."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from sqlglot import exp

from firesteel.table.bound.errors import ValidationError
from firesteel.table.dsl.summary import summary
from firesteel.table.parser import nodes
from firesteel.types.logical import DecimalType, DoubleType, LogicalType

if TYPE_CHECKING:
    from firesteel.table.dsl.expression import Expression

__all__ = ["ExpressionBase", "cast_node", "column_node", "node_of", "ordered_node"]

T = TypeVar("T")


class ExpressionBase(Generic[T]):
    """An expression: a node as the SQL parser makes it, which has no type before it is bound."""

    def __init__(self, node: exp.Expression) -> None:
        self._node = node

    def _of(self, node: exp.Expression) -> Expression[Any]:
        return cast("Expression[Any]", type(self)(node))

    def _call(self, name: str, *arguments: Any) -> Expression[Any]:
        """A function of this expression and other arguments; those that are None at the end are left out."""
        found = list(arguments)
        while found and found[-1] is None:
            found.pop()
        return self._of(nodes.Call(this=name, expressions=[self._copy(), *map(node_of, found)]))

    def _copy(self) -> exp.Expression:
        return self._node.copy()

    def __str__(self) -> str:
        return summary(self._node)

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise TypeError(
            f"The expression '{self}' has no value before the query runs. Write &, | and ~ instead of and, or and not."
        )


def node_of(value: Any) -> exp.Expression:
    """The node of an expression or of a literal."""
    if isinstance(value, ExpressionBase):
        return value._copy()
    if isinstance(value, exp.Expression):
        return value.copy()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return _number(str(value))
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, (bytes, bytearray)):
        return exp.HexString(this=bytes(value).hex())
    if isinstance(value, dt.timedelta):
        return exp.Interval(
            this=exp.Literal.string(str(Decimal(value // dt.timedelta(milliseconds=1)) / 1000)),
            unit=nodes.IntervalQualifier(start="SECOND"),
        )
    for kind, name in ((dt.datetime, "TIMESTAMP"), (dt.date, "DATE"), (dt.time, "TIME")):
        if isinstance(value, kind):
            text = value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()
            return nodes.TemporalLiteral(this=exp.Literal.string(text), kind=name)
    raise ValidationError(
        f"Cannot derive a data type for value '{value}'. The data type must be specified explicitly.",
        hint="Write lit(value, data_type), or array(...), row(...) or map_(...).",
    )


def _number(text: str) -> exp.Expression:
    digits = text.removeprefix("-")
    literal = exp.Literal.number(digits)
    return literal if digits == text else exp.Neg(this=literal)


def _float(value: float) -> exp.Expression:
    if not math.isfinite(value):
        text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return cast_node(exp.Literal.string(text), DoubleType(nullable=False))
    text = repr(value)
    return _number(text if "e" in text else f"{text}E0")


def _decimal(value: Decimal) -> exp.Expression:
    text = f"{value:f}"
    if "." in text:
        return _number(text)
    return cast_node(exp.Literal.string(text), DecimalType(len(text.lstrip("-")), 0, nullable=False))


def cast_node(operand: exp.Expression, type_: LogicalType, safe: bool = False) -> exp.Expression:
    """CAST or TRY_CAST to a type that is known."""
    return (exp.TryCast if safe else exp.Cast)(this=operand, to=nodes.TypeName(this=type_))


def column_node(name: str) -> exp.Expression:
    """A column by its name."""
    if name == "*":
        return exp.Star()
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def ordered_node(key: exp.Expression, descending: bool = False) -> exp.Expression:
    """A key of an order. Null is greater than all values in the Table API, and less in SQL."""
    return exp.Ordered(this=key, desc=descending, nulls_first=descending)
