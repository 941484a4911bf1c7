"""Savepoint and checkpoint requests of clients, until they are completed."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field

from firesteel.common.errors import CheckpointError
from firesteel.process.futures import complete, dependent, fail

__all__ = ["SnapshotRequests"]


@dataclass
class _Request:
    stops: bool
    path: str | None = None
    """Where the savepoint is, for a request that waits for the end of the job."""
    future: Future[str] = field(default_factory=Future)


class SnapshotRequests:
    """Matches requests with their outcome. All methods may be called from any thread.

    A request that is to stop the job is done when the job has ended. Clients may cancel what they are given: the
    snapshot is taken all the same.
    """

    def __init__(self, job_name: str):
        self._job_name = job_name
        self._lock = threading.Lock()
        self._open: dict[str, _Request] = {}
        self._count = 0
        self._is_over = False

    def add(self, *, stops: bool) -> tuple[int, Future[str]]:
        """A new request: its number, and a future of the path. After the end of the job it has failed already."""
        request = _Request(stops)
        with self._lock:
            self._count += 1
            number, is_over = self._count, self._is_over
            if not is_over:
                self._open[str(number)] = request
        if is_over:
            fail(request.future, self._ended_before())
        return number, dependent(request.future)

    def done(self, request_id: str, path: str) -> None:
        with self._lock:
            request = self._open.get(request_id)
            if request is None:
                return
            if request.stops:
                request.path = path
                return
            del self._open[request_id]
        complete(request.future, path)

    def failed(self, request_id: str, error: CheckpointError) -> None:
        """There will be no snapshot."""
        with self._lock:
            request = self._open.pop(request_id, None)
        if request is not None:
            fail(request.future, error)

    def end_stops(self, why_not: str | None) -> None:
        """A job whose savepoint is complete has ended; or ``why_not``, if it has restarted or failed."""
        with self._lock:
            ended = {number: request for number, request in self._open.items() if request.path is not None}
            for number in ended:
                del self._open[number]
        for request in ended.values():
            assert request.path is not None
            if why_not is None:
                complete(request.future, request.path)
            else:
                fail(request.future, CheckpointError(f"The savepoint is at {request.path}, but {why_not}."))

    def close(self) -> None:
        """The job is over: pending and later requests fail."""
        with self._lock:
            self._is_over = True
            left = list(self._open.values())
            self._open.clear()
        for request in left:
            fail(request.future, self._ended_before())

    def _ended_before(self) -> CheckpointError:
        return CheckpointError(f"Job '{self._job_name}' ended before.")
