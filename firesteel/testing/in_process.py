"""Runs a job's tasks in a thread of this process, without Spark: for tests that take milliseconds.

It is the same JobMaster, the same tasks and the same channels with the same credits. Each slot gets its own copy of
every function, and records that cross from one slot to another are really pickled, so a job that only works because
its subtasks share memory fails here too.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from weakref import WeakSet

import cloudpickle

from firesteel.common.errors import TaskFailure
from firesteel.common.job_client import JobClient
from firesteel.config.configuration import Configuration
from firesteel.execution.batch.host import BatchHost
from firesteel.execution.epochs.host import EpochHost
from firesteel.execution.stages.played_slots import UNLIMITED_SLOTS
from firesteel.filesystem.stores import current_stores
from firesteel.graph.deployment import Deployment
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.rescaling import limit_parallelism
from firesteel.jobmaster.model.events import AttemptEnded, MessageReceived, SlotLost, SlotsAvailable
from firesteel.jobmaster.model.host import Attempt, AttemptHost, Post
from firesteel.jobmaster.shell.job_preparation import prepare_job
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.process.concurrency import SYSTEM, Concurrency
from firesteel.runtime.codegen.inlining import register_inline_expressions
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model import messages
from firesteel.runtime.model.assigned_state import TaskRestore
from firesteel.runtime.model.deployment import TaskDeploymentDescriptor
from firesteel.runtime.slot.artifacts import importable
from firesteel.runtime.slot.mailbox import Clock, IdlePoller, ProcessClock
from firesteel.runtime.slot.task_executor import TaskExecutor
from firesteel.runtime.slot.wiring import Wiring
from firesteel.testing.clock import FakeClock
from firesteel.testing.stages import InProcessStageRunner

__all__ = ["InProcessExecutor", "InProcessHost"]

_HOST = "localhost"
_SLOT_WIDE = (
    messages.CancelSlot,
    messages.Shutdown,
    messages.NotifyCheckpointComplete,
    messages.NotifyCheckpointAborted,
)
_SETTLE_TIMEOUT_S = 60.0
_SETTLE_INTERVAL_S = 0.0005


class InProcessHost:
    """Hosts all slots of an attempt in one thread. ``slots`` is how many an adaptive job finds there."""

    def __init__(self, clock: Clock | None = None, slots: int = UNLIMITED_SLOTS, concurrency: Concurrency = SYSTEM):
        self._clock = clock or ProcessClock(concurrency)
        self._concurrency = concurrency
        self._slots = slots
        self._post: Post | None = None
        self._attempt: Attempt | None = None
        self._executor: TaskExecutor | None = None
        self._poller: _RestingPoller | None = None
        self._thread: threading.Thread | None = None
        self._restore: dict[messages.TaskKey, TaskRestore] = {}

    def start(self, attempt: Attempt, post: Post) -> None:
        """Starts the attempt's thread."""
        self._restore = {}
        self._attempt = attempt
        slots = {slot: _tasks_in(slot, attempt) for slot in range(attempt.slots)}
        poller = _RestingPoller()
        executor = TaskExecutor(
            slots,
            _Gateway(post),
            poller,
            self._clock,
            Wiring(slots, attempt.job_graph.configuration),
            attempt=attempt.number,
            host=_HOST,
            concurrency=self._concurrency,
        )
        poller.executor = executor
        self._executor, self._poller = executor, poller
        self._thread = threading.Thread(
            target=current_stores().bind(self._run),
            args=(attempt, executor, post),
            name="firesteel-in-process",
            daemon=True,
        )
        self._thread.start()

    def _run(self, attempt: Attempt, executor: TaskExecutor, post: Post) -> None:
        failure: TaskFailure | None = None
        try:
            for slot in range(attempt.slots):
                register = messages.RegisterSlot(attempt.number, slot, _HOST, (_HOST, 0), os.getpid())
                post(MessageReceived(slot, register))
            executor.run()
        except BaseException as error:  # noqa: BLE001 - the JobMaster must be notified
            failure = describe_failure(error)
        for slot in range(attempt.slots):
            post(SlotLost(attempt.number, slot))
        post(AttemptEnded(attempt.number, failure))

    def watch_slots(self, post: Post) -> None:
        """Reports how many slots there are, and again with each `set_slots`."""
        self._post = post
        post(SlotsAvailable(self._slots))

    def slots_left(self) -> int | None:
        """A job that is not adaptive gets as many as it requests."""
        return None

    def set_slots(self, slots: int) -> None:
        """Adds slots or takes some away; an attempt that runs in one of those loses it."""
        self._slots = slots
        if self._post is not None:
            self._post(SlotsAvailable(slots))
            if self._attempt is not None:
                for slot in range(slots, self._attempt.slots):
                    self._post(SlotLost(self._attempt.number, slot, "it was taken away"))

    def send(self, attempt: int, slot: int, message: messages.JobMasterMessage) -> None:
        """Puts a message into the mailbox; slot-wide messages count once, for the first slot."""
        if self._executor is None or not self._is_current(attempt):
            return
        if isinstance(message, messages.Deploy):
            self._restore.update(message.restore)
            if slot == message.slots_total - 1:
                self._executor.deliver(replace(message, restore=dict(self._restore)))
        elif slot == 0 or not isinstance(message, _SLOT_WIDE):
            self._executor.deliver(message)

    def kill(self, attempt: int, reason: str) -> None:
        """A thread cannot be killed: it is asked again."""
        if self._executor is not None and self._is_current(attempt):
            self._executor.deliver(messages.CancelSlot(reason))

    def _is_current(self, attempt: int) -> bool:
        """Whether a call is for the attempt that was started last; calls for another one may be late."""
        return self._attempt is not None and self._attempt.number == attempt

    def wakeup(self) -> None:
        """Has the mailbox look at the clock again."""
        if self._poller is not None:
            self._poller.wakeup()

    def rests(self) -> int | None:
        """While the mailbox waits with nothing left to do: how often it has done so; None while it works."""
        return None if self._poller is None else self._poller.rests()

    def is_current_thread(self) -> bool:
        """Whether the caller is a function of the job itself."""
        return self._thread is threading.current_thread()

    def close(self) -> None:
        """Waits for the thread, which has nothing left to do, unless the JobMaster itself has failed."""
        if self._thread is not None and self._executor is not None:
            self._executor.deliver(messages.CancelSlot("the job is over", job_is_over=True))
            self._thread.join(5.0)


