"""Binding and evaluation of SQL expressions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from firesteel.table.binder.expressions import ExpressionBinder
from firesteel.table.binder.scope import Scope, ScopeColumn
from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.bound.nodes import Expression
from firesteel.table.evaluation.row_codegen import compile_row
from firesteel.table.evaluation.vector_codegen import compile_vector
from firesteel.table.parser import parse_expression
from firesteel.types import logical as t
from firesteel.types.internal import to_column

SCOPE = Scope(
    [
        ScopeColumn("a", t.IntType(), "t"),
        ScopeColumn("b", t.IntType(), "t"),
        ScopeColumn("name", t.VarCharType(), "t"),
        ScopeColumn("a", t.IntType(), "u"),
        ScopeColumn("place", t.RowType.of(["city"], [t.VarCharType()]), "u"),
    ]
)


def bind(sql: str) -> Expression:
    return ExpressionBinder(SCOPE, sql).bind(parse_expression(sql))


def on_columns(sql: str, a: list[int | None], b: list[int | None]) -> list[object]:
    columns = [pa.array(a, pa.int32()), pa.array(b, pa.int32())]
    return compile_vector([bind(sql)])(columns, len(a))[0].to_pylist()


def test_an_expression_on_rows_and_on_columns() -> None:
    bound = bind("t.a + b * 2 > 3")
    assert str(bound) == "GREATER_THAN(PLUS(a, TIMES(b, 2)), 3)"
    assert compile_row([bound])((1, 2)) == (True,)
    assert on_columns("t.a + b * 2 > 3", [1, None, -5], [2, 2, 1]) == [True, None, False]


def test_implicit_casts_are_explicit() -> None:
    assert str(bind("b + 1.5")) == "PLUS(CAST(b AS DECIMAL(10, 0)), Decimal('1.5'))"


@pytest.mark.parametrize(
    "sql", ["b <> 0 AND t.a / b > 0", "b = 0 OR t.a / b > 0", "CASE WHEN b <> 0 THEN t.a / b ELSE 0 END"]
)
def test_an_operand_that_is_not_needed_does_not_fail(sql: str) -> None:
    evaluate = compile_row([bind(sql)])
    a, b = [6, 1, None], [2, 0, 3]
    assert on_columns(sql, a, b) == [evaluate(row)[0] for row in zip(a, b, strict=True)]


def test_a_division_by_zero_fails() -> None:
    with pytest.raises(EvaluationError, match="by zero"):
        compile_row([bind("t.a / b")])((1, 0))
    with pytest.raises(EvaluationError, match="by zero"):
        on_columns("t.a / b", [1], [0])


FAILURES = [
    ("1 +\n  t.a / b", "DIVIDE(a, b)", "(a = 1, b = 0)", (2, 3)),
    ("CASE WHEN t.a > 0 THEN CAST(name AS INT) END", "CAST(name AS INT)", "(name = 'x')", (1, 24)),
    ("b <> 0 OR CAST(name AS DATE) > DATE '2020-01-01'", "CAST(name AS DATE)", "(name = 'x')", (1, 11)),
    ("CAST(UPPER(place.city) AS BIGINT)", "CAST(UPPER(place.city) AS BIGINT)", "(place = (y))", (1, 1)),
    ("CAST('x' AS INT)", "CAST('x' AS INT NOT NULL)", "", (1, 1)),
]


@pytest.mark.parametrize(("sql", "expression", "row", "place"), FAILURES)
def test_an_error_has_the_expression_and_the_row(sql: str, expression: str, row: str, place: tuple[int, int]) -> None:
    bound = bind(sql)
    bad, good = (1, 0, "x", 0, ("y",)), (6, 3, "7", 0, ("8",))
    columns = [to_column(values, column.type) for values, column in zip(zip(good, bad), SCOPE.columns, strict=True)]
    for evaluate in (lambda: compile_row([bound])(bad), lambda: compile_vector([bound])(columns, 2)):
        with pytest.raises(EvaluationError) as failed:
            evaluate()
        error = failed.value
        assert (error.expression, error.row) == (expression, row)
        assert error.position is not None
        assert (error.position.line, error.position.column) == place
        assert f"in {expression} (line {place[0]}, column {place[1]})" in str(error)


def test_a_value_between_two_kernels_that_arrow_cannot_hold() -> None:
    days = pa.array([-719_162, 2_932_896], pa.date32())  # the years 1 and 9999
    scope = Scope([ScopeColumn("d", t.DateType())])
    for sql, expected in (
        ("CAST(CAST(d AS TIMESTAMP(9)) AS STRING)", ["0001-01-01 00:00:00.000000000", "9999-12-31 00:00:00.000000000"]),
        ("CARDINALITY(MAP[CAST(NULL AS STRING), d])", [1, 1]),
    ):
        bound = ExpressionBinder(scope, sql).bind(parse_expression(sql))
        assert compile_vector([bound])([days], 2)[0].to_pylist() == expected
    bound = ExpressionBinder(scope).bind(parse_expression("CAST(d AS TIMESTAMP(9))"))
    with pytest.raises(EvaluationError, match=r"A column of TIMESTAMP\(9\) cannot hold the result") as caught:
        compile_vector([bound])([days], 2)
    assert "1677 to 2262" in (caught.value.hint or "")
    bound = ExpressionBinder(scope).bind(parse_expression("MAP[CAST(NULL AS STRING), d]"))
    with pytest.raises(EvaluationError, match="A column of MAP") as caught:
        compile_vector([bound])([days], 2)
    assert "no key that is NULL" in (caught.value.hint or "")


def test_common_subexpressions_are_evaluated_once() -> None:
    made = compile_row([bind("(t.a + b) * (t.a + b)"), bind("t.a + b")])
    assert made((2, 3)) == (25, 5)
    assert sum(name.startswith("t") for name in made.__code__.co_varnames if name[1:].isdigit()) <= 4


@pytest.mark.parametrize(
    ("sql", "line", "column", "text"),
    [
        ("nam = 'x'", 1, 1, "Did you mean 'name'?"),
        ("b +\n  missing", 2, 3, "Column 'missing' not found"),
        ("a + 1", 1, 1, "ambiguous"),
        ("b = 1 AND UPER(name) = 'X'", 1, 11, "Did you mean UPPER?"),
        ("place.cty = 'x'", 1, 1, "Did you mean 'city'?"),
        ("name + b", 1, 1, "Cannot apply '+'"),
        ("CAST(b AS DATE)", 1, 1, "cannot convert value of type INT to type DATE"),
    ],
)
def test_an_invalid_expression(sql: str, line: int, column: int, text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        bind(sql)
    assert text in str(caught.value)
    assert caught.value.position is not None
    assert (caught.value.position.line, caught.value.position.column) == (line, column)
