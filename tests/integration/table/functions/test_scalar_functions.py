"""Scalar functions of users: in SQL and the Table API, row by row and with whole columns."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.common.errors import FiresteelError
from firesteel.table import DataTypes, Table, TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.expressions import call, col
from firesteel.table.udf import AsyncScalarFunction, FunctionContext, ScalarFunction, udf

EVENTS: list[str] = []

add = udf(lambda i, j: None if i is None else i + j, [DataTypes.BIGINT(), DataTypes.BIGINT()], DataTypes.BIGINT())


@udf(result_type="STRING")
def described(*values: Any) -> str:
    return repr(values)


class Observed(ScalarFunction):
    def open(self, function_context: FunctionContext) -> None:
        EVENTS.append(f"open {function_context.get_index_of_this_subtask()}")
        self.counter = function_context.get_metric_group().counter("calls")
        self.added = int(function_context.get_job_parameter("added", "100"))

    def eval(self, value: int) -> int:
        self.counter.inc()
        return value + self.added

    def close(self) -> None:
        EVENTS.append("close")


class Later(AsyncScalarFunction):
    async def eval(self, value: int) -> int:
        return value * 10


NUMBERS = "(VALUES (1, 'a'), (2, CAST(NULL AS STRING)), (3, 'c')) AS T(i, s)"


def rows(table: Table) -> list[tuple[Any, ...]]:
    with table.execute().collect() as found:
        return [tuple(row) for row in found]


def query(table_env: TableEnvironment, sql: str) -> list[tuple[Any, ...]]:
    return rows(table_env.sql_query(sql))


def test_functions_are_called_by_sql_and_expressions(table_env: TableEnvironment) -> None:
    table_env.create_temporary_function("Plus_", add)
    table_env.create_temporary_system_function("pandas_add", udf(lambda i, j: i + j, None, "INT", func_type="pandas"))
    table_env.create_temporary_system_function("kept", udf(lambda i: i, None, DataTypes.INT(), func_type="arrow"))
    table_env.create_temporary_system_function("later", udf(Later(), result_type="BIGINT"))
    found = query(
        table_env, f"SELECT plus_(i, 1), pandas_add(i, 5), kept(i), later(i) FROM {NUMBERS} WHERE PLUS_(i, 1) > 2"
    )
    assert found == [(3, 7, 2, 20), (4, 8, 3, 30)]
    table = table_env.from_elements([(1, 2), (3, None)], ["a", "b"])
    assert rows(table.select(add(col("b"), col("a")), call("plus_", col("a"), 7), call(add, 1, 2))) == [
        (3, 8, 3),
        (None, 10, 3),
    ]
    assert table_env.list_user_defined_functions() == ["Plus_", "kept", "later", "pandas_add"]
    assert table_env.drop_temporary_function("Plus_")
    assert not table_env.drop_temporary_function("Plus_")


def test_functions_of_ddl_are_imported(table_env: TableEnvironment) -> None:
    table_env.execute_sql(f"CREATE FUNCTION described AS '{__name__}.described' LANGUAGE PYTHON")
    assert query(table_env, "SELECT default_database.described(1, 'x')") == [("(1, 'x')",)]
    table_env.execute_sql("CREATE TEMPORARY SYSTEM FUNCTION broken AS 'no_module.f' LANGUAGE PYTHON")
    with pytest.raises(ValidationError, match=r"no_module\.f.* cannot be imported"):
        table_env.sql_query("SELECT broken(1)")


def test_values_are_those_of_pyflink(table_env: TableEnvironment) -> None:
    table_env.create_temporary_function("described", described)
    sql = """SELECT described(DATE '2020-01-02', TIME '10:11:12', TIMESTAMP '2020-01-02 03:04:05.123', ARRAY[1, 2],
      MAP['a', 1], CAST(1.5 AS DECIMAL(10, 2)), X'00ff', CAST(NULL AS INT), CAST('a' AS CHAR(3)), TRUE)"""
    ((text,),) = query(table_env, sql)
    moment = dt.datetime(2020, 1, 2, 3, 4, 5, 123000)  # noqa: DTZ001
    expected = (
        moment.date(),
        dt.time(10, 11, 12),
        moment,
        [1, 2],
        {"a": 1},
        Decimal("1.50"),
        b"\0\xff",
        None,
        "a  ",
        True,
    )
    assert text == repr(expected)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("DATE", dt.date(1969, 12, 31)),
        ("TIME(3)", dt.time(1, 2, 3, 4000)),
        ("TIMESTAMP(6)", dt.datetime(1905, 1, 1, 0, 0, 0, 7)),  # noqa: DTZ001
        ("DECIMAL(10, 2)", Decimal("-1.50")),
        ("ROW<a INT, b ARRAY<DATE>>", Row(1, [dt.date(2000, 1, 1), None])),
        ("MAP<STRING, DOUBLE>", {"a": 1.5, "b": None}),
        ("BYTES", b"\0"),
        ("BOOLEAN", False),
        ("DOUBLE", 1.25),
    ],
)
def test_results_keep_their_values(table_env: TableEnvironment, type_: str, value: Any) -> None:
    table = table_env.from_elements([(1,), (None,)], ["i"])
    made = udf(lambda i: None if i is None else value, result_type=type_)
    same = udf(lambda given: given, result_type=type_)
    assert rows(table.select(same(made(col("i"))))) == [(value,), (None,)]


def test_functions_are_opened_and_closed(table_env: TableEnvironment) -> None:
    EVENTS.clear()
    table_env.create_temporary_function("observed", udf(Observed(), result_type="BIGINT"))
    assert query(table_env, f"SELECT observed(i) FROM {NUMBERS}") == [(101,), (102,), (103,)]
    assert EVENTS == ["open 0", "close"]


def test_a_function_that_is_not_deterministic_is_called_once_per_row(table_env: TableEnvironment) -> None:
    numbers = itertools.count(1)
    table_env.create_temporary_function(
        "number_", udf(lambda: next(numbers), result_type="BIGINT", deterministic=False)
    )
    found = query(table_env, f"SELECT n, n + 1 FROM (SELECT number_() AS n FROM {NUMBERS}) WHERE n > 1")
    assert found == [(2, 3), (3, 4)]


def test_branches_are_evaluated_where_they_are_needed(table_env: TableEnvironment) -> None:
    table_env.create_temporary_function("upper_", udf(lambda s: s.upper(), result_type="STRING"))
    sql = f"SELECT CASE WHEN s IS NULL THEN '-' ELSE upper_(s) END FROM {NUMBERS}"
    assert query(table_env, sql) == [("A",), ("-",), ("C",)]


def test_computed_columns_call_functions(table_env: TableEnvironment) -> None:
    table_env.create_temporary_function("plus_", add)
    table_env.execute_sql(
        "CREATE TABLE numbers (i BIGINT, j AS plus_(i, 100)) WITH ('connector' = 'datagen', 'number-of-rows' = '2', "
        "'fields.i.kind' = 'sequence', 'fields.i.start' = '1', 'fields.i.end' = '2')"
    )
    assert sorted(query(table_env, "SELECT * FROM numbers")) == [(1, 101), (2, 102)]


def test_failures_name_line_arguments_and_place(table_env: TableEnvironment) -> None:
    table_env.create_temporary_function("half", udf(lambda i: 10 // (i - 2), result_type="BIGINT"))
    table_env.create_temporary_function("text_", udf(lambda i: str(i), result_type="BIGINT"))
    with pytest.raises(FiresteelError) as caught:
        query(table_env, f"SELECT i,\n  half(i) FROM {NUMBERS}")
    message = str(caught.value)
    assert "half (line 2, column 3) failed with ZeroDivisionError" in message
    assert f"{__file__}:" in message
    assert "for the arguments (2)" in message
    with pytest.raises(FiresteelError, match=r"text_ .* returned '1' for BIGINT.*an int is needed, not str"):
        query(table_env, f"SELECT text_(i) FROM {NUMBERS}")
    table_env.create_temporary_function("short_", udf(lambda i: i[:1], result_type="INT", func_type="pandas"))
    with pytest.raises(FiresteelError, match="the result has 1 rows, but the arguments have 3"):
        query(table_env, f"SELECT short_(i) FROM {NUMBERS}")


def test_calls_that_do_not_fit(table_env: TableEnvironment) -> None:
    table_env.create_temporary_function("plus_", add)
    for sql, message in {
        "SELECT plus_(1)": "2 expected but 1 passed",
        "SELECT plus_('a', 1)": "Expected type 'BIGINT' but actual type was 'CHAR",
        "SELECT pluss_(1, 1)": "Did you mean plus_",
    }.items():
        with pytest.raises(ValidationError, match=message):
            table_env.sql_query(sql)
    with pytest.raises(ValidationError, match="no JVM"):
        table_env.create_java_temporary_function("f", "org.example.F")
    with pytest.raises(TypeError, match="Invalid returnType"):
        udf(lambda i: i)
    with pytest.raises(ValueError, match="func_type"):
        udf(lambda i: i, result_type="INT", func_type="numpy")
    with pytest.raises(ValueError, match="Inconsistent deterministic"):
        udf(Observed(), result_type="INT", deterministic=False)
