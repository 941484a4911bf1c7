"""Puts defects back that were mended once, one at a time, and counts the runs until the simulation finds each.

``python -m tests.simulation.put_back --runs 2000``, or with the names of some. A run counts only if it is right without
the defect. Runs in which a defect cannot show, as nothing of what it takes is drawn, are counted, but not simulated.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from firesteel.cluster.dispatcher import dispatcher, end_recorder
from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.dispatcher.end_recorder import EndRecorder
from firesteel.cluster.dispatcher.job_loading import JobLoader, failure_of_preparation
from firesteel.cluster.ha.services import FencedError
from firesteel.common.errors import CheckpointStorageError, CorruptStateError
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.model.end_of_job import ends_preparation
from firesteel.jobmaster.model.events import RescaleJob
from firesteel.jobmaster.model.instructions import RemoveLeftovers
from firesteel.jobmaster.shell import runner as runner_module
from firesteel.jobmaster.shell.checkpoint_io import CheckpointIO
from firesteel.jobmaster.shell.host_calls import HostCalls
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.runtime.slot.mailbox import SystemClock
from firesteel.spark.pipelined.slot_watch import JobMasterLiveness
from firesteel.testing.simulation.machine.standard_library import replaced
from firesteel.testing.simulation.run import RunPlan, RunResult, draw_plan, simulate


@contextmanager
def deadlines_by_the_wall_clock() -> Iterator[None]:
    """W8: timers of the JobMaster, and internal ones of a slot, are times of a clock that can be set."""
    with ExitStack() as stack:
        stack.enter_context(replaced(JobMasterRunner, _now_ms=lambda runner: runner._concurrency.wall_ms()))
        stack.enter_context(replaced(SystemClock, monotonic_ms=lambda clock: clock.now_ms()))
        yield


@contextmanager
def jobmaster_waits_for_storage() -> Iterator[None]:
    """W13: between two attempts the JobMaster's thread waits until the storage has deleted what was left."""
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
    """W15: a job that is rescaled while it stops with a savepoint, or the other way round, restarts instead."""

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


@contextmanager
def takeovers_end_jobs() -> Iterator[None]:
    """W4: a job that is taken over while its storage is away is tried for 3.5 s, and then recorded as FAILED."""
    load = JobLoader.load
    final: list[BaseException] = []

    def load_a_few_times(loader: JobLoader, submission: Any, taken_over: Any = None) -> Any:
        if taken_over is None:
            return load(loader, submission)
        for delay_s in (0.5, 1.0, 2.0, None):
            try:
                return load(loader, submission, taken_over)
            except (CheckpointStorageError, OSError) as error:
                if delay_s is None or isinstance(error, CorruptStateError):
                    final[:] = [error]
                    raise
                time.sleep(delay_s)
        raise AssertionError

    def ends(error: BaseException, **circumstances: Any) -> bool:
        return error in final or ends_preparation(error, **circumstances)

    with replaced(JobLoader, load=load_a_few_times), replaced(dispatcher, ends_preparation=ends):
        yield


@contextmanager
def broken_jobmasters_end_jobs() -> Iterator[None]:
    """A JobMaster that breaks down is recorded as the failure of its job, also if Spark is gone."""
    on_done = Dispatcher._on_done

    def record_failed(self: Any, job: Any, runner: Any, done: Any) -> None:
        if runner.ended_as is not None or self._fenced.is_set() or self._closed.is_set():
            on_done(self, job, runner, done)
        elif job.runner is runner:
            failure = failure_of_preparation(done.exception())
            job.detach()
            try:
                self._ends.record(job, JobStatus.FAILED, failure)
            except FencedError:
                job.end(JobStatus.SUSPENDED)
            else:
                job.end(JobStatus.FAILED, failure=failure)

    def may_record(status: JobStatus, *, host_lives: bool) -> bool:
        return status.is_globally_terminal_state()

    with ExitStack() as stack:
        stack.enter_context(replaced(Dispatcher, _on_done=record_failed))
        stack.enter_context(replaced(end_recorder, may_record=may_record))
        stack.enter_context(replaced(runner_module, may_record=may_record))
        yield


@contextmanager
def kills_break_the_jobmaster() -> Iterator[None]:
    """W5: an attempt is killed in the JobMaster's thread, which does not outlive an error of Spark."""

    def kill(calls: HostCalls, attempt: int, reason: str) -> None:
        calls._host.kill(attempt, reason)

    with broken_jobmasters_end_jobs(), replaced(HostCalls, kill=kill):
        yield


@contextmanager
def starts_break_the_jobmaster() -> Iterator[None]:
    """W21: an attempt is started in the JobMaster's thread, which does not outlive an error of Spark."""

    def start(calls: HostCalls, attempt: Any) -> None:
        calls._host.start(attempt, calls._hear)

    with broken_jobmasters_end_jobs(), replaced(HostCalls, start=start):
        yield


@contextmanager
def slots_outlive_their_jobmaster() -> Iterator[None]:
    """W9: a slot does not mind that it hears nothing from its JobMaster."""
    with replaced(JobMasterLiveness, is_lost=property(lambda _liveness: False)):
        yield


