"""Job store: the jobs of a cluster, their checkpoints and results, in records that only the leader can write."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from firesteel.cluster.ha.blobs import JobBlobs, JobPointer
from firesteel.cluster.ha.records import CHECKPOINTS, JOBS, RESULTS, FencedRecords, decode, encode
from firesteel.cluster.ha.services import HighAvailabilityError, JobResult, JobSubmission
from firesteel.common.job_status import JobStatus

__all__ = ["RETAINED_CHECKPOINTS", "PersistentJobStore", "Retention"]

RETAINED_CHECKPOINTS = 10
"""How many are known of a job. Of all but the last few the files are gone: a job keeps one by default."""
_MAX_FAILURE_LENGTH = 100_000
"""Characters: a record must fit into a ZooKeeper node."""


@dataclass(frozen=True)
class Retention:
    """How long it is remembered how jobs ended."""

    results: int = 1000
    """How many at most; the oldest go first."""
    seconds: float = 3600.0
    """For how long a job of the same id is not taken."""


class _Checkpoints(msgspec.Struct, frozen=True):
    job_id: str
    newest: list[tuple[int, str]]


class _Result(msgspec.Struct, frozen=True):
    job_id: str
    job_name: str
    status: str
    started_at: int
    ended_at: int
    failure: str


class PersistentJobStore:
    """A JobStore of one leader: it has read what was there when it began to lead, and is the only writer since.

    A job's record is ``jobs/<number>-<job id>``, its checkpoints are ``checkpoints/`` with the same number, its result
    is ``results/<another number>-<job id>``. The numbers keep the order, and none is used again. So a job has ended if
    there is a result of it with a higher number, even if other records of it are left; and what is left of one cannot
    be taken for another one of the same id.
    """

    def __init__(self, records: FencedRecords, blobs: JobBlobs, retention: Retention):
        self._records = records
        self._blobs = blobs
        self._retention = retention
        self._lock = threading.Lock()
        self._jobs: dict[str, tuple[str, JobPointer]] = {}
        self._checkpoints: dict[str, list[tuple[int, str]]] = {}
        self._results: dict[str, tuple[str, JobResult]] = {}
        self._obsolete: list[str] = []
        """Records of jobs that have ended, which somebody has left."""
        self._number = 0
        self._read()
        self._blobs.delete_all_but(pointer for _, pointer in self._jobs.values())

    def put(self, submission: JobSubmission) -> None:
        """Keeps a job; returns once it would survive this process. One that is kept already is replaced."""
        with self._lock:
            self._refuse_if_ended(submission.job_id)
        # outside the lock: a job may be large, and the checkpoints of others must not wait for it
        pointer = self._blobs.write(submission)
        with self._lock:
            self._refuse_if_ended(submission.job_id)
            replaced = self._jobs.get(submission.job_id)
            name = replaced[0] if replaced else self._next_name(JOBS, submission.job_id)
            forgotten = self._results.get(submission.job_id)
            self._records.put(name, encode(pointer), [forgotten[0]] if forgotten else ())
            self._results.pop(submission.job_id, None)
            self._jobs[submission.job_id] = name, pointer
        if replaced:
            self._blobs.delete(replaced[1])

    def job_ids(self) -> Sequence[str]:
        """The jobs that have not ended, in the order they were submitted in."""
        with self._lock:
            return list(self._jobs)

    def load(self, job_id: str) -> JobSubmission:
        with self._lock:
            kept = self._jobs.get(job_id)
        if kept is None:
            raise HighAvailabilityError(f"Job {job_id} is not kept: it was not submitted, or has ended.")
        return self._blobs.load(kept[1])

    def add_checkpoint(self, job_id: str, checkpoint_id: int, path: str) -> None:
        """A checkpoint has completed: from now on a new leader starts the job from it."""
        with self._lock:
            if job_id not in self._jobs:
                raise HighAvailabilityError(f"Job {job_id} is not kept: its checkpoint {checkpoint_id} cannot be.")
            before = [known for known in self._checkpoints.get(job_id, ()) if known[0] != checkpoint_id]
            newest = sorted([*before, (checkpoint_id, path)])[-RETAINED_CHECKPOINTS:]
            self._records.put(_checkpoints_of(self._jobs[job_id][0]), encode(_Checkpoints(job_id, newest)))
            self._checkpoints[job_id] = newest

    def remove_checkpoint(self, job_id: str, checkpoint_id: int) -> None:
        """A checkpoint was given up after all; one that is not known changes nothing."""
        with self._lock:
            before = self._checkpoints.get(job_id, [])
            left = [known for known in before if known[0] != checkpoint_id]
            if left != before:
                self._records.put(_checkpoints_of(self._jobs[job_id][0]), encode(_Checkpoints(job_id, left)))
                self._checkpoints[job_id] = left

    def checkpoints(self, job_id: str) -> Sequence[tuple[int, str]]:
        """The checkpoints of a job, oldest first: number and path."""
        with self._lock:
            return list(self._checkpoints.get(job_id, ()))

    def end(self, result: JobResult) -> None:
        """A job has ended for good: forgets it and keeps its result, in one step."""
        job_id = result.job_id
        with self._lock:
            kept = self._jobs.get(job_id)
            if kept is None:
                self._refuse_if_ended(job_id)
            name = self._next_name(RESULTS, job_id)
            # in this order: a result goes after all that it keeps from being taken for a job
            superfluous = [*self._obsolete, *([kept[0], _checkpoints_of(kept[0])] if kept else [])]
            surplus = list(self._results)[: max(len(self._results) + 1 - self._retention.results, 0)]
            superfluous += (self._results[old][0] for old in surplus)
            self._records.put(name, encode(_stored(result)), superfluous)
            for old in surplus:
                del self._results[old]
            self._results[job_id] = name, result
            self._obsolete.clear()
            self._checkpoints.pop(job_id, None)
            self._jobs.pop(job_id, None)
        if kept:
            self._blobs.delete(kept[1])

    def results(self) -> Sequence[JobResult]:
        """How jobs ended, oldest first."""
        with self._lock:
            return [result for _, result in self._results.values()]

    def _read(self) -> None:
        records = self._records.load()
        checkpoints: dict[str, list[tuple[int, str]]] = {}
        for name in sorted(records):
            kind, _, rest = name.partition("/")
            job_id = rest.partition("-")[2]
            self._number = max(self._number, _number_of(name))
            if kind == JOBS:
                if job_id in self._jobs:  # of an earlier run, as the numbers go up
                    self._obsolete.append(self._jobs.pop(job_id)[0])
                self._jobs[job_id] = name, cast(JobPointer, decode(name, records[name], JobPointer))
            elif kind == CHECKPOINTS:
                checkpoints[name] = cast(_Checkpoints, decode(name, records[name], _Checkpoints)).newest
            else:
                if job_id in self._results:
                    self._obsolete.append(self._results.pop(job_id)[0])
                self._results[job_id] = name, _result_of(cast(_Result, decode(name, records[name], _Result)))
        # a leader died between the result and the rest
        for job_id in [job_id for job_id in self._jobs if job_id in self._results]:
            if _number_of(self._jobs[job_id][0]) < _number_of(self._results[job_id][0]):
                self._obsolete.append(self._jobs.pop(job_id)[0])
            else:  # or between a job that was submitted again and what was to be removed
                self._obsolete.append(self._results.pop(job_id)[0])
        for job_id, (name, _) in self._jobs.items():
            known = checkpoints.pop(_checkpoints_of(name), None)
            if known is not None:
                self._checkpoints[job_id] = known
        self._obsolete += checkpoints

    def _next_name(self, kind: str, job_id: str) -> str:
        self._number += 1
        return f"{kind}/{self._number:010}-{job_id}"

    def _refuse_if_ended(self, job_id: str) -> None:
        if job_id in self._results:
            result = self._results[job_id][1]
            if result.ended_at / 1000 > time.time() - self._retention.seconds:
                raise HighAvailabilityError(f"Job {job_id} has ended: it is {result.status.name}.")


def _checkpoints_of(job: str) -> str:
    """The record of a job's checkpoints, for that of the job."""
    return f"{CHECKPOINTS}/{job.partition('/')[2]}"


def _number_of(name: str) -> int:
    number = name.partition("/")[2].partition("-")[0]
    if not number.isdecimal():
        raise HighAvailabilityError(
            f"{name} is not the name of a high-availability record.",
            hint="It was written by another version. Move it away, or start with another high-availability.cluster-id.",
        )
    return int(number)


def _stored(result: JobResult) -> _Result:
    failure = result.failure[:_MAX_FAILURE_LENGTH]
    return _Result(result.job_id, result.job_name, result.status.name, result.started_at, result.ended_at, failure)


def _result_of(stored: _Result) -> JobResult:
    status = JobStatus[stored.status]
    return JobResult(stored.job_id, stored.job_name, status, stored.started_at, stored.ended_at, stored.failure)
