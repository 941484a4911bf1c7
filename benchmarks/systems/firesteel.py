"""The cases on Firesteel, written as the PyFlink module is, on embedded Spark."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchmarks.board import Board, bucket_of
from benchmarks.cases import CORES, END, KEYS, RATE, RECORDS_PER_EVENT_SECOND
from benchmarks.runner import Run
from firesteel.common import Configuration, JobClient, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.connectors import DataGeneratorSource, DiscardingSink, RateLimiterStrategy
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.state import ValueState, ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.spi.sink import Sink, SinkWriter, WriterContext

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
HALF = END // CORES
PER_SPLIT_MS = RECORDS_PER_EVENT_SECOND // CORES // 1000
LATENCY: dict[str, dict[str, str]] = {
    "default": {},
    "flush-1ms": {"execution.buffer-timeout.interval": "1 ms"},
}


def progress(job_client: JobClient) -> int:
    """Records that went into the busiest vertex, from the job's own metrics: user code counts nothing.

    Metrics come by (vertex, operator, subtask); those of the task itself have an empty operator.
    """
    vertices: Counter[str] = Counter()
    for (vertex, operator, _subtask), metrics in job_client._handle.metrics().items():  # type: ignore[attr-defined]
        if not operator:
            vertices[vertex] += metrics["numRecordsIn"]
    return max(vertices.values(), default=0)


class FiresteelJob:
    """A submitted job, watched through its JobClient."""

    stepwise = False

    def __init__(self, env: StreamExecutionEnvironment, board: Board | None = None) -> None:
        self._board = board
        self._client = env.execute_async("bench")
        self._result = self._client.get_job_execution_result()

    def progress(self) -> tuple[int, dict[int, int]]:
        """Records so far; raises what the job failed with."""
        if self._result.done():
            self._result.result()
            raise RuntimeError("the job ended by itself")
        if self._board is not None:
            return self._board.read()
        return progress(self._client), {}

    def stop(self) -> None:
        """Cancels the job."""
        if not self._result.done():
            self._client.cancel().result()


def _environment(run: Run, **options: str) -> StreamExecutionEnvironment:
    parallelism = run.params.get("parallelism", CORES)
    config = Configuration()
    for key, value in {"spark.master": f"local[{parallelism}]", **options}.items():
        config.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(parallelism)
    return env


def _numbers(env: StreamExecutionEnvironment) -> DataStream:
    source = NumberSequenceSource(0, END - 1)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())


class ReceivingWriter(SinkWriter[Any]):
    """Takes every batch and drops it."""

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Drops the batch."""


class ReceivingSink(Sink):
    """Drops records after they were handed over, as the peers' sinks do.

    Firesteel's own DiscardingSink lets the generated loop leave out the output altogether, which no job with a
    real sink can do: with it the stateless case would not compare like with like.
    """

    name = "Receiving Sink"

    def create_writer(self, context: WriterContext) -> ReceivingWriter:
        """One writer per subtask."""
        return ReceivingWriter()


def _discard(stream: DataStream, run: Run) -> None:
    stream.sink_to(DiscardingSink() if run.params.get("elide_sink") else ReceivingSink())


class KeyedSum(KeyedProcessFunction):
    """Running sum per key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the state."""
        self._sum: ValueState = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[int, int]]:
        """Adds the value to its key's sum."""
        total = (self._sum.value() or 0) + value[1]
        self._sum.update(total)
        yield value[0], total


class TimedKeyedSum(KeyedProcessFunction):
    """Running count per key of (key, creation time) records; notes each record's age at the end."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the state and the histogram."""
        self._sum: ValueState = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        self._slots = self._board.writer()

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[int, int]]:
        """Counts the key's records."""
        total = (self._sum.value() or 0) + 1
        self._sum.update(total)
        yield value[0], total
        slots = self._slots
        slots[0] += 1
        slots[1 + bucket_of((time.monotonic_ns() - value[1]) / 1000)] += 1


def stateless(run: Run) -> FiresteelJob:
    """Three chained Python lambdas."""
    env = _environment(run)
    stream = _numbers(env).map(lambda x: x + 1, Types.LONG())
    stream = stream.filter(lambda x: x % 3 != 0).map(lambda x: x * 2, Types.LONG())
    _discard(stream, run)
    return FiresteelJob(env)


def _running_sum(run: Run, pair: Callable[[int], tuple[int, int]]) -> FiresteelJob:
    env = _environment(run)
    stream = _numbers(env).map(pair, PAIR)
    stream = stream.key_by(lambda pair: pair[0], Types.LONG()).process(KeyedSum(), PAIR)
    _discard(stream, run)
    return FiresteelJob(env)


def keyed_sum(run: Run) -> FiresteelJob:
    """Running sum over 10,000 keys."""
    return _running_sum(run, lambda x: (x % KEYS, x))


def keys(run: Run) -> FiresteelJob:
    """Running sum over as many keys as the variant says."""
    count = run.params["keys"]
    return _running_sum(run, lambda x: (x % count, x))


def wide(run: Run) -> FiresteelJob:
    """Running sum with as many subtasks as the variant says."""
    return keyed_sum(run)


class EventTime(TimestampAssigner):
    """Event time of a pair; the two halves of the sequence advance side by side."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Milliseconds since the start."""
        return int(value[1] % HALF // PER_SPLIT_MS)


class Sum(AggregateFunction):
    """Sum of the values of a window."""

    def create_accumulator(self) -> int:
        """Zero."""
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        """Adds one value."""
        return int(accumulator + value[1])

    def get_result(self, accumulator: int) -> int:
        """The sum."""
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        """Sum of both."""
        return acc_a + acc_b


def window(run: Run) -> FiresteelJob:
    """Sum per key in 1 s tumbling event-time windows."""
    env = _environment(run)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    stream = _numbers(env).map(lambda x: (x % KEYS, x), PAIR).assign_timestamps_and_watermarks(strategy)
    keyed = stream.key_by(lambda pair: pair[0], Types.LONG())
    windows = keyed.window(TumblingEventTimeWindows.of(Time.seconds(1)))
    _discard(windows.aggregate(Sum(), accumulator_type=Types.LONG(), output_type=Types.LONG()), run)
    return FiresteelJob(env)


def latency(run: Run) -> FiresteelJob:
    """Running count per key at a fixed rate; the source's generator notes a record's creation time."""
    env = _environment(run, **LATENCY[run.params["settings"]])
    source = DataGeneratorSource(
        lambda index: (index % KEYS, time.monotonic_ns()),
        rate_limiter_strategy=RateLimiterStrategy.per_second(RATE),
        type_info=PAIR,
    )
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "datagen", PAIR)
    stream = stream.map(lambda pair: (pair[0], pair[1]), PAIR)
    stream = stream.key_by(lambda pair: pair[0], Types.LONG()).process(TimedKeyedSum(run.board), PAIR)
    _discard(stream, run)
    return FiresteelJob(env, run.board)
