"""Results that a client fetches page by page."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from firesteel.gateway.errors import SqlExecutionError
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.session import Session
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.environment.results.result import ResultRows
from firesteel.table.result_kind import ResultKind

__all__ = ["MAX_ROWS", "Page", "ResultInfo", "ResultPages"]

MAX_ROWS = 5000
"""Rows that are kept for a client that does not fetch them; with the last batch there may be more."""


@dataclass(frozen=True)
class ResultInfo:
    """What all pages of a result have in common."""

    schema: ResolvedSchema
    kind: ResultKind
    is_query: bool
    job_id: str | None
    session: Session


@dataclass(frozen=True)
class Page:
    """Rows from one token to the next; ``is_end`` is a page without rows after which there is none."""

    batches: tuple[ColumnBatch, ...]
    is_end: bool = False


class ResultPages:
    """The rows of one result, as they come.

    A thread reads the rows until so many are waiting that the client must fetch some first: then the job waits, too.
    The pages have numbers, the tokens. A client asks for the next page, or again for the one it got last, of which
    it may have lost the answer.
    """

    def __init__(self, info: ResultInfo, rows: ResultRows, *, is_ready: bool, name: str) -> None:
        self.info = info
        self._rows = rows
        self._lock = threading.Condition()
        self._fetching = threading.Lock()
        self._waiting: deque[ColumnBatch] = deque()
        self._waiting_rows = 0
        self._is_read = False
        self._is_closed = False
        self._failure: BaseException | None = None
        self._token = 0
        self._last: Page | None = None
        if is_ready:  # they are in memory anyhow
            self._waiting.extend(batch for batch in rows if len(batch))
            self._waiting_rows = sum(map(len, self._waiting))
            self._is_read = True
        else:
            threading.Thread(target=self._read, name=name, daemon=True).start()

    def fetch(self, token: int, timeout_s: float) -> Page:
        """The page of a token; waits for rows, but not longer than the timeout.

        A page without rows that is not the end says that none have come yet.
        """
        with self._fetching:
            if self._last is not None and (token == self._token - 1 or (self._last.is_end and token == self._token)):
                return self._last
            if token != self._token:
                expected = f"{self._token}" if self._last is None else f"{self._token} or {self._token - 1}"
                raise SqlExecutionError(f"Expecting token to be {expected}, but found {token}.")
            self._last = self._next(timeout_s)
            if not self._last.is_end:
                self._token += 1
            return self._last

    def close(self) -> None:
        """Ends the job, unless it has ended, and forgets the rows."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()
            self._waiting_rows = 0
            self._lock.notify_all()
            has_ended = self._is_read
        if not has_ended:
            self._rows.close()

    @property
    def has_ended(self) -> bool:
        """Whether all rows were read, or reading them failed."""
        return self._is_read

    def _next(self, timeout_s: float) -> Page:
        with self._lock:
            self._lock.wait_for(lambda: self._waiting or self._is_read or self._is_closed, timeout_s)
            if self._waiting:
                page = self._taken()
                self._lock.notify_all()
                return page
            if self._failure is not None:
                raise SqlExecutionError("Error while retrieving result.", self._failure)
            return Page((), is_end=self._is_read or self._is_closed)

    def _taken(self) -> Page:
        """All rows that wait, up to the maximum."""
        taken: list[ColumnBatch] = []
        room = MAX_ROWS
        while self._waiting and room:
            batch = self._waiting.popleft()
            if len(batch) > room:
                self._waiting.appendleft(batch.slice(room, len(batch) - room))
                batch = batch.slice(0, room)
            taken.append(batch)
            room -= len(batch)
            self._waiting_rows -= len(batch)
        return Page(tuple(taken))

    def _read(self) -> None:
        try:
            for batch in self._rows:
                if not len(batch):
                    continue
                with self._lock:
                    self._lock.wait_for(lambda: self._waiting_rows < MAX_ROWS or self._is_closed)
                    if self._is_closed:
                        return
                    self._waiting.append(batch)
                    self._waiting_rows += len(batch)
                    self._lock.notify_all()
        except BaseException as error:  # noqa: BLE001 - the client gets it
            self._failure = error
        finally:
            with self._lock:
                self._is_read = True
                self._lock.notify_all()
