"""CAST in Spark SQL with ANSI mode off and the time zone UTC, where it has Flink's results."""

from __future__ import annotations

from firesteel.table.bound.nodes import Cast
from firesteel.table.functions.spark.failures import failure_text, value_text
from firesteel.table.functions.spark.texts import quoted_text, spark_type
from firesteel.table.inference import families
from firesteel.types import logical as t
from firesteel.types.logical import MAX_LENGTH, LogicalType

__all__ = ["cast_text"]

_NUMBER = r"^\\s*[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?[fFdD]?\\s*$"
_SPECIAL = {
    "NaN": "'NaN', '+NaN', '-NaN'",
    "Infinity": "'Infinity', '+Infinity'",
    "-Infinity": "'-Infinity'",
}
_MAX_OPERAND = 200
"""Longer operands are not computed once more for a message."""
_TRUE = "'t', 'true', 'y', 'yes', '1'"
_FALSE = "'f', 'false', 'n', 'no', '0'"


def cast_text(cast: Cast, operand: str) -> str | None:
    """A cast of an operand whose text is given; None if Spark's differs."""
    source, target = cast.operand.type, cast.type
    name = spark_type(target)
    if name is None:
        return None
    if families.is_null(source) or _differ_in_nulls(source, target):
        return f"CAST({operand} AS {name})"
    if families.is_character(target):
        return _to_text(operand, source, target)
    if families.is_character(source):
        parsed = _from_text(operand, target)
        return None if parsed is None else _or_error(cast, operand, parsed, name)
    if families.is_numeric(source):
        return _from_number(operand, target, name)
    if families.is_boolean(source):
        return f"CAST(CAST({operand} AS INT) AS {name})" if families.is_numeric(target) else None
    if isinstance(source, t.DateType):
        return f"CAST({operand} AS {name})" if families.is_timestamp(target) else None
    if families.is_timestamp(source):
        return _from_timestamp(operand, source, target, name)
    return None


def _differ_in_nulls(source: LogicalType, target: LogicalType) -> bool:
    """Whether two types are alike but for what may be NULL."""
    if source.copy() == target.copy():
        return True
    parts = source.children(), target.children()
    if type(source) is not type(target) or not parts[0] or len(parts[0]) != len(parts[1]):
        return False
    return all(map(_differ_in_nulls, *parts))


def _from_number(operand: str, target: LogicalType, name: str) -> str | None:
    if families.is_boolean(target):
        return f"({operand} <> 0)"
    return f"CAST({operand} AS {name})" if families.is_numeric(target) else None


def _to_text(operand: str, source: LogicalType, target: LogicalType) -> str | None:
    text = value_text(operand, source)
    length: int = target.length  # type: ignore[attr-defined]
    if text is None:
        return None
    if isinstance(target, t.CharType):
        return f"rpad({text}, {length}, ' ')"
    if length == MAX_LENGTH or (families.is_character(source) and source.length <= length):  # type: ignore[attr-defined]
        return text
    return f"left({text}, {length})"


def _from_text(operand: str, target: LogicalType) -> str | None:
    """NULL for text that is no value of the type."""
    if families.is_integer(target):
        return f"CAST({operand} AS {spark_type(target)})"
    if isinstance(target, t.DoubleType):
        special = " ".join(
            f"WHEN trim({operand}) IN ({texts}) THEN CAST('{value}' AS DOUBLE)" for value, texts in _SPECIAL.items()
        )
        return f"CASE WHEN {operand} RLIKE '{_NUMBER}' THEN CAST({operand} AS DOUBLE) {special} END"
    if isinstance(target, t.BooleanType):
        return f"CASE WHEN lower({operand}) IN ({_TRUE}) THEN true WHEN lower({operand}) IN ({_FALSE}) THEN false END"
    return None


def _or_error(cast: Cast, operand: str, parsed: str, name: str) -> str | None:
    if isinstance(cast.type, t.DoubleType):
        # numbers in hexadecimal digits fail, though Flink reads them
        parsed = f"{parsed[:-4]} WHEN {operand} IS NOT NULL THEN {_wrong(cast, operand, name)} END"
        return None if cast.safe else parsed
    if cast.safe:
        return parsed
    return (
        f"CASE WHEN {operand} IS NOT NULL AND ({parsed}) IS NULL THEN {_wrong(cast, operand, name)} ELSE {parsed} END"
    )


def _wrong(cast: Cast, operand: str, name: str) -> str:
    target = cast.type.as_summary_string()
    if len(operand) > _MAX_OPERAND:
        return failure_text(cast, quoted_text(f"Cannot cast text to {target}"), name)
    words = quoted_text(f"' to {target}")
    return failure_text(cast, f"concat('Cannot cast \\'', {operand}, {words})", name)


def _from_timestamp(operand: str, source: LogicalType, target: LogicalType, name: str) -> str | None:
    millis = f"unix_millis(CAST({operand} AS TIMESTAMP))"
    if isinstance(target, t.DateType):
        if isinstance(source, t.LocalZonedTimestampType):
            return f"CAST({operand} AS DATE)"
        return f"date_from_unix_date(CAST({millis} div 86400000 AS INT))"  # days before 1970 count towards it
    if not families.is_timestamp(target):
        return None
    before: int = source.precision  # type: ignore[attr-defined]
    after: int = target.precision  # type: ignore[attr-defined]
    if after >= before:
        return f"CAST({operand} AS {name})"
    if after > 3:
        return None
    unit = 10 ** (3 - after)
    cut = millis if unit == 1 else f"{millis} div {unit} * {unit}"
    return f"CAST(timestamp_millis({cut}) AS {name})"
