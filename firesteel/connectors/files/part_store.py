"""Part store: the interface of a FileSink's writer to the local disk or S3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, BinaryIO

from firesteel.common.errors import FileWriteError
from firesteel.connectors.files.compaction import FileCompactor, HeldFile
from firesteel.connectors.files.part_content import ContentFormat, ContentWriter

__all__ = ["PartFile", "PartStore", "check_kind"]


class PartFile(ABC):
    """A part file that is being written: hidden until it is committed."""

    def __init__(self, bucket_id: str, path: str, stream: BinaryIO, content: ContentFormat, now_ms: int) -> None:
        self.bucket_id = bucket_id
        self.path = path
        """Where it is, or will be: for errors."""
        self.size = 0
        self.created_ms = now_ms
        self.written_ms = now_ms
        self._stream = stream
        self._format = content
        self._content: ContentWriter | None = None
        self._failure: FileWriteError | None = None

    @property
    def is_full(self) -> bool:
        """Whether the store takes no more of it."""
        return False

    def write(self, values: Sequence[Any], now_ms: int) -> None:
        """Appends records."""
        self._check()
        try:
            if self._content is None:
                self._content = self._format.open(self._stream)
            self._content.write(values)
            self.size = self._stream.tell()
        except OSError as error:
            raise self._failed(error) from error
        self.written_ms = now_ms

    @abstractmethod
    def persist(self, parallelism: int) -> Any:
        """Makes the bytes durable; the file stays open. Returns what a checkpoint keeps of it."""

    @abstractmethod
    def finish(self) -> None:
        """Takes no more records; begins to make the bytes durable."""

    @abstractmethod
    def to_committable(self) -> Any:
        """After ``finish``: what is to be committed, once the bytes are durable."""

    @property
    def can_be_held(self) -> bool:
        """Whether the file may wait for compaction."""
        return True

    @property
    def must_be_held(self) -> bool:
        """Whether the file cannot become visible as it is, but only what it is compacted to."""
        return False

    @abstractmethod
    def to_held(self) -> HeldFile:
        """After ``finish``: the file as one that waits for compaction."""

    def abandon(self) -> None:
        """Stops writing, and leaves the file hidden."""
        if self._content is not None:
            self._content.abandon()

    def _end_content(self, finished: bool) -> None:
        """Puts what the content holds back into the stream."""
        self._check()
        if self._content is None:
            return
        try:
            if finished:
                self._content.finish()
            else:
                self._content.persist()
            self.size = self._stream.tell()
        except OSError as error:
            raise self._failed(error) from error

    def _check(self) -> None:
        # after a failed write or fsync the content is unknown: this file must not become a finished one
        if self._failure is not None:
            raise self._failure

    def _failed(self, error: OSError) -> FileWriteError:
        self._failure = FileWriteError(
            f"The output file '{self.path}' cannot be written: {error.strerror or error}.", path=self.path
        )
        return self._failure


def check_kind(found: Any, kind: type, path: str) -> None:
    """FileWriteError if what a checkpoint has is of a store of another kind."""
    if not isinstance(found, kind):
        raise FileWriteError(
            f"The checkpoint has the output file '{getattr(found, 'final_path', None) or found.path}', which is of "
            f"another kind of store than '{path}', to which the sink writes now.",
            path=path,
            hint="Restore the job with the path it had; to move it, let the sink at the new path have another uid.",
        )


class PartStore(ABC):
    """Where one writer has its part files."""

    base_path: str
    writer_id: str
    """Stands in the names of the writer's part files, so that no other has the same ones."""

    @abstractmethod
    def create(self, bucket_id: str, directory: str, name: str, now_ms: int) -> PartFile:
        """A new part file, to be called ``name``, in a directory relative to the base path."""

    @abstractmethod
    def resume(self, state: Any, directory: str, name: str, now_ms: int) -> PartFile:
        """Continues a part file that a checkpoint has as in progress; what it had later does not count.

        Where the store needs a new file for that it is called ``name``.
        """

    @abstractmethod
    def compact(
        self, files: Sequence[HeldFile], directory: str, name: str, compactor: FileCompactor, now_ms: int
    ) -> Any:
        """Makes one durable, hidden file of several; returns what is to be committed."""

    @abstractmethod
    def resume_held(self, state: HeldFile) -> HeldFile:
        """Takes over a file that a checkpoint has as held for compaction."""

    def has_room(self) -> bool:
        """False while too many bytes wait to be stored."""
        return True

    def check(self) -> None:  # noqa: B027 - optional
        """Raises what has failed in the background."""

    def sync(self) -> None:  # noqa: B027 - optional
        """Makes durable that the finished files are there."""

    @abstractmethod
    def delete_earlier_attempts(self, *, of_all_leaders: bool) -> None:
        """Deletes what earlier attempts of this sink left and no checkpoint needs.

        To be called when that is certain: at once if the job starts without state; otherwise when a checkpoint of this
        attempt is complete. Then every subtask, at any parallelism, has committed what it was restored with and has
        taken over the files it continues with. ``of_all_leaders``: also what attempts under other leaders left, once a
        checkpoint has shown that no other one runs the job.
        """

    @abstractmethod
    def close(self) -> None:
        """Leaves what is not finished hidden, and no trace where everything is committed."""
