"""Runs an attempt as one batch: plays all slots towards the JobMaster, and has the stages run by a StageRunner."""

from __future__ import annotations

import logging
import os
import queue
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import cloudpickle

from firesteel.common.errors import FiresteelError, HostError, TaskFailure
from firesteel.config import options
from firesteel.execution.batch.results import BatchResults
from firesteel.execution.batch.split_collection import SplitCollection
from firesteel.execution.stages.orders import BatchOrder, BatchReport
from firesteel.execution.stages.stage_orders import stage_descriptors
from firesteel.execution.stages.stage_runner import StageError, StageMessage, StageRunner
from firesteel.filesystem.stores import current_stores
from firesteel.graph.rescaling import limit_parallelism
from firesteel.graph.slots import assign_slots
from firesteel.jobmaster.client_channels import PRINT_CHANNEL
from firesteel.jobmaster.model.events import AttemptEnded, MessageReceived, SlotsAvailable
from firesteel.jobmaster.model.host import Attempt, Post
from firesteel.jobmaster.shell.host_calls import host_failure
from firesteel.process.concurrency import SYSTEM, BackgroundThread, Concurrency
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model.messages import (
    Accumulators,
    AddSplits,
    CancelSlot,
    ClientPayload,
    Deploy,
    Heartbeat,
    HeartbeatReceived,
    JobMasterMessage,
    NoMoreSplits,
    RegisterSlot,
    SendBeforeBarrier,
    Shutdown,
    SlotMessage,
    SlotStopped,
    TaskKey,
    TaskStateChanged,
)
from firesteel.runtime.slot.artifacts import importable

__all__ = ["BatchHost"]

MAX_RETRIES = 3
"""How often a run that no task is to blame for is tried again before the attempt fails."""
SPLITS_TIMEOUT_S = 300.0
UNLIMITED_SLOTS = 2**31 - 1
_CANCEL_AGAIN_S = 0.2
_PREDECESSOR_S = 60.0
"""How long an attempt waits for the end of a run that the one before it has left."""
_log = logging.getLogger(__name__)
_STATES = ("INITIALIZING", "RUNNING", "FINISHED")


class BatchHost:
    """The AttemptHost of batch jobs.

    An attempt goes through these steps:

    1. Every slot registers, and is told to deploy: there are as many as the job wants, as no process waits in them.
    2. The splits of all sources are collected from their enumerators.
    3. The runner runs all stages. If it fails and no task has an account of it (a lost executor), it is asked again, up
       to three times, and goes on with what had finished. A failure that a task has an account of is told to the
       JobMaster, whose restart strategy decides.
    4. What the sinks prepared is committed, here, and by nobody else. If that fails and the job is restarted, the next
       attempt does only this, with the same committables: what the failed commit had done counts. Should this process
       itself die in between, nothing is known of it: what a new run of the program writes comes beside what had been
       committed.
    5. The client gets what was collected and printed, the JobMaster accumulators and metrics, and all tasks have
       FINISHED.
    6. Told to shut down, every slot stops.
    """

    def __init__(
        self,
        runner: StageRunner,
        *,
        splits_timeout_s: float = SPLITS_TIMEOUT_S,
        concurrency: Concurrency = SYSTEM,
    ):
        self._runner = runner
        self._concurrency = concurrency
        self._splits_timeout_s = splits_timeout_s
        self._current: _BatchAttempt | None = None
        self.results: BatchResults | None = None
        """What came of the stages, once they have all run."""

    def start(self, attempt: Attempt, post: Post) -> None:
        """Starts the attempt's thread."""
        self._current = _BatchAttempt(
            self, self._runner, attempt, post, self._splits_timeout_s, self._current, self._concurrency
        )
        self._current.start()

    def watch_slots(self, post: Post) -> None:
        """There are always as many slots as the job wants."""
        post(SlotsAvailable(UNLIMITED_SLOTS))

    def send(self, attempt: int, slot: int, message: JobMasterMessage) -> None:
        """Takes what the JobMaster says to a slot."""
        if isinstance(message, (HeartbeatReceived, SendBeforeBarrier)):
            return  # for slots in processes of their own
        if self._current is not None and self._current.number == attempt:
            self._current.deliver(message)

    def kill(self, attempt: int, reason: str) -> None:
        """Has the runner end the run."""
        if self._current is not None and self._current.number == attempt:
            self._current.deliver(CancelSlot(reason))

    def close(self) -> None:
        """Ends what still runs, and lets go of the workers."""
        if self._current is not None:
            self._current.deliver(CancelSlot("the job is over", job_is_over=True))
            self._current.join(10.0)
        self._runner.close()


