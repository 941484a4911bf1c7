"""State file writer and reader of one subtask's checkpoint, with checksums.

A subtask writes few files: small parts are stored in the metadata, the rest goes one after the other into one file
for what this checkpoint owns and one for what later checkpoints may share. A segment has the checksum of its own bytes.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, final

from firesteel.common.errors import CheckpointError, CheckpointStorageError
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import CHUNK, FileWriter, join, new_checksum
from firesteel.filesystem.stores import current_stores, get_filesystem
from firesteel.runtime.checkpoint.layout import checkpoint_id_of
from firesteel.runtime.checkpoint.local_state import LocalCopy, LocalStateStore
from firesteel.runtime.checkpoint.state_file_reader import StateFileReader
from firesteel.runtime.model.checkpoint_options import CheckpointLocation
from firesteel.runtime.model.state_handles import FileSegment, InlineBytes, StateBytes

__all__ = ["INLINE_THRESHOLD", "MERGE_THRESHOLD", "SnapshotFiles", "StateFileReader", "StateStream"]

INLINE_THRESHOLD = 20 * 1024
"""State of at most that many bytes stands in the metadata."""

MAX_INLINE_THRESHOLD = 1 << 20
"""All inline state goes through the JobMaster, with every checkpoint again."""

MERGE_THRESHOLD = 1 << 20
"""Local files below that length are appended to the subtask's file; an unused file is then freed a bit later."""

WRITE_BUFFER = 4 * 1024
TRANSFER_THREADS = 4

_OPEN_UPLOADS = 64
"""How many local files wait for their upload at once: each is kept open, so that its owner may delete it."""


