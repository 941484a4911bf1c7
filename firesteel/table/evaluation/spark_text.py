"""Bound expressions as Spark SQL, where Spark can express them with the same meaning."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from firesteel.table.expressions.nodes import Call, Case, Cast, Expression, FieldAccess, InputRef, Literal
from firesteel.table.functions.registry import function
from firesteel.table.inference import families
from firesteel.table.values.temporal_text import date_text, timestamp_text
from firesteel.types import logical as t
from firesteel.types.logical import MAX_LENGTH, FieldsType, LogicalType

__all__ = ["spark_text", "spark_type"]

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


def spark_text(expression: Expression) -> str | None:
    """The expression in Spark SQL with ANSI mode off; None if it has a part that Spark cannot express alike."""
    match expression:
        case Literal():
            return _literal(expression.value, expression.type)
        case InputRef():
            return f"`{expression.name.replace('`', '``')}`"
        case Call():
            arguments = [spark_text(argument) for argument in expression.arguments]
            if any(argument is None for argument in arguments):
                return None
            return function(expression.function).spark_text(expression, arguments)  # type: ignore[arg-type]
        case Cast():
            return _cast(expression)
        case Case():
            return _case(expression)
        case FieldAccess():
            operand = spark_text(expression.operand)
            assert isinstance(expression.operand.type, FieldsType)
            name = expression.operand.type.field_names[expression.index]
            return None if operand is None else f"{operand}.`{name}`"
    raise AssertionError(expression)


def _literal(value: Any, type_: LogicalType) -> str | None:
    name = spark_type(type_)
    if value is None:
        return "NULL" if families.is_null(type_) else None if name is None else f"CAST(NULL AS {name})"
    if name is None:
        return None
    match type_:
        case t.CharType() | t.VarCharType():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
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


def _cast(cast: Cast) -> str | None:
    """Casts that lose nothing and cannot fail; the rest differ between Spark and Flink."""
    source, target = cast.operand.type, cast.type
    operand, name = spark_text(cast.operand), spark_type(target)
    if operand is None or name is None:
        return None
    if families.is_character(source) and families.is_character(target):
        length = target.length  # type: ignore[attr-defined]
        if isinstance(target, t.CharType):
            return f"rpad({operand}, {length}, ' ')"
        return operand if length == MAX_LENGTH else f"left({operand}, {length})"
    if families.is_integer(source) and families.is_character(target):
        return f"CAST({operand} AS STRING)" if target == t.VarCharType(nullable=target.nullable) else None
    if families.is_numeric(source) and families.is_numeric(target):
        exact = families.is_exact(source) or families.is_approximate(target)
        return f"CAST({operand} AS {name})" if exact else None
    if type(source) is type(target) and families.is_timestamp(source):
        return operand if target.precision >= source.precision else None  # type: ignore[attr-defined]
    return f"CAST({operand} AS {name})" if source.copy() == target.copy() else None


def _case(case: Case) -> str | None:
    conditions = [spark_text(condition) for condition in case.conditions]
    results = [spark_text(result) for result in case.results]
    default = spark_text(case.default)
    if default is None or any(part is None for part in (*conditions, *results)):
        return None
    branches = [f"WHEN {test} THEN {result}" for test, result in zip(conditions, results, strict=True)]
    return f"CASE {' '.join(branches)} ELSE {default} END"
