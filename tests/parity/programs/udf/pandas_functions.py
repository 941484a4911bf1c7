"""Functions of pandas Series: scalar ones, and aggregates of bounded tables by group and over windows."""

import pandas as pd
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col
from pyflink.table.udf import AggregateFunction, udaf, udf

table_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
table_env.get_config().set("parallelism.default", "1")


def show(name, table):
    print(name, table.get_schema().get_field_names())
    for row in table.execute().collect():
        print(name, row)


@udf(result_type=DataTypes.DOUBLE(), func_type="pandas")
def share(value, other):
    return value / (value + other)


@udf(result_type="STRING", func_type="pandas")
def kinds(i, s, b):
    return pd.Series([f"{i.dtype} {s.dtype} {b.dtype}"] * len(i))


@udaf(result_type=DataTypes.DOUBLE(), func_type="pandas")
def mean(values):
    return values.mean()


class Spread(AggregateFunction):
    def open(self, function_context):
        self.unit = 1

    def create_accumulator(self):
        return []

    def accumulate(self, accumulator, values):
        accumulator.append(int(values.max() - values.min()) * self.unit)

    def get_value(self, accumulator):
        return accumulator[0]

    def get_result_type(self):
        return DataTypes.BIGINT()


spread = udaf(Spread(), func_type="pandas")
both = udaf(
    lambda values: (values.min(), values.max()),
    result_type=DataTypes.ROW([DataTypes.FIELD("low", DataTypes.INT()), DataTypes.FIELD("high", DataTypes.INT())]),
    func_type="pandas",
)
framed = udf(
    lambda frame: pd.concat([frame.v + 1, frame.k], axis=1),
    result_type=DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT()), DataTypes.FIELD("key", DataTypes.STRING())]),
    func_type="pandas",
)
sales = table_env.from_elements(
    [("a", 1, 3), ("a", 3, 4), ("b", 2, 6), ("c", 10, 2), ("b", 4, 1), ("a", 8, 8)],
    DataTypes.ROW(
        [
            DataTypes.FIELD("k", DataTypes.STRING()),
            DataTypes.FIELD("v", DataTypes.INT()),
            DataTypes.FIELD("w", DataTypes.INT()),
        ]
    ),
)
table_env.create_temporary_view("sales", sales)
table_env.create_temporary_function("share_", share)
table_env.create_temporary_function("mean_", mean)
table_env.create_temporary_function("spread", spread)

show("share", sales.select(col("k"), share(col("v"), col("w"))))
show("kinds", sales.select(kinds(col("v"), col("k"), col("v") > 2)))
show("sql", table_env.sql_query("SELECT k, share_(v, 1) + 1 FROM sales WHERE share_(v, w) > 0.25"))
show("groups", table_env.sql_query("SELECT k, mean_(v), spread(w) FROM sales GROUP BY k"))
show("all", table_env.sql_query("SELECT mean_(v) FROM sales"))
show("api", sales.group_by(col("k")).select(col("k"), mean(col("w")), spread(col("v")).alias("s")))
show(
    "aggregate", sales.group_by(col("k")).aggregate(both(col("v")).alias("a", "b")).select(col("k"), col("a"), col("b"))
)
show("map", sales.map(framed))
