"""Job status and its valid transitions, as in Flink."""

from __future__ import annotations

from firesteel.common.job_status import JobStatus

__all__ = ["may_follow"]

# RECONCILING is reserved in Flink, too: no transition leads there.
_FOLLOWING: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.INITIALIZING: frozenset({JobStatus.CREATED, JobStatus.CANCELLING}),
    JobStatus.CREATED: frozenset({JobStatus.RUNNING, JobStatus.FAILING, JobStatus.RESTARTING, JobStatus.CANCELLING}),
    JobStatus.RUNNING: frozenset({JobStatus.FINISHED, JobStatus.FAILING, JobStatus.RESTARTING, JobStatus.CANCELLING}),
    JobStatus.RESTARTING: frozenset({JobStatus.CREATED, JobStatus.CANCELLING}),
    JobStatus.FAILING: frozenset({JobStatus.FAILED, JobStatus.CANCELLING}),
    JobStatus.CANCELLING: frozenset({JobStatus.CANCELED, JobStatus.SUSPENDED}),
}


def may_follow(current: JobStatus, new: JobStatus) -> bool:
    """Whether a job may go from one status to the other.

    >>> may_follow(JobStatus.RUNNING, JobStatus.FINISHED), may_follow(JobStatus.FINISHED, JobStatus.RUNNING)
    (True, False)
    """
    return new in _FOLLOWING.get(current, frozenset())
