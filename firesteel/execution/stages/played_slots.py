"""Simulated slots: hosts that run tasks as stages answer for all slots of an attempt to the JobMaster."""

from __future__ import annotations

import os
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, TypeVar

import cloudpickle

from firesteel.common.errors import HostError, TaskFailure
from firesteel.config import scheduler_options
from firesteel.execution.stages.stage_runner import StageRunner
from firesteel.filesystem.stores import current_stores
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.rescaling import limit_parallelism
from firesteel.jobmaster.model.events import AttemptEnded, MessageReceived, SlotsAvailable
from firesteel.jobmaster.model.host import Attempt, Post
from firesteel.jobmaster.shell.host_calls import host_failure
from firesteel.process.concurrency import SYSTEM, BackgroundThread, Concurrency, Condition
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model.messages import (
    Accumulators,
    CancelSlot,
    Heartbeat,
    HeartbeatReceived,
    JobMasterMessage,
    RegisterSlot,
    SendBeforeBarrier,
    SlotMessage,
    SlotStopped,
)
from firesteel.runtime.slot.artifacts import importable

__all__ = ["UNLIMITED_SLOTS", "AttemptOver", "PlayedSlots", "PlayedSlotsHost", "load_job_graph"]

UNLIMITED_SLOTS = 2**31 - 1
_CANCEL_INTERVAL_S = 0.2
_PREDECESSOR_TIMEOUT_S = 60.0
"""How long an attempt waits for the end of a run that the one before it has left."""


class AttemptOver(Exception):
    """The JobMaster has ended the attempt, or the attempt has failed and the JobMaster has the reason."""


class PlayedSlots(ABC):
    """The slots of one attempt, all played by one thread; a second thread sends their heartbeats.

    What the JobMaster's thread and a clock's touch is under the lock of ``_changed``.
    """

    def __init__(
        self,
        attempt: Attempt,
        post: Post,
        runner: StageRunner,
        predecessor: PlayedSlots | None,
        concurrency: Concurrency,
        name: str,
    ):
        self.number = attempt.number
        self._slots = attempt.slots
        self._post = post
        self._runner = runner
        self._predecessor = predecessor
        self._concurrency = concurrency
        self._name = name
        self._heartbeat_s = _heartbeat_interval_s(attempt.job_graph)
        self._changed = Condition(concurrency)
        self._ended: str | None = None
        """Why the attempt is to end."""
        self._runs_stages = False
        self._failed_slots: set[int] = set()
        self._stirred = concurrency.event()
        """The attempt is over, or a run is to be cancelled."""
        self._over = concurrency.event()
        self._threads: list[BackgroundThread] = []
        self._thread_id: int | None = None

    # -- called from other threads ------------------------------------------------------------------

    def start(self) -> None:
        self._threads = [
            self._concurrency.start(current_stores().bind(self._run), name=self._name),
            self._concurrency.start(self._beat, name=f"{self._name}-heartbeat"),
        ]

    def join(self, timeout_s: float) -> None:
        for thread in self._threads:
            thread.join(timeout_s)

    @property
    def is_alive(self) -> bool:
        """Whether any of its threads runs."""
        return any(thread.is_alive() for thread in self._threads)

    @property
    def runs(self) -> bool:
        """Whether the thread that plays the slots has not ended."""
        return self._threads[0].is_alive()

    def is_current_thread(self) -> bool:
        """Whether the caller runs in the attempt's thread."""
        return self._thread_id == threading.get_ident() and self.runs

    def deliver(self, slot: int, message: JobMasterMessage) -> None:
        """Takes a message for a slot."""
        if isinstance(message, CancelSlot):
            self.cancel(message.reason)
        else:
            self._take(slot, message)

    def cancel(self, reason: str) -> None:
        """Ends the attempt soon."""
        with self._changed:
            self._ended = self._ended or reason
            self._changed.notify_all()
        self._cancel_run(reason)

    def _cancel_run(self, reason: str) -> None:
        self._stirred.set()
        if self._runs_stages:
            self._runner.cancel(reason)

    # -- what the executions define -------------------------------------------------------------------

    @abstractmethod
    def _take(self, slot: int, message: JobMasterMessage) -> None:
        """Takes a message other than a cancellation; called from the JobMaster's thread."""

    @abstractmethod
    def _play(self) -> None:
        """Does all that the slots do, from `_register` on."""

    @abstractmethod
    def _accumulators(self) -> Mapping[int, Accumulators]:
        """What the slots report when they stop, by slot."""

    def _take_over(self, predecessor: PlayedSlots) -> None:  # noqa: B027 - not all have something to take over
        """Takes over the estimates of the previous attempt."""

    def _close(self, failure: TaskFailure | None) -> None:  # noqa: B027 - not all have something to close
        """Called when the attempt has ended, before the slots stop."""

    def _cancelled_because(self) -> str | None:
        """Why a run that is under way has to end, if it has to."""
        return self._ended

    # -- the attempt's life -------------------------------------------------------------------------

    def _run(self) -> None:
        failure: TaskFailure | None = None
        self._thread_id = threading.get_ident()
        try:
            self._play()
        except AttemptOver:
            pass
        except BaseException as error:  # noqa: BLE001 - the JobMaster must be notified
            failure = host_failure(error) if isinstance(error, HostError) else describe_failure(error)
        self._close(failure)
        self._over.set()
        self._stirred.set()
        if failure is None:
            accumulators = self._accumulators()
            for slot in range(self._slots):
                if slot not in self._failed_slots:
                    self._send(slot, SlotStopped(self.number, slot, accumulators.get(slot, {})))
        self._post(AttemptEnded(self.number, failure))

    def _register(self) -> None:
        """Registers every slot, once nothing of the attempt before runs any more."""
        if self._predecessor is not None:
            self._predecessor.join(_PREDECESSOR_TIMEOUT_S)
            if self._predecessor.runs:
                raise TimeoutError("A run of the previous attempt does not end: a function of the job may hang.")
            self._take_over(self._predecessor)
            self._predecessor = None
        host = socket.gethostname()
        for slot in range(self._slots):
            self._send(slot, RegisterSlot(self.number, slot, host, (host, 0), os.getpid()))

    @contextmanager
    def _running_stages(self) -> Iterator[None]:
        """While the runner runs stages, which a cancellation has to end."""
        with self._changed:
            self._check_ended()
            self._runs_stages = True
        try:
            yield
        finally:
            self._runs_stages = False

    def _wait(self, timeout_s: float | None) -> None:
        """Waits for a message or the clock; to be called with the lock."""
        if self._ended is None:
            self._changed.wait(timeout_s)
        self._check_ended()

    def _check_ended(self) -> None:
        with self._changed:
            if self._ended is not None:
                raise AttemptOver

    def _send(self, slot: int, message: SlotMessage) -> None:
        self._post(MessageReceived(slot, message))

    def _beat(self) -> None:
        """Sends heartbeats, since a stage may take long, and cancels again.

        A run may have been about to begin when it was cancelled first, so that the runner has missed it.
        """
        due = self._concurrency.monotonic() + self._heartbeat_s
        while not self._over.is_set():
            left_s = max(due - self._concurrency.monotonic(), 0.0)
            if not self._stirred.is_set():
                self._stirred.wait(left_s)
            elif not self._over.wait(min(left_s, _CANCEL_INTERVAL_S)):
                self._cancel_again()
            if not self._over.is_set() and self._concurrency.monotonic() >= due:
                due = self._concurrency.monotonic() + self._heartbeat_s
                for slot in range(self._slots):
                    self._send(slot, Heartbeat(self.number, slot, self._concurrency.wall_ms()))

    def _cancel_again(self) -> None:
        with self._changed:
            reason = self._cancelled_because()
            if reason is None:
                self._stirred.clear()
        if reason is not None and self._runs_stages:
            self._runner.cancel(reason)


