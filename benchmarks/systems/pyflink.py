"""The cases on PyFlink, in process mode (Python workers) and thread mode (Python inside the JVM)."""

from __future__ import annotations

import os
import sys
import sysconfig
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.connectors.base import Sink, Source
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.state import ValueState, ValueStateDescriptor
from pyflink.datastream.window import TumblingEventTimeWindows
from pyflink.java_gateway import get_gateway
from pyflink.table import StreamTableEnvironment

from benchmarks.board import Board, bucket_of
from benchmarks.cases import CORES, END, KEYS, RATE, RECORDS_PER_EVENT_SECOND
from benchmarks.runner import Run

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
HALF = END // CORES
LATENCY_RUN_S = 300

# In process mode each key's state is written to the JVM at the end of a bundle: long bundles share that among
# more records (measured: 2 k records/s with the defaults, 20 k with these, at seconds of latency).
THROUGHPUT = {"python.fn-execution.bundle.size": "200000", "python.fn-execution.bundle.time": "20000"}
LATENCY = {
    "default": {},
    "flush-1ms": {"execution.buffer-timeout.interval": "1 ms", "python.fn-execution.bundle.time": "10"},
}
PER_SPLIT_MS = RECORDS_PER_EVENT_SECOND // CORES // 1000


class PyFlinkJob:
    """A submitted job, watched through its JobClient; records are counted by the functions."""

    stepwise = False

    def __init__(self, env: StreamExecutionEnvironment, board: Board) -> None:
        self._board = board
        self._client = env.execute_async("bench")
        self._result = self._client.get_job_execution_result()

    def progress(self) -> tuple[int, dict[int, int]]:
        """Records counted so far; raises what the job failed with."""
        if self._result.done():
            self._result.result()
            raise RuntimeError("the job ended by itself")
        return self._board.read()

    def stop(self) -> None:
        """Cancels the job; the JVM ends with this process."""
        if not self._result.done():
            self._client.cancel().result()


def _environment(run: Run, **options: str) -> StreamExecutionEnvironment:
    """Parallelism 2, with the settings that were best for PyFlink."""
    # The interpreter inside the JVM is not the virtual environment's own: it needs to be shown its packages.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), sysconfig.get_path("purelib")])
    config = Configuration()
    settings = {
        "python.execution-mode": run.system.removeprefix("pyflink-"),
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
        # The default of 1,000 entries makes every access to one of 10,000 keys a round trip to the JVM.
        "python.state.cache-size": str(2 * KEYS),
        "rest.bind-port": "0",
        **options,
        **run.params.get("options", {}),
    }
    for key, value in settings.items():
        config.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(CORES)
    return env


def _numbers(env: StreamExecutionEnvironment) -> DataStream:
    source = NumberSequenceSource(0, END - 1)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())


def _discard(stream: DataStream) -> None:
    stream.sink_to(Sink("org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink"))


class CountingMap(MapFunction):
    """The first map of the stateless case; it also counts what goes through."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the counter."""
        self._slots = self._board.writer()
        self._count = 0

    def map(self, value: int) -> int:
        """Adds one."""
        self._count += 1
        if not self._count & 63:
            self._slots[0] = self._count
        return value + 1


class KeyedSum(KeyedProcessFunction):
    """Running sum per key."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the state and the counter."""
        self._sum: ValueState = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        self._slots = self._board.writer()
        self._count = 0

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[int, int]]:
        """Adds the value to its key's sum."""
        total = (self._sum.value() or 0) + value[1]
        self._sum.update(total)
        self._count += 1
        if not self._count & 63:
            self._slots[0] = self._count
        yield value[0], total


class TimedKeyedSum(KeyedSum):
    """Running sum per key of (key, creation time) records; notes each record's age at the end."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[int, int]]:
        """Counts the key's records."""
        total = (self._sum.value() or 0) + 1
        self._sum.update(total)
        yield value[0], total
        slots = self._slots
        slots[0] += 1
        slots[1 + bucket_of(time.time_ns() / 1000 - value[1])] += 1


