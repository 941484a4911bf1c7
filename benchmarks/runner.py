"""Runs one case on one system in this process and reports progress as JSON lines on stdout."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.board import Board
from benchmarks.cases import CORES, SYSTEMS
from benchmarks.scenarios.catalogue import SCENARIOS
from benchmarks.scenarios.scenario import Scenario

__all__ = ["Job", "Run", "main"]

INTERVAL_S = 0.1


@dataclass(frozen=True)
class Run:
    """What a system module needs to start a job."""

    system: str
    params: Mapping[str, Any]
    scratch: str

    @property
    def board(self) -> Board:
        """Counters of this run."""
        path = Path(self.scratch, "board")
        path.mkdir(exist_ok=True)
        return Board(str(path))


class Job(Protocol):
    """A job that runs until it is stopped."""

    stepwise: bool
    """Progress comes in steps (micro-batches): only a step's end is a sample."""

    def progress(self) -> tuple[int, dict[int, int]]:
        """Records so far and the latency histogram; raises if the job is no longer running."""
        ...

    def stop(self) -> None:
        """Ends the job and everything it started."""
        ...


def _pin() -> None:
    """Keeps this process, and all it starts, on the first cores it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def _serve(job: Job, out: int) -> None:
    """Writes samples until the harness closes stdin."""
    last = -1
    while True:
        readable, _, _ = select.select([0], [], [], INTERVAL_S)
        if readable and not os.read(0, 1):
            return
        records, histogram = job.progress()
        if job.stepwise and records == last:
            continue
        last = records
        sample: dict[str, Any] = {"t": time.monotonic(), "records": records}
        if histogram:
            sample["histogram"] = histogram
        os.write(out, json.dumps(sample).encode() + b"\n")


def _play(scenario: Scenario, run: Run) -> dict[str, Any]:
    """Runs a scenario to its end."""
    (variant,) = (each for each in scenario.variants if each.name == run.params["variant"])
    figures: dict[str, Any] = importlib.import_module(scenario.module(variant)).run(run)
    return figures


def main() -> int:
    """Starts the job, reports, stops."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", required=True, choices=sorted(SYSTEMS))
    parser.add_argument("--case", required=True)
    parser.add_argument("--params", type=json.loads, default={})
    parser.add_argument("--scratch", required=True)
    args = parser.parse_args()

    _pin()
    # JVMs and Python workers inherit stdout and write to it; the report keeps a descriptor of its own.
    out = os.dup(1)
    os.dup2(2, 1)
    job: Job | None = None
    try:
        run = Run(args.system, args.params, args.scratch)
        if args.case in SCENARIOS:
            figures = _play(SCENARIOS[args.case], run)
            os.write(out, json.dumps({"figures": figures}).encode() + b"\n")
        else:
            module = importlib.import_module(f"benchmarks.systems.{SYSTEMS[args.system].module}")
            job = getattr(module, args.case)(run)
            _serve(job, out)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        traceback.print_exc()
        os.write(out, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n")
        return 1
    finally:
        if job is not None:
            job.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
