"""Client of a simulated cluster: submits jobs, sends requests, and polls until each job has ended."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from firesteel.cluster.dispatcher.dispatcher import (
    Dispatcher,
    DispatcherClosedError,
    DuplicateJobSubmissionError,
    JobNotFoundError,
)
from firesteel.cluster.ha.services import FencedError, JobSubmission
from firesteel.common.errors import FiresteelError
from firesteel.common.job_status import JobStatus
from firesteel.config.checkpointing_options import CHECKPOINTING_INTERVAL, CHECKPOINTING_TIMEOUT, SAVEPOINT_PATH
from firesteel.config.configuration import Configuration
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.testing.simulation.cluster import Cluster, RequestFailedError
from firesteel.testing.simulation.faults import Faults
from firesteel.testing.simulation.machine.scheduler import Process, Scheduler
from firesteel.testing.simulation.workload import Workload

__all__ = ["JobPlan", "JobWatch"]

SAVEPOINTS = "sim://store/savepoints"
_POLL_INTERVAL_US = 2_000_000
_CANCEL_TIMEOUT_US = 20_000_000
"""How soon a cancelled job must show that it was cancelled, as long as its leader runs."""
_MAX_DELAY_US = 30_000_000
"""How much later than its interval and its timeout allow a checkpoint may complete."""
_RESTARTED = ("goes on from it", "is rescaled")
"""A stop fails with these if the job has restarted instead."""


@dataclass(frozen=True)
class JobPlan:
    """A job, what is asked of it, and when."""

    workload: Workload
    submit_s: float = 1.0
    requests: tuple[tuple[float, str], ...] = ()
    """Seconds and ``savepoint``, ``stop``, ``rescale`` or ``cancel``."""


class JobWatch:
    """Runs one job, through however many stops with a savepoint, and remembers what is wrong."""

    def __init__(self, cluster: Cluster, plan: JobPlan, faults: Faults):
        self._cluster = cluster
        self._plan = plan
        self._faults = faults
        self._simulation = cluster.simulation
        self._generation = 0
        self._stop_requested = False
        self.workload = plan.workload
        self.name = plan.workload.name
        self.job_id = ""
        self.problems: list[str] = []
        self.status = "SUBMITTING"
        self.ended: JobStatus | None = None
        self.cancelled = False
        self.done = False
        self.known: dict[str, JobStatus] = {}
        """How jobs have ended, by id."""
        configuration = plan.workload.job_graph.configuration
        durations = configuration.get(CHECKPOINTING_INTERVAL), configuration.get(CHECKPOINTING_TIMEOUT)
        self._allowed_us = sum(each.to_millis() * 1000 for each in durations if each is not None) + _MAX_DELAY_US
        """How long a job may run without a checkpoint, if nothing is wrong."""
        self._running_since: int | None = None

    def run(self) -> None:
        """From the submission to the end; in a simulated thread."""
        simulation = self._simulation
        simulation.sleep(int(self._plan.submit_s * 1e6))
        self._submit(None)
        process = _this_process(simulation)
        requests = [
            process.start(partial(self._request_at, at_s, request), request) for at_s, request in self._plan.requests
        ]
        while True:
            while not self._look():
                simulation.sleep(_POLL_INTERVAL_US)
            savepoint = self._savepoint_to_resume() if self.ended is JobStatus.FINISHED else None
            if savepoint is None:
                break
            self._generation += 1
            self._submit(savepoint)
        while not all(thread.ended for thread in requests):
            simulation.sleep(_POLL_INTERVAL_US)
        self.done = True

    def _ask(self, action: Callable[[Dispatcher], Any], timeout_s: float = 10.0) -> Any:
        """Asks until there is an answer."""
        while True:
            try:
                return self._cluster.ask(action, timeout_s)
            except (RequestFailedError, DispatcherClosedError, FencedError):
                self._simulation.sleep(1_000_000)

    def _submit(self, savepoint: str | None) -> None:
        graph = self.workload.job_graph
        digest = hashlib.blake2b(f"{graph.job_id}/{self._generation}".encode(), digest_size=16)
        self.job_id = digest.hexdigest()
        if savepoint is not None:
            graph = replace(graph, configuration=Configuration(graph.configuration).set(SAVEPOINT_PATH, savepoint))
        graph = replace(graph, job_id=self.job_id)
        submission = JobSubmission(self.job_id, self.name, serialize_job(graph))
        while True:
            try:
                self._ask(lambda dispatcher: dispatcher.submit(submission), 30.0)
                break
            except DuplicateJobSubmissionError:
                break
            except FiresteelError as error:
                if "has ended" in error.message:
                    break
                self._simulation.sleep(2_000_000)
        self._simulation.tell("client", f"{self.name} is submitted" + (f" from {savepoint}" if savepoint else ""))
        self.ended = None
        self._stop_requested = False

    def _savepoint_to_resume(self) -> str | None:
        """The newest savepoint, if the job has ended because of it: its path may have been lost with a leader."""
        if not self._stop_requested or self.workload.is_complete(self._cluster.outside):
            return None
        prefix = f"{SAVEPOINTS}/savepoint-{self.job_id[:6]}-"
        found = [
            path for path in self._cluster.storage.files if path.startswith(prefix) and path.endswith("/_metadata")
        ]
        return found[-1].rpartition("/")[0] if found else None

    def _look(self) -> bool:
        """Whether the job has ended."""
        job_id = self.job_id
        try:
            status: JobStatus = self._cluster.ask(lambda dispatcher: dispatcher.job(job_id).status)
        except JobNotFoundError:
            self.problems.append(f"{self.name}: the leader does not know a job that was accepted")
            self.ended = JobStatus.FAILED
            return True
        except (RequestFailedError, DispatcherClosedError):
            return False
        if status.name != self.status:
            self._simulation.tell("client", f"{self.name} is {status.name}")
            self.status = status.name
            self._running_since = self._simulation.now if status is JobStatus.RUNNING else None
        self._check_progress()
        if not status.is_globally_terminal_state():
            return False
        self.ended = self.known[job_id] = status
        allowed = {JobStatus.FINISHED} | ({JobStatus.CANCELED} if self.cancelled else set())
        if status not in allowed:
            failure = self._ask(lambda dispatcher: dispatcher.job(job_id).failure)
            why = "" if failure is None else f": {failure.message[:300]}"
            self.problems.append(f"{self.name} is {status.name}, though nobody and nothing of its own ended it{why}")
        return True

    def _check_progress(self) -> None:
        """A job that runs takes checkpoints, unless something is wrong; a clock that is set is nothing wrong."""
        since = self._simulation.now - self._allowed_us
        if self._running_since is None or self._running_since > since or not self._faults.quiet_since(since):
            return
        if self._cluster.checkpoints.last_at.get(self.job_id, 0) < since:
            seconds = self._allowed_us // 1_000_000
            self.problems.append(f"{self.name}: it has run for {seconds} s without a checkpoint, but nothing was wrong")
            self._running_since = None  # once is enough

    # -- requests -----------------------------------------------------------------------------------

    def _request_at(self, at_s: float, request: str) -> None:
        simulation = self._simulation
        simulation.sleep(max(0, int(at_s * 1e6) - simulation.now))
        if self.ended is None:
            simulation.tell("client", f"{self.name}: {request}")
            getattr(self, f"_{request}")()

    def _cancel(self) -> None:
        self.cancelled = True
        job_id = self.job_id
        simulation = self._simulation

        def cancel(dispatcher: Dispatcher) -> tuple[Dispatcher, Process]:
            dispatcher.job(job_id).cancel()
            return dispatcher, _this_process(simulation)

        while self.ended is None and self.job_id == job_id:
            # again and again: a new leader does not know of a request that the one before had not dealt with
            try:
                leader, process = self._cluster.ask(cancel)
            except (RequestFailedError, DispatcherClosedError, JobNotFoundError):
                simulation.sleep(1_000_000)
                continue
            waited = 0
            while self.ended is None and process.alive and not _has_heard(leader.job(job_id).status):
                simulation.sleep(_POLL_INTERVAL_US)
                waited = 0 if process.frozen else waited + _POLL_INTERVAL_US
                if waited >= _CANCEL_TIMEOUT_US:
                    status = leader.job(job_id).status.name
                    self.problems.append(f"{self.name}: it is {status} {waited // 1_000_000} s after it was cancelled")
                    return
            if self.ended is None:
                simulation.sleep(10_000_000)

    def _savepoint(self) -> None:
        self._await(lambda runner: runner.trigger_savepoint(SAVEPOINTS))

    def _stop(self) -> None:
        simulation = self._simulation
        self._stop_requested = True
        while self.ended is None:
            asked = simulation.now
            outcome = self._await(lambda runner: runner.stop_with_savepoint(False, SAVEPOINTS))
            if outcome is None:
                return
            self._simulation.tell("client", f"{self.name}: stop failed: {outcome}")
            if self._faults.quiet_since(asked - 120_000_000) and any(text in outcome for text in _RESTARTED):
                self.problems.append(f"{self.name}: it could not be stopped although nothing was wrong: {outcome}")
                return
            simulation.sleep(5_000_000)

    def _rescale(self) -> None:
        graph = self.workload.job_graph
        parallelism = {vertex.id: 1 if vertex.parallelism > 1 else 2 for vertex in graph.vertices}
        job_id = self.job_id
        try:
            self._ask(lambda dispatcher: dispatcher.rescale(job_id, parallelism))
        except FiresteelError as error:
            self._simulation.tell("client", f"{self.name}: rescale failed: {error.message}")

    def _await(self, start: Callable[[Any], Future[Any]]) -> str | None:
        """Starts something that takes its time; how it failed."""
        job_id = self.job_id
        simulation = self._simulation

        def begin(dispatcher: Dispatcher) -> tuple[Future[Any], Process]:
            return start(dispatcher.job(job_id).running()), _this_process(simulation)

        try:
            future, process = self._cluster.ask(begin)
        except (RequestFailedError, FiresteelError) as error:
            return str(error)
        while not future.done():
            if not process.alive:
                return "its leader is gone"
            simulation.sleep(_POLL_INTERVAL_US)
        failure = future.exception()
        return None if failure is None else str(failure)


def _has_heard(status: JobStatus) -> bool:
    return status is JobStatus.CANCELLING or status.is_globally_terminal_state()


def _this_process(simulation: Scheduler) -> Process:
    thread = simulation.this_thread()
    assert thread is not None
    return thread.process
