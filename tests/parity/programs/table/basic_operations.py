"""Operations on tables, as PyFlink's own example has them."""

from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import call, col, concat, lit

table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
table_env.get_config().set("parallelism.default", "1")
table_env.get_config().set("table.exec.mini-batch.enabled", "false")
people = table_env.from_elements(
    [
        (1, '{"name": "Flink", "tel": 123, "addr": {"country": "Germany", "city": "Berlin"}}'),
        (2, '{"name": "hello", "tel": 135, "addr": {"country": "China", "city": "Shanghai"}}'),
        (3, '{"name": "world", "tel": 124, "addr": {"country": "USA", "city": "New York"}}'),
        (4, '{"name": "PyFlink", "tel": 32, "addr": {"country": "China", "city": "Hangzhou"}}'),
    ],
    ["id", "data"],
)
right = table_env.from_elements([(1, 18), (2, 30), (3, 25), (4, 10), (4, 11)], ["id", "age"])
number = DataTypes.INT()
named = people.add_columns(
    col("data").json_value("$.name", DataTypes.STRING()).alias("name"),
    col("data").json_value("$.tel", number).alias("tel"),
    col("data").json_value("$.addr.country", DataTypes.STRING()).alias("country"),
).drop_columns(col("data"))
named.print_schema()
named.execute().print()
print(named.get_schema())


def show(name, table):
    print(name, table.get_resolved_schema().get_column_names())
    with table.execute().collect() as results:
        for row in results:
            print(name, row.get_row_kind(), row)


show("filter", named.filter(col("id").in_(1, 3) & (col("tel") > lit(100))))
show("where", named.where(col("name").like("%l%")).select(col("name"), concat(col("name"), "!").alias("loud")))
show("alias", named.alias("a", "b").select(col("a"), col("b"), col("country")))
show(
    "replaced",
    named.add_or_replace_columns(col("tel").cast(DataTypes.STRING()).alias("tel"), (col("id") * 2).alias("x")),
)
show("renamed", named.rename_columns(col("tel").alias("phone")))
show("group", named.group_by(col("country")).select(col("country").alias("c"), call("COUNT", col("id")).alias("n")))
show("sums", named.group_by(col("country")).select(col("tel").max, col("tel").min, col("tel").sum, col("tel").avg))
show("distinct", named.select(col("country")).distinct())
show("distinct sum", named.group_by(col("country")).select(col("country"), col("tel").count.distinct.alias("n")))
joined = named.alias("lid").join(right, col("lid") == col("id"))
show("join", joined.select(col("lid"), col("name"), col("age")))
show("union", named.select(col("id")).union_all(right.select(col("id"))))
show("top", right.order_by(col("age").desc).fetch(2))
show("nested", named.select(col("id"), call("ARRAY", col("id"), col("tel")).alias("both"), lit(True)))
