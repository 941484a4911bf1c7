"""Split fetcher: reads a split in a thread of its own, for remote file systems."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from firesteel.filesystem.stores import current_stores
from firesteel.formats.format_reader import FetchedBatch, FormatReader

__all__ = ["SplitFetcher"]

_MAX_READY_BATCHES = 4
"""How many batches may wait for the task."""

_END_TIMEOUT_S = 5.0
"""How long to wait for a thread that is in the middle of a request."""


class SplitFetcher:
    """Opens a reader and fetches its batches, a few ahead; the task takes them when they are there."""

    def __init__(self, open_reader: Callable[[], FormatReader], name: str) -> None:
        self._open_reader = open_reader
        self._changed = threading.Condition()
        self._ready: deque[FetchedBatch] = deque()
        self._reader: FormatReader | None = None
        self._error: Exception | None = None
        self._ended = False
        self._stopped = False
        self._thread = threading.Thread(
            target=current_stores().bind(self._run), name=f"firesteel-fetch-{name}", daemon=True
        )
        self._thread.start()

    @property
    def reader(self) -> FormatReader:
        """What decodes the batches: there once a batch is."""
        assert self._reader is not None
        return self._reader

    def take(self, timeout_s: float) -> FetchedBatch | None:
        """The next batch, None if there is none yet; raises what the reader raised."""
        with self._changed:
            if timeout_s > 0:
                self._changed.wait_for(lambda: self._ready or self._ended, timeout_s)
            if self._ready:
                batch = self._ready.popleft()
                self._changed.notify_all()
                return batch
            if self._error is not None:
                raise self._error
            return None

    @property
    def at_end(self) -> bool:
        """Whether all batches were taken."""
        with self._changed:
            return self._ended and not self._ready and self._error is None

    def close(self) -> None:
        """Ends the thread and closes the reader."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join(_END_TIMEOUT_S)
        if self._reader is not None:
            self._reader.close()

    def _run(self) -> None:
        error: Exception | None = None
        try:
            reader = self._open_reader()
            self._reader = reader
            while (batch := reader.fetch()) is not None:
                with self._changed:
                    self._ready.append(batch)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._stopped or len(self._ready) < _MAX_READY_BATCHES)
                    if self._stopped:
                        break
                if batch.is_last:
                    break
        except Exception as raised:  # noqa: BLE001 - raised again in the task
            error = raised
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()
