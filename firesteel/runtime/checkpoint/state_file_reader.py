"""State file reader that verifies checksums."""

from __future__ import annotations

import io
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast, final

from firesteel.common.errors import CorruptStateError
from firesteel.config import checkpointing_options
from firesteel.config.configuration import Configuration
from firesteel.filesystem.filesystem import CHUNK, checksum, file_chunks, new_checksum
from firesteel.filesystem.stores import current_stores, get_filesystem
from firesteel.runtime.checkpoint.local_state import LocalStateStore
from firesteel.runtime.model.state_handles import FileSegment, InlineBytes, StateBytes

__all__ = ["StateFileReader"]

_log = logging.getLogger(__name__)

_IN_MEMORY = 4 << 20
"""Segments up to that length are read at once; longer ones are not held in memory."""

_HINT = "Restore from another checkpoint or savepoint: this one is damaged and cannot be restored completely."


@final
class StateFileReader:
    """Reads the state of one restore; close it to remove what it keeps on disk meanwhile."""

    def __init__(self, local_state: LocalStateStore | None = None, transfer_threads: int = 4):
        self._local_state = local_state
        self._threads = max(transfer_threads, 1)
        self._lock = threading.Lock()
        self._spool: Path | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._fetched: dict[FileSegment, Future[Path]] = {}

    @classmethod
    def configured(cls, configuration: Configuration, local_state: LocalStateStore | None = None) -> StateFileReader:
        """A reader with as many threads as configured."""
        return cls(local_state, configuration.get(checkpointing_options.STATE_TRANSFER_THREADS))

    def read(self, data: StateBytes) -> bytes:
        """The bytes of a handle. CorruptStateError if they are missing, too few or not those that were written."""
        if isinstance(data, InlineBytes):
            return data.data
        local = self._find_local(data)
        content = b"".join(_chunks(data)) if local is None else local.read_bytes()
        _verify(data, len(content), checksum(content))
        return content

    def open(self, data: StateBytes) -> BinaryIO:
        """The bytes of a handle as a file, verified before this returns; large state is not held in memory."""
        if isinstance(data, InlineBytes) or data.length <= _IN_MEMORY:
            return io.BytesIO(self.read(data))
        local = self._find_local(data)
        if local is not None:
            return local.open("rb", buffering=CHUNK)
        if get_filesystem(data.path).is_local:
            _verify_chunks(data, _chunks(data))
            return cast("BinaryIO", io.BufferedReader(_FileSlice(data), CHUNK))
        return self._fetch(data).open("rb", buffering=CHUNK)

    def download(self, segment: FileSegment, target: Path) -> None:
        """Copies a segment to a local file, which exists only if it is right."""
        target.parent.mkdir(parents=True, exist_ok=True)
        local = self._find_local(segment)
        if local is not None:
            try:
                os.link(local, target)
            except OSError:
                shutil.copyfile(local, target)
            return
        _copy(segment, target)

    def download_all(self, pairs: Iterable[tuple[FileSegment, Path]]) -> None:
        """Copies segments to local files, several at a time."""
        futures = [
            self._executor().submit(current_stores().bind(self.download), segment, target) for segment, target in pairs
        ]
        try:
            for future in futures:
                future.result()
        finally:
            for future in futures:
                future.cancel()

    def prefetch(self, segments: Iterable[FileSegment]) -> None:
        """Starts to copy segments of a remote store to the local disk, where they are found when they are asked for."""
        for segment in segments:
            if get_filesystem(segment.path).is_local or segment in self._fetched:
                continue
            self._fetched[segment] = self._executor().submit(current_stores().bind(self._fetch), segment)

    def close(self) -> None:
        """Ends transfers and removes what was kept on disk."""
        for future in self._fetched.values():
            future.cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        self._fetched.clear()
        if self._spool is not None:
            shutil.rmtree(self._spool, ignore_errors=True)
            self._spool = None

    def _find_local(self, segment: FileSegment) -> Path | None:
        """A local file with exactly the bytes of the segment, verified."""
        fetched = self._fetched.get(segment)
        if fetched is not None:
            return fetched.result()
        if self._local_state is None:
            return None
        found = self._local_state.find(segment)
        if found is None:
            return None
        try:
            _verify_chunks(segment, file_chunks(found))
        except (CorruptStateError, OSError) as error:
            _log.warning("The local copy %s is not used: %s", found, error)
            self._local_state.remove(segment)
            return None
        return found

    def _fetch(self, segment: FileSegment) -> Path:
        target = self._spool_directory() / f"{segment.checksum}-{segment.length}"
        if not target.exists():
            _copy(segment, target)
        return target

    def _spool_directory(self) -> Path:
        with self._lock:
            if self._spool is None:
                self._spool = Path(tempfile.mkdtemp(prefix="firesteel-restore-"))
            return self._spool

    def _executor(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="firesteel-transfer")
        return self._pool

    def __enter__(self) -> StateFileReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _FileSlice(io.RawIOBase):
    """A part of a local file as a file of its own."""

    def __init__(self, segment: FileSegment):
        self._file = Path(segment.path).open("rb", buffering=0)  # noqa: SIM115 - closed with this
        self._file.seek(segment.offset)
        self._start, self._end = segment.offset, segment.offset + segment.length

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        room = min(len(buffer), self._end - self._file.tell())
        return self._file.readinto(memoryview(buffer)[:room]) if room > 0 else 0

    def seek(self, offset: int, whence: int = 0) -> int:
        base = {0: self._start, 1: self._file.tell(), 2: self._end}[whence]
        self._file.seek(max(base + offset, self._start))
        return self.tell()

    def tell(self) -> int:
        return self._file.tell() - self._start

    def close(self) -> None:
        self._file.close()
        super().close()


def _copy(segment: FileSegment, target: Path) -> None:
    """Writes a segment to a file under another name first: a file of that name is right and complete."""
    temporary = target.with_name(f".{target.name}.{threading.get_ident()}")
    try:
        with temporary.open("wb", buffering=0) as file:
            _verify_chunks(segment, _chunks(segment), file)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _chunks(segment: FileSegment) -> Iterator[bytes]:
    try:
        yield from get_filesystem(segment.path).read_chunks(segment.path, segment.offset, segment.length)
    except FileNotFoundError:
        raise CorruptStateError(f"The state file {segment.path} is missing.", path=segment.path, hint=_HINT) from None


def _verify_chunks(segment: FileSegment, chunks: Iterable[bytes], file: BinaryIO | io.FileIO | None = None) -> None:
    digest = new_checksum()
    length = 0
    for chunk in chunks:
        digest.update(chunk)
        length += len(chunk)
        if file is not None:
            file.write(chunk)
    _verify(segment, length, digest.digest().hex())


def _verify(segment: FileSegment, length: int, found: str) -> None:
    where = f"The state file {segment.path} is damaged: bytes {segment.offset} to {segment.offset + segment.length}"
    if length != segment.length:
        raise CorruptStateError(
            f"{where} were expected, but only {length} of {segment.length} are there.", path=segment.path, hint=_HINT
        )
    if found != segment.checksum:
        raise CorruptStateError(
            f"{where} should have the checksum {segment.checksum}, but have {found}.", path=segment.path, hint=_HINT
        )
