"""Aggregate functions with retractions, views, DISTINCT and FILTER, and table aggregate functions."""

from pyflink.common import Row
from pyflink.table import DataTypes, EnvironmentSettings, ListView, MapView, TableEnvironment
from pyflink.table.expressions import call, col
from pyflink.table.udf import AggregateFunction, TableAggregateFunction, udaf, udtaf

table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
table_env.get_config().set("parallelism.default", "1")


def final(name, table):
    """Prints the rows that are there in the end."""
    print(name, table.get_schema().get_field_names())
    rows = []
    for row in table.execute().collect():
        values = str(list(row))
        if row.get_row_kind().name in ("INSERT", "UPDATE_AFTER"):
            rows.append(values)
        else:
            rows.remove(values)
    for row in sorted(rows):
        print(name, row)


class WeightedAverage(AggregateFunction):
    def create_accumulator(self):
        return Row(0, 0)

    def get_value(self, accumulator):
        return None if accumulator[1] == 0 else accumulator[0] / accumulator[1]

    def accumulate(self, accumulator, value, weight):
        if value is not None:
            accumulator[0] += value * weight
            accumulator[1] += weight

    def retract(self, accumulator, value, weight):
        if value is not None:
            accumulator[0] -= value * weight
            accumulator[1] -= weight

    def merge(self, accumulator, accumulators):
        for other in accumulators:
            accumulator[0] += other[0]
            accumulator[1] += other[1]

    def get_result_type(self):
        return DataTypes.DOUBLE()

    def get_accumulator_type(self):
        return DataTypes.ROW([DataTypes.FIELD("f0", DataTypes.BIGINT()), DataTypes.FIELD("f1", DataTypes.BIGINT())])


class Joined(AggregateFunction):
    def create_accumulator(self):
        return Row(ListView(), 0)

    def accumulate(self, accumulator, value):
        accumulator[0].add(value)
        accumulator[1] += 1

    def retract(self, accumulator, value):
        kept = [each for each in accumulator[0].get() if each != value]
        accumulator[0].clear()
        accumulator[0].add_all(kept)
        accumulator[1] -= 1

    def get_value(self, accumulator):
        return f"{accumulator[1]}:" + "|".join(sorted(str(each) for each in accumulator[0].get()))

    def get_result_type(self):
        return DataTypes.STRING()

    def get_accumulator_type(self):
        return DataTypes.ROW(
            [DataTypes.FIELD("f0", DataTypes.LIST_VIEW(DataTypes.STRING())), DataTypes.FIELD("f1", DataTypes.BIGINT())]
        )


class Different(AggregateFunction):
    def create_accumulator(self):
        return Row(MapView(), 0)

    def accumulate(self, accumulator, value):
        known = accumulator[0]
        if value in known:
            known[value] = known[value] + 1
        else:
            known[value] = 1
            accumulator[1] += 1

    def retract(self, accumulator, value):
        known = accumulator[0]
        if known[value] == 1:
            known.remove(value)
            accumulator[1] -= 1
        else:
            known.put(value, known.get(value) - 1)

    def get_value(self, accumulator):
        return accumulator[1]

    def get_result_type(self):
        return DataTypes.BIGINT()

    def get_accumulator_type(self):
        return DataTypes.ROW(
            [
                DataTypes.FIELD("f0", DataTypes.MAP_VIEW(DataTypes.STRING(), DataTypes.BIGINT())),
                DataTypes.FIELD("f1", DataTypes.BIGINT()),
            ]
        )


class Ends(AggregateFunction):
    def create_accumulator(self):
        return [None, None]

    def accumulate(self, accumulator, value):
        if accumulator[0] is None or value < accumulator[0]:
            accumulator[0] = value
        if accumulator[1] is None or value > accumulator[1]:
            accumulator[1] = value

    def get_value(self, accumulator):
        return Row(*accumulator)

    def get_result_type(self):
        return DataTypes.ROW([DataTypes.FIELD("low", DataTypes.BIGINT()), DataTypes.FIELD("high", DataTypes.BIGINT())])

    def get_accumulator_type(self):
        return DataTypes.ARRAY(DataTypes.BIGINT())


class Top2(TableAggregateFunction):
    def create_accumulator(self):
        return [None, None]

    def accumulate(self, accumulator, value, *others):
        if value is not None:
            if accumulator[0] is None or value > accumulator[0]:
                accumulator[1] = accumulator[0]
                accumulator[0] = value
            elif accumulator[1] is None or value > accumulator[1]:
                accumulator[1] = value

    def emit_value(self, accumulator):
        for place, value in enumerate(accumulator):
            if value is not None:
                yield Row(value, place)

    def get_accumulator_type(self):
        return DataTypes.ARRAY(DataTypes.BIGINT())

    def get_result_type(self):
        return DataTypes.ROW([DataTypes.FIELD("v", DataTypes.BIGINT()), DataTypes.FIELD("place", DataTypes.INT())])


sales = table_env.from_elements(
    [
        (1, "a", 10, 1),
        (2, "a", 20, 3),
        (3, "b", None, 2),
        (4, "b", 5, 2),
        (5, "a", 10, 1),
        (6, "c", None, 4),
        (7, "b", 7, 1),
    ],
    ["id", "k", "v", "w"],
)
table_env.create_temporary_view("sales", sales)
average = udaf(WeightedAverage())
joined = udaf(Joined())
table_env.create_temporary_function("average", average)
table_env.create_temporary_function("joined", Joined())
table_env.create_temporary_function("different", Different())
table_env.create_temporary_function("ends", Ends())
top2 = udtaf(Top2())
table_env.create_temporary_function("top2", top2)

final("sql", table_env.sql_query("SELECT k, average(v, w) AS a, COUNT(*) FROM sales GROUP BY k"))
final("all", table_env.sql_query("SELECT average(v, w), different(k), joined(k) FROM sales"))
final("distinct", table_env.sql_query("SELECT k, joined(DISTINCT CAST(v AS STRING)) FROM sales WHERE v > 0 GROUP BY k"))
final("filter", table_env.sql_query("SELECT k, average(v, w) FILTER (WHERE id > 1) FROM sales GROUP BY k"))
final(
    "retract",
    table_env.sql_query(
        "SELECT n, joined(k), different(k), average(n, n) "
        "FROM (SELECT k, COUNT(*) AS n FROM sales GROUP BY k) GROUP BY n"
    ),
)
final(
    "api", sales.group_by(col("k")).select(col("k"), average(col("v"), col("w")), call("joined", col("k")).alias("j"))
)
final("row", sales.where(col("v").is_not_null).group_by(col("k")).select(col("k"), call("ends", col("v")).alias("e")))
final(
    "aggregate",
    sales.where(col("v").is_not_null)
    .group_by(col("k"))
    .aggregate(call("ends", col("v")).alias("low", "high"))
    .select(col("k"), col("low"), col("high")),
)
final(
    "aggregate all",
    sales.where(col("v").is_not_null).aggregate(call("ends", col("v")).alias("low", "high")).select(col("high")),
)
final(
    "flat",
    sales.group_by(col("k"))
    .flat_aggregate(top2(col("v")).alias("v", "place"))
    .select(col("k"), col("v"), col("place")),
)
final("flat all", sales.flat_aggregate(call("top2", col("v")).alias("v", "place")).select(col("*")))