def stateless(run: Run) -> PyFlinkJob:
    """Three chained Python functions."""
    env = _environment(run, **THROUGHPUT)
    stream = _numbers(env).map(CountingMap(run.board), Types.LONG())
    stream = stream.filter(lambda x: x % 3 != 0).map(lambda x: x * 2, Types.LONG())
    _discard(stream)
    return PyFlinkJob(env, run.board)


def keyed_sum(run: Run) -> PyFlinkJob:
    """Running sum over 10,000 keys."""
    env = _environment(run, **THROUGHPUT)
    stream = _numbers(env).map(lambda x: (x % KEYS, x), PAIR)
    stream = stream.key_by(lambda pair: pair[0], Types.LONG()).process(KeyedSum(run.board), PAIR)
    _discard(stream)
    return PyFlinkJob(env, run.board)


class EventTime(TimestampAssigner):
    """Event time of a pair; the two halves of the sequence advance side by side."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Milliseconds since the start."""
        return int(value[1] % HALF // PER_SPLIT_MS)


class Sum(AggregateFunction):
    """Sum of the values of a window; it also counts what is added."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._slots: memoryview | None = None
        self._count = 0

    def create_accumulator(self) -> int:
        """Zero."""
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        """Adds one value."""
        self._count += 1
        if not self._count & 63:
            # PyFlink does not open the aggregate function of a window.
            if self._slots is None:
                self._slots = self._board.writer()
            self._slots[0] = self._count
        return int(accumulator + value[1])

    def get_result(self, accumulator: int) -> int:
        """The sum."""
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        """Sum of both."""
        return acc_a + acc_b


def window(run: Run) -> PyFlinkJob:
    """Sum per key in 1 s tumbling event-time windows."""
    env = _environment(run, **THROUGHPUT)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    stream = _numbers(env).map(lambda x: (x % KEYS, x), PAIR).assign_timestamps_and_watermarks(strategy)
    windows = stream.key_by(lambda pair: pair[0], Types.LONG()).window(TumblingEventTimeWindows.of(Time.seconds(1)))
    _discard(windows.aggregate(Sum(run.board), accumulator_type=Types.LONG(), output_type=Types.LONG()))
    return PyFlinkJob(env, run.board)


def _created(env: StreamExecutionEnvironment) -> DataStream:
    """Records (key, creation time) at a fixed rate, both made inside the JVM.

    PyFlink has no source with a rate that is smooth: this is Java's DataGeneratorSource over a list of zeros,
    and SQL, fused into the source's task, that notes each record's time.
    """
    jvm = get_gateway().jvm
    lib = jvm.org.apache.flink
    count = RATE * LATENCY_RUN_S
    j_type = Types.INT().get_java_type_info()
    zeros = jvm.java.util.Collections.nCopies(count, 0)
    generator = lib.connector.datagen.functions.IndexLookupGeneratorFunction(j_type, zeros)
    limit = lib.api.connector.source.util.ratelimit.RateLimiterStrategy.perSecond(float(RATE))
    j_source = lib.connector.datagen.source.DataGeneratorSource(generator, count, limit, j_type)
    stream = env.from_source(Source(j_source), WatermarkStrategy.no_watermarks(), "datagen", Types.INT())
    tables = StreamTableEnvironment.create(env)
    tables.get_config().set("table.local-time-zone", "UTC")
    tables.create_temporary_view("datagen", stream)
    created = tables.sql_query(
        f"SELECT CAST(RAND_INTEGER({KEYS}) AS BIGINT), CAST(CURRENT_ROW_TIMESTAMP() AS STRING) FROM datagen"
    )
    return tables.to_data_stream(created)


def _timed_pair(row: Any) -> tuple[int, int]:
    """Key and creation time in microseconds."""
    return row[0], int(datetime.fromisoformat(row[1] + "+00:00").timestamp() * 1_000_000)


def latency(run: Run) -> PyFlinkJob:
    """Running count per key at a fixed rate; a record's creation time is noted in the source's task."""
    env = _environment(run, **LATENCY[run.params["settings"]])
    stream = _created(env).map(_timed_pair, PAIR)
    stream = stream.key_by(lambda pair: pair[0], Types.LONG()).process(TimedKeyedSum(run.board), PAIR)
    _discard(stream)
    return PyFlinkJob(env, run.board)
