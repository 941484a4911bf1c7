"""Threads around a slot's mailbox: JobMaster messages, heartbeats, the memory budget, and interrupts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from firesteel.common.errors import TaskFailure
from firesteel.config import scheduler_options
from firesteel.config.configuration import Configuration
from firesteel.runtime.model import messages
from firesteel.runtime.model.deployment import TaskDeploymentDescriptor
from firesteel.runtime.slot.control import ControlConnection
from firesteel.runtime.slot.task_executor import TaskCancelled, TaskExecutor
from firesteel.spark.session.user_output import UserOutput

__all__ = ["JobMasterLiveness", "MemoryBudget", "SlotTimeouts", "SlotWatch", "cpu_milliseconds", "resident_bytes"]

INTERRUPT_AFTER_S = 0.5
"""How long after a cancellation user code that does not return is interrupted, and again after that."""
BUDGET_CHECK_S = 0.2
MAX_WATCH_INTERVAL_S = 1.0
"""How often to look whether the JobMaster is lost, at least."""
LAST_WORDS_S = 0.5
"""How long a process that has exceeded its memory waits, so that its last message gets through."""
FIRST_HEARTBEAT_S = 1.0
EXIT_CODE_GONE = 70
"""The exit code of a process that ends itself: Spark starts a new worker."""
_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """The memory of this process; 0 where it is unknown."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def cpu_milliseconds() -> int:
    """How long this process has computed."""
    return time.process_time_ns() // 1_000_000


class MemoryBudget:
    """The memory limit of a slot's process, and the error when it is exceeded."""

    def __init__(self, limit: int, slot: int, tasks: Sequence[TaskDeploymentDescriptor]):
        self._limit = limit
        self._slot = slot
        self._tasks = [task.name_with_subtask for task in tasks]

    def exceeded_by(self, used: int) -> TaskFailure | None:
        """Why the job fails, if that is more than the budget."""
        if used <= self._limit:
            return None
        text = (
            f"Slot {self._slot} (pid {os.getpid()}) uses {used >> 20} MB, more than its budget of "
            f"{self._limit >> 20} MB (taskmanager.memory.slot.size). It runs: {', '.join(self._tasks)}."
        )
        return TaskFailure(
            text,
            error_type="SlotMemoryExceeded",
            hint="Raise taskmanager.memory.slot.size, spread the job over more slots, or keep less in memory: the "
            "rocksdb state backend keeps state on disk.",
        )


@dataclass(frozen=True)
class SlotTimeouts:
    """All times in seconds."""

    heartbeat_interval: float
    """How often the slot sends a heartbeat, which the JobMaster answers."""
    heartbeat_timeout: float
    """After that time without a message the JobMaster is taken for lost."""
    cancellation: float
    """How long tasks may take to cancel; 0 for ever."""

    @classmethod
    def of(cls, configuration: Configuration) -> SlotTimeouts:
        """The timeouts from the job's configuration. Several heartbeats fit into the timeout, however it is set.

        >>> config = Configuration().set_string("heartbeat.timeout", "6 s")
        >>> SlotTimeouts.of(config).heartbeat_interval
        1.5
        """
        timeout = configuration.get(scheduler_options.HEARTBEAT_TIMEOUT).to_millis() / 1000
        interval = configuration.get(scheduler_options.HEARTBEAT_INTERVAL).to_millis() / 1000
        cancellation = configuration.get(scheduler_options.TASK_CANCELLATION_TIMEOUT).to_millis() / 1000
        return cls(min(interval, timeout / 4), timeout, cancellation)


class JobMasterLiveness:
    """Whether messages of the JobMaster have arrived lately. May be used from any thread."""

    def __init__(self, timeout_s: float, monotonic: Callable[[], float] = time.monotonic):
        self.timeout_s = timeout_s
        self._monotonic = monotonic
        self._heard_at = monotonic()

    def heard(self) -> None:
        """A message of the JobMaster has come."""
        self._heard_at = self._monotonic()

    @property
    def is_lost(self) -> bool:
        """Whether nothing has come for the timeout."""
        return self._monotonic() - self._heard_at >= self.timeout_s