def _tasks_in(slot: int, attempt: Attempt) -> list[TaskDeploymentDescriptor]:
    """A slot's tasks, with copies of their functions that no other slot has."""
    with importable(attempt.artifacts):
        job_graph = limit_parallelism(cloudpickle.loads(attempt.serialized_job), attempt.slots)
    register_inline_expressions(job_graph.inline_expressions)
    return Deployment(job_graph, attempt.number).tasks_in(slot)


class _RestingPoller(IdlePoller):
    """Also reports to other threads whether the mailbox is idle."""

    def __init__(self) -> None:
        super().__init__()
        self.executor: TaskExecutor | None = None
        self._lock = threading.Lock()
        self._resting = False
        self._rests = 0

    def poll(self, timeout_s: float) -> bool:
        """Waits for a wakeup; that is a rest unless records are still on their way."""
        if timeout_s <= 0:
            return True
        assert self.executor is not None
        with self._lock:
            # a wakeup that came before the wait must not be taken for a rest
            self._resting = not self._wake.is_set() and not self.executor.has_unsent_records
            self._rests += self._resting
        super().poll(timeout_s)
        with self._lock:
            self._resting = False
        return True

    def wakeup(self) -> None:
        """Ends a wait."""
        with self._lock:
            self._resting = False
            super().wakeup()

    def rests(self) -> int | None:
        """The number of the present rest, None if there is none."""
        with self._lock:
            return self._rests if self._resting else None


class _InProcessJob:
    """A running job as a fake clock sees it."""

    def __init__(self, runner: JobMasterRunner, host: InProcessHost | EpochHost):
        self._runner = runner
        self._host = host

    def wakeup(self) -> None:
        """The time has changed."""
        self._host.wakeup()

    def settle(self) -> None:
        """Waits until neither the mailbox nor the JobMaster has anything to do."""
        if self._host.is_current_thread():
            raise RuntimeError("A function of the job cannot move the job's own clock: move it in the test.")
        deadline = time.monotonic() + _SETTLE_TIMEOUT_S
        while not self._is_settled():
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"The job did not come to rest within {_SETTLE_TIMEOUT_S:g} s: a source that never pauses, or "
                    "a function that does not return? A FakeClock is for sources that wait, like TestingSource."
                )
            time.sleep(_SETTLE_INTERVAL_S)

    def _is_settled(self) -> bool:
        if self._runner.status().is_globally_terminal_state():
            return True
        # idle before and after: in between the mailbox cannot have got anything
        rest = self._host.rests()
        return rest is not None and not self._runner.has_pending_events and self._host.rests() == rest


class _Gateway:
    """Hands messages to the JobMaster's queue."""

    def __init__(self, post: Post):
        self._post = post

    def send(self, message: messages.SlotMessage) -> None:
        """Posts the message as if it had come over a connection."""
        self._post(MessageReceived(getattr(message, "slot_index", 0), message))


class InProcessExecutor:
    """A PipelineExecutor for tests: ``env._executor = InProcessExecutor()``, or use ``testing.test_environment``.

    ``slots`` and `set_slots` are for jobs with the adaptive scheduler; others always get as many as they request.
    ``create_stages`` makes what runs the stages of a batch job or of one that runs in epochs.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        slots: int = UNLIMITED_SLOTS,
        create_stages: Callable[[], InProcessStageRunner] = InProcessStageRunner,
        concurrency: Concurrency = SYSTEM,
    ):
        self._clock = clock
        self._concurrency = concurrency
        self._slots = slots
        self._create_stages = create_stages
        # a host lives as long as its job: nothing of it is to be kept here
        self._hosts: WeakSet[InProcessHost] = WeakSet()

    def set_slots(self, slots: int) -> None:
        """How many slots each job finds from now on; one that runs in more of them loses some."""
        self._slots = slots
        for host in list(self._hosts):
            host.set_slots(slots)

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Starts the job."""
        host, clocked = self._create_host(job_graph)
        runner = JobMasterRunner(prepare_job(job_graph, single_host=True), host, concurrency=self._concurrency)
        runner.start()
        clock = self._clock
        if clocked is not None and isinstance(clock, FakeClock):
            job = _InProcessJob(runner, clocked)
            clock.follow(job)
            runner.result_future().add_done_callback(lambda _result: clock.unfollow(job))
        return JobClient(runner)

    def _create_host(self, job_graph: JobGraph) -> tuple[AttemptHost, InProcessHost | EpochHost | None]:
        """The host, and again as one that waits for a clock, if it does."""
        kind = job_graph.execution.kind
        if kind is JobExecution.PIPELINED:
            host = InProcessHost(self._clock, self._slots, self._concurrency)
            self._hosts.add(host)
            return host, host
        stages = self._create_stages()
        stages.clock = self._clock or ProcessClock(self._concurrency)
        if kind is JobExecution.BATCH:
            return BatchHost(stages, concurrency=self._concurrency), None
        epochs = EpochHost(stages, self._clock, self._concurrency)
        return epochs, epochs
