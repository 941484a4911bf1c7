"""Windows of the Table API over event time."""

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import DataTypes, Schema, StreamTableEnvironment
from pyflink.table.expressions import (
    CURRENT_RANGE,
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    UNBOUNDED_ROW,
    col,
    lit,
    row_interval,
)
from pyflink.table.window import Over, Session, Slide, Tumble


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2] * 1000


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
table_env = StreamTableEnvironment.create(env)
table_env.get_config().set("table.local-time-zone", "UTC")
events = [("a", 1, 1), ("b", 2, 2), ("a", 3, 4), ("a", 4, 11), ("b", 5, 12), ("a", 6, 14), ("b", 7, 31), ("a", 8, 31)]
types = Types.ROW_NAMED(["k", "v", "second"], [Types.STRING(), Types.INT(), Types.INT()])
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
stream = env.from_collection([Row(*event) for event in events], types).assign_timestamps_and_watermarks(strategy)
schema = (
    Schema.new_builder()
    .column_by_metadata("ts", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
    .watermark("ts", "SOURCE_WATERMARK()")
    .build()
)
table = table_env.from_data_stream(stream, schema)


def show(name, found):
    print(name, found.get_schema().get_field_names())
    for row in found.execute().collect():
        print(name, row)


k, v, w = col("k"), col("v"), col("w")
tumble = Tumble.over(lit(10).seconds).on(col("ts")).alias("w")
show("tumble", table.window(tumble).group_by(w, k).select(k, v.sum.alias("total"), v.count.alias("n")))
show("tumble start", table.window(tumble).group_by(w).select(w.start.cast(DataTypes.TIMESTAMP(3)), v.max, v.min))
slide = Slide.over(lit(10).seconds).every(lit(5).seconds).on(col("ts")).alias("w")
show("slide", table.window(slide).group_by(w, k).select(k, v.sum.alias("total"), v.avg))
session = Session.with_gap(lit(5).seconds).on(col("ts")).alias("w")
show("session", table.window(session).group_by(k, w).select(k, v.count.alias("n"), v.max))
again = (
    table.window(tumble)
    .group_by(w, k)
    .select(k, w.rowtime.alias("rt"), v.sum.alias("total"))
    .window(Tumble.over(lit(20).seconds).on(col("rt")).alias("x"))
    .group_by(col("x"))
    .select(col("total").sum.alias("total"), col("total").count.alias("n"))
)
show("windows of windows", again)
over = {
    "unbounded": Over.partition_by(k).order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w"),
    "by default": Over.partition_by(k).order_by(col("ts")).alias("w"),
    "unbounded rows": Over.partition_by(k)
    .order_by(col("ts"))
    .preceding(UNBOUNDED_ROW)
    .following(CURRENT_ROW)
    .alias("w"),
    "rows": Over.partition_by(k).order_by(col("ts")).preceding(row_interval(1)).alias("w"),
    "range": Over.partition_by(k).order_by(col("ts")).preceding(lit(10).seconds).following(CURRENT_RANGE).alias("w"),
    "all": Over.order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w"),
}
for name, window in over.items():
    show(name, table.over_window(window).select(k, v, v.sum.over(w).alias("total"), v.count.over(w).alias("n")))
