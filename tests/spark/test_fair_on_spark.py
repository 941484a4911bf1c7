"""No task of a slot starves on Spark, where each slot is a process and is supplied by the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from firesteel.common import JobClient, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.testing import eventually

pytestmark = pytest.mark.spark

PLACES = ("at source", "first", "second", "third")
SLOW_S = 0.0002
DEADLINE_S = 120.0
ENOUGH = 4000
"""Records that a subtask reads while it is watched; the buffers behind it hold fewer."""
SETTINGS = {
    # full soon, but not so small that a consumer runs out of what other slots send it
    "taskmanager.memory.segment-size": "1 kb",
    "taskmanager.network.memory.floating-buffers-per-gate": "4",
    "taskmanager.network.memory.max-buffers-per-channel": "4",
    "heartbeat.interval": "50 ms",
    "execution.checkpointing.interval": "200 ms",
    "execution.checkpointing.timeout": "1 h",
}
Env = Callable[..., StreamExecutionEnvironment]


class _WhenRead(TimestampAssigner):
    """Event time advances behind a subtask only while that reads."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return time.monotonic_ns() // 1000


def at(place: str, slow: str) -> Callable[[int], int]:
    def pass_on(number: int) -> int:
        if place == slow:
            time.sleep(SLOW_S)
        return number

    return pass_on


class Watched:
    """A job with three exchanges, endless and slow at one place."""

    def __init__(self, env: StreamExecutionEnvironment, slow: str):
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_WhenRead())
        stream = env.from_source(NumberSequenceSource(0, 1 << 50), strategy, "numbers", Types.LONG())
        stream = stream.map(at("at source", slow), Types.LONG())
        stream = stream.key_by(lambda number: number % 200, Types.LONG()).map(at("first", slow), Types.LONG())
        stream = stream.rebalance().map(at("second", slow), Types.LONG())
        stream = stream.key_by(lambda number: number % 300, Types.LONG()).map(at("third", slow), Types.LONG())
        stream.filter(lambda _number: False).print()
        self._slots = env.get_parallelism()
        self.client: JobClient = env.execute_async(f"slow {slow}")
        self._handle = cast("Any", self.client._handle)
        self._vertices = [vertex.id for vertex in self._handle.job_graph.vertices]

    def _of_tasks(self, vertex: int, metric: str) -> list[int]:
        metrics = self._handle.metrics()
        keys = [(self._vertices[vertex], "", subtask) for subtask in range(self._slots)]
        assert all(key in metrics for key in keys), "not all tasks have reported"
        return [metrics[key][metric] for key in keys]

    def read(self) -> list[int]:
        """What each subtask of the source has read."""
        return self._of_tasks(0, "numRecordsIn")

    def watermark(self) -> int:
        """How far event time has come behind all exchanges."""
        return min(self._of_tasks(-1, "currentInputWatermark"))

    def checkpoints(self) -> int:
        """How many have completed."""
        return int(self._handle.checkpoint_statistics()["counts"]["completed"])


@pytest.mark.parametrize(("slots", "slow"), [*((4, place) for place in PLACES), (2, "first"), (1, "third")])
def test_all_subtasks_of_a_source_get_on_under_backpressure(
    slots: int, slow: str, spark_env: Env, tmp_path: Path
) -> None:
    config = {**SETTINGS, "execution.checkpointing.dir": str(tmp_path)}
    job = Watched(spark_env(slots, config), slow)
    enough = ENOUGH if slots > 1 else ENOUGH // 4  # where there is one subtask, it need not be compared
    try:

        def buffers_are_full() -> None:
            assert min(job.read()) > 0
            assert max(job.read()) >= enough

        eventually(buffers_are_full, timeout=DEADLINE_S)
        before, checkpoints, watermark = job.read(), job.checkpoints(), job.watermark()

        def all_get_on() -> None:
            progress = [now - then for now, then in zip(job.read(), before, strict=True)]
            assert max(progress) >= enough
            assert min(progress) >= max(progress) / 2
            assert job.watermark() > watermark
            # within one slot much more is in flight, and a barrier takes seconds
            assert job.checkpoints() >= checkpoints + (2 if slots > 1 else 1)

        eventually(all_get_on, timeout=DEADLINE_S)
    finally:
        job.client.cancel().result(DEADLINE_S)
