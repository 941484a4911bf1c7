"""Part files of a FileSink while they are hidden, and the directory they are in until they are finished."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from firesteel.common.errors import FiresteelError
from firesteel.common.serialization import Encoder

__all__ = [
    "FileWriteError",
    "InProgressFile",
    "PartFile",
    "PendingFile",
    "StagingDirectory",
    "remove_staged",
    "sync_directory",
]

COPY_BYTES = 1024 * 1024

STAGING = ".inprogress"
KEPT = "kept"


class FileWriteError(FiresteelError):
    """A file that cannot be written or committed; ``path`` is the file."""

    def __init__(self, message: str, *, path: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.path = path


@dataclass(frozen=True)
class PendingFile:
    """A complete but hidden part file, and the name it gets when it is committed."""

    in_progress_path: str
    final_path: str
    length: int
    superseded: tuple[str, ...] = ()
    """Hidden files whose bytes it begins with: once it is committed no checkpoint can go on with them."""


@dataclass(frozen=True)
class InProgressFile:
    """What a checkpoint keeps of a part file that stays open: its first ``length`` bytes belong to the checkpoint."""

    bucket_id: str
    path: str
    final_path: str
    length: int
    created_ms: int
    superseded: tuple[str, ...] = ()
    parallelism: int | None = None
    """That of the sink which wrote it."""


class StagingDirectory:
    """Where one attempt of one sink of one job has its hidden files: ``<base>/.inprogress/<sink id>/<attempt>/``.

    Files that an earlier attempt had open at the checkpoint this one began with are moved to ``kept/`` beside it: the
    checkpoint still names them, and they are looked for there too. All else in the directories of earlier attempts
    belongs to no checkpoint; see :meth:`delete_earlier_attempts` for when.
    """

    def __init__(self, base_path: Path, sink_id: str, attempt: int) -> None:
        self._base = base_path / STAGING
        self._root = self._base / sink_id
        self._attempt = attempt
        self._kept = self._root / KEPT
        self.directory = self._root / str(attempt)

    def create_file(self, name: str) -> tuple[Path, BinaryIO]:
        """A new hidden file for a part file of that name."""
        path = self.directory / f".{name}.inprogress"
        for attempt in range(10):
            try:
                self.directory.mkdir(parents=True, exist_ok=True)
                return path, path.open("xb")
            except FileNotFoundError:
                # a subtask that ended has just removed the directory, which was empty
                if attempt == 9:
                    raise
        raise AssertionError

    def find(self, state: InProgressFile) -> Path | None:
        """Where a file is that a checkpoint has as in progress."""
        path = Path(state.path)
        for candidate in (path, _kept_path(path)):
            if candidate.exists():
                return candidate
        return None

    def keep(self, path: Path) -> Path | None:
        """Sets apart a file of an earlier attempt, None if it is not this job's: another job may be writing to it."""
        if path.parent.parent != self._root:
            return None
        if path.parent == self._kept:
            return path
        self._kept.mkdir(parents=True, exist_ok=True)
        return path.rename(_kept_path(path))

    def delete_earlier_attempts(self) -> None:
        """Deletes what earlier attempts of this sink left, except for the files that were kept.

        To be called when no checkpoint needs it: if the job began anew, at once; otherwise when a checkpoint of this
        attempt is complete. Then every subtask, whatever the parallelism was and is, has committed what it was restored
        with and has made copies of the files it goes on with. A process of an earlier attempt that is still alive
        against all expectation writes on into deleted files.
        """
        try:
            found = list(self._root.iterdir())
        except OSError:
            return
        for path in found:
            if path.name.isdigit() and int(path.name) < self._attempt:
                shutil.rmtree(path, ignore_errors=True)

    def remove_if_empty(self) -> None:
        """Leaves no trace where everything is committed."""
        for path in (self.directory, self._kept, self._root, self._base):
            try:
                path.rmdir()
            except OSError:
                continue


