"""Blob store for jobs and their files, in any file system: written once, under unique names."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterable

import msgspec

from firesteel.cluster.ha.services import HighAvailabilityError, JobSubmission
from firesteel.common.errors import CheckpointStorageError, FiresteelError
from firesteel.filesystem.filesystem import checksum, join, normalize
from firesteel.filesystem.stores import current_stores
from firesteel.process import fault_points

__all__ = ["BlobPointer", "JobBlobs", "JobPointer"]

_log = logging.getLogger(__name__)
_JOB = "job.pickle"
_ARTIFACTS = "artifacts"
_DIRECTORY = re.compile(r"[\w-]+/\d+-\d+")
_JOB_ID = re.compile(r"[\w-]+")


class BlobPointer(msgspec.Struct, frozen=True):
    """What a file must contain."""

    size: int
    checksum: str


class JobPointer(msgspec.Struct, frozen=True):
    """A job that is kept: all about it but the content of its files."""

    job_id: str
    job_name: str
    submitted_at: int
    directory: str
    """Beneath the directory of all jobs."""
    serialized: BlobPointer
    artifacts: dict[str, BlobPointer]


class JobBlobs:
    """The files of the jobs beneath a directory: ``<job id>/<term>-<number>/job.pickle`` and ``artifacts/``.

    No two leaders, and no two submissions, ever write the same file: the directory is named by the leader's term and
    a number that it uses once. So no fencing is needed here. A job exists once a record points to its files; files
    that no record points to are unused.
    """

    def __init__(self, directory: str, term: int):
        self._base = normalize(directory)
        self._stores = current_stores()
        self._term = term
        self._used = 0
        self._lock = threading.Lock()

    def write(self, submission: JobSubmission) -> JobPointer:
        """Writes the files of a job, durably."""
        if not _JOB_ID.fullmatch(submission.job_id):
            raise HighAvailabilityError(f"{submission.job_id!r} is not the id of a job.")
        with self._lock:
            self._used += 1
            directory = f"{submission.job_id}/{self._term}-{self._used}"
        artifacts = {}
        for name, content in submission.artifacts.items():
            if name in ("", ".", "..") or "/" in name or "\0" in name:
                raise HighAvailabilityError(f"{name!r} is not the name of a file.")
            artifacts[name] = self._write(join(directory, _ARTIFACTS, name), content)
        serialized = self._write(join(directory, _JOB), submission.serialized)
        fault_points.reach("ha.blobs.written")
        return JobPointer(
            submission.job_id, submission.job_name, submission.submitted_at, directory, serialized, artifacts
        )

    def load(self, pointer: JobPointer) -> JobSubmission:
        """Reads a job; HighAvailabilityError if its files are not what was written."""
        if not _DIRECTORY.fullmatch(pointer.directory):
            raise HighAvailabilityError(f"{pointer.directory!r} is not the place of a job.")
        artifacts = {
            name: self._read(join(pointer.directory, _ARTIFACTS, name), blob)
            for name, blob in pointer.artifacts.items()
        }
        serialized = self._read(join(pointer.directory, _JOB), pointer.serialized)
        return JobSubmission(pointer.job_id, pointer.job_name, serialized, artifacts, pointer.submitted_at)

    def delete(self, pointer: JobPointer) -> None:
        """Deletes the files of a job that is not needed any more; what cannot be deleted stays."""
        self._delete(pointer.directory)

    def delete_all_but(self, pointers: Iterable[JobPointer]) -> None:
        """Deletes files that no record points to. Only before this leader writes any."""
        needed = {pointer.directory for pointer in pointers}
        filesystem = self._stores.get(self._base)
        try:
            found = [f"{job}/{name}" for job in filesystem.list(self._base) for name in self._list(job)]
        except FiresteelError as error:
            _log.warning("Files of jobs that are no longer needed could not be found: %s", error)
            return
        for directory in found:
            if directory not in needed:
                self._delete(directory)

    def _list(self, job: str) -> list[str]:
        path = join(self._base, job)
        return [] if self._stores.get(path).exists(path) else self._stores.get(path).list(path)

    def _write(self, name: str, content: bytes) -> BlobPointer:
        path = join(self._base, name)
        try:
            self._stores.get(path).write(path, (content,))
        except CheckpointStorageError as error:
            raise HighAvailabilityError(f"The job cannot be persisted: {error.message}", hint=error.hint) from error
        return BlobPointer(len(content), checksum(content))

    def _read(self, name: str, blob: BlobPointer) -> bytes:
        path = join(self._base, name)
        try:
            content = self._stores.get(path).read(path)
        except FileNotFoundError:
            raise HighAvailabilityError(f"The file {path} of a job is missing.") from None
        if len(content) != blob.size or checksum(content) != blob.checksum:
            raise HighAvailabilityError(
                f"The file {path} of a job is damaged: it has {len(content)} bytes instead of {blob.size}, or a wrong "
                "checksum."
            )
        return content

    def _delete(self, directory: str) -> None:
        path = join(self._base, directory)
        filesystem = self._stores.get(path)
        try:
            filesystem.delete_tree(path)
            filesystem.delete_empty(join(self._base, directory.partition("/")[0]))
        except FiresteelError as error:
            _log.warning("Files of a job that is no longer needed could not be deleted: %s", error)