@contextmanager
def ends_are_given_up() -> Iterator[None]:
    """W11: the end of a job that cannot be recorded for 30 s, or while the cluster stops, is taken for recorded."""
    record = EndRecorder.record

    def record_for_a_while(recorder: Any, job: Any, status: JobStatus, failure: Any) -> None:
        closed, given_up = recorder._closed, _GivesUp(recorder._closed, recorder._concurrency.monotonic)
        hasty = EndRecorder(recorder._store, recorder._write, recorder._host_lives, given_up, recorder._concurrency)
        try:
            record(hasty, job, status, failure)
        except end_recorder.NotRecordedError:
            if not closed.is_set() and not given_up.has_given_up:
                raise  # it does not count, and never did
            job.recorded()

    with replaced(EndRecorder, record=record_for_a_while):
        yield


class _GivesUp(threading.Event):
    """In the place of the event that the Dispatcher is closed: also set after 30 s."""

    def __init__(self, closed: threading.Event, monotonic: Callable[[], float]):
        super().__init__()
        self._closed = closed
        self._monotonic = monotonic
        self._until = monotonic() + 30.0

    @property
    def has_given_up(self) -> bool:
        """Whether the time is over."""
        return self._monotonic() >= self._until

    def wait(self, timeout: float | None = None) -> bool:
        return self._closed.wait(timeout) or self.has_given_up


@dataclass(frozen=True)
class Defect:
    """How it is put back, and in which runs it can show at all."""

    put_back: Callable[[], AbstractContextManager[None]]
    can_show: Callable[[RunPlan], bool]


def _has_fault(plan: RunPlan, *words: str, seconds: float = 0) -> bool:
    return any(word in fault.kind for fault in plan.faults if fault.seconds >= seconds for word in words)


def _may_take_over_without_storage(plan: RunPlan) -> bool:
    """Storage that raises errors, and something that costs a leader its place or its jobs at about that time."""
    away = [fault for fault in plan.faults if "storage" in fault.kind and fault.seconds > 3]
    others = [fault for fault in plan.faults if fault not in away]
    return any(
        fault.at_s - 15 < other.at_s < fault.at_s + fault.seconds or "fault point" in other.kind
        for fault in away
        for other in (*others, *away)
        if other is not fault
    )


def _may_freeze(plan: RunPlan) -> bool:
    """Nothing is heard of a JobMaster for longer than a slot may go on without."""
    return _has_fault(plan, "freeze JobManager", "network", "isolate", seconds=plan.heartbeat_timeout_s)


def _may_fail_to_record(plan: RunPlan) -> bool:
    return _has_fault(plan, "HA store", "storage", seconds=25) or _has_fault(plan, "stop JobManager")


def _may_wait_for_storage(plan: RunPlan) -> bool:
    """A job is cancelled while storage does not answer."""
    hangs = [fault for fault in plan.faults if fault.kind in ("storage hangs", "storage slow") and fault.seconds > 10]
    cancels = [at_s for job in plan.jobs for at_s, request in job.requests if request == "cancel"]
    return any(fault.at_s - 10 < at_s < fault.at_s + fault.seconds for fault in hangs for at_s in cancels)


def _may_rescale_and_stop(plan: RunPlan) -> bool:
    return any({"rescale", "stop"} <= {request for _, request in job.requests} for job in plan.jobs)


DEFECTS = {
    "W4": Defect(takeovers_end_jobs, _may_take_over_without_storage),
    # a JVM that goes with its JobManager takes the JobMaster along
    "W5": Defect(kills_break_the_jobmaster, lambda plan: _has_fault(plan, "JVM", "Spark")),
    "W8": Defect(deadlines_by_the_wall_clock, lambda plan: _has_fault(plan, "set clock")),
    "W9": Defect(slots_outlive_their_jobmaster, _may_freeze),
    "W11": Defect(ends_are_given_up, _may_fail_to_record),
    "W13": Defect(jobmaster_waits_for_storage, _may_wait_for_storage),
    "W15": Defect(rescaling_restarts_a_job_that_stops, _may_rescale_and_stop),
    "W21": Defect(starts_break_the_jobmaster, lambda plan: _has_fault(plan, "JVM", "Spark")),
}


def run_with(name: str, seed: int) -> RunResult | None:
    """One run with a defect; None if it cannot show in it."""
    plan = draw_plan(seed)
    if not DEFECTS[name].can_show(plan):
        return None
    with DEFECTS[name].put_back():
        return simulate(plan)


def runs_until_found(name: str, first_seed: int, runs: int, processes: int) -> tuple[int, RunResult] | None:
    """How many runs it took, and the one that found it; None if none did."""
    seeds = range(first_seed, first_seed + runs)
    if processes == 1:
        return _first_found(map(partial(run_with, name), seeds))
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return _first_found(pool.imap(partial(run_with, name), seeds))


def _first_found(results: Iterator[RunResult | None]) -> tuple[int, RunResult] | None:
    for number, result in enumerate(results, 1):
        # not one that is wrong without the defect as well
        if result is not None and result.problems and not simulate(draw_plan(result.seed)).problems:
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