class SnapshotFiles:
    """The files of one subtask in one checkpoint. Confined to the thread that writes, except for :meth:`cancel`."""

    def __init__(
        self,
        location: CheckpointLocation,
        *,
        inline_threshold: int = INLINE_THRESHOLD,
        local_state: LocalStateStore | None = None,
        transfer_threads: int = TRANSFER_THREADS,
        write_buffer: int = WRITE_BUFFER,
        file_merging: bool = True,
    ):
        self._location = location
        self._inline_threshold = inline_threshold
        self._buffer = max(write_buffer, inline_threshold)
        self._merging = file_merging
        self._checkpoint_id = checkpoint_id_of(location.exclusive)
        # a savepoint is the user's, who may move it: a copy of it would never be found
        self._local_state = local_state if self._checkpoint_id is not None else None
        self._idle: dict[bool, list[_MergedFile]] = {True: [], False: []}
        self._files: list[_MergedFile] = []
        self._written: list[str] = []
        self._transfers = _Transfers(transfer_threads)
        self._cancelled = threading.Event()
        self.bytes_written = 0

    @classmethod
    def configured(
        cls, location: CheckpointLocation, configuration: Configuration, local_state: LocalStateStore | None = None
    ) -> SnapshotFiles:
        """The files of a checkpoint, with thresholds and threads as configured."""
        return cls(
            location,
            inline_threshold=min(
                configuration.get(checkpointing_options.INLINE_STATE_THRESHOLD).bytes, MAX_INLINE_THRESHOLD
            ),
            local_state=local_state,
            transfer_threads=configuration.get(checkpointing_options.STATE_TRANSFER_THREADS),
            write_buffer=configuration.get(checkpointing_options.STATE_WRITE_BUFFER_SIZE),
            file_merging=configuration.get(checkpointing_options.FILE_MERGING_ENABLED),
        )

    def write(self, data: bytes | Iterable[bytes], *, shared: bool) -> StateBytes:
        """Writes state: small state becomes part of the handle, other state a segment of this subtask's file."""
        if isinstance(data, bytes | bytearray | memoryview):
            data = (bytes(data),)
        with self.write_stream(shared) as stream:
            for chunk in data:
                stream.write(chunk)
            return stream.finish()

    def write_stream(self, shared: bool) -> StateStream:
        """State that is written piece by piece; several streams may be open at once."""
        return StateStream(self, shared, self._inline_threshold)

    def upload(self, local: Path, *, shared: bool) -> FileSegment:
        """Writes a local file as state. It may be deleted when this returns; its bytes must not change any more.

        The upload continues in the background until :meth:`finish`. A small file is appended to the subtask's file.
        """
        self._check()
        size = local.stat().st_size
        if self._merging and size < MERGE_THRESHOLD:
            data = local.read_bytes()
            segment = self._append((data,), shared)
        else:
            path = self._new_path(shared)
            file = local.open("rb", buffering=0)
            try:
                digest = new_checksum()
                for chunk in iter(lambda: file.read(CHUNK), b""):
                    digest.update(chunk)
                segment = FileSegment(path, 0, file.tell(), digest.digest().hex())
            except BaseException:
                file.close()
                raise
            self._written.append(path)
            self._transfers.submit(partial(self._transfer, file, path))
            self.bytes_written += segment.length
        if self._local_state is not None and self._checkpoint_id is not None:
            self._local_state.add(self._checkpoint_id, local, segment)
        return segment

    def finish(self, used: Iterable[FileSegment] = ()) -> None:
        """Waits until everything is durable; only from now on are the segments valid.

        ``used`` are all segments of the snapshot, those of earlier checkpoints included: local copies are kept of them.
        """
        self._check()
        try:
            for file in self._files[1:]:
                self._transfers.submit(file.writer.close)
            for file in self._files[:1]:
                file.writer.close()
            self._transfers.finish()
        except BaseException:
            self.cancel()
            raise
        finally:
            self._transfers.close()
        self._files.clear()
        for idle in self._idle.values():
            idle.clear()
        if self._local_state is not None and self._checkpoint_id is not None:
            self._local_state.retain(self._checkpoint_id, used)

    def cancel(self) -> None:
        """Makes what is being written stop with a CheckpointError; may be called from any thread."""
        self._cancelled.set()

    def discard(self) -> None:
        """Deletes everything that was written."""
        self._cancelled.set()
        self._transfers.close()
        if self._local_state is not None and self._checkpoint_id is not None:
            self._local_state.abort(self._checkpoint_id)
        failure: Exception | None = None
        for file in self._files:
            failure = _attempt(file.writer.abort) or failure
        for path in self._written:
            failure = _attempt(partial(get_filesystem(path).delete, path)) or failure
        self._files.clear()
        self._written.clear()
        if failure is not None:
            raise failure
        get_filesystem(self._location.exclusive).delete_empty(self._location.exclusive)

    def _append(self, chunks: Iterable[bytes], shared: bool) -> FileSegment:
        file = self._take(shared)
        segment = file.append(chunks)
        self._release(file)
        self.bytes_written += segment.length
        return segment

    def _take(self, shared: bool) -> _MergedFile:
        self._check()
        if self._idle[shared]:
            return self._idle[shared].pop()
        path = self._new_path(shared)
        file = _MergedFile(path, shared, get_filesystem(path).create(path, self._buffer))
        self._files.append(file)
        self._written.append(path)
        return file

    def _release(self, file: _MergedFile) -> None:
        if self._merging:
            self._idle[file.shared].append(file)

    def _new_path(self, shared: bool) -> str:
        return join(self._location.shared if shared else self._location.exclusive, uuid.uuid4().hex)

    def _transfer(self, file: BinaryIO, path: str) -> None:
        with file:
            file.seek(0)
            get_filesystem(path).write(path, self._until_cancelled(iter(lambda: file.read(CHUNK), b"")))

    def _until_cancelled(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._check()
            yield chunk

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise CheckpointError(f"The checkpoint in {self._location.exclusive} was aborted.")

    def _local_copy(self) -> LocalCopy | None:
        if self._local_state is None or self._checkpoint_id is None:
            return None
        return self._local_state.create(self._checkpoint_id)


def _attempt(action: Callable[[], None]) -> Exception | None:
    """Does something that the rest must not depend on; the error, if there was one."""
    try:
        action()
    except (OSError, CheckpointStorageError) as error:
        return error
    return None


class _MergedFile:
    """A file that segments are appended to."""

    __slots__ = ("offset", "path", "shared", "writer")

    def __init__(self, path: str, shared: bool, writer: FileWriter):
        self.path = path
        self.shared = shared
        self.writer = writer
        self.offset = 0

    def append(self, chunks: Iterable[bytes]) -> FileSegment:
        start = self.offset
        digest = new_checksum()
        for chunk in chunks:
            self.writer.write(chunk)
            digest.update(chunk)
            self.offset += len(chunk)
        return FileSegment(self.path, start, self.offset - start, digest.digest().hex())


@final
class StateStream:
    """State on its way into a file. Left without :meth:`finish`, it is given up."""

    def __init__(self, files: SnapshotFiles, shared: bool, inline_threshold: int):
        self._files = files
        self._shared = shared
        self._inline_threshold = inline_threshold
        self._held: list[bytes] = []
        self._length = 0
        self._file: _MergedFile | None = None
        self._start = 0
        self._digest = new_checksum()
        self._copy: LocalCopy | None = None
        self._done = False

    def write(self, data: bytes | bytearray | memoryview) -> int:
        length = len(data)
        self._length += length
        if self._file is not None:
            self._put(self._file, data)
        else:
            self._held.append(bytes(data))
            if self._length > self._inline_threshold:
                self._spill()
        return length

    def tell(self) -> int:
        """How many bytes were written to this stream."""
        return self._length

    def finish(self) -> StateBytes:
        """The handle of what was written: inline if it is small."""
        assert not self._done
        self._done = True
        if self._file is None:
            self._files._check()
            self._files.bytes_written += self._length
            return InlineBytes(b"".join(self._held))
        segment = FileSegment(self._file.path, self._start, self._length, self._digest.digest().hex())
        self._files.bytes_written += self._length
        self._files._release(self._file)
        if self._copy is not None:
            self._copy.finish(segment)
        return segment

    def _spill(self) -> None:
        self._file = self._files._take(self._shared)
        self._start = self._file.offset
        self._copy = self._files._local_copy()
        held, self._held = self._held, []
        for chunk in held:
            self._put(self._file, chunk)

    def _put(self, file: _MergedFile, data: bytes | bytearray | memoryview) -> None:
        self._files._check()
        for start in range(0, len(data), CHUNK) if len(data) > CHUNK else (0,):
            piece = data if len(data) <= CHUNK else memoryview(data)[start : start + CHUNK]
            file.writer.write(piece)
            self._digest.update(piece)
            if self._copy is not None:
                self._copy.write(piece)
        file.offset += len(data)

    def __enter__(self) -> StateStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._done:
            self._done = True
            if self._copy is not None:
                self._copy.abort()
            if self._file is not None:
                # what it has so far belongs to no segment
                self._files._release(self._file)


class _Transfers:
    """Uploads in the background; threads exist while there is something to do."""

    def __init__(self, threads: int):
        self._threads = max(threads, 1)
        self._pool: ThreadPoolExecutor | None = None
        self._pending: deque[Future[None]] = deque()

    def submit(self, task: Callable[[], None]) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="firesteel-transfer")
        if len(self._pending) >= _OPEN_UPLOADS:
            self._pending.popleft().result()
        self._pending.append(self._pool.submit(current_stores().bind(task)))

    def finish(self) -> None:
        while self._pending:
            self._pending.popleft().result()

    def close(self) -> None:
        """Waits for what is under way; each closes the file it reads, also when it is cancelled."""
        self._pending.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
