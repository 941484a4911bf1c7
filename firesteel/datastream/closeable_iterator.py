"""The results of a running job, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from firesteel.api.generics import Generic, T_co
from firesteel.common.job_client import JobClient

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["CloseableIterator"]


class CloseableIterator(Generic[T_co]):
    """Iterates over the results of a job; closing it early cancels the job.

    The iteration ends when the job has ended; if the job failed, its error is raised at the end.
    """

    def __init__(self, iterator: Iterator[T_co], job_client: JobClient):
        self._iterator = iterator
        self._job_client = job_client
        self._finished = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T_co:
        return self.next()

    def __repr__(self) -> str:
        return f"<CloseableIterator over the results of {self._job_client!r}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()

    def next(self) -> T_co:
        """The next result."""
        if self._finished:
            raise StopIteration
        try:
            return next(self._iterator)
        except StopIteration:
            self._finished = True
            self._job_client.get_job_execution_result().result()
            raise

    def close(self) -> None:
        """Cancels the job unless it has ended; may be called more than once."""
        if self._finished:
            return
        self._finished = True
        result = self._job_client.get_job_execution_result()
        if not result.done():
            self._job_client.cancel().result()
            # its slots are free for the next job only once this one is over; how it ended is of no interest
            with suppress(Exception):
                result.result()
        close = getattr(self._iterator, "close", None)
        if close is not None:
            with suppress(ValueError):  # another thread waits in it for a result, and hears of the end by itself
                close()
