"""Exactly-once committer of a FileSink in S3."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from firesteel.common.errors import FileWriteError
from firesteel.connectors.files.part_store import check_kind
from firesteel.connectors.files.s3_held_files import HeldObjects
from firesteel.connectors.files.s3_part_file import PendingUpload, abort_uploads
from firesteel.filesystem.s3_uploads import S3Object, S3Uploads, UploadGoneError
from firesteel.filesystem.stores import current_stores
from firesteel.spi.sink import Committer

__all__ = ["UploadCommitter"]


class UploadCommitter(Committer[PendingUpload]):
    """Completes uploads; one that is complete already is left alone."""

    def __init__(self, base: S3Object) -> None:
        self._base = base
        self._uploads: S3Uploads | None = None
        self._sinks: set[str] = set()

    def commit(self, committables: Sequence[PendingUpload]) -> None:
        """Makes the objects appear.

        An upload that is gone was completed before, by an attempt that failed or by a request whose answer got lost:
        then its object is there, as long as it must be. Anything else is an error, also after a restore: Flink's too.
        """
        if not committables:
            return
        for pending in committables:
            check_kind(pending, PendingUpload, str(self._base))
        self._sinks.update(pending.sink_id for pending in committables)
        uploads = self._connect()
        with ThreadPoolExecutor(min(uploads.concurrency, len(committables)), "firesteel-s3-commit") as threads:
            list(threads.map(current_stores().bind(self._complete), committables))
        for pending in committables:
            if pending.superseded:
                HeldObjects(uploads, self._base, pending.sink_id).delete(pending.superseded)

    def finish(self) -> None:
        """Aborts the uploads of tasks that failed, and of those that were run again."""
        for sink_id in self._sinks:
            abort_uploads(self._connect(), self._base, sink_id)
            HeldObjects(self._connect(), self._base, sink_id).delete_all()

    def close(self) -> None:
        """Closes the connections."""
        if self._uploads is not None:
            self._uploads.close()

    def _connect(self) -> S3Uploads:
        if self._uploads is None:
            self._uploads = S3Uploads()
        return self._uploads

    def _complete(self, pending: PendingUpload) -> None:
        target = S3Object.parse(pending.path)
        uploads = self._connect()
        try:
            uploads.complete(target, pending.upload_id, pending.parts)
        except UploadGoneError as error:
            found = uploads.find(target)
            if found is None:
                raise FileWriteError(
                    f"The output file '{target}' cannot be committed: neither its upload nor the object is there.",
                    path=pending.path,
                    hint="Finished files must stay until the job has taken its next checkpoint, and a rule of the "
                    "bucket that aborts incomplete uploads must leave them for as long as a job can be restored.",
                ) from error
            if found.size != pending.length:
                raise FileWriteError(
                    f"The output file '{target}' has {found.size} bytes, but had {pending.length} when it was "
                    "complete.",
                    path=pending.path,
                    hint="Someone has changed the file; its records cannot be committed.",
                ) from error
