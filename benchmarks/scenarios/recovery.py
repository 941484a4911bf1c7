"""How long the output stops when a Python worker is killed under load."""

from __future__ import annotations

import os
import signal
import time
from statistics import median
from typing import Any

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.scenarios.controlled import KeyTraffic
from benchmarks.scenarios.job import ScenarioJob, Scene, checkpoint_options

__all__ = ["run"]


def run(run: Run) -> dict[str, Any]:
    """Kills one worker after the other, each time with the job at full speed and a fresh checkpoint behind it."""
    params = run.params
    scene = Scene(run, KeyTraffic(params["keys"], params["keys"]))
    options = checkpoint_options(scene.checkpoints, params["backend"], params["interval"])
    job = scene.start(scene.keyed_sum, options | params["options"])
    try:
        job.emit(scene.traffic.fill(CORES))
        job.control.lift_limit()
        outages = [_outage(job, params) for _ in range(params["kills"])]
        state_bytes = job.log.read()[-1].state_bytes
    finally:
        job.cancel()
    outputs = [output for output, _ in outages]
    return {
        "kills": len(outages),
        "output_median_s": median(outputs),
        "output_max_s": max(outputs),
        "running_median_s": median(running for _, running in outages),
        "state_mb": state_bytes / 2**20,
    }


def _outage(job: ScenarioJob, params: Any) -> tuple[float, float]:
    """Seconds from a kill to the first record of the next attempt, and to all its tasks running."""
    job.wait(job.is_running, "all tasks running")
    since_ms = time.time_ns() // 1_000_000
    job.watch(params["load_s"])
    job.wait(lambda: job.log.read() and job.log.read()[-1].triggered_ms > since_ms, "a checkpoint before the kill")
    attempt = job.outputs.latest_attempt()
    killed = time.time()
    if params["fault"] == "kill":
        os.kill(job.outputs.pids()[0], signal.SIGKILL)
    else:
        job.control.fail_once()
    job.wait(lambda: not job.is_running(), "the failure")
    running: float | None = None
    while (first := job.outputs.first_output(attempt + 1)) is None or running is None:
        if running is None and job.is_running():
            running = time.time()
        job.check()
        time.sleep(0.002)
        if time.time() - killed > params["patience_s"]:
            raise TimeoutError(f"no output {params['patience_s']} s after the kill")
    return first - killed, running - killed
