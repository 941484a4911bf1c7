"""Reads the rows of a result in a thread, so that the one of the terminal can do other things while it waits."""

from __future__ import annotations

import queue
import threading

from firesteel.cli.sql.execution.result import ResultRow, RowSource

__all__ = ["Feed"]

_MAX_BATCHES = 64
_PATIENCE_S = 0.1


class Feed:
    """The rows of a result as they come. A reader that does not take them holds up the job."""

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self._queue: queue.Queue[list[ResultRow] | BaseException | None] = queue.Queue(_MAX_BATCHES)
        self._is_cancelled = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._read, name="firesteel-sql-result", daemon=True)
        self._thread.start()

    def take(self, timeout_s: float = 0.0) -> list[ResultRow] | None:
        """The next rows; none of them if none come in time, None after the last ones. Raises the error of the job."""
        if self._is_over:
            return None
        try:
            item = self._queue.get(timeout=timeout_s) if timeout_s else self._queue.get_nowait()
        except queue.Empty:
            return []
        if item is None or isinstance(item, BaseException):
            self._is_over = True
        if isinstance(item, BaseException):
            raise item
        return item

    def progress(self) -> tuple[int, int] | None:
        """How many tasks have ended, of how many."""
        return self._source.progress()

    def cancel(self) -> None:
        """Ends the job, and the rows."""
        self._is_cancelled.set()
        if not self._is_over:
            self._is_over = True
            self._source.cancel()

    def join(self, timeout_s: float | None = None) -> None:
        """Waits for the thread, after the end or a cancellation."""
        self._thread.join(timeout_s)

    def _read(self) -> None:
        try:
            for batch in self._source.batches():
                self._put(batch)
                if self._is_cancelled.is_set():
                    return
            self._put(None)
        except BaseException as error:  # noqa: BLE001 - whoever takes the rows is told
            self._put(error)

    def _put(self, item: list[ResultRow] | BaseException | None) -> None:
        while not self._is_cancelled.is_set():
            try:
                self._queue.put(item, timeout=_PATIENCE_S)
            except queue.Full:
                continue
            return
