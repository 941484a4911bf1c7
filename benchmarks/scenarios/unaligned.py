"""Checkpoints of a job that a slow sink holds back: aligned, unaligned, and aligned for a while."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.scenarios.controlled import KeyTraffic, NotingSink
from benchmarks.scenarios.job import ScenarioJob, Scene, checkpoint_options
from firesteel.common import Types
from firesteel.datastream import DataStream

__all__ = ["run"]

_POLL = 2 * 2048
"""Records that a poll of each source emits."""


def run(run: Run) -> dict[str, Any]:
    """Waits until nothing moves but the sink, then takes checkpoints one after the other."""
    params = run.params
    scene = Scene(run, KeyTraffic(2, 1 << 40))

    def build(stream: DataStream, sink: NotingSink) -> None:
        for _ in range(params["hops"]):
            stream = stream.rebalance().map(lambda x: x + 1, Types.LONG())
        # in slots of its own: sharing one with its producers, it would leave them no time to fill the buffers
        stream.rebalance().sink_to(sink).slot_sharing_group("slow")

    options = checkpoint_options(scene.checkpoints, "hashmap") | {
        "execution.checkpointing.timeout": "1 h",
        "spark.master": f"local[{2 * CORES}]",
    }
    job = scene.start(build, options | params["options"], limit=None, delay_s=params["delay_ms"] / 1000)
    try:
        _await_standstill(job, params["window_s"])
        waiting = _in_flight(job)
        taken = [job.checkpoint(params["patience_s"]) for _ in range(params["checkpoints"])]
    finally:
        job.cancel()
    durations = [took / 1000 for took, _, _ in taken]
    return {
        "checkpoints": len(taken),
        "duration_median_s": median(durations),
        "duration_max_s": max(durations),
        "alignment_max_s": max(each.alignment_ms for _, _, each in taken) / 1000,
        "unaligned": sum(each.is_unaligned for _, _, each in taken),
        "in_flight_records": waiting,
        "in_flight_kb": median(each.in_flight_bytes for _, _, each in taken) / 1024,
    }


def _await_standstill(job: ScenarioJob, window_s: float) -> None:
    """Waits until the sources emit no more than the sinks take: all buffers are full."""
    job.wait(lambda: job.outputs.records() > 0, "the first record")
    ahead = -1
    while (now_ahead := _in_flight(job)) > ahead + _POLL:
        ahead = now_ahead
        job.watch(window_s)


def _in_flight(job: ScenarioJob) -> int:
    """Records between the sources and the sinks."""
    return job.control.positions() - job.outputs.records()
