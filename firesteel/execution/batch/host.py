"""AttemptHost for batch execution: simulates all slots for the JobMaster and runs the stages with a StageRunner."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from firesteel.common.errors import FiresteelError, HostError
from firesteel.execution.batch.results import BatchResults
from firesteel.execution.batch.split_collection import SplitCollection
from firesteel.execution.stages.played_slots import AttemptOver, PlayedSlots, PlayedSlotsHost, load_job_graph
from firesteel.execution.stages.stage_graph import stage_descriptors
from firesteel.execution.stages.stage_runner import StageError, StageMessage, StageRunner
from firesteel.execution.stages.task_commands import BatchCommand, BatchReport
from firesteel.graph.rescaling import limit_parallelism
from firesteel.graph.slots import assign_slots
from firesteel.jobmaster.client_channels import PRINT_CHANNEL
from firesteel.jobmaster.model.host import Attempt, Post
from firesteel.process.concurrency import SYSTEM, Concurrency
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model.messages import (
    Accumulators,
    AddSplits,
    ClientPayload,
    Deploy,
    JobMasterMessage,
    NoMoreSplits,
    Shutdown,
    SlotMessage,
    TaskKey,
    TaskStateChanged,
)

__all__ = ["BatchHost"]

MAX_RETRIES = 3
"""How often a run that no task is to blame for is tried again before the attempt fails."""
SPLITS_TIMEOUT_S = 300.0
_log = logging.getLogger(__name__)
_STATES = ("INITIALIZING", "RUNNING", "FINISHED")


class BatchHost(PlayedSlotsHost["_BatchAttempt"]):
    """The AttemptHost of batch jobs.

    An attempt goes through these steps:

    1. Every slot registers, and deploys: there are as many as the job requests, as no process waits in them.
    2. The splits of all sources are collected from their enumerators.
    3. The runner runs all stages. If it fails and no task has reported a failure (a lost executor), it is called again,
       up to three times, and continues with what had finished. A failure that a task has reported is sent to the
       JobMaster, whose restart strategy decides.
    4. What the sinks prepared is committed, only here. If that fails and the job is restarted, the next
       attempt does only this, with the same committables: what the failed commit had done counts. Should this process
       itself die in between, nothing is known of it: what a new run of the program writes comes beside what had been
       committed.
    5. The client gets what was collected and printed, the JobMaster accumulators and metrics, and all tasks have
       FINISHED.
    6. On shutdown, every slot stops.
    """

    def __init__(
        self,
        runner: StageRunner,
        *,
        splits_timeout_s: float = SPLITS_TIMEOUT_S,
        concurrency: Concurrency = SYSTEM,
    ):
        super().__init__(runner, concurrency)
        self._splits_timeout_s = splits_timeout_s
        self.results: BatchResults | None = None
        """What came of the stages, once they have all run."""

    def _create(self, attempt: Attempt, post: Post, predecessor: _BatchAttempt | None) -> _BatchAttempt:
        return _BatchAttempt(self, attempt, post, predecessor)


class _BatchAttempt(PlayedSlots):
    """One attempt."""

    def __init__(self, host: BatchHost, attempt: Attempt, post: Post, predecessor: _BatchAttempt | None) -> None:
        super().__init__(attempt, post, host._runner, predecessor, host._concurrency, "firesteel-batch")
        self._host = host
        self._attempt = attempt
        self._splits_timeout_s = host._splits_timeout_s
        self._mails: deque[JobMasterMessage] = deque()
        self._states: dict[TaskKey, str] = {}
        self._lock = threading.Lock()
        self._stopped: Mapping[int, Accumulators] = {}

    def _take(self, slot: int, message: JobMasterMessage) -> None:
        with self._changed:
            self._mails.append(message)
            self._changed.notify_all()

    # -- the steps ----------------------------------------------------------------------------------

    def _play(self) -> None:
        self._job_graph = load_job_graph(self._attempt)
        self._assignment = assign_slots(self._job_graph)
        self._start_slots()
        try:
            results = self._execute()
            results.commit(self._job_graph)
            self._stopped = self._publish(results)
            self._next_mail(Shutdown)
        except (HostError, AttemptOver):
            raise
        except Exception as error:  # noqa: BLE001 - for any error the JobMaster decides what follows
            self._check_ended()
            self._fail(error)
            self._await_end()

    def _accumulators(self) -> Mapping[int, Accumulators]:
        return self._stopped

    def _start_slots(self) -> None:
        """Step 1."""
        self._register()
        for _ in range(self._slots):
            self._next_mail(Deploy)
        for vertex in self._job_graph.vertices:
            if vertex.is_source:
                for subtask in range(vertex.parallelism):
                    self._advance((vertex.id, subtask), "RUNNING")

    def _execute(self) -> BatchResults:
        """Steps 2 and 3, unless an earlier attempt has done them."""
        if self._host.results is None:
            splits = self._collect_splits()
            descriptors = stage_descriptors(self._job_graph, self.number)
            commands = {key: BatchCommand(descriptor, splits.get(key, ())) for key, descriptor in descriptors.items()}
            reports = self._run_stages(commands)
            self._host.results = BatchResults([report for report in reports if isinstance(report, BatchReport)])
        self._check_ended()
        return self._host.results

    def _collect_splits(self) -> dict[TaskKey, tuple[Any, ...]]:
        """Step 2."""
        collection = SplitCollection(self._job_graph, self.number, self._send_of)
        collection.begin()
        while not collection.is_complete:
            if not self._mails:
                collection.ask()
            answer = self._next_mail((AddSplits, NoMoreSplits), self._splits_timeout_s)
            if answer is None:
                raise FiresteelError(
                    f"For {self._splits_timeout_s:g} s there was neither a split nor the end of them from source "
                    f"{collection.waiting()}.",
                    hint="A batch starts when all splits are assigned: the source's enumerator must call "
                    "signal_no_more_splits for each reader, including readers without splits.",
                )
            collection.accept(answer)
        return collection.splits()

    def _run_stages(self, commands: Mapping[TaskKey, BatchCommand]) -> Sequence[StageMessage]:
        """Step 3."""
        job_graph = limit_parallelism(self._attempt.job_graph, self._slots)
        if hasattr(self._runner, "on_task_state"):
            self._runner.on_task_state = self._on_task_state
        retries = 0
        while True:
            try:
                with self._running_stages():
                    return self._runner.run_batch(job_graph, commands)
            except StageError as error:
                self._check_ended()
                if error.messages or retries == MAX_RETRIES:
                    raise
                retries += 1
                _log.warning("Job '%s' resumes with its finished stages: %s", job_graph.job_name, error.message)

    def _publish(self, results: BatchResults) -> dict[int, Accumulators]:
        """Step 5; returns the accumulators of each slot."""
        if not results.is_delivered:
            results.is_delivered = True
            for slot, payload in results.client_payloads(self.number, self._slot_of):
                self._send(slot, payload)
        accumulators = {}
        for report in results.metric_reports(self.number, self._slots, self._slot_of):
            accumulators[report.slot_index] = report.accumulators
            self._send(report.slot_index, report)
        for vertex in self._job_graph.vertices:
            for state in ("RUNNING", "FINISHED"):
                for subtask in range(vertex.parallelism):
                    self._advance((vertex.id, subtask), state)
        return accumulators

    # -- failures -----------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """Sends the failed task's report, or else the error known here."""
        told = False
        for message in error.messages if isinstance(error, StageError) else ():
            if isinstance(message, ClientPayload) and message.channel.startswith(PRINT_CHANNEL):
                self._send(message.subtask, replace(message, attempt=self.number))
            elif isinstance(message, TaskStateChanged) and message.state == "FAILED":
                self._tell_failure(message)
                told = True
        if not told:
            vertex_id = self._job_graph.vertices[0].id
            self._tell_failure(TaskStateChanged(self.number, vertex_id, 0, "FAILED", describe_failure(error)))

    def _tell_failure(self, message: TaskStateChanged) -> None:
        key = message.vertex_id, message.subtask % self._job_graph.vertex(message.vertex_id).parallelism
        if self._states.get(key) == "FINISHED":
            # it had to run again, or was not the one that failed: a task that has not finished fails in its place
            key = next(
                (vertex.id, subtask)
                for vertex in self._job_graph.vertices
                for subtask in range(vertex.parallelism)
                if self._states.get((vertex.id, subtask)) != "FINISHED"
            )
        self._send_of(key, replace(message, attempt=self.number, vertex_id=key[0], subtask=key[1]))

    # -- between the JobMaster and here ---------------------------------------------------------------

    def _on_task_state(self, key: TaskKey, state: str) -> None:
        """The runner reports a task's progress. Results of the last stages are not final before they are committed."""
        if state != "FINISHED" or self._job_graph.vertex(key[0]).output_edges:
            self._advance(key, state)

    def _advance(self, key: TaskKey, state: str) -> None:
        """Reports a task's state to the JobMaster, unless a later one was reported: tasks may have to run again."""
        with self._lock:
            reached = _STATES.index(self._states[key]) if key in self._states else -1
            for following in _STATES[reached + 1 : _STATES.index(state) + 1]:
                self._states[key] = following
                self._send_of(key, TaskStateChanged(self.number, *key, following))

    def _next_mail(self, kind: Any, timeout_s: float | None = None) -> Any:
        """The next message of a kind; None if there is none for so long. Raises once the attempt is to end."""
        deadline = None if timeout_s is None else self._concurrency.monotonic() + timeout_s
        with self._changed:
            while True:
                self._check_ended()
                while self._mails:
                    message = self._mails.popleft()
                    if isinstance(message, kind):
                        return message
                left_s = None if deadline is None else deadline - self._concurrency.monotonic()
                if left_s is not None and left_s <= 0:
                    return None
                self._wait(left_s)

    def _await_end(self) -> NoReturn:
        with self._changed:
            while True:
                self._wait(None)

    def _slot_of(self, vertex_id: str, subtask: int) -> int:
        """A stage that reads a DataFrame may have more tasks than the vertex has subtasks."""
        return self._assignment.slot_of(vertex_id, subtask % self._job_graph.vertex(vertex_id).parallelism)

    def _send_of(self, key: TaskKey, message: SlotMessage) -> None:
        self._send(self._slot_of(*key), message)
