"""Result buffer for the client of a job: in memory, and spilled to disk beyond a limit."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import weakref

__all__ = ["ResultBuffer", "StoredPayload"]

_log = logging.getLogger(__name__)
_IN_MEMORY = 64 << 20
_SEGMENT_BYTES = 64 << 20
"""The size from which another file is begun: a file is deleted as soon as nothing in it is needed."""


class _Segment:
    """A file without a name: it is gone when it is closed, also if the process is killed."""

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="firesteel-results-", buffering=0)  # noqa: SIM115 - closed in close
        self._descriptor = file.fileno()
        self._close = weakref.finalize(self, file.close)
        self.size = 0
        self.payloads = 0
        """How many are still needed."""

    def write(self, payload: bytes) -> int:
        """Appends a payload; where it begins. What an error leaves is written over."""
        begin, left = self.size, memoryview(payload)
        while left:
            written = os.pwrite(self._descriptor, left, begin + len(payload) - len(left))
            left = left[written:]
        self.size += len(payload)
        return begin

    def read(self, begin: int, size: int) -> bytes:
        parts = []
        while size:
            part = os.pread(self._descriptor, size, begin)
            if not part:
                raise EOFError("A file of results ends too early.")
            parts.append(part)
            begin, size = begin + len(part), size - len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Deletes the file."""
        self._close()


class StoredPayload:
    """A payload in a ResultBuffer. Its length is that of the payload."""

    __slots__ = ("attempt", "begin", "content", "segment", "size")

    def __init__(self, attempt: int, size: int) -> None:
        self.attempt = attempt
        self.size = size
        self.content: bytes | None = None
        """None if it lies in a file."""
        self.segment: _Segment | None = None
        self.begin = 0

    def __len__(self) -> int:
        return self.size


class ResultBuffer:
    """Keeps the payloads of a job's channels until its client takes them. Methods may be called from any thread.

    A payload is first *held*, for the attempt that sent it. Once it is `deliver`-ed it stays until it is taken.
    """

    def __init__(self, in_memory: int = _IN_MEMORY, segment: int = _SEGMENT_BYTES) -> None:
        self._limit = in_memory
        self._segment_size = segment
        self._lock = threading.Lock()
        self._in_memory = 0
        self._segment: _Segment | None = None
        """The one that is written to."""
        self._held: set[StoredPayload] = set()

    @property
    def bytes_in_memory(self) -> int:
        """How much of the payloads is not on disk."""
        return self._in_memory

    def keep(self, attempt: int, payload: bytes) -> StoredPayload:
        """Takes a payload; on disk, if there is much in memory already."""
        stored = StoredPayload(attempt, len(payload))
        with self._lock:
            self._held.add(stored)
            if self._in_memory + len(payload) > self._limit and self._spill(stored, payload):
                return stored
            stored.content = payload
            self._in_memory += len(payload)
        return stored

    def deliver(self, stored: StoredPayload) -> None:
        """The client may take it from now on, even if the attempt fails."""
        with self._lock:
            self._held.discard(stored)

    def take(self, stored: StoredPayload) -> bytes:
        """The payload itself, which is not kept any longer."""
        with self._lock:
            self._held.discard(stored)
            payload = stored.content
            if payload is None:
                assert stored.segment is not None, "it was taken before"
                payload = stored.segment.read(stored.begin, stored.size)
            self._release(stored)
            return payload

    def discard(self, stored: StoredPayload) -> None:
        """The payload is dropped."""
        with self._lock:
            self._held.discard(stored)
            self._release(stored)

    def forget_before(self, attempt: int) -> None:
        """Forgets what is held for earlier attempts."""
        with self._lock:
            forgotten = {stored for stored in self._held if stored.attempt < attempt}
            self._held -= forgotten
            for stored in forgotten:
                self._release(stored)

    def _spill(self, stored: StoredPayload, payload: bytes) -> bool:
        """Writes a payload to a file; False if that cannot be done, and memory has to do."""
        try:
            if self._segment is None or self._segment.size >= self._segment_size:
                self._leave_segment()
                self._segment = _Segment()
            stored.begin = self._segment.write(payload)
        except OSError as error:
            _log.warning("Results that a client has not read stay in memory, as they cannot be written: %s", error)
            return False
        stored.segment = self._segment
        self._segment.payloads += 1
        return True

    def _release(self, stored: StoredPayload) -> None:
        if stored.content is not None:
            stored.content = None
            self._in_memory -= stored.size
        elif stored.segment is not None:
            segment, stored.segment = stored.segment, None
            segment.payloads -= 1
            if not segment.payloads:
                if segment is self._segment:
                    self._segment = None
                segment.close()

    def _leave_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None and not segment.payloads:
            segment.close()
