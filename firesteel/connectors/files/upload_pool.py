"""Upload threads of a FileSink's writer."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from firesteel.common.errors import FileWriteError
from firesteel.filesystem.s3_uploads import S3Uploads

__all__ = ["UploadPool"]

T = TypeVar("T")

_EXTRA_TIMEOUT_S = 30.0
"""More than the requests take themselves, which have deadlines of their own: nothing waits without end."""


class UploadPool:
    """Runs uploads in the order in which they are submitted, some at a time; threads start with the first."""

    def __init__(self, uploads: S3Uploads, path: str) -> None:
        self._limit = 2 * uploads.concurrency
        self._deadline_s = uploads.timeout_s + _EXTRA_TIMEOUT_S
        self._path = path
        self._executor = ThreadPoolExecutor(uploads.concurrency, thread_name_prefix="firesteel-s3-upload")
        self._open: set[Future[Any]] = set()
        self._failure: BaseException | None = None

    def has_room(self) -> bool:
        """Whether less is waiting than may be kept in memory."""
        return len(self._open) < self._limit

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Has work done in a thread; waits if far too much is waiting, as in the middle of a large batch."""
        self.check()
        while len(self._open) >= 2 * self._limit:
            done, _ = concurrent.futures.wait(
                self._open, self._deadline_s, return_when=concurrent.futures.FIRST_COMPLETED
            )
            if not done:
                raise self._late()
            self.check()
        future = self._executor.submit(work, *arguments)
        self._open.add(future)
        future.add_done_callback(self._finished)
        return future

    def run_aside(self, work: Callable[[], None]) -> Future[None]:
        """Submits work that has a low priority and does not fail."""
        return self._executor.submit(work)

    def check(self) -> None:
        """Raises what an upload has failed with."""
        if self._failure is not None:
            raise self._failure

    def results(self, futures: list[Future[T]]) -> list[T]:
        """What uploads have returned, once they have."""
        deadline = time.monotonic() + self._deadline_s
        try:
            return [future.result(max(0.0, deadline - time.monotonic())) for future in futures]
        except concurrent.futures.TimeoutError:
            raise self._late() from None

    def close(self) -> None:
        """Drops what has not begun and waits for what has."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _finished(self, future: Future[Any]) -> None:
        self._open.discard(future)
        if not future.cancelled() and self._failure is None:
            self._failure = future.exception()

    def _late(self) -> FileWriteError:
        return FileWriteError(
            f"The output to '{self._path}' was not uploaded within {self._deadline_s:g} s.",
            path=self._path,
            hint="The service is slower than the stream. The timeout is s3.upload.timeout plus "
            f"{_EXTRA_TIMEOUT_S:g} s; s3.upload.max.concurrent.uploads is the number of concurrent uploads.",
        )
