"""What the Spark SQL of functions is made of: the names of types, literals, guards."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from firesteel.table.bound.nodes import Call, Expression, Literal
from firesteel.table.inference import families
from firesteel.table.values.temporal_text import date_text, timestamp_text
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = [
    "SparkText",
    "comparison",
    "ieee_quotient",
    "literal_text",
    "literal_value",
    "quoted_text",
    "spark_type",
]

SparkText = str | Callable[[Call, Sequence[str]], str | None]
"""Text with {0}, {1}, … for the arguments, or what makes it of a call and their texts; None if Spark cannot."""

_TYPES: dict[type[LogicalType], str] = {
    t.BooleanType: "BOOLEAN",
    t.TinyIntType: "TINYINT",
    t.SmallIntType: "SMALLINT",
    t.IntType: "INT",
    t.BigIntType: "BIGINT",
    t.FloatType: "FLOAT",
    t.DoubleType: "DOUBLE",
    t.DateType: "DATE",
    t.CharType: "STRING",
    t.VarCharType: "STRING",
    t.BinaryType: "BINARY",
    t.VarBinaryType: "BINARY",
    t.TimestampType: "TIMESTAMP_NTZ",
    t.LocalZonedTimestampType: "TIMESTAMP",
}


def spark_type(type_: LogicalType) -> str | None:
    """The name of a type in Spark SQL; None if Spark has none."""
    match type_:
        case t.DecimalType():
            return f"DECIMAL({type_.precision}, {type_.scale})"
        case t.ArrayType():
            element = spark_type(type_.element_type)
            return None if element is None else f"ARRAY<{element}>"
        case t.MapType():
            key, value = spark_type(type_.key_type), spark_type(type_.value_type)
            return None if key is None or value is None else f"MAP<{key}, {value}>"
        case t.RowType():
            parts = [(part.name, spark_type(part.type)) for part in type_.fields]
            if any(part is None for _, part in parts):
                return None
            return f"STRUCT<{', '.join(f'`{name}`: {part}' for name, part in parts)}>"
        case t.TimestampType() | t.LocalZonedTimestampType() if type_.precision > 6:
            return None
    return _TYPES.get(type(type_))


def quoted_text(text: str) -> str:
    """A string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def literal_text(value: Any, type_: LogicalType) -> str | None:
    """A value of a row as a literal of Spark."""
    if value is not None and families.is_interval(type_):
        months = isinstance(type_, t.YearMonthIntervalType)
        return f"make_ym_interval(0, {value})" if months else f"make_dt_interval(0, 0, 0, {Decimal(value) / 1000:f})"
    name = spark_type(type_)
    if value is None:
        return "NULL" if families.is_null(type_) else None if name is None else f"CAST(NULL AS {name})"
    if name is None:
        return None
    match type_:
        case t.CharType() | t.VarCharType():
            return quoted_text(value)
        case t.BooleanType():
            return "true" if value else "false"
        case t.DateType():
            return f"DATE '{date_text(value)}'"
        case t.TimestampType():
            return f"TIMESTAMP_NTZ '{timestamp_text(value, 6)}'"
        case t.BinaryType() | t.VarBinaryType():
            return f"X'{value.hex()}'"
        case t.DoubleType() | t.FloatType() if not math.isfinite(value):
            return f"CAST('{value}' AS {name})"
    if isinstance(value, (int, float, Decimal)):
        return f"CAST({f'{value:f}' if isinstance(value, Decimal) else repr(value)} AS {name})"
    return None


def literal_value(expression: Expression) -> Any:
    """The value of a literal; None if the expression is none, or is NULL."""
    return expression.value if isinstance(expression, Literal) else None


def ieee_quotient(left: str, right: str) -> str:
    """A division of doubles as Java's; Spark returns NULL for a divisor that is 0."""
    return (
        f"CASE WHEN {right} <> 0 OR {left} IS NULL THEN {left} / {right} "
        f"WHEN {right} IS NULL THEN CAST(NULL AS DOUBLE) "
        f"WHEN {left} = 0 OR isnan({left}) THEN CAST('NaN' AS DOUBLE) "
        f"WHEN ({left} > 0) = (CAST({right} AS STRING) NOT LIKE '-%') THEN CAST('Infinity' AS DOUBLE) "
        "ELSE CAST('-Infinity' AS DOUBLE) END"
    )


def comparison(symbol: str) -> Callable[[Call, Sequence[str]], str | None]:
    """A comparison; for Spark, NaN equals itself and is larger than all other numbers."""

    def text(call: Call, arguments: Sequence[str]) -> str | None:
        left, right = arguments
        plain = f"({left} {symbol} {right})"
        type_ = call.arguments[0].type
        if _has_map(type_):
            return None
        if not families.is_approximate(type_):
            return plain
        constant = literal_value(call.arguments[1])
        if constant is not None and not math.isnan(constant):
            return plain if symbol in ("<", "<=", "=", "<>") else f"({plain} AND NOT isnan({left}))"
        null = f"{left} IS NULL OR {right} IS NULL"
        of_nan = "true" if symbol == "<>" else "false"
        return (
            f"CASE WHEN {null} THEN CAST(NULL AS BOOLEAN) WHEN isnan({left}) OR isnan({right}) THEN {of_nan} "
            f"ELSE {plain} END"
        )

    return text


def _has_map(type_: LogicalType) -> bool:
    return isinstance(type_, (t.MapType, t.MultisetType)) or any(map(_has_map, type_.children()))
