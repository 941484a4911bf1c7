"""Puts defects back that were mended once, one at a time, and counts the runs until the simulation finds each.

``python -m tests.simulation.put_back --runs 2000``, or with the names of some.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.events import RescaleJob
from firesteel.jobmaster.instructions import RemoveLeftovers
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.runner import JobMasterRunner
from firesteel.jobmaster.shell.checkpoint_io import CheckpointIO
from firesteel.runtime.mailbox import SystemClock
from firesteel.testing.simulation.run import RunResult, draw_plan, simulate
from firesteel.testing.simulation.standard_library import replaced


@contextmanager
def deadlines_by_the_wall_clock() -> Iterator[None]:
    """Timers of the JobMaster, and internal ones of a slot, are times of a clock that can be set."""
    with ExitStack() as stack:
        stack.enter_context(replaced(JobMasterRunner, _now_ms=lambda runner: runner._concurrency.wall_ms()))
        stack.enter_context(replaced(SystemClock, monotonic_ms=lambda clock: clock.now_ms()))
        yield


@contextmanager
def jobmaster_waits_for_storage() -> Iterator[None]:
    """Between two attempts the JobMaster's thread waits until the storage has deleted what was left."""
    execute = CheckpointIO.execute

    def execute_and_wait(io: CheckpointIO, instruction: Any) -> None:
        execute(io, instruction)
        if isinstance(instruction, RemoveLeftovers):
            done = threading.Event()
            io._worker.submit(done.set)
            done.wait()

    with replaced(CheckpointIO, execute=execute_and_wait):
        yield


@contextmanager
def rescaling_restarts_a_job_that_stops() -> Iterator[None]:
    """A job that is rescaled while it stops with a savepoint, or the other way round, restarts instead of ending."""

    def on_rescale(master: Any, event: RescaleJob) -> None:
        master._job_graph = event.job_graph
        master.slots.rescaled(event.job_graph)
        if master.status is JobStatus.RUNNING and master.checkpoints.is_running and not master._root_cause.is_pending:
            master._rescale_reason = event.reason
            master.take_checkpoint()
        elif master.status in (JobStatus.CREATED, JobStatus.RUNNING) and not master._root_cause.is_pending:
            master.restart(event.reason)

    def rescale_now(master: Any) -> None:
        reason, master._rescale_reason = master._rescale_reason, None
        if reason is not None and master.status is JobStatus.RUNNING and not master._root_cause.is_pending:
            master.restart(reason)

    with replaced(JobMaster, _on_rescale=on_rescale, _rescale_now=rescale_now):
        yield


DEFECTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "deadlines by the wall clock": deadlines_by_the_wall_clock,
    "JobMaster waits for storage": jobmaster_waits_for_storage,
    "rescaling restarts a job that stops": rescaling_restarts_a_job_that_stops,
}


def run_with(name: str, seed: int) -> RunResult:
    """One run with a defect."""
    with DEFECTS[name]():
        return simulate(draw_plan(seed))


def runs_until_found(name: str, first_seed: int, runs: int, processes: int) -> tuple[int, RunResult] | None:
    """How many runs it took, and the one that found it; None if none did."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        results = pool.imap(partial(run_with, name), range(first_seed, first_seed + runs))
        for number, result in enumerate(results, 1):
            # not one that is wrong without the defect as well
            if result.problems and not simulate(draw_plan(result.seed)).problems:
                return number, result
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.put_back", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(DEFECTS))
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    missed = False
    for name in arguments.names:
        found = runs_until_found(name, arguments.seed, arguments.runs, arguments.processes)
        if found is None:
            missed = True
            print(f"{name}: not found in {arguments.runs} runs", flush=True)
        else:
            number, result = found
            print(f"{name}: found after {number} runs (seed {result.seed}): {result.problems[0][:200]}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
