"""Subtasks of a source under backpressure: how far apart they are, and how far event time is behind."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any, cast

from benchmarks.runner import Run
from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

__all__ = ["run"]

_END = 1 << 50
_KEYS = 1_000
_LOOK_S = 0.5
"""How often slots report."""
PLACES = ("first", "second", "third")


class _Now(TimestampAssigner):
    """The time at which a record is read: a watermark tells how long its records were on their way."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The wall clock."""
        return time.time_ns() // 1_000_000


class _Pass:
    """Hands records on, each after a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __call__(self, value: int) -> int:
        if self._seconds:
            time.sleep(self._seconds)
        return value


def run(run: Run) -> dict[str, Any]:
    """Waits until the buffers are full, then looks at the job for a while, then takes a checkpoint."""
    params = run.params
    client = _environment(run).execute_async("bench")
    handle = cast("Any", client._handle)
    try:
        _await_reports(client, params["slots"], params["patience_s"])
        _watch(client, params["warmup_s"])
        before, began = _read_by_subtask(handle), time.monotonic()
        lags = _watch(client, params["seconds"])
        took = time.monotonic() - began
        rates = [(_read_by_subtask(handle)[subtask] - count) / took for subtask, count in before.items()]
        began = time.monotonic()
        handle.trigger_checkpoint().result(params["patience_s"])
        checkpoint_s = time.monotonic() - began
    finally:
        client.cancel().result()
    return {
        "slowest": min(rates),
        "fastest": max(rates),
        "slowest_over_fastest": min(rates) / max(*rates, 1e-9),
        "watermark_lag_s": median(lags),
        "watermark_lag_max_s": max(lags),
        "checkpoint_s": checkpoint_s,
    }


def _environment(run: Run) -> StreamExecutionEnvironment:
    params = run.params
    slots = params["slots"]
    options = {
        "spark.master": f"local[{slots * (4 if params['own_slots'] else 1)}]",
        "execution.checkpointing.dir": str(Path(run.scratch) / "checkpoints"),
        # none but that which is asked for
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.timeout": "1 h",
    }
    config = Configuration()
    for key, value in options.items():
        config.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(slots)
    if params.get("in_process"):
        from firesteel.testing.in_process import InProcessExecutor

        env._executor = InProcessExecutor()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Now())
    stream = env.from_source(NumberSequenceSource(0, _END), strategy, "numbers", Types.LONG())
    for place in PLACES:
        stream = stream.key_by(lambda number: number % _KEYS, Types.LONG())
        stream = stream.map(_Pass(params["slow_ms"] / 1000 if place == params["place"] else 0.0), Types.LONG())
        stream = stream.name(place)
        if params["own_slots"]:
            stream = stream.slot_sharing_group(place)
    _drop(stream)
    return env


def _drop(stream: DataStream) -> None:
    stream.filter(lambda _number: False).print()


def _await_reports(client: Any, slots: int, patience_s: float) -> None:
    """Waits until all tasks have reported."""
    deadline = time.monotonic() + patience_s
    while [len(tasks) for tasks in _of_vertices(client._handle)] != [slots] * (1 + len(PLACES)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all tasks have reported after {patience_s:.0f} s")
        time.sleep(_LOOK_S / 5)


def _watch(client: Any, seconds: float) -> list[float]:
    """How far the watermark of the last operator was behind the clock, twice a second, in seconds."""
    lags: list[float] = []
    deadline = time.monotonic() + seconds
    result = client.get_job_execution_result()
    while time.monotonic() < deadline:
        time.sleep(min(_LOOK_S, max(deadline - time.monotonic(), 0.01)))
        if result.done():
            result.result()
            raise RuntimeError("the job ended by itself")
        last = _of_vertices(client._handle)[-1:]
        watermarks = [metrics["currentInputWatermark"] for metrics in (last[0].values() if last else ())]
        if watermarks and min(watermarks) > 0:
            lags.append(time.time() - min(watermarks) / 1000)
    return lags or [seconds]


def _read_by_subtask(handle: Any) -> dict[int, int]:
    """Records that each subtask of the source has read."""
    return {subtask: metrics["numRecordsIn"] for subtask, metrics in _of_vertices(handle)[0].items()}


def _of_vertices(handle: Any) -> list[dict[int, Any]]:
    """The metrics of the tasks by subtask, for each vertex, upstream ones first."""
    order = [vertex.id for vertex in handle.job_graph.vertices]
    found: dict[str, dict[int, Any]] = {}
    for (vertex, operator, subtask), metrics in handle.metrics().items():
        if not operator:
            found.setdefault(vertex, {})[subtask] = metrics
    return [found[vertex] for vertex in order if vertex in found]
