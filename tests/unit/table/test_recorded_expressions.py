"""Expressions with the types and values that Flink 2.3 gives them, on rows and on columns.

scripts/record_flink_expressions.py records them. Where Firesteel differs, recorded/differences.json says why.
"""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.evaluation.vector_codegen import compile_vector
from firesteel.table.expressions.errors import EvaluationError, ValidationError
from firesteel.table.expressions.nodes import Expression
from firesteel.table.parser import SqlParserException
from firesteel.types.internal import from_column
from tests.support.sql_expressions import (
    DIFFERENCES,
    FAMILIES,
    Recorded,
    bind,
    expected_values,
    inputs,
    recorded,
    same,
    session,
    shown,
)

REJECTIONS = ("ValidationException", "CodeGenException", "TableException", "UnsupportedOperationException")
"""Errors that Flink finds in an expression when it generates code."""


def difference(entry: Recorded, family: str) -> str | None:
    """What is not as in Flink; None if all is."""
    rejected = entry.type is None or (isinstance(entry.outcome, str) and entry.outcome.startswith(REJECTIONS))
    try:
        bound = bind(entry.sql, session(family))
    except (ValidationError, SqlParserException) as error:
        return None if rejected else f"rejected: {error}"
    if entry.type is None:
        return "accepted"
    if bound.type.as_summary_string() != entry.type:
        return f"type {bound.type.as_summary_string()} instead of {entry.type}"
    results = {"row": on_rows(bound, family), "vector": on_columns(bound, family)}
    for how, values in results.items():
        problem = wrong(entry, bound, values)
        if problem is not None:
            return f"{how}: {problem}"
    return None


def wrong(entry: Recorded, bound: Expression, values: Any) -> str | None:
    if isinstance(entry.outcome, str):
        # Flink notices a NULL in a column that is NOT NULL when the row is written
        null = "is NOT NULL, however" in entry.outcome and isinstance(values, list) and None in values
        return None if isinstance(values, EvaluationError) or null else f"{values} instead of {entry.outcome}"
    if isinstance(values, EvaluationError):
        return f"fails: {values}"
    expected = expected_values(entry, bound.type)
    values = shown(values, bound.type)
    return None if same(values, expected) else f"{values} instead of {expected}"


def on_rows(bound: Expression, family: str) -> Any:
    try:
        evaluate = compile_row([bound], session(family))
        return [evaluate(row)[0] for row in inputs().rows]
    except EvaluationError as error:
        return error


def on_columns(bound: Expression, family: str) -> Any:
    try:
        (array,) = compile_vector([bound], session(family))(inputs().columns, len(inputs().rows))
    except EvaluationError as error:
        return error
    return from_column(array, bound.type)


@pytest.mark.parametrize("family", FAMILIES)
def test_expressions_have_the_types_and_values_of_flink(family: str) -> None:
    known = DIFFERENCES[family]
    found = {entry.sql: problem for entry in recorded(family) if (problem := difference(entry, family)) is not None}
    new = {sql: problem for sql, problem in found.items() if sql not in known}
    assert not new, "\n".join(f"{sql}: {problem}" for sql, problem in new.items())
    assert not known.keys() - found.keys(), "no longer different: remove from differences.json"
