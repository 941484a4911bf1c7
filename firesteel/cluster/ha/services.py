"""High-availability services of the JobManager: leader election, and a store that only the leader can write to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from firesteel.common.errors import FiresteelError
from firesteel.common.job_status import JobStatus

__all__ = [
    "ElectionClosedError",
    "FencedError",
    "HighAvailabilityError",
    "HighAvailabilityServices",
    "JobResult",
    "JobStore",
    "JobSubmission",
    "Leadership",
]


class HighAvailabilityError(FiresteelError):
    """What must survive the JobManager cannot be kept, or cannot be read; nothing was changed."""

    is_transient = True


class FencedError(FiresteelError):
    """Another JobManager leads now: writes of this one must fail."""


class ElectionClosedError(FiresteelError):
    """The services were closed while a candidate waited for leadership."""


@dataclass(frozen=True)
class JobSubmission:
    """A job as it was submitted: all that is needed to run it again elsewhere."""

    job_id: str
    job_name: str
    serialized: bytes = field(repr=False)
    """The JobGraph, cloudpickled. Unpickled only after its sender was authenticated."""
    artifacts: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Python files and archives the job's functions import, by file name."""
    submitted_at: int = 0


@dataclass(frozen=True)
class JobResult:
    """How a job ended; kept until the next cleanup, so that a job that has ended is not run again."""

    job_id: str
    job_name: str
    status: JobStatus
    started_at: int
    ended_at: int
    failure: str = ""


class JobStore(Protocol):
    """What a leader keeps. Every method that writes raises FencedError once another one leads."""

    def put(self, submission: JobSubmission) -> None:
        """Keeps a job; returns once it would survive this process."""
        ...

    def job_ids(self) -> Sequence[str]:
        """The jobs that have not ended, in the order they were submitted in."""
        ...

    def load(self, job_id: str) -> JobSubmission:
        """A job that is kept."""
        ...

    def add_checkpoint(self, job_id: str, checkpoint_id: int, path: str) -> None:
        """A checkpoint has completed: from now on a new leader starts the job from it. Older ones than the newest few
        are forgotten."""
        ...

    def remove_checkpoint(self, job_id: str, checkpoint_id: int) -> None:
        """A checkpoint was given up after all: from now on a new leader starts the job from the one before it."""
        ...

    def checkpoints(self, job_id: str) -> Sequence[tuple[int, str]]:
        """The checkpoints of a job, oldest first: number and path."""
        ...

    def end(self, result: JobResult) -> None:
        """A job has ended for good: forgets it and keeps its result, in one step."""
        ...

    def results(self) -> Sequence[JobResult]:
        """How jobs ended, oldest first."""
        ...


class Leadership(Protocol):
    """This JobManager leads."""

    term: int
    """Greater than that of every leader before."""
    store: JobStore

    def is_valid(self) -> bool:
        """Whether the lease has not run out, without any I/O."""
        ...

    def resign(self) -> None:
        """Lets another one lead, at once."""
        ...


class HighAvailabilityServices(Protocol):
    """Leader election and job store of one cluster."""

    def await_leadership(self, address: str, on_lost: Callable[[str], None]) -> Leadership:
        """Blocks until this JobManager leads; ``address`` is where clients reach it (host:port).

        ``on_lost`` is called once, from any thread, as soon as it is known that it no longer does: the process must
        end without touching anything that is shared. Where a write has failed because of it, that is before the write
        raises, so that no caller cleans up after the failure. ElectionClosedError once the services are closed.
        """
        ...

    def leader_address(self) -> str | None:
        """Where the present leader is reached; None if there is none."""
        ...

    def close(self) -> None:
        """Gives up waiting and releases everything."""
        ...
