"""Task cache of a worker process between epochs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from firesteel.execution.stages.stage_task import InlineSnapshots, StageTask
from firesteel.execution.stages.task_commands import EpochCommand
from firesteel.runtime.slot.mailbox import Clock, SystemClock

__all__ = ["PrintedLines", "TaskCache"]

_log = logging.getLogger(__name__)
_Key: TypeAlias = tuple[str, str, int]


class PrintedLines(Protocol):
    """What functions write to stdout and stderr, where that is not the client's own terminal."""

    def take(self) -> Sequence[tuple[str, Sequence[Any]]]:
        """What was printed since the last call: ``stdout`` or ``stderr``, and lines; and what was logged."""
        ...


@dataclass(frozen=True)
class _Entry:
    attempt: int
    version: int
    """The epoch the task has been through."""
    task: StageTask


class TaskCache:
    """Tasks with all they hold, as an epoch left them: chains, state, readers, writers.

    A task is taken out when an epoch begins and put back when it has ended. So what an epoch that fails leaves behind
    is never found again; the caller that took it closes it.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        capture: Callable[[], AbstractContextManager[PrintedLines | None]] = nullcontext,
    ):
        self.clock: Clock = SystemClock() if clock is None else clock
        self.capture = capture
        """Is entered while a task is at work, and says what it printed."""
        self._entries: dict[_Key, _Entry] = {}
        self._snapshots: dict[str, InlineSnapshots] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def snapshots(self, command: EpochCommand) -> InlineSnapshots:
        """What the tasks of a job share for their checkpoints."""
        task = command.descriptor.task
        snapshots = self._snapshots.get(task.job_id)
        if snapshots is None:
            snapshots = self._snapshots[task.job_id] = InlineSnapshots(task.configuration, task.job_id)
        return snapshots

    def take(self, command: EpochCommand) -> StageTask | None:
        """Takes the task out of the cache; None if the version of the command is not in it. Closes older attempts."""
        attempt = command.descriptor.task.attempt
        self._close_older(command.descriptor.task.job_id, attempt)
        entry = self._entries.get(_key(command))
        if entry is None or entry.attempt > attempt:
            return None
        del self._entries[_key(command)]
        if entry.version == command.version:
            return entry.task
        entry.task.close()
        return None

    def keep_only(self, key: _Key, run: str | None) -> bool:
        """Closes a task (job id, vertex id, subtask) whose last run is another one; returns whether it is here then.

        Spark may have run the task again elsewhere: the state of only one of the runs was acknowledged.
        """
        entry = self._entries.get(key)
        if entry is None:
            return False
        if run is None or getattr(entry.task, "run_id", run) == run:
            return True
        self._entries.pop(key).task.close()
        return False

    def put(self, command: EpochCommand, task: StageTask) -> None:
        """Keeps a task that has been through the epoch of the command."""
        attempt = command.descriptor.task.attempt
        entry = self._entries.get(_key(command))
        if entry is not None and entry.attempt > attempt:
            task.close()  # its attempt is over
            return
        self._entries[_key(command)] = _Entry(attempt, command.epoch, task)
        if entry is not None:
            entry.task.close()

    def close(self, job_id: str | None = None, *, job_is_over: bool = False) -> None:
        """Closes the tasks of a job, or all; what is kept on this host for a restart only if the job is over."""
        for key in [key for key in self._entries if job_id in (None, key[0])]:
            task = self._entries.pop(key).task
            for error in task.close():
                # its results are committed, and no caller waits for it
                failure = task.failed(error).failure
                _log.warning("A task could not be closed.\n%s", error if failure is None else failure.describe())
        for job in [job for job in self._snapshots if job_id in (None, job)]:
            self._snapshots.pop(job).close(job_is_over=job_is_over)

    def _close_older(self, job_id: str, attempt: int) -> None:
        for key, entry in list(self._entries.items()):
            if key[0] == job_id and entry.attempt < attempt:
                self._entries.pop(key).task.close()


def _key(command: EpochCommand) -> _Key:
    task = command.descriptor.task
    return task.job_id, task.vertex_id, task.subtask
