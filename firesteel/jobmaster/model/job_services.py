"""Services that a JobMaster needs besides slots: result channels and the completed checkpoint store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.model.log_line import LogLine

__all__ = ["JobServices"]


def _to_terminal(stream: str, lines: Sequence[str]) -> None:
    out = sys.stderr if stream == "stderr" else sys.stdout
    out.write("\n".join(lines) + "\n")
    out.flush()


def _log_to_terminal(lines: Sequence[LogLine]) -> None:
    _to_terminal("stderr", [line.text for line in lines])


def _nobody_asks(*_: object) -> None:
    """The job belongs to the program that runs it."""


def _always() -> bool:
    return True


@dataclass(frozen=True)
class JobServices:
    """Called from the job's own threads; must not block for long, except ``job_ending``."""

    is_kept: bool = False
    """Whether the job is run again, here or elsewhere, unless its end has been recorded."""

    write_output: Callable[[str, Sequence[str]], None] = _to_terminal
    """Lines that functions printed to ``stdout`` or ``stderr``."""
    write_log: Callable[[Sequence[LogLine]], None] = _log_to_terminal
    """Log records of functions."""
    register_checkpoint: Callable[[int, str], None] = _nobody_asks
    """A checkpoint is stored, and no task has been notified yet. If this raises, the checkpoint has failed: a process
    that no longer leads the job must not have its sinks commit."""
    unregister_checkpoint: Callable[[int], None] = _nobody_asks
    """The checkpoint that was registered last was given up after all, and is about to be deleted."""
    status_changed: Callable[[JobStatus, int], None] = _nobody_asks
    """The job has entered a status, at that time."""
    job_ending: Callable[[JobStatus, TaskFailure | None], None] = _nobody_asks
    """The job is over, and nothing of it has been deleted yet. Returns once the end is recorded, so that the job is not
    run again. If this raises, the job has not ended and nothing is deleted."""
    may_delete: Callable[[], bool] = _always
    """Called before state that is no longer needed is deleted: only the leader of the job may delete it."""
