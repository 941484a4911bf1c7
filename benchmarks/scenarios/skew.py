"""One key with half of all records: throughput of an aggregation, and how busy the slot of that key is."""

from __future__ import annotations

import time
from typing import Any, cast

import psutil

from benchmarks.cases import CORES, END, KEYS
from benchmarks.processes import is_python_worker
from benchmarks.runner import Run
from benchmarks.systems.firesteel import PAIR, EventTime, ReceivingSink
from firesteel.common import Configuration, Time, Types, WatermarkStrategy
from firesteel.datastream import AggregateFunction, DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing.in_process import InProcessExecutor

__all__ = ["Count", "await_start", "cpu_of_workers", "records_read", "run"]

_LOOK_S = 0.1


def run(run: Run) -> dict[str, Any]:
    """Figures of the steady state."""
    params = run.params
    client = _environment(run).execute_async("bench")
    handle = cast("Any", client._handle)
    try:
        await_start(client, params["patience_s"])
        time.sleep(params["warmup_s"])
        records, busy, cpu, began = records_read(handle), _busy(handle), cpu_of_workers(), time.monotonic()
        time.sleep(params["seconds"])
        took = time.monotonic() - began
        count = records_read(handle) - records
        slots = sorted((after - busy[slot]) / took for slot, after in _busy(handle).items())
        times = sorted(after - cpu.get(process, 0.0) for process, after in cpu_of_workers().items())[-CORES:]
    finally:
        client.cancel().result()
    return {
        "records_per_s": count / took,
        "busiest_ms_per_s": slots[-1],
        "least_busy_ms_per_s": slots[0],
        "busy_ratio": slots[-1] / max(slots[0], 1.0),
        "cpu_ratio": times[-1] / max(times[0], 1e-3) if len(times) == CORES else 1.0,
    }


def _environment(run: Run) -> StreamExecutionEnvironment:
    params = run.params
    config = Configuration().set_string("spark.master", f"local[{CORES}]")
    config.set_string("state.backend.type", params["backend"])
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(CORES)
    if params.get("in_process"):
        env._executor = InProcessExecutor()
    numbers = env.from_source(NumberSequenceSource(0, END - 1), WatermarkStrategy.no_watermarks(), "n", Types.LONG())
    if params["windows"]:
        _aggregate_windows(numbers, params["method"]).sink_to(ReceivingSink())
        return env
    if params["hot"]:
        pairs = numbers.map(lambda x: (0 if x & 1 else x // 2 % KEYS, x & 1023), PAIR)
    else:
        pairs = numbers.map(lambda x: (x // 2 % KEYS, x & 1023), PAIR)
    _aggregate(pairs, params["method"]).sink_to(ReceivingSink())
    return env


def _aggregate(pairs: DataStream[Any], method: str) -> DataStream[Any]:
    keyed = pairs.key_by(lambda pair: pair[0], Types.LONG())
    aggregate: Any = getattr(keyed, method)
    result: DataStream[Any] = aggregate(lambda a, b: (a[0], a[1] + b[1]))
    return result


def _aggregate_windows(numbers: DataStream[Any], method: str) -> DataStream[Any]:
    pairs = numbers.map(lambda x: (0 if x & 1 else x // 2 % KEYS, x), PAIR)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    keyed = pairs.assign_timestamps_and_watermarks(strategy).key_by(lambda pair: pair[0], Types.LONG())
    aggregate: Any = getattr(keyed.window(TumblingEventTimeWindows.of(Time.seconds(10))), method)
    result: DataStream[Any] = aggregate(Count())
    return result


class Count(AggregateFunction):
    """How many records a window has."""

    def create_accumulator(self) -> int:
        """Zero."""
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        """One more."""
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        """The count."""
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        """The sum of two counts."""
        return acc_a + acc_b


def await_start(client: Any, patience_s: float) -> None:
    """Waits until all tasks have reported, and records have been read."""
    handle = client._handle
    deadline = time.monotonic() + patience_s
    result = client.get_job_execution_result()
    while len(_tasks(handle)) <= CORES or not records_read(handle):
        if result.done():
            result.result()
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all tasks have reported after {patience_s:.0f} s")
        time.sleep(_LOOK_S)


def _tasks(handle: Any) -> dict[tuple[str, int], Any]:
    """The metrics of each task."""
    return {
        (vertex, subtask): metrics for (vertex, operator, subtask), metrics in handle.metrics().items() if not operator
    }


def records_read(handle: Any) -> int:
    """Records that the source has read."""
    source = handle.job_graph.vertices[0].id
    return sum(metrics["numRecordsIn"] for (vertex, _), metrics in _tasks(handle).items() if vertex == source)


def _busy(handle: Any) -> dict[int, float]:
    """For how many milliseconds the tasks of each slot have been busy: slot n has subtask n of every vertex."""
    slots: dict[int, float] = {}
    for (_, subtask), metrics in _tasks(handle).items():
        slots[subtask] = slots.get(subtask, 0.0) + metrics["accumulatedBusyTimeMs"]
    return slots


def cpu_of_workers() -> dict[int, float]:
    """Processor seconds of Spark's Python workers."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        try:
            if is_python_worker(process):
                times = process.cpu_times()
                found[process.pid] = times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return found
