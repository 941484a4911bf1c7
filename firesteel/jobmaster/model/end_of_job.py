"""Rules for the terminal state of a job, shared by the JobMaster, its runner and the Dispatcher.

A job ends because

- it has finished, or was cancelled;
- its own code failed and its restart strategy allows no further attempt, or it cannot be loaded or prepared at all;
- its state can never be read, or does not fit.

Other failures do not end a job: those of Spark, the checkpoint storage, the job store, a thread of this process. The
job is kept, shown with the reason, and tried again with growing delays for as long as this process leads.

Everything here is a pure function.
"""

from __future__ import annotations

from firesteel.common.errors import (
    CorruptStateError,
    FiresteelError,
    HostError,
    InvalidProgramError,
    NotEnoughSlotsError,
    StateIncompatibleError,
    TaskFailure,
)
from firesteel.common.job_status import JobStatus

__all__ = ["CORRUPT_READS", "ends_preparation", "is_final", "may_record", "retry_delay_ms"]

CORRUPT_READS = 3
"""How often in a row state must turn out to be corrupt before it counts as such: a store may have a bad moment."""
_FIRST_DELAY_MS = 500
_MAX_DELAY_MS = 30_000


def may_record(status: JobStatus, *, host_lives: bool) -> bool:
    """Whether the end of a job may be recorded, so that it is not run again.

    A failure does not count while the host that ran the job is gone: the job may have failed because of that.

    >>> may_record(JobStatus.FAILED, host_lives=True), may_record(JobStatus.FAILED, host_lives=False)
    (True, False)
    >>> may_record(JobStatus.FINISHED, host_lives=False), may_record(JobStatus.SUSPENDED, host_lives=True)
    (True, False)
    """
    if status is JobStatus.FAILED:
        return host_lives
    return status in (JobStatus.FINISHED, JobStatus.CANCELED)


def is_final(failure: TaskFailure, *, has_run: bool, is_kept: bool) -> bool:
    """Whether a failure is final, regardless of the restart strategy, because no further attempt could succeed.

    ``has_run``: the job has been running before, here or under an earlier leader. ``is_kept``: the job would be run
    again elsewhere; else the loss of its host is the end.
    """
    if isinstance(failure.cause, NotEnoughSlotsError) and failure.cause.is_final:
        return True
    if isinstance(failure.cause, HostError) and failure.cause.is_gone:
        return not is_kept
    if failure.error_type == "CheckpointDirectoryError":
        return not has_run  # it was good enough before
    return failure.error_type == "StateIncompatibleError"


def ends_preparation(error: BaseException, *, is_recovered: bool, corrupt_reads: int = 0) -> bool:
    """Whether a job that cannot be loaded, prepared or started has failed.

    What is submitted is refused for any error that its program or its configuration is to blame for. A job that is
    recovered was accepted before, and has state: it ends only if it is certain that it can never be read.
    ``corrupt_reads`` is how often in a row its state was corrupt, this time included.
    """
    if isinstance(error, CorruptStateError):
        return not is_recovered or corrupt_reads >= CORRUPT_READS
    if not isinstance(error, FiresteelError) or error.is_transient:
        return False
    if not is_recovered:
        return True
    return isinstance(error, (InvalidProgramError, StateIncompatibleError))


def retry_delay_ms(failures: int) -> int:
    """How long to wait after so many failures in a row of anything that is no end.

    >>> [retry_delay_ms(failures) for failures in (1, 2, 3, 10, 10_000)]
    [500, 1000, 2000, 30000, 30000]
    """
    return min(_FIRST_DELAY_MS << min(max(failures - 1, 0), 16), _MAX_DELAY_MS)
