"""In-progress part files of a FileSink, and their directory."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from firesteel.common.errors import FileWriteError
from firesteel.connectors.files.bucket_directories import BucketDirectories, sync_directory
from firesteel.connectors.files.compaction import FileCompactor, HeldFile
from firesteel.connectors.files.part_content import ContentFormat
from firesteel.connectors.files.part_store import PartFile, PartStore, check_kind
from firesteel.spi.sink import WriterContext

__all__ = [
    "FileWriteError",
    "InProgressFile",
    "LocalPartFile",
    "LocalPartStore",
    "PendingFile",
    "StagingDirectory",
    "remove_staged",
]

COPY_BYTES = 1024 * 1024

STAGING = ".inprogress"
KEPT = "kept"


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

    The name of that directory is the attempt's number, which begins with 0 again under another leader, and its id.

    Files that an earlier attempt had open at the checkpoint this one began with are moved to ``kept/`` beside it: the
    checkpoint still names them, and they are looked for there too. All else in the directories of earlier attempts
    belongs to no checkpoint; see :meth:`delete_earlier_attempts` for when.
    """

    def __init__(self, base_path: Path, sink_id: str, attempt: int, attempt_id: str) -> None:
        self._base = base_path / STAGING
        self._root = self._base / sink_id
        self._attempt = attempt
        self._kept = self._root / KEPT
        self.directory = self._root / f"{attempt}-{attempt_id}"

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
        return self.find_path(Path(state.path))

    def find_path(self, path: Path) -> Path | None:
        """Where a hidden file is now, if it is there."""
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

    def delete_earlier_attempts(self, *, of_all_leaders: bool) -> None:
        """Deletes what earlier attempts of this sink left, except for the files that were kept.

        To be called when no checkpoint needs it: at once if the job starts without state; otherwise when a checkpoint
        of this attempt is complete, which also shows that no other leader runs the job. Then every subtask, at any
        parallelism, has committed what it was restored with and has made copies of the files it continues with. A
        process of an earlier attempt that is unexpectedly still alive writes into deleted files.
        """
        try:
            found = list(self._root.iterdir())
        except OSError:
            return
        for path in found:
            number = path.name.partition("-")[0]
            if number.isdigit() and path != self.directory and (of_all_leaders or int(number) < self._attempt):
                shutil.rmtree(path, ignore_errors=True)

    def remove_if_empty(self) -> None:
        """Leaves no trace where everything is committed."""
        for path in (self.directory, self._kept, self._root, self._base):
            try:
                path.rmdir()
            except OSError:
                continue


class LocalPartFile(PartFile):
    """A part file on the local disk, in its staging directory."""

    def __init__(
        self, staging: StagingDirectory, bucket_id: str, final_path: Path, content: ContentFormat, now_ms: int
    ) -> None:
        try:
            hidden, stream = staging.create_file(final_path.name)
        except OSError as error:
            raise FileWriteError(
                f"The output file '{staging.directory / final_path.name}' cannot be written: "
                f"{error.strerror or error}.",
                path=str(staging.directory / final_path.name),
            ) from error
        super().__init__(bucket_id, str(hidden), stream, content, now_ms)
        self.final_path = final_path
        self._superseded: tuple[str, ...] = ()
        self._persisted: int | None = None

    @staticmethod
    def resume(
        staging: StagingDirectory, state: InProgressFile, final_path: Path, content: ContentFormat, now_ms: int
    ) -> LocalPartFile:
        """Continues a file of an earlier attempt, in a copy of the bytes that belong to the checkpoint.

        The file itself is left as it is: the checkpoint may be restored once more, and a process that was taken for
        dead may still be writing to it.
        """
        source = staging.find(state)
        if source is None:
            raise _cannot_resume(state)
        kept = staging.keep(source)
        part = LocalPartFile(staging, state.bucket_id, final_path, content, now_ms)
        part.created_ms = state.created_ms
        if kept is not None:
            part._superseded = (str(kept), *state.superseded)
        try:
            part._copy(kept or source, state)
        except FileWriteError:
            part.abandon()
            raise
        return part

    def persist(self, parallelism: int) -> InProgressFile:
        """Makes the bytes durable; the file stays open."""
        self._end_content(finished=False)
        self._sync()
        return InProgressFile(
            self.bucket_id,
            self.path,
            str(self.final_path),
            self.size,
            self.created_ms,
            self._superseded,
            parallelism,
        )

    def finish(self) -> None:
        """Makes the bytes durable and closes the file, still hidden."""
        self._end_content(finished=True)
        self._sync()
        self._stream.close()

    def fill(self, write: Callable[[BinaryIO], None]) -> None:
        """Has a function write the bytes of the file."""
        try:
            write(self._stream)
            self.size = self._stream.tell()
        except OSError as error:
            raise self._failed(error) from error

    def to_held(self) -> HeldFile:
        """The file as one that waits for compaction."""
        superseded = (self.path, *self._superseded)
        return HeldFile(self.bucket_id, self.path, str(self.final_path), self.size, superseded)

    def to_committable(self) -> PendingFile:
        """The file and the name it is to get."""
        return PendingFile(self.path, str(self.final_path), self.size, self._superseded)

    def abandon(self) -> None:
        """Closes the file and leaves it hidden."""
        super().abandon()
        try:
            self._stream.close()
        except OSError:
            # what could not be written is not part of any checkpoint
            return

    def discard(self) -> None:
        """Closes the file, which has no records of its own, and deletes it."""
        self.abandon()
        Path(self.path).unlink(missing_ok=True)

    def _sync(self) -> None:
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


