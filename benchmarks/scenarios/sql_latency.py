"""How old a row is when the change that it causes leaves a SQL job: a source, an exchange by key and an aggregate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from benchmarks.board import Board, bucket_of
from benchmarks.cases import CORES
from benchmarks.report import percentile_ms
from benchmarks.runner import Run
from benchmarks.scenarios.skew import await_start
from firesteel.common import Configuration, Row, RowKind, Types, WatermarkStrategy
from firesteel.common.typeinfo import RowTypeInfo
from firesteel.connectors import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.spi.sink import Sink, SinkWriter, WriterContext
from firesteel.table import StreamTableEnvironment
from firesteel.testing.in_process import InProcessExecutor

__all__ = ["run"]

KEYS = 10_000
EVENT = RowTypeInfo([Types.LONG(), Types.LONG()], ["k", "created"])


def run(run: Run) -> dict[str, Any]:
    """Ages of rows in milliseconds, after the job has warmed up."""
    params = run.params
    config = Configuration().set_string("spark.master", f"local[{CORES}]")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(CORES)
    if params.get("in_process"):
        env._executor = InProcessExecutor()
    table_env = StreamTableEnvironment.create(env)
    table_env.get_config().set("table.exec.mini-batch.enabled", str(params["mini_batch"]).lower())
    source = DataGeneratorSource(
        lambda index: Row(index % KEYS, time.monotonic_ns()),
        rate_limiter_strategy=RateLimiterStrategy.per_second(params["rate"]),
        type_info=EVENT,
    )
    events = env.from_source(source, WatermarkStrategy.no_watermarks(), "events", EVENT)
    table_env.create_temporary_view("events", table_env.from_data_stream(events))
    counts = table_env.sql_query("SELECT k, COUNT(*) AS n, MAX(created) AS created FROM events GROUP BY k")
    table_env.to_changelog_stream(counts).sink_to(AgeSink(run.board))
    client = env.execute_async("sql_latency")
    try:
        await_start(client, params["patience_s"])
        time.sleep(params["warmup_s"])
        before = run.board.read()[1]
        time.sleep(params["seconds"])
        after = run.board.read()[1]
    finally:
        client.cancel().result()
    ages = {bucket: count - before.get(bucket, 0) for bucket, count in after.items()}
    return {
        "records": sum(ages.values()),
        "p50_ms": percentile_ms(ages, 0.5),
        "p99_ms": percentile_ms(ages, 0.99),
        "max_ms": percentile_ms(ages, 1.0),
    }


class AgeSink(Sink):
    """Notes the age of the newest row in each result."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        """Returns the writer of one subtask."""
        return AgeWriter(self._board)


class AgeWriter(SinkWriter[Any]):
    """Counts ages in buckets."""

    def __init__(self, board: Board) -> None:
        self._slots = board.writer()

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Takes the results that replace others; a row that another one followed in its batch is not seen."""
        now, slots = time.monotonic_ns(), self._slots
        for value in values:
            if value.get_row_kind() is not RowKind.UPDATE_BEFORE:
                slots[0] += 1
                slots[1 + bucket_of((now - value[2]) / 1000)] += 1