class _Cancelled(Exception):
    """The JobMaster wants the attempt to end."""


class _BatchAttempt:
    """One attempt, in a thread of its own."""

    def __init__(
        self,
        host: BatchHost,
        runner: StageRunner,
        attempt: Attempt,
        post: Post,
        splits_timeout_s: float,
        predecessor: _BatchAttempt | None,
        concurrency: Concurrency,
    ) -> None:
        self.number = attempt.number
        self._host = host
        self._runner = runner
        self._attempt = attempt
        self._slots = attempt.slots
        self._post_event = post
        self._splits_timeout_s = splits_timeout_s
        self._predecessor = predecessor
        self._concurrency = concurrency
        self._mails: queue.Queue[JobMasterMessage] = concurrency.queue()
        self._cancelled: CancelSlot | None = None
        self._runs_stages = False
        self._states: dict[TaskKey, str] = {}
        self._lock = threading.Lock()
        self._over = concurrency.event()
        self._stirred = concurrency.event()
        """The attempt is over, or is to be."""
        self._threads: list[BackgroundThread] = []

    def start(self) -> None:
        """Starts the threads."""
        self._threads = [
            self._concurrency.start(current_stores().bind(self._run), name="firesteel-batch"),
            self._concurrency.start(self._beat, name="firesteel-batch-heartbeat"),
        ]

    def deliver(self, message: JobMasterMessage) -> None:
        """Takes a message; called from the JobMaster's thread."""
        if isinstance(message, CancelSlot):
            self._cancelled = message
            self._stirred.set()
            if self._runs_stages:
                self._runner.cancel(message.reason)
        self._mails.put(message)

    def join(self, timeout_s: float) -> None:
        """Waits for the threads."""
        for thread in self._threads:
            thread.join(timeout_s)

    @property
    def runs(self) -> bool:
        """Whether the thread that runs the stages has not ended."""
        return self._threads[0].is_alive()

    # -- the steps ----------------------------------------------------------------------------------

    def _run(self) -> None:
        failure: TaskFailure | None = None
        stopped: Mapping[int, Accumulators] = {}
        try:
            # as it was when the job was submitted; the attempt's own graph may hold what only this process can use
            with importable(self._attempt.artifacts):
                self._job_graph = limit_parallelism(cloudpickle.loads(self._attempt.serialized_job), self._slots)
            self._assignment = assign_slots(self._job_graph)
            self._register()
            try:
                results = self._execute()
                results.commit(self._job_graph)
                stopped = self._publish(results)
                self._next_mail(Shutdown)
            except HostError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the JobMaster decides what follows
                self._check_cancelled()
                self._fail(error)
                self._next_mail(CancelSlot)
        except _Cancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - the JobMaster must hear of it
            failure = host_failure(error) if isinstance(error, HostError) else describe_failure(error)
        self._over.set()
        self._stirred.set()
        for slot in range(self._slots) if failure is None else ():
            self._post(slot, SlotStopped(self.number, slot, stopped.get(slot, {})))
        self._post_event(AttemptEnded(self.number, failure))

    def _register(self) -> None:
        """Step 1."""
        if self._predecessor is not None:
            self._predecessor.join(_PREDECESSOR_S)
            if self._predecessor.runs:
                raise TimeoutError("A run of the attempt before does not end: does a function of the job hang?")
            self._predecessor = None
        host = socket.gethostname()
        for slot in range(self._slots):
            self._post(slot, RegisterSlot(self.number, slot, host, (host, 0), os.getpid()))
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
            orders = {key: BatchOrder(descriptor, splits.get(key, ())) for key, descriptor in descriptors.items()}
            reports = self._run_stages(orders)
            self._host.results = BatchResults([report for report in reports if isinstance(report, BatchReport)])
        self._check_cancelled()
        return self._host.results

    def _collect_splits(self) -> dict[TaskKey, tuple[Any, ...]]:
        """Step 2."""
        collection = SplitCollection(self._job_graph, self.number, self._post_of)
        collection.begin()
        while not collection.is_complete:
            if self._mails.empty():
                collection.ask()
            answer = self._next_mail((AddSplits, NoMoreSplits), self._splits_timeout_s)
            if answer is None:
                raise FiresteelError(
                    f"For {self._splits_timeout_s:g} s there was neither a split nor the end of them from source "
                    f"{collection.waiting()}.",
                    hint="A batch begins when every split is known: the source's enumerator must call "
                    "signal_no_more_splits for each reader, also for one that gets none.",
                )
            collection.accept(answer)
        return collection.splits()

    def _run_stages(self, orders: Mapping[TaskKey, BatchOrder]) -> Sequence[StageMessage]:
        """Step 3."""
        job_graph = limit_parallelism(self._attempt.job_graph, self._slots)
        if hasattr(self._runner, "on_task_state"):
            self._runner.on_task_state = self._on_task_state
        retries = 0
        self._runs_stages = True
        try:
            while True:
                self._check_cancelled()
                try:
                    return self._runner.run_batch(job_graph, orders)
                except StageError as error:
                    self._check_cancelled()
                    if error.messages or retries == MAX_RETRIES:
                        raise
                    retries += 1
                    _log.warning("Job '%s' goes on with what had finished: %s", job_graph.job_name, error.message)
        finally:
            self._runs_stages = False

    def _publish(self, results: BatchResults) -> dict[int, Accumulators]:
        """Step 5; returns the accumulators of each slot."""
        if not results.is_delivered:
            results.is_delivered = True
            for slot, payload in results.client_payloads(self.number, self._slot_of):
                self._post(slot, payload)
        accumulators = {}
        for report in results.metric_reports(self.number, self._slots, self._slot_of):
            accumulators[report.slot_index] = report.accumulators
            self._post(report.slot_index, report)
        for vertex in self._job_graph.vertices:
            for state in ("RUNNING", "FINISHED"):
                for subtask in range(vertex.parallelism):
                    self._advance((vertex.id, subtask), state)
        return accumulators

    # -- failures -----------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """Tells what the task that failed has to say, or else what is known here."""
        told = False
        for message in error.messages if isinstance(error, StageError) else ():
            if isinstance(message, ClientPayload) and message.channel.startswith(PRINT_CHANNEL):
                self._post(message.subtask, replace(message, attempt=self.number))
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
        self._post_of(key, replace(message, attempt=self.number, vertex_id=key[0], subtask=key[1]))

    # -- between the JobMaster and here ---------------------------------------------------------------

    def _on_task_state(self, key: TaskKey, state: str) -> None:
        """The runner tells how far a task is. What the last stages wrote is not safe before it is committed."""
        if state != "FINISHED" or self._job_graph.vertex(key[0]).output_edges:
            self._advance(key, state)

    def _advance(self, key: TaskKey, state: str) -> None:
        """Tells the JobMaster of a task's state, unless it was further already: tasks may have to run again."""
        with self._lock:
            reached = _STATES.index(self._states[key]) if key in self._states else -1
            for following in _STATES[reached + 1 : _STATES.index(state) + 1]:
                self._states[key] = following
                self._post_of(key, TaskStateChanged(self.number, *key, following))

    def _beat(self) -> None:
        """Keeps the JobMaster sure of the slots, and the runner of a cancellation it may have missed."""
        interval = self._attempt.job_graph.configuration.get(options.HEARTBEAT_INTERVAL).to_millis() / 1000
        while not self._stirred.wait(interval):
            for slot in range(self._slots):
                self._post(slot, Heartbeat(self.number, slot, self._concurrency.wall_ms()))
        while not self._over.wait(_CANCEL_AGAIN_S):
            if self._cancelled is not None and self._runs_stages:
                self._runner.cancel(self._cancelled.reason)

    def _next_mail(self, kind: Any, timeout_s: float | None = None) -> Any:
        """The next message of a kind; None if there is none for so long. Raises once the attempt is cancelled."""
        deadline = None if timeout_s is None else self._concurrency.monotonic() + timeout_s
        while True:
            self._check_cancelled()
            try:
                message = self._mails.get(
                    timeout=None if deadline is None else max(0.0, deadline - self._concurrency.monotonic())
                )
            except queue.Empty:
                return None
            self._check_cancelled()
            if isinstance(message, kind):
                return message

    def _check_cancelled(self) -> None:
        if self._cancelled is not None:
            raise _Cancelled

    def _slot_of(self, vertex_id: str, subtask: int) -> int:
        """A stage that reads a DataFrame may have more tasks than the vertex has subtasks."""
        return self._assignment.slot_of(vertex_id, subtask % self._job_graph.vertex(vertex_id).parallelism)

    def _post_of(self, key: TaskKey, message: SlotMessage) -> None:
        self._post(self._slot_of(*key), message)

    def _post(self, slot: int, message: SlotMessage) -> None:
        self._post_event(MessageReceived(slot, message))
