"""Scalar functions: row by row and as objects, in SQL and the Table API."""

import datetime
from decimal import Decimal

from pyflink.common import Row
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import call, col
from pyflink.table.udf import ScalarFunction, udf

table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
table_env.get_config().set("parallelism.default", "1")
table_env.get_config().set_local_timezone("UTC")
table_env.get_config().set("pipeline.global-job-parameters", "factor:3")


def show(name, table):
    print(name, table.get_schema().get_field_names())
    for row in table.execute().collect():
        print(name, row)


@udf(result_type=DataTypes.BIGINT())
def add(i, j):
    return None if i is None or j is None else i + j


@udf(input_types=["BIGINT"], result_type="STRING")
def sized(i):
    return "none" if i is None else "small" if i < 3 else "large"


class Scaled(ScalarFunction):
    def open(self, function_context):
        self.factor = int(function_context.get_job_parameter("factor", "1"))
        self.calls = 0

    def eval(self, value):
        self.calls += 1
        return value * self.factor if value is not None else -self.calls


@udf(result_type="STRING")
def described(*values):
    return " ".join(f"{type(value).__name__}:{value}" for value in values)


orders = table_env.from_elements(
    [
        (1, "a", Decimal("1.50"), datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 0, 1, 500000)),
        (2, None, None, None, None),
        (5, "c", Decimal("-2.25"), datetime.date(1969, 12, 31), datetime.datetime(1969, 12, 31, 23, 59, 59)),
    ],
    DataTypes.ROW(
        [
            DataTypes.FIELD("i", DataTypes.BIGINT()),
            DataTypes.FIELD("s", DataTypes.STRING()),
            DataTypes.FIELD("d", DataTypes.DECIMAL(10, 2)),
            DataTypes.FIELD("day", DataTypes.DATE()),
            DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
        ]
    ),
)
table_env.create_temporary_view("orders", orders)
table_env.create_temporary_function("add_", add)
table_env.create_temporary_system_function("sized", sized)
table_env.create_temporary_function("scaled", udf(Scaled(), result_type=DataTypes.BIGINT()))
table_env.create_temporary_function("described", described)

show("inline", orders.select(add(col("i"), 10), sized(col("i")), add(col("i"), col("i")).alias("twice")))
show("by name", orders.select(call("add_", col("i"), 1), call(add, 1, 2).alias("three")))
show("sql", table_env.sql_query("SELECT add_(i, 1), SIZED(i), scaled(i) FROM orders WHERE add_(i, 1) > 2"))
show("nested", table_env.sql_query("SELECT add_(add_(i, 1), scaled(i)) + 1 AS n FROM orders"))
show("values", table_env.sql_query("SELECT described(i, s, d, `day`, `at`) FROM orders"))
show(
    "collections",
    table_env.sql_query(
        "SELECT described(ARRAY[i, 1], MAP[s, i], CAST(i AS DOUBLE), CAST(i AS INT), i > 1, CAST(s AS BYTES)) "
        "FROM orders WHERE s IS NOT NULL"
    ),
)
pair = udf(
    lambda i, s: Row(i, s, [i] if i > 1 else None),
    result_type=DataTypes.ROW(
        [
            DataTypes.FIELD("n", DataTypes.BIGINT()),
            DataTypes.FIELD("t", DataTypes.STRING()),
            DataTypes.FIELD("l", DataTypes.ARRAY(DataTypes.BIGINT())),
        ]
    ),
)
show(
    "row",
    orders.select(pair(col("i"), col("s")).alias("p")).select(
        col("p").get("n").alias("pn"), col("p").get("t").alias("pt")
    ),
)
by_row = udf(
    lambda row: Row(row[0], row.s, row.i),
    result_type=DataTypes.ROW(
        [
            DataTypes.FIELD("a", DataTypes.BIGINT()),
            DataTypes.FIELD("b", DataTypes.STRING()),
            DataTypes.FIELD("c", DataTypes.BIGINT()),
        ]
    ),
)
show("map call", orders.map(pair(col("i"), col("s"))))
show("map alias", orders.map(pair(col("i"), col("s"))).alias("x", "y", "z"))
show("map row", orders.map(by_row))
print(sorted(table_env.list_user_defined_functions()))
print(table_env.drop_temporary_function("add_"), table_env.drop_temporary_function("add_"))
