"""Set operations and order of bounded tables."""

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col

table_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
table_env.get_config().set("parallelism.default", "1")
orders = table_env.from_elements(
    [(1, "apple", 3.5, 10), (2, "pear", None, 20), (3, "apple", 1.0, 30), (4, None, 2.0, 20), (5, "fig", 8.25, None)],
    DataTypes.ROW(
        [
            DataTypes.FIELD("id", DataTypes.INT()),
            DataTypes.FIELD("item", DataTypes.STRING()),
            DataTypes.FIELD("price", DataTypes.DOUBLE()),
            DataTypes.FIELD("customer", DataTypes.INT()),
        ]
    ),
)


def show(name, table):
    print(name, table.get_schema().get_field_names())
    for row in table.execute().collect():
        print(name, row)


first = orders.where(col("id") < 4).select(col("item"))
second = orders.where(col("id") > 2).select(col("item"))
show("union", first.union(second))
show("union all", first.union_all(second))
show("minus", first.minus(second))
show("minus all", first.minus_all(second))
show("intersect", first.intersect(second))
show("intersect all", first.intersect_all(second))
show("order", orders.order_by(col("price").desc, col("id")))
show("page", orders.order_by(col("customer"), col("id")).limit(2, 1))
show("groups", orders.group_by(col("item")).select(col("item"), col("price").sum.alias("total")))
