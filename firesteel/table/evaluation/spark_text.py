"""Bound expressions as Spark SQL, where Spark can express them with the same meaning."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.table.bound.nodes import Call, Case, Cast, Expression, FieldAccess, InputRef, Literal
from firesteel.table.evaluation.spark_casts import cast_text
from firesteel.table.functions.registry import definition_of
from firesteel.table.functions.spark.texts import literal_text, spark_type
from firesteel.types.logical import FieldsType

__all__ = ["spark_text", "spark_type"]


Other = Callable[[Expression], str | None]
"""Prints an expression that belongs to a query: a subquery, a column of the query around it, or a call of a function of
the user, which the query has to register."""


def spark_text(expression: Expression, other: Other | None = None) -> str | None:
    """The expression in Spark SQL with ANSI mode off; None if it has a part that Spark cannot express alike."""
    match expression:
        case Literal():
            return literal_text(expression.value, expression.type)
        case InputRef():
            return f"`{expression.name.replace('`', '``')}`"
        case Call() if expression.definition is not None and other is not None:
            return other(expression)
        case Call():
            arguments = [spark_text(argument, other) for argument in expression.arguments]
            if any(argument is None for argument in arguments):
                return None
            return definition_of(expression).spark_text(expression, arguments)  # type: ignore[arg-type]
        case Cast():
            operand = spark_text(expression.operand, other)
            return None if operand is None else cast_text(expression, operand)
        case Case():
            return _case(expression, other)
        case FieldAccess():
            operand = spark_text(expression.operand, other)
            assert isinstance(expression.operand.type, FieldsType)
            name = expression.operand.type.field_names[expression.index]
            return None if operand is None else f"{operand}.`{name}`"
    assert other is not None, expression
    return other(expression)


def _case(case: Case, other: Other | None) -> str | None:
    conditions = [spark_text(condition, other) for condition in case.conditions]
    results = [spark_text(result, other) for result in case.results]
    default = spark_text(case.default, other)
    if default is None or any(part is None for part in (*conditions, *results)):
        return None
    branches = [f"WHEN {test} THEN {result}" for test, result in zip(conditions, results, strict=True)]
    return f"CASE {' '.join(branches)} ELSE {default} END"