AttemptT = TypeVar("AttemptT", bound=PlayedSlots)


class PlayedSlotsHost(ABC, Generic[AttemptT]):
    """An AttemptHost that simulates the slots and runs the tasks with a StageRunner."""

    def __init__(self, runner: StageRunner, concurrency: Concurrency = SYSTEM):
        self._runner = runner
        self._concurrency = concurrency
        self._attempts: list[AttemptT] = []
        """Those that have not ended, and the last one."""

    @abstractmethod
    def _create(self, attempt: Attempt, post: Post, predecessor: AttemptT | None) -> AttemptT:
        """Creates the slots of an attempt."""

    @property
    def _current(self) -> AttemptT | None:
        return self._attempts[-1] if self._attempts else None

    def start(self, attempt: Attempt, post: Post) -> None:
        successor = self._create(attempt, post, self._current)
        self._attempts = [*(other for other in self._attempts if other.is_alive), successor]
        successor.start()

    def watch_slots(self, post: Post) -> None:
        """There are always as many slots as the job requests."""
        post(SlotsAvailable(UNLIMITED_SLOTS))

    def slots_left(self) -> int | None:
        """There is no limit."""
        return None

    def send(self, attempt: int, slot: int, message: JobMasterMessage) -> None:
        """Delivers a message to a slot."""
        if isinstance(message, (HeartbeatReceived, SendBeforeBarrier)):
            return  # for slots in processes of their own
        if self._current is not None and self._current.number == attempt:
            self._current.deliver(slot, message)

    def kill(self, attempt: int, reason: str) -> None:
        """Makes the runner end the run."""
        if self._current is not None and self._current.number == attempt:
            self._current.cancel(reason)

    def close(self) -> None:
        """Ends running tasks, and releases the workers."""
        for attempt in self._attempts:
            attempt.cancel("the job is over")
        for attempt in self._attempts:
            attempt.join(10.0)
        self._runner.close()


def load_job_graph(attempt: Attempt) -> JobGraph:
    """The job as it was when it was submitted; the attempt's own graph may hold what only this process can use."""
    with importable(attempt.artifacts):
        return limit_parallelism(cloudpickle.loads(attempt.serialized_job), attempt.slots)


def _heartbeat_interval_s(job_graph: JobGraph) -> float:
    interval = job_graph.configuration.get(scheduler_options.HEARTBEAT_INTERVAL).to_millis()
    timeout = job_graph.configuration.get(scheduler_options.HEARTBEAT_TIMEOUT).to_millis()
    return min(interval, timeout / 4) / 1000
