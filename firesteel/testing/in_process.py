"""Runs a job's tasks in a thread of this process, without Spark: for tests that take milliseconds.

It is the same JobMaster, the same tasks and the same channels with the same credits. Each slot gets its own copy of
every function, and records that cross from one slot to another are really pickled, so a job that only works because
its subtasks share memory fails here too.
"""

from __future__ import annotations

import os
import threading

import cloudpickle

from firesteel.common.configuration import Configuration
from firesteel.common.errors import TaskFailure
from firesteel.common.job_client import JobClient
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.deployment import create_deployment
from firesteel.jobmaster.events import AttemptEnded, MessageReceived, SlotLost
from firesteel.jobmaster.host import Attempt, Post
from firesteel.jobmaster.runner import JobMasterRunner
from firesteel.runtime import messages
from firesteel.runtime.failure import describe_failure
from firesteel.runtime.mailbox import Clock, IdlePoller, SystemClock
from firesteel.runtime.task_executor import TaskExecutor
from firesteel.runtime.wiring import Wiring

__all__ = ["InProcessExecutor", "InProcessHost"]

_HOST = "localhost"


class InProcessHost:
    """Hosts all slots of an attempt in one thread."""

    def __init__(self, clock: Clock | None = None):
        self._clock = clock or SystemClock()
        self._executor: TaskExecutor | None = None
        self._thread: threading.Thread | None = None

    def start(self, attempt: Attempt, post: Post) -> None:
        """Starts the attempt's thread."""
        slots = {
            slot: create_deployment(cloudpickle.loads(attempt.serialized_job), attempt.number)[slot]
            for slot in range(attempt.slots)
        }
        poller = IdlePoller()
        self._executor = TaskExecutor(
            slots,
            _Gateway(post),
            poller,
            self._clock,
            Wiring(slots, attempt.job_graph.configuration),
            attempt=attempt.number,
            host=_HOST,
        )
        self._thread = threading.Thread(
            target=self._run, args=(attempt, self._executor, post), name="firesteel-in-process", daemon=True
        )
        self._thread.start()

    def _run(self, attempt: Attempt, executor: TaskExecutor, post: Post) -> None:
        failure: TaskFailure | None = None
        try:
            for slot in range(attempt.slots):
                register = messages.RegisterSlot(attempt.number, slot, _HOST, (_HOST, 0), os.getpid())
                post(MessageReceived(slot, register))
            executor.run()
        except BaseException as error:  # noqa: BLE001 - the JobMaster must hear of it
            failure = describe_failure(error)
        for slot in range(attempt.slots):
            post(SlotLost(attempt.number, slot))
        post(AttemptEnded(attempt.number, failure))

    def send(self, attempt: int, slot: int, message: messages.JobMasterMessage) -> None:
        """Puts a message into the mailbox; slot-wide messages count once, for the first slot."""
        slot_wide = (messages.Deploy, messages.CancelSlot, messages.Shutdown)
        if self._executor is not None and (slot == 0 or not isinstance(message, slot_wide)):
            self._executor.deliver(message)

    def kill(self, attempt: int, reason: str) -> None:
        """A thread cannot be killed: it is asked again."""
        if self._executor is not None:
            self._executor.deliver(messages.CancelSlot(reason))

    def close(self) -> None:
        """Waits for the thread, which has nothing left to do."""
        if self._thread is not None:
            self._thread.join(5.0)


class _Gateway:
    """Hands messages to the JobMaster's queue."""

    def __init__(self, post: Post):
        self._post = post

    def send(self, message: messages.SlotMessage) -> None:
        """Posts the message as if it had come over a connection."""
        self._post(MessageReceived(getattr(message, "slot_index", 0), message))


class InProcessExecutor:
    """A PipelineExecutor for tests: ``env._executor = InProcessExecutor()``, or use ``testing.test_environment``."""

    def __init__(self, clock: Clock | None = None):
        self._clock = clock

    def execute(self, job_graph: JobGraph, configuration: Configuration) -> JobClient:
        """Starts the job."""
        runner = JobMasterRunner(job_graph, InProcessHost(self._clock))
        runner.start()
        return JobClient(runner)
