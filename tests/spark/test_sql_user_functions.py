"""Scalar functions of the user in Spark SQL have the results and errors that they have on Firesteel's operators."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from firesteel.common import Row
from firesteel.common.errors import JobExecutionError
from firesteel.datastream.executor import execution_context
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import Position
from firesteel.table.udf import FunctionContext, ScalarFunction, udf
from firesteel.table.user_functions.definition import logical_type
from firesteel.table.user_functions.failures import UserFunctionError
from firesteel.testing.in_process import InProcessExecutor

NOON = dt.datetime(2024, 7, 1, 12, 30, 15, 123000)  # noqa: DTZ001 - a TIMESTAMP has no zone
TYPES = {
    "i": "INT",
    "l": "BIGINT",
    "d": "DECIMAL(10, 2)",
    "x": "DOUBLE",
    "s": "STRING",
    "b": "BOOLEAN",
    "y": "BYTES",
    "a": "DATE",
    "t": "TIMESTAMP(3)",
    "z": "TIMESTAMP_LTZ(6)",
    "n": "ARRAY<INT>",
    "m": "MAP<STRING, DECIMAL(5, 1)>",
    "r": "ROW<p INT, q ROW<u STRING, v TIMESTAMP(3)>>",
}
"""The columns, and types that functions return."""
ROWS: list[tuple[Any, ...]] = [
    (
        *(1, 2**40, Decimal("1.50"), 0.5, "é", True, b"\x00\xff", dt.date(1969, 12, 31), NOON),
        *(NOON.replace(tzinfo=dt.timezone.utc), [1, None, 3], {"k": Decimal("2.5"), "l": None}, Row(7, Row("u", NOON))),
    ),
    (2, *[None] * 12),
    (3, -5, Decimal("-0.01"), float("inf"), "", False, b"", dt.date(2024, 2, 29), NOON, None, [], {}, Row(None, None)),
]


class Counted(ScalarFunction):
    """Knows how often it was opened and closed before a call, and how it is placed."""

    def open(self, function_context: FunctionContext) -> None:
        self.opened = getattr(self, "opened", 0) + 1
        self.factor = int(function_context.get_job_parameter("factor", "1"))
        self.calls = function_context.get_metric_group().counter("calls")

    def eval(self, i: int, by: int) -> int:
        self.calls.inc()
        return self.opened * self.factor * i * by


def text_of(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"


def shown(*values: Any) -> str:
    return " | ".join(map(text_of, values))


def same(value: Any) -> Any:
    return value


def inverse(i: int) -> float:
    return 1 / (i - 2)


def environment() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    found.get_config().set_local_timezone("America/New_York")
    found.get_config().set("pipeline.global-job-parameters", "factor:10")
    fields = [DataTypes.FIELD(name, logical_type(type_)) for name, type_ in TYPES.items()]
    found.create_temporary_view("t", found.from_elements(ROWS, DataTypes.ROW(fields)))
    for name, type_ in TYPES.items():
        found.create_temporary_function(f"{name}_back", udf(same, result_type=type_))
        if name != "m":  # pandas has no maps
            found.create_temporary_function(f"{name}_arrow", udf(same, result_type=type_, func_type="arrow"))
    found.create_temporary_function("shown", udf(shown, result_type="STRING"))
    found.create_temporary_function("counted", udf(Counted(), result_type="BIGINT"))
    found.create_temporary_function("inverse", udf(inverse, result_type="DOUBLE"))
    found.create_temporary_function("wrong", udf(lambda i: str(i), result_type="INT"))
    found.create_temporary_function(
        "doubled", udf(lambda s: s + s, input_types=["DOUBLE"], result_type="DOUBLE", func_type="pandas")
    )
    found.create_temporary_function(
        "late", udf(lambda z: z.dt.hour.astype("Int64"), result_type="BIGINT", func_type="pandas")
    )
    found.create_temporary_function("nothing", udf(lambda: "x", result_type="STRING", deterministic=False))
    return found


@pytest.fixture(scope="module")
def batch(spark_context: object) -> TableEnvironment:
    return environment()


def rows_of(found: TableEnvironment, sql: str) -> list[str]:
    with found.execute_sql(sql).collect() as rows:
        return sorted(repr(list(row)) for row in rows)


QUERIES = [
    f"SELECT i, shown({', '.join(TYPES)}, TIMESTAMP '2020-01-01 00:00:00', 1.50, 'it''s') FROM t",
    f"SELECT {', '.join(f'{name}_back({name}) AS {name}' for name in TYPES)} FROM t",
    f"SELECT {', '.join(f'{name}_arrow({name}) AS {name}' for name in TYPES if name != 'm')} FROM t",
    # nested calls of several kinds, in WHERE and below GROUP BY
    "SELECT doubled(doubled(i)+1), late(z), counted(counted(i, 2), 3), nothing() FROM t WHERE doubled(x) > 0 OR i > 1",
    "SELECT k, COUNT(*), SUM(w) FROM (SELECT shown(b) AS k, counted(i, 1) AS w FROM t WHERE i > 0) GROUP BY k",
    "SELECT counted(x, 1), nothing() FROM (VALUES (1), (2)) AS v (x)",
    "SELECT i, inverse(i) FROM t WHERE i <> 2",
]
ON_OWN_OPERATORS = {
    "SELECT CASE WHEN i <> 2 THEN inverse(i) END FROM t": "the function inverse is called for some rows only",
    "SELECT i FROM t WHERE i_back(i) > 0 AND inverse(i) < 0": (
        "the function inverse is called only for rows that meet other conditions"
    ),
    "SELECT nothing() || 'y' FROM t": "the result of nothing is not deterministic, and part of another expression",
    "SELECT p.i FROM t AS p JOIN t AS q ON p.i = q.i AND i_back(p.i) > q.i - 1": (
        "the function i_back is called in VALUES, UNNEST or a join condition"
    ),
}


def test_results_are_those_of_own_operators(batch: TableEnvironment) -> None:
    session = SparkSession.builder.getOrCreate()
    for sql in QUERIES:
        assert "Spark SQL:\nSELECT" in batch.explain_sql(sql), batch.explain_sql(sql)
    on_spark = [rows_of(batch, sql) for sql in QUERIES]
    assert not [found for found in session.catalog.listFunctions() if found.name.startswith("firesteel_")]
    with execution_context(executor=InProcessExecutor()):
        own = environment()
        for sql, found in zip(QUERIES, on_spark, strict=True):
            assert "Operators of Firesteel" in own.explain_sql(sql)
            assert found == rows_of(own, sql), sql
    assert "datetime.datetime(2024, 7, 1, 8, 30, 15, 123000, tzinfo=zoneinfo" in on_spark[0][0]
    assert "firesteel_inverse_" in batch.explain_sql(QUERIES[-1])


def test_functions_that_spark_would_call_for_other_rows(batch: TableEnvironment) -> None:
    for sql, reason in ON_OWN_OPERATORS.items():
        assert f"since Spark SQL cannot run it: {reason}\n" in batch.explain_sql(sql)


FAILING = {
    "SELECT i,\n inverse(i) FROM t": ("inverse", "failed with ZeroDivisionError: division by zero at ", "(2)", (2, 2)),
    "SELECT wrong(i) FROM t WHERE i = 3": ("wrong", "returned '3' for INT, which does not fit", "(3)", (1, 8)),
    "SELECT doubled(d_arrow(s)) FROM t WHERE i = 1": ("d_arrow", "failed with ArrowInvalid", "", (1, 16)),
}


def test_errors_are_those_of_own_operators(batch: TableEnvironment) -> None:
    with execution_context(executor=InProcessExecutor()):
        own = environment()
        expected = {}
        for sql in FAILING:
            with pytest.raises(JobExecutionError) as caught:
                rows_of(own, sql)
            expected[sql] = str(caught.value)
    for sql, (function, words, arguments, place) in FAILING.items():
        assert "Spark SQL:\nSELECT" in batch.explain_sql(sql)
        with pytest.raises(UserFunctionError) as failed:
            rows_of(batch, sql)
        error = failed.value
        assert words in error.message
        assert error.message in expected[sql]
        assert (error.function, error.arguments, error.position) == (function, arguments, Position(*place))
    batch.execute_sql("CREATE TABLE dropped (n DOUBLE) WITH ('connector' = 'blackhole')")
    with pytest.raises(JobExecutionError, match=r"The function inverse \(line 1, column 28\) failed with ZeroDivision"):
        batch.execute_sql("INSERT INTO dropped SELECT inverse(i) FROM t").wait()