class PartFile:
    """A part file that is being written."""

    def __init__(self, staging: StagingDirectory, bucket_id: str, final_path: Path, now_ms: int) -> None:
        self.bucket_id = bucket_id
        self.final_path = final_path
        self.size = 0
        self.created_ms = now_ms
        self.written_ms = now_ms
        self._superseded: tuple[str, ...] = ()
        self._persisted: int | None = None
        self._failure: FileWriteError | None = None
        try:
            self.path, self._stream = staging.create_file(final_path.name)
        except OSError as error:
            self.path = staging.directory / final_path.name
            raise self._failed(error) from error

    @staticmethod
    def resume(staging: StagingDirectory, state: InProgressFile, final_path: Path, now_ms: int) -> PartFile:
        """Goes on with a file of an earlier attempt, in a copy of the bytes that belong to the checkpoint.

        The file itself is left as it is: the checkpoint may be restored once more, and a process that was taken for
        dead may still be writing to it.
        """
        source = staging.find(state)
        if source is None:
            raise _cannot_resume(state)
        kept = staging.keep(source)
        part = PartFile(staging, state.bucket_id, final_path, now_ms)
        part.created_ms = state.created_ms
        if kept is not None:
            part._superseded = (str(kept), *state.superseded)
        try:
            part._copy(kept or source, state)
        except FileWriteError:
            part.abandon()
            raise
        return part

    def write(self, encoder: Encoder, values: Sequence[Any], now_ms: int) -> None:
        """Appends records."""
        self._check()
        try:
            encoder.encode_batch(values, self._stream)
            self.size = self._stream.tell()
        except OSError as error:
            raise self._failed(error) from error
        self.written_ms = now_ms

    def persist(self, parallelism: int) -> InProgressFile:
        """Makes the bytes durable; the file stays open."""
        self._sync()
        return InProgressFile(
            self.bucket_id,
            str(self.path),
            str(self.final_path),
            self.size,
            self.created_ms,
            self._superseded,
            parallelism,
        )

    def finish(self) -> PendingFile:
        """Makes the bytes durable and closes the file, still hidden."""
        self._sync()
        self._stream.close()
        return PendingFile(str(self.path), str(self.final_path), self.size, self._superseded)

    def abandon(self) -> None:
        """Closes the file and leaves it hidden."""
        try:
            self._stream.close()
        except OSError:
            # what could not be written is not part of any checkpoint
            return

    def _sync(self) -> None:
        self._check()
        if self._persisted == self.size:
            return
        try:
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise self._failed(error) from error
        self._persisted = self.size

    def _copy(self, source: Path, state: InProgressFile) -> None:
        left = state.length
        try:
            with source.open("rb") as stream:
                while left:
                    piece = stream.read(min(left, COPY_BYTES))
                    if not piece:
                        raise FileWriteError(
                            f"The output file '{source}' has {state.length - left} bytes, but had {state.length} when "
                            "the checkpoint was taken.",
                            path=str(source),
                            hint=_STAY,
                        )
                    self._stream.write(piece)
                    left -= len(piece)
        except OSError as error:
            raise self._failed(error) from error
        self.size = state.length

    def _check(self) -> None:
        # after a failed write or fsync nobody knows what is on the disk: this file must not become a finished one
        if self._failure is not None:
            raise self._failure

    def _failed(self, error: OSError) -> FileWriteError:
        self._failure = FileWriteError(
            f"The output file '{self.path}' cannot be written: {error.strerror or error}.", path=str(self.path)
        )
        return self._failure


_STAY = "Files beneath '.inprogress' must stay as they are for as long as a job can be restored."


def sync_directory(directory: str | os.PathLike[str]) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_staged(directory: Path) -> None:
    """Deletes a sink's hidden files, of all attempts; ``directory`` is that of one of them."""
    root = directory.parent
    if root.parent.name != STAGING:
        return  # not where a StagingDirectory has its files
    shutil.rmtree(root, ignore_errors=True)
    with suppress(OSError):
        root.parent.rmdir()  # not if it has files of others


def _kept_path(path: Path) -> Path:
    return path.parent.parent / KEPT / path.name


def _cannot_resume(state: InProgressFile) -> FileWriteError:
    if Path(state.final_path).exists():
        return FileWriteError(
            f"The output file '{state.final_path}' was finished after the checkpoint that the job is restored from.",
            path=state.final_path,
            hint="A later checkpoint has made records visible that would be written a second time: restore that one.",
        )
    return FileWriteError(
        f"The output file '{state.path}', which was in progress at the checkpoint, is gone.",
        path=state.path,
        hint=f"{_STAY} An older checkpoint than the last may need files that were finished since.",
    )
