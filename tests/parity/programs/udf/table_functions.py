"""Table functions: lateral joins in SQL and the Table API, and flat_map."""

from pyflink.common import Row
from pyflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import call, col
from pyflink.table.udf import TableFunction, udtf

table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
table_env.get_config().set("parallelism.default", "1")


def show(name, table):
    print(name, table.get_schema().get_field_names())
    for row in table.execute().collect():
        print(name, row)


class Split(TableFunction):
    def open(self, function_context):
        self.separator = ","

    def eval(self, text):
        if text is not None:
            for part in text.split(self.separator):
                yield part, len(part)


@udtf(result_types=DataTypes.BIGINT())
def counted(number):
    return range(number)


@udtf(result_types=["STRING", "BIGINT"])
def once(text, number):
    return text, number


@udtf(result_types="ROW<word STRING, size INT>")
def named(text):
    return [Row(part, len(part)) for part in text.split(",")] if text else None


@udtf(result_types=[DataTypes.BIGINT(), DataTypes.STRING()])
def of_row(row):
    for _ in range(2):
        yield row.id, row[1]


lines = table_env.from_elements([(1, "a,bb"), (2, ""), (3, None), (0, "ccc")], ["id", "line"])
table_env.create_temporary_view("lines", lines)
split = udtf(Split(), result_types=[DataTypes.STRING(), DataTypes.INT()])
table_env.create_temporary_function("parts", split)
table_env.create_temporary_function("counted", counted)
table_env.create_temporary_function("once", once)
table_env.create_temporary_function("named", named)

show("cross", table_env.sql_query("SELECT id, w, n FROM lines, LATERAL TABLE(parts(line)) AS T(w, n)"))
show("left", table_env.sql_query("SELECT id, w, n FROM lines LEFT JOIN LATERAL TABLE(parts(line)) AS T(w, n) ON TRUE"))
show("names", table_env.sql_query("SELECT * FROM lines, LATERAL TABLE(named(line))"))
show("once", table_env.sql_query("SELECT * FROM lines, LATERAL TABLE(once(line, id)) AS T(x, y) WHERE y > 0"))
show(
    "two",
    table_env.sql_query(
        "SELECT id, w, c FROM lines, LATERAL TABLE(parts(line)) AS T(w, n), LATERAL TABLE(counted(n)) AS C(c)"
    ),
)
show("join", lines.join_lateral(split(col("line")).alias("word", "size")))
show("join on", lines.join_lateral(split(col("line")).alias("word", "size"), col("id") == col("size")))
show("left join", lines.left_outer_join_lateral(call("counted", col("id")).alias("c")))
show("join row", lines.join_lateral(of_row.alias("a", "b")))
show("flat_map", lines.flat_map(split(col("line"))))
show("flat_map alias", lines.flat_map(split(col("line"))).alias("word", "size"))
show("flat_map row", lines.flat_map(of_row).alias("a", "b"))
