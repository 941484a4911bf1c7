"""Runs the tasks behind a DataFrame: the last ones hand out Arrow batches while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue

from firesteel.common.errors import FiresteelError
from firesteel.runtime.blocking.errors import StageTaskError, failure_of
from firesteel.runtime.blocking.orders import BatchOrder
from firesteel.runtime.blocking.rows import BATCH, pack_number, pack_row
from firesteel.runtime.operators.specs import SinkSpec

__all__ = ["current_outbox", "run_dataframe_task"]

_ROOM = 4
_POLL_S = 0.05
_local = threading.local()


class DataFrameTaskError(FiresteelError):
    """A task of the program behind a DataFrame has failed; Spark shows the text of this."""


class _Abandoned(Exception):
    """Nobody wants the rest of what the task would give."""


def current_outbox() -> Callable[[bytes], None]:
    """Where the writer of a DataFrame's sink, in the thread that runs its task, puts its batches."""
    put: Callable[[bytes], None] | None = getattr(_local, "put", None)
    if put is None:
        raise FiresteelError("Only a job made by to_dataframe can end in a DataFrame.")
    return put


def run_dataframe_task(order: BatchOrder, rows: Iterator[bytes]) -> Iterator[bytes]:
    """As run_batch_task; a task that ends in a DataFrame's sink yields its Arrow batches as rows of kind BATCH."""
    try:
        if any(isinstance(operator.spec, SinkSpec) for operator in order.descriptor.task.operators):
            yield from _ResultTask(order, rows)
        else:
            yield from _run(order, rows)
    except StageTaskError as error:
        # no JobMaster listens: what the user sees is Spark's exception, which ends with this text
        failure = failure_of(error.messages)
        raise DataFrameTaskError(f"{error.message if failure is None else failure.describe()}") from None


def _run(order: BatchOrder, rows: Iterator[bytes]) -> Iterator[bytes]:
    from firesteel.runtime.blocking.batch_task import run_batch_task

    return run_batch_task(order, rows)


class _ResultTask:
    """Runs a task in a thread of its own: it calls its sink, while Spark asks for one row after the other.

    The thread waits while there is no room; if Spark wants no more, as after a LIMIT, it ends at its next row.
    """

    def __init__(self, order: BatchOrder, rows: Iterator[bytes]) -> None:
        self._order = order
        self._rows = rows
        self._batches: Queue[bytes] = Queue(_ROOM)
        self._reports: list[bytes] = []
        self._error: BaseException | None = None
        self._is_abandoned = False
        self._thread = threading.Thread(target=self._work, name="firesteel-dataframe", daemon=True)

    def __iter__(self) -> Iterator[bytes]:
        self._thread.start()
        sequence, number = 0, pack_number(0)
        try:
            while True:
                is_over = not self._thread.is_alive()
                try:
                    batch = self._batches.get(timeout=_POLL_S)
                except Empty:
                    if is_over:
                        break
                    continue
                yield number
                yield pack_row(BATCH, 0, self._order.descriptor.task.subtask, sequence, batch)
                sequence += 1
            if self._error is not None:
                raise self._error
            yield from self._reports
        finally:
            self._is_abandoned = True
            self._thread.join()

    def _work(self) -> None:
        _local.put = self._put
        try:
            self._reports += _run(self._order, self._input())
        except BaseException as error:  # noqa: BLE001 - raised where Spark sees it
            self._error = error
        finally:
            del _local.put

    def _input(self) -> Iterator[bytes]:
        for row in self._rows:
            if self._is_abandoned:
                raise _Abandoned
            yield row

    def _put(self, batch: bytes) -> None:
        while not self._is_abandoned:
            try:
                return self._batches.put(batch, timeout=_POLL_S)
            except Full:
                continue
        raise _Abandoned
