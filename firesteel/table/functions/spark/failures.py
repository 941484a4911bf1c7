"""Expressions in Spark SQL that fail: with the words, the place and the row that the operators' errors have."""

from __future__ import annotations

import re

from firesteel.table.bound.errors import EvaluationError, Position
from firesteel.table.bound.nodes import Call, Expression, InputRef, walk
from firesteel.table.functions.spark.texts import literal_value, quoted_text
from firesteel.table.inference import families
from firesteel.table.names import quoted
from firesteel.types import logical as t
from firesteel.types.logical import LogicalType

__all__ = ["checked_divisor", "failure_text", "parsed_failure", "value_text"]

_PLAIN_SCALE = 6
"""The largest scale with which Spark prints decimals without an exponent."""
_CLASS = "[USER_RAISED_EXCEPTION] "
_CAST_HINT = "TRY_CAST returns NULL instead."
_FAILURE = re.compile(
    r"(?P<message>.*?), in (?P<expression>.*?)(?: \(line (?P<line>\d+), column (?P<column>\d+)\))?"
    r"(?: for the row (?P<row>\(.*\)))?\.",
    re.DOTALL,
)


def failure_text(expression: Expression, message: str, type_: str) -> str:
    """A value of a type of Spark that fails where it is computed; ``message`` is Spark SQL.

    >>> from firesteel.types.logical import IntType
    >>> failure_text(InputRef(IntType(), 0, "a", place=Position(1, 8)), quoted_text("/ by zero"), "INT")
    "CAST(raise_error(concat('/ by zero', ', in a (line 1, column 8) for the row (a = ', \
coalesce(CAST(`a` AS STRING), 'NULL'), ').')) AS INT)"
    """
    place = f" ({expression.place})" if expression.place else ""
    words = f", in {expression}{place}"
    parts = [message]
    columns = {part.index: part for part in walk(expression) if isinstance(part, InputRef)}
    separator = " for the row ("
    for _, column in sorted(columns.items()):
        text = _shown(quoted(column.name), column.type)
        if text is not None:
            words += f"{separator}{column.name} = "
            parts += [quoted_text(words), f"coalesce({text}, 'NULL')"]
            words, separator = "", ", "
    parts.append(quoted_text(f"{words}{').' if separator == ', ' else '.'}"))
    return f"CAST(raise_error(concat({', '.join(parts)})) AS {type_})"


def checked_divisor(call: Call, left: str, right: str, quotient: str, name: str) -> str:
    """A division that fails for 0, as Flink's does; Spark's returns NULL."""
    if literal_value(call.arguments[1]):
        return quotient
    error = failure_text(call, quoted_text("/ by zero"), name)
    return f"CASE WHEN {right} = 0 AND {left} IS NOT NULL THEN {error} ELSE {quotient} END"


def _shown(operand: str, type_: LogicalType) -> str | None:
    """A value in a message."""
    return f"concat('\\'', {operand}, '\\'')" if families.is_character(type_) else value_text(operand, type_)


def value_text(operand: str, type_: LogicalType) -> str | None:
    """A value as CAST makes it text; None if Spark's text differs."""
    match type_:
        case t.CharType() | t.VarCharType():
            return operand
        case t.BooleanType():
            return f"upper(CAST({operand} AS STRING))"
        case t.DecimalType() if (type_.scale or 0) > _PLAIN_SCALE:
            return None
        case t.DateType():
            return f"CAST({operand} AS STRING)"
        case t.TimestampType() if type_.precision <= 6:
            fraction = f".{'S' * type_.precision}" if type_.precision else ""
            return f"date_format({operand}, 'yyyy-MM-dd HH:mm:ss{fraction}')"
    return f"CAST({operand} AS STRING)" if families.is_numeric(type_) else None


def parsed_failure(text: str) -> EvaluationError | None:
    """The error that Spark reports with some text; None if it is not one of an expression.

    >>> error = parsed_failure("[USER_RAISED_EXCEPTION] / by zero, in a (line 1, column 8). SQLSTATE: P0001")
    >>> print(error, "|", error.expression, "|", error.position)
    / by zero, in a (line 1, column 8). | a | line 1, column 8
    """
    _, raised, words = text.partition(_CLASS)
    found = _FAILURE.fullmatch(words.rpartition(" SQLSTATE:")[0] or words) if raised else None
    if found is None:
        return None
    place = Position(int(found["line"]), int(found["column"])) if found["line"] else None
    hint = _CAST_HINT if found["message"].startswith("Cannot cast ") else None
    return EvaluationError(found["message"], hint=hint).at(found["expression"], found["row"] or "", place)