class SlotWatch:
    """Runs while the slot does.

    A slot must not outlive its JobMaster: another one may have taken the job over and run it from its last checkpoint.
    If the connection ends, the tasks are cancelled. If it does not, because the JobMaster's process is frozen or the
    network drops its packets, no message arrives for ``heartbeat.timeout``; then the process ends at once. The thread
    that decides so sends no heartbeats: to a frozen JobMaster that blocks.
    """

    def __init__(
        self,
        executor: TaskExecutor,
        control: ControlConnection,
        output: UserOutput,
        attempt: int,
        slot: int,
        timeouts: SlotTimeouts,
        budget: MemoryBudget | None = None,
    ):
        self._executor = executor
        self._control = control
        self._output = output
        self._attempt = attempt
        self._slot = slot
        self._timeouts = timeouts
        self._liveness = JobMasterLiveness(timeouts.heartbeat_timeout)
        self._budget = budget
        self._over = threading.Event()
        self._wake = threading.Event()
        self._main = threading.main_thread().ident
        self._threads = [
            threading.Thread(target=self._watch, name="firesteel-slot-watch", daemon=True),
            threading.Thread(target=self._beat, name="firesteel-slot-heartbeat", daemon=True),
        ]

    def __enter__(self) -> None:
        self._handler = signal.signal(signal.SIGUSR1, self._interrupt)
        self._control.start(self._on_message, self._on_lost, "firesteel-slot-control")
        self._liveness.heard()
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_exception: object) -> None:
        self._over.set()
        self._wake.set()
        for thread in self._threads:
            thread.join(5.0)
        signal.signal(signal.SIGUSR1, self._handler)

    def _on_message(self, message: messages.JobMasterMessage) -> None:
        self._liveness.heard()
        if isinstance(message, messages.HeartbeatReceived) or self._output.acknowledge(message):
            return
        self._executor.deliver(message)
        if isinstance(message, messages.CancelSlot):
            self._wake.set()

    def _on_lost(self, reason: str) -> None:
        self._executor.deliver(messages.CancelSlot(f"the connection to the JobMaster was lost: {reason}"))
        self._wake.set()

    def _watch(self) -> None:
        cancelled_at: float | None = None
        interval = (
            BUDGET_CHECK_S
            if self._budget is not None
            else min(MAX_WATCH_INTERVAL_S, self._timeouts.heartbeat_timeout / 4)
        )
        while not self._over.is_set():
            if self._liveness.is_lost:
                _end_process(f"No heartbeat from the JobMaster for {self._liveness.timeout_s:g} s")
            self._check_memory()
            if self._executor.cancel_requested:
                cancelled_at = cancelled_at or time.monotonic()
                if self._over.wait(INTERRUPT_AFTER_S):
                    return
                self._interrupt_main(cancelled_at)
            elif self._wake.wait(interval):
                self._wake.clear()

    def _beat(self) -> None:
        interval = self._timeouts.heartbeat_interval
        wait = min(FIRST_HEARTBEAT_S, interval)
        while not self._over.wait(wait):
            now = time.time_ns() // 1_000_000
            try:
                self._output.tell_left_out()
                self._control.send(
                    messages.Heartbeat(self._attempt, self._slot, now, resident_bytes(), cpu_milliseconds())
                )
            except ConnectionError:
                return
            wait = interval

    def _interrupt_main(self, cancelled_at: float) -> None:
        if 0 < self._timeouts.cancellation < time.monotonic() - cancelled_at:
            _end_process(f"The tasks did not end within {self._timeouts.cancellation:g} s, and cannot be interrupted")
        if self._main is not None:
            signal.pthread_kill(self._main, signal.SIGUSR1)

    def _check_memory(self) -> None:
        """Fails the job and ends this process, which would not give the memory back: the next attempt gets another."""
        failure = None if self._budget is None else self._budget.exceeded_by(resident_bytes())
        if failure is None:
            return
        with suppress(ConnectionError):
            self._control.send(messages.SlotFailed(self._attempt, self._slot, failure))
        time.sleep(LAST_WORDS_S)
        _end_process("The process has used up its memory budget")

    def _interrupt(self, _signal: int, _frame: Any) -> None:
        if self._executor.cancel_requested and not self._over.is_set():
            raise TaskCancelled("interrupted")


def _end_process(why: str) -> NoReturn:
    """Ends this process at once: no function, sink or exit handler gets to do anything more."""
    with suppress(OSError):  # sys.stderr leads to the client
        os.write(2, f"{why}: the slot's process ends.\n".encode())
    os._exit(EXIT_CODE_GONE)
