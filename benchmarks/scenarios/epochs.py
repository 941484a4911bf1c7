"""Epochs on Spark's shuffle: what one costs, what it carries, and what of the state it writes."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.scenarios.controlled import KeyTraffic, NotingSink
from benchmarks.scenarios.job import PAIR, KeyedSum, ScenarioJob, Scene
from firesteel.common import Types
from firesteel.datastream import DataStream

__all__ = ["run"]

EPOCHS = {"execution.exchange": "spark"}
AT_ONCE = {"execution.epoch.trigger": "interval", "execution.epoch.interval": "1 ms"}
"""Epoch after epoch, whether there is anything to read or not."""


def run(run: Run) -> dict[str, Any]:
    """One of the three scenes, as the variant says."""
    params = run.params
    keys = params["keys"]
    scene = Scene(run, KeyTraffic(keys, params.get("hot", keys)))
    options = {
        **EPOCHS,
        "execution.checkpointing.dir": str(scene.checkpoints),
        "state.backend.type": params.get("backend", "hashmap"),
        **params.get("options", {}),
    }
    if params["scene"] == "empty":
        return _empty(scene, options)
    if params["scene"] == "load":
        return _load(scene, options)
    return _touch(scene, options)


def _two_stages(scene: Scene, stream: DataStream, sink: NotingSink) -> None:
    keys = scene.traffic.keys
    sums = stream.map(lambda x: (x % keys, x), PAIR)
    for name in ("first", "second"):
        sums = sums.key_by(lambda pair: pair[0], Types.LONG()).process(KeyedSum(), PAIR).uid(name)
    sums.sink_to(sink).uid("sink")


def _completed(job: ScenarioJob) -> int:
    return int(job._handle.checkpoint_statistics()["counts"]["completed"])


def _empty(scene: Scene, options: dict[str, str]) -> dict[str, Any]:
    """Epochs without a record, over as many shuffles as there are stages."""
    params = scene.run.params
    build = (lambda stream, sink: _two_stages(scene, stream, sink)) if params["stages"] == 2 else scene.keyed_sum
    job = scene.start(build, {**AT_ONCE, **options}, limit=0)
    try:
        job.wait(lambda: _completed(job) >= params["skip"], "the first epochs")
        took = []
        for _ in range(params["epochs"]):
            before, begin = _completed(job), time.monotonic()
            job.wait(lambda before=before: _completed(job) > before, "an epoch")
            took.append((time.monotonic() - begin) * 1000)
        return {"epochs": len(took), "epoch_ms": median(took), "epoch_max_ms": max(took)}
    finally:
        job.cancel()


def _load(scene: Scene, options: dict[str, str]) -> dict[str, Any]:
    """keyed_sum at full speed; credits keep epochs at their target duration."""
    job = scene.start(scene.keyed_sum, options, limit=None)
    try:
        job.watch(scene.run.params["warmup_s"])
        before, begin = _completed(job), time.monotonic()
        records = job.outputs.records()
        job.watch(scene.run.params["seconds"])
        last = _completed(job)
        job.wait(lambda: _completed(job) > last, "the end of an epoch")
        seconds = time.monotonic() - begin
        epochs = _completed(job) - before
        return {
            "epochs": epochs,
            "epoch_ms": seconds * 1000 / epochs,
            "records_per_s": (job.outputs.records() - records) / seconds,
        }
    finally:
        job.cancel()


def _touch(scene: Scene, options: dict[str, str]) -> dict[str, Any]:
    """All keys are filled, then epoch after epoch touches the same few of them."""
    params = scene.run.params
    fill = scene.traffic.fill(CORES)
    per_epoch = scene.traffic.hot // CORES
    job = scene.start(scene.keyed_sum, options, limit=0)
    try:
        job.emit(fill)
        _settle(job)
        took, written = [], []
        for number in range(1, params["epochs"] + 1):
            seen = {checkpoint.number for checkpoint in job.log.read()}
            begin = time.monotonic()
            job.emit(fill + number * per_epoch)
            took.append((time.monotonic() - begin) * 1000)
            _settle(job)
            written.append(sum(c.bytes_written for c in job.log.read() if c.number not in seen))
        state = job.log.read()[-1].state_bytes
        return {
            "epochs": len(took),
            "epoch_ms": median(took),
            "epoch_max_ms": max(took),
            "written_kb": median(written) / 1024,
            "state_mb": state / 2**20,
        }
    finally:
        job.cancel()


def _settle(job: ScenarioJob) -> None:
    """Waits until the epoch that wrote the last records is complete."""
    seen = _completed(job)
    job.wait(lambda: _completed(job) > seen, "the epoch's checkpoint")
