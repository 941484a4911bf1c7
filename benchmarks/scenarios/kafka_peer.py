"""How a measured process talks to the broker's process; needs nothing but the standard library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from benchmarks.runner import Run

__all__ = ["KafkaStage", "measure", "to_pair"]


class KafkaStage:
    """The broker, its producer and its consumer, in a process of their own."""

    def __init__(self) -> None:
        python = os.environ.get("FIRESTEEL_BENCH_PYTHON", sys.executable)
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.scenarios.kafka_stage"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer("the broker to start")

    def __enter__(self) -> KafkaStage:  # noqa: PYI034 - Self is not in Python 3.10
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def __call__(self, action: str, **arguments: Any) -> Any:
        """Has the stage do something."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": action, "with": arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer(action)

    def _answer(self, what: str) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the broker's process has ended, while waiting for {what}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{what}: {answer['error']}")
        return answer.get("answer")


def to_pair(text: str) -> tuple[int, int]:
    """Key and value of a record."""
    key, _, value = text.partition(",")
    return int(key), int(value)


def measure(run: Run, stage: KafkaStage, *, warmup_s: float) -> dict[str, Any]:
    """Records that become visible in the output per second, or how long one takes to."""
    params = run.params
    if params["scene"] == "latency":
        stage("begin_latency", rate=params["rate"])
        _await_output(stage)
        time.sleep(warmup_s)
        stage("forget_latency")
        time.sleep(params["seconds"])
        return dict(stage("end_latency"))
    _await_output(stage)
    time.sleep(warmup_s)
    # from one commit to another: what is visible grows in steps
    first, begin = _next_step(stage)
    time.sleep(params["seconds"])
    last, end = _next_step(stage)
    if last >= params["records"]:
        raise RuntimeError(f"all {last} records were through before the measurement ended")
    return {"records": last - first, "records_per_s": (last - first) / (end - begin)}


def _await_output(stage: KafkaStage) -> None:
    deadline = time.monotonic() + 240
    while not stage("committed"):
        if time.monotonic() > deadline:
            raise RuntimeError("nothing has come out in 240 s")
        time.sleep(0.1)


def _next_step(stage: KafkaStage) -> tuple[int, float]:
    seen, deadline = stage("committed"), time.monotonic() + 60
    while (now := stage("committed")) == seen and time.monotonic() < deadline:
        time.sleep(0.02)
    return now, time.monotonic()