class LocalPartStore(PartStore):
    """Part files beneath a directory of the local disk, or of one that is mounted like it."""

    def __init__(self, context: WriterContext, base_path: Path, content: ContentFormat) -> None:
        self.base_path = str(base_path)
        self.writer_id = f"{context.subtask_index}-{uuid.uuid4().hex[:12]}"
        self._base = base_path
        self._content = content
        self._staging = StagingDirectory(base_path, context.sink_id, context.attempt_number, context.attempt_id)
        self._buckets = BucketDirectories(base_path)
        self._is_unsynced = False

    def create(self, bucket_id: str, directory: str, name: str, now_ms: int) -> LocalPartFile:
        """A new hidden file, once its bucket has a directory."""
        self._is_unsynced = True
        part = LocalPartFile(self._staging, bucket_id, self._base / directory / name, self._content, now_ms)
        return self._with_directory(part, directory, name)

    def resume(self, state: InProgressFile, directory: str, name: str, now_ms: int) -> LocalPartFile:
        """A new hidden file with the bytes of one that was in progress."""
        check_kind(state, InProgressFile, self.base_path)
        self._is_unsynced = True
        part = LocalPartFile.resume(self._staging, state, self._base / directory / name, self._content, now_ms)
        return self._with_directory(part, directory, name)

    def compact(
        self, files: Sequence[HeldFile], directory: str, name: str, compactor: FileCompactor, now_ms: int
    ) -> PendingFile:
        """Writes the contents of hidden files to a new one."""
        part = self.create(files[0].bucket_id, directory, name, now_ms)
        with ExitStack() as streams:
            inputs = [streams.enter_context(_open_held(file)) for file in files]
            part.fill(lambda output: compactor.compact(inputs, output))
        part.finish()
        superseded = tuple(path for file in files for path in file.superseded)
        return PendingFile(part.path, str(part.final_path), part.size, superseded)

    def resume_held(self, state: HeldFile) -> HeldFile:
        """Sets a held file of an earlier attempt apart, so that it is not deleted with the others."""
        source = self._staging.find_path(Path(state.path))
        if source is None:
            raise _cannot_resume(state)
        kept = self._staging.keep(source)
        if kept is None:  # another job's, which may still need it
            return replace(state, path=str(source), superseded=())
        return replace(state, path=str(kept), superseded=(str(kept), *state.superseded[1:]))

    def sync(self) -> None:
        """Makes the hidden names durable, and the directories of buckets."""
        self._buckets.sync()
        if self._is_unsynced:
            sync_directory(self._staging.directory)
            self._is_unsynced = False

    def delete_earlier_attempts(self, *, of_all_leaders: bool) -> None:
        """Deletes hidden files."""
        self._staging.delete_earlier_attempts(of_all_leaders=of_all_leaders)

    def close(self) -> None:
        """Removes directories in which nothing is left."""
        self._buckets.remove_if_empty()
        self._staging.remove_if_empty()

    def _with_directory(self, part: LocalPartFile, directory: str, name: str) -> LocalPartFile:
        try:
            self._buckets.path_of(part.bucket_id, directory, name, self._staging.directory)
        except FileWriteError:
            part.discard()
            raise
        return part


_STAY = "Files beneath '.inprogress' must stay as they are for as long as a job can be restored."


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


def _open_held(file: HeldFile) -> BinaryIO:
    path = Path(file.path)
    try:
        stream = path.open("rb")
    except OSError as error:
        raise FileWriteError(
            f"The output file '{path}' cannot be compacted: {error.strerror or error}.", path=file.path, hint=_STAY
        ) from error
    size = os.fstat(stream.fileno()).st_size
    if size != file.length:
        stream.close()
        raise FileWriteError(
            f"The output file '{path}' has {size} bytes, but had {file.length} when it was complete.",
            path=file.path,
            hint="Someone has changed the file; its records cannot be committed.",
        )
    return stream


def _cannot_resume(state: InProgressFile | HeldFile) -> FileWriteError:
    if Path(state.final_path).exists():
        return FileWriteError(
            f"The output file '{state.final_path}' was finished after the checkpoint that the job is restored from.",
            path=state.final_path,
            hint="A later checkpoint has made records visible that would be written a second time: restore that one.",
        )
    return FileWriteError(
        f"The output file '{state.path}', which was in progress at the checkpoint, no longer exists.",
        path=state.path,
        hint=f"{_STAY} An older checkpoint than the last may need files that were finished since.",
    )
