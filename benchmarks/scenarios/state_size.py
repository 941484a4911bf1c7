"""Checkpoints, savepoints and restores at several sizes of state."""

from __future__ import annotations

from typing import Any

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.scenarios.controlled import KeyTraffic
from benchmarks.scenarios.job import ScenarioJob, Scene, checkpoint_options

__all__ = ["run"]


def run(run: Run) -> dict[str, Any]:
    """One full and one incremental checkpoint, a savepoint, and a restore from both."""
    keys = run.params["keys"]
    scene = Scene(run, KeyTraffic(keys, max(keys // 100, CORES)))
    options = checkpoint_options(scene.checkpoints, run.params["backend"])
    fill = scene.traffic.fill(CORES)
    touched = fill + scene.traffic.hot // CORES
    job = scene.start(scene.keyed_sum, options)
    try:
        job.emit(fill)
        full_ms, _, full = job.checkpoint()
        job.emit(touched)
        incremental_ms, retained, incremental = job.checkpoint()
        savepoint_ms, savepoint = job.savepoint(scene.scratch / "savepoints")
    finally:
        job.cancel()
    return {
        "full_ms": full_ms,
        "full_pause_ms": max(full.sync_ms),
        "full_mb": full.bytes_written / 2**20,
        "incremental_ms": incremental_ms,
        "incremental_pause_ms": max(incremental.sync_ms),
        "incremental_mb": incremental.bytes_written / 2**20,
        "restore_s": _restore(scene, options, retained, touched),
        "savepoint_ms": savepoint_ms,
        "savepoint_restore_s": _restore(scene, options, savepoint, touched),
    }


def _restore(scene: Scene, options: dict[str, str], path: str, emitted: int) -> float:
    """Seconds from the submission to the first record that went through the restored state."""
    restored: ScenarioJob = scene.start(
        scene.keyed_sum, {**options, "execution.state-recovery.path": path}, limit=emitted + 100
    )
    try:
        restored.wait(lambda: restored.outputs.records() > 0, "the first record after the restore")
        first = restored.outputs.first_output(0)
        # a key's third record, after one that was less than the number of keys and one that was more
        if first is None or restored.outputs.least_first_total() < 2 * scene.traffic.keys:
            raise RuntimeError(f"the state was not restored from {path}")
        return first - restored.submitted_time
    finally:
        restored.cancel()
