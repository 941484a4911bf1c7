"""Tables of tables: selections, groups, joins, unions and order."""

from pyflink.common import RowKind
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit

table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
table_env.get_config().set("parallelism.default", "1")
table_env.get_config().set("table.exec.mini-batch.enabled", "false")
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
customers = table_env.from_elements([(10, "Ann"), (20, "Bob"), (20, "Bea"), (40, "Cid")], ["cid", "name"])


def show(name, table):
    print(name, table.get_schema().get_field_names())
    kept = {}
    for row in table.execute().collect():
        sign = 1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
        text = str(list(row))
        kept[text] = kept.get(text, 0) + sign
    for text, count in kept.items():
        for _ in range(count):
            print(name, text)


show("select", orders.select(col("id"), col("item").upper_case, (col("price") * 2).alias("double")))
show("attributes", orders.select(orders.id, orders.item))
show("star", orders.select(col("*"), (col("id") + 1).alias("next")))
show("where", orders.where((col("price") > 1.5) & (col("item") != "fig")))
show("filter", orders.filter(col("item").is_null | (col("customer") == 10)))
show("alias", orders.alias("a", "b"))
show("add", orders.add_columns(col("id") * 10, lit("x").alias("tag")))
show("add or replace", orders.add_or_replace_columns((col("id") * 10).alias("id"), lit(1).alias("one")))
show("rename", orders.rename_columns(col("id").alias("key"), col("price").alias("cost")))
show("drop", orders.drop_columns(col("price"), col("customer")))
show("distinct", orders.select(col("customer")).distinct())
show(
    "global",
    orders.select(col("id").count, col("price").sum, col("price").avg.alias("mean"), col("id").max - col("id").min),
)
show("empty global", orders.where(col("id") > 99).select(col("id").count, col("price").sum))
groups = orders.group_by(col("item"))
show("groups", groups.select(col("item"), col("price").sum, col("id").count.alias("n"), col("id").min, col("id").max))
show(
    "group functions", groups.select(col("item").upper_case, col("id").sum + 1, col("price").avg, col("id").first_value)
)
show(
    "group by expression",
    orders.group_by((col("id") % 2).alias("odd")).select(col("odd"), col("id").sum.alias("total")),
)
show(
    "group by two", orders.group_by(col("item"), col("customer")).select(col("item"), col("customer"), col("id").count)
)
show(
    "distinct aggregates",
    orders.select(col("customer").count.distinct, col("customer").sum.distinct, col("customer").count),
)
show("having", groups.select(col("item"), col("id").count.alias("n")).where(col("n") > 1))
show("join", orders.join(customers, col("customer") == col("cid")))
show("join where", orders.join(customers).where((col("customer") == col("cid")) & (col("name") != "Bob")))
show("left", orders.left_outer_join(customers, col("customer") == col("cid")).select(col("id"), col("name")))
show("right", orders.right_outer_join(customers, col("customer") == col("cid")).select(col("id"), col("name")))
show("full", orders.full_outer_join(customers, col("customer") == col("cid")).select(col("id"), col("name")))
show("union all", orders.select(col("item")).union_all(customers.select(col("name"))))
show("in table", orders.where(col("customer").in_(customers.where(col("name") == "Ann").select(col("cid")))))
show("top", orders.order_by(col("price").desc).fetch(2))
show("top after", orders.order_by(col("customer").asc, col("id").desc).offset(1).fetch(2))
show("limit", orders.order_by(col("id")).limit(2, 1))
table_env.create_temporary_view("fruit", orders.where(col("item").is_not_null))
show("sql over a table", table_env.sql_query("SELECT item, COUNT(*) AS n FROM fruit GROUP BY item"))
show("a table over sql", table_env.sql_query("SELECT id, price FROM fruit").where(col("price") > 2))
