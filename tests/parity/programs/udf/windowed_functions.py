"""Aggregate functions in windows of streams and over windows."""

import tempfile
from pathlib import Path

from pyflink.common import Row
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.udf import AggregateFunction, udaf
from pyflink.table.window import Session, Slide, Tumble

table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
table_env.get_config().set("parallelism.default", "1")
table_env.get_config().set_local_timezone("UTC")


def show(name, table):
    print(name, table.get_schema().get_field_names())
    for row in table.execute().collect():
        print(name, row)


class Spread(AggregateFunction):
    def create_accumulator(self):
        return Row(None, None)

    def accumulate(self, accumulator, value):
        if value is not None:
            accumulator[0] = value if accumulator[0] is None else min(value, accumulator[0])
            accumulator[1] = value if accumulator[1] is None else max(value, accumulator[1])

    def merge(self, accumulator, accumulators):
        for other in accumulators:
            for value in other:
                self.accumulate(accumulator, value)

    def get_value(self, accumulator):
        return None if accumulator[0] is None else accumulator[1] - accumulator[0]

    def get_result_type(self):
        return DataTypes.BIGINT()

    def get_accumulator_type(self):
        return DataTypes.ROW([DataTypes.FIELD("f0", DataTypes.BIGINT()), DataTypes.FIELD("f1", DataTypes.BIGINT())])


@udaf(result_type=DataTypes.DOUBLE(), func_type="pandas")
def mean(values):
    return values.mean()


directory = tempfile.mkdtemp()
with Path(directory, "rows.csv").open("w") as file:
    file.write("a,1,2024-01-01 00:00:01\n")
    file.write("b,7,2024-01-01 00:00:02\n")
    file.write("a,4,2024-01-01 00:00:04\n")
    file.write("a,6,2024-01-01 00:00:11\n")
    file.write("b,2,2024-01-01 00:00:13\n")
    file.write("a,9,2024-01-01 00:00:31\n")
table_env.execute_sql(
    "CREATE TABLE readings (k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) "
    f"WITH ('connector' = 'filesystem', 'path' = 'file://{directory}', 'format' = 'csv')"
)
spread = udaf(Spread())
table_env.create_temporary_function("spread", spread)
table_env.create_temporary_function("mean_", mean)
readings = table_env.from_path("readings")

show(
    "tumble sql",
    table_env.sql_query(
        "SELECT k, mean_(v), TUMBLE_START(ts, INTERVAL '10' SECOND) FROM readings "
        "GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)"
    ),
)
show(
    "tumble",
    readings.window(Tumble.over(lit(10).seconds).on(col("ts")).alias("w"))
    .group_by(col("k"), col("w"))
    .select(col("k"), col("w").start, spread(col("v")).alias("s")),
)
show(
    "slide pandas",
    readings.window(Slide.over(lit(20).seconds).every(lit(10).seconds).on(col("ts")).alias("w"))
    .group_by(col("w"))
    .select(col("w").end, mean(col("v")).alias("m")),
)
show(
    "session",
    readings.window(Session.with_gap(lit(8).seconds).on(col("ts")).alias("w"))
    .group_by(col("k"), col("w"))
    .select(col("k"), col("w").start, spread(col("v")).alias("s")),
)
show(
    "over",
    table_env.sql_query(
        "SELECT k, v, mean_(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM readings"
    ),
)
show(
    "range",
    table_env.sql_query(
        "SELECT k, v, mean_(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) "
        "FROM readings"
    ),
)
