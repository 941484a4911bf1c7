"""Expressions with the types and values that Flink 2.3 gives them, on rows and on columns.

scripts/record_flink_expressions.py records them. Where Firesteel differs, recorded/differences.json says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.nodes import Call, Expression, Literal, walk
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.evaluation.vector_codegen import compile_vector
from firesteel.table.functions.definition import FunctionKind
from firesteel.table.functions.registry import function, functions
from firesteel.table.parser import SqlParserException
from firesteel.types.internal import arrow_type, from_column
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

PARTS = ((3, 7), (7, 8), (8, 8))
"""Rows in the middle, a row of NULLs, and none."""
UNCOMPARED = {"RAND", "RAND_INTEGER", "UUID", "CURRENT_WATERMARK", "PROCTIME", "SOURCE_WATERMARK"}
"""Functions whose value depends on more than their arguments; other tests have them."""


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
    """The values of all rows. Parts of the columns, and no rows, must give the same values."""
    evaluate = compile_vector([bound], session(family))
    columns, length = inputs().columns, len(inputs().rows)
    try:
        (array,) = evaluate(columns, length)
    except EvaluationError as error:
        return error
    values = from_column(array, bound.type)
    for start, end in PARTS:
        (part,) = evaluate([column.slice(start, end - start) for column in columns], end - start)
        assert len(part) == end - start, f"{bound} has {len(part)} values for {end - start} rows"
        assert part.type == arrow_type(bound.type), f"{bound} is {part.type}"
        if not same(from_column(part, bound.type), values[start:end]):
            return f"{from_column(part, bound.type)} for the rows {start} to {end}"
    return values


@pytest.mark.parametrize("family", FAMILIES)
def test_expressions_have_the_types_and_values_of_flink(family: str) -> None:
    known = DIFFERENCES[family]
    found = {entry.sql: problem for entry in recorded(family) if (problem := difference(entry, family)) is not None}
    new = {sql: problem for sql, problem in found.items() if sql not in known}
    assert not new, "\n".join(f"{sql}: {problem}" for sql, problem in new.items())
    assert not known.keys() - found.keys(), "no longer different: remove from differences.json"


def calls() -> Iterator[Call]:
    """All calls in the expressions that are compared."""
    for family in FAMILIES:
        for entry in recorded(family):
            if entry.type is not None and not isinstance(entry.outcome, str) and entry.sql not in DIFFERENCES[family]:
                yield from (part for part in walk(bind(entry.sql, session(family))) if isinstance(part, Call))


def test_every_body_is_compared() -> None:
    """Each row body, and each kernel of those that depend on types or literals, by at least one call."""
    scalar = {name for name, found in functions().items() if found.kind is FunctionKind.SCALAR}
    by_row: set[str] = set()
    by_kernel: set[str] = set()
    for call in calls():
        by_row.add(call.function)
        is_constant = all(isinstance(argument, Literal) for argument in call.arguments)
        if not is_constant and function(call.function).vector_body(call, Session()) is not None:
            by_kernel.add(call.function)
    assert scalar - by_row - UNCOMPARED == set()
    with_kernel = {name for name in scalar if functions()[name].vector is not None}
    assert with_kernel - by_kernel == set()
