"""Threads around a slot's mailbox: what the JobMaster says, heartbeats, the memory budget, and interrupts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firesteel.common.errors import TaskFailure
from firesteel.runtime import messages
from firesteel.runtime.control import ControlConnection
from firesteel.runtime.deployment import TaskDeploymentDescriptor
from firesteel.runtime.task_executor import TaskCancelled, TaskExecutor
from firesteel.spark.user_output import UserOutput

__all__ = ["MemoryBudget", "SlotWatch", "cpu_milliseconds", "resident_bytes"]

INTERRUPT_AFTER_S = 0.5
"""How long after a cancellation user code that does not return is interrupted, and again after that."""
BUDGET_CHECK_S = 0.2
LAST_WORDS_S = 0.5
"""How long a process that has used up its memory stays, so that what it said last gets through."""
FIRST_HEARTBEAT_S = 1.0
GONE = 70
"""The exit code of a process that ends itself: Spark starts a new worker."""
_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """The memory that this process has; 0 where the system does not tell."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def cpu_milliseconds() -> int:
    """How long this process has computed."""
    return time.process_time_ns() // 1_000_000


class MemoryBudget:
    """How much memory a slot's process may have, and what is said when it has more."""

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


class SlotWatch:
    """Runs while the slot does."""

    def __init__(
        self,
        executor: TaskExecutor,
        control: ControlConnection,
        output: UserOutput,
        attempt: int,
        slot: int,
        heartbeat_s: float,
        cancellation_timeout_s: float,
        budget: MemoryBudget | None = None,
    ):
        self._executor = executor
        self._control = control
        self._output = output
        self._attempt = attempt
        self._slot = slot
        self._heartbeat_s = heartbeat_s
        self._timeout_s = cancellation_timeout_s
        self._budget = budget
        self._over = threading.Event()
        self._wake = threading.Event()
        self._main = threading.main_thread().ident
        self._thread = threading.Thread(target=self._watch, name="firesteel-slot-watch", daemon=True)

    def __enter__(self) -> None:
        self._handler = signal.signal(signal.SIGUSR1, self._interrupt)
        self._control.start(self._on_message, self._on_lost, "firesteel-slot-control")
        self._thread.start()

    def __exit__(self, *_exception: object) -> None:
        self._over.set()
        self._wake.set()
        self._thread.join(5.0)
        signal.signal(signal.SIGUSR1, self._handler)

    def _on_message(self, message: messages.JobMasterMessage) -> None:
        if self._output.acknowledge(message):
            return
        self._executor.deliver(message)
        if isinstance(message, messages.CancelSlot):
            self._wake.set()

    def _on_lost(self, reason: str) -> None:
        # a slot does not outlive its JobMaster
        self._on_message(messages.CancelSlot(f"the JobMaster is gone: {reason}"))

    def _watch(self) -> None:
        cancelled_at: float | None = None
        beat_at = time.monotonic() + min(FIRST_HEARTBEAT_S, self._heartbeat_s)
        try:
            while not self._over.is_set():
                self._check_memory()
                if self._executor.cancel_requested:
                    cancelled_at = cancelled_at or time.monotonic()
                    if self._over.wait(INTERRUPT_AFTER_S):
                        return
                    self._interrupt_main(cancelled_at)
                    continue
                left = max(0.0, beat_at - time.monotonic())
                if self._wake.wait(left if self._budget is None else min(left, BUDGET_CHECK_S)):
                    self._wake.clear()
                elif time.monotonic() >= beat_at:
                    beat_at = time.monotonic() + self._heartbeat_s
                    self._beat()
        except ConnectionError:
            return

    def _beat(self) -> None:
        now = time.time_ns() // 1_000_000
        self._control.send(messages.Heartbeat(self._attempt, self._slot, now, resident_bytes(), cpu_milliseconds()))

    def _interrupt_main(self, cancelled_at: float) -> None:
        if 0 < self._timeout_s < time.monotonic() - cancelled_at:
            os._exit(GONE)  # user code cannot be interrupted
        if self._main is not None:
            signal.pthread_kill(self._main, signal.SIGUSR1)

    def _check_memory(self) -> None:
        """Fails the job and ends this process, which would not give the memory back: the next attempt gets another."""
        failure = None if self._budget is None else self._budget.exceeded_by(resident_bytes())
        if failure is None:
            return
        self._control.send(messages.SlotFailed(self._attempt, self._slot, failure))
        time.sleep(LAST_WORDS_S)
        os._exit(GONE)

    def _interrupt(self, _signal: int, _frame: Any) -> None:
        if self._executor.cancel_requested and not self._over.is_set():
            raise TaskCancelled("interrupted")
