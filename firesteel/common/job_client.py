"""A client's view of one submitted job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from firesteel.api.notebook import Link, html_table
from firesteel.common.completable_future import CompletableFuture
from firesteel.common.errors import FiresteelError
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus

__all__ = ["JobClient", "JobHandle"]


class JobHandle(Protocol):
    """Client-facing services of a job runner; a future may be returned instead of a value."""

    def job_id(self) -> JobID:
        """The id the job runs under."""
        ...

    def status(self) -> JobStatus:
        """The job's present state."""
        ...

    def cancel(self) -> Any:
        """Starts cancelling the job; a future if it takes time."""
        ...

    def result_future(self) -> Future[Any] | CompletableFuture:
        """Completes with a JobExecutionResult, or with the error the job ended with."""
        ...

    def accumulators(self) -> Mapping[str, Any]:
        """The accumulators' present values."""
        ...


class JobClient:
    """Monitors, cancels and waits for a job.

    A handle that has ``stop_with_savepoint(advance_to_end_of_event_time, directory)`` and
    ``trigger_savepoint(directory)`` gives the client its savepoints as well.
    """

    def __init__(self, handle: JobHandle):
        self._handle = handle
        self._result: CompletableFuture | None = None
        """The future returned by earlier calls."""

    def get_job_id(self) -> JobID:
        """The id of the job."""
        return self._handle.job_id()

    def get_job_status(self) -> CompletableFuture:
        """A future of the job's present :class:`JobStatus`."""
        return _future_of(self._handle.status)

    def cancel(self) -> CompletableFuture:
        """Cancels the job; the future completes when the cancellation has started or completed."""
        return _future_of(self._handle.cancel)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> CompletableFuture:
        """Stops the sources, takes a savepoint and ends the job; a future of the savepoint's path."""
        stop = self._savepoint_method("stop_with_savepoint")
        return _future_of(lambda: stop(advance_to_end_of_event_time, savepoint_directory))

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture:
        """Takes a savepoint of the running job; returns a future of its path."""
        trigger = self._savepoint_method("trigger_savepoint")
        return _future_of(lambda: trigger(savepoint_directory))

    def get_accumulators(self) -> CompletableFuture:
        """A future of the accumulators' present values by name."""
        return _future_of(lambda: dict(self._handle.accumulators()))

    def get_metrics(self) -> CompletableFuture:
        """A future of the latest metrics by (vertex id, operator id, subtask), empty where there are none.

        A task's own metrics have '' for an operator id. PyFlink has no such method.
        """
        metrics: Callable[[], Mapping[Any, Mapping[str, Any]]] | None = getattr(self._handle, "metrics", None)
        return _future_of(lambda: {} if metrics is None else dict(metrics()))

    def get_job_execution_result(self) -> CompletableFuture:
        """A future of the :class:`JobExecutionResult`, complete when the job has ended. Cancelling it keeps the job."""
        if self._result is None or self._result.cancelled():
            self._result = _future_of(self._handle.result_future)
        return self._result

    def __repr__(self) -> str:
        return f"<JobClient of job {self.get_job_id()}>"  # without the status, which may need a request

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("Job id", self.get_job_id()), ("Status", self._shown_status())]
        url: str | None = getattr(self._handle, "web_url", None)
        if url is not None:
            rows.append(("Web UI", Link(url)))
        return html_table("Job", rows)

    def _shown_status(self) -> str:
        try:
            return self._handle.status().name
        except Exception as error:  # noqa: BLE001 - a cluster that cannot be reached; what is shown must not fail
            return f"unknown status ({type(error).__name__})"

    def _savepoint_method(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] | None = getattr(self._handle, name, None)
        if method is None:

            def unsupported(*_: Any) -> Any:
                raise FiresteelError(
                    f"Job {self.get_job_id()} cannot take savepoints: its runner does not support them.",
                    hint="cancel() ends the job without a savepoint.",
                )

            return unsupported
        return method


def _future_of(call: Callable[[], Any]) -> CompletableFuture:
    try:
        outcome = call()
    except Exception as error:  # noqa: BLE001 - the caller finds it in the future
        return CompletableFuture.failed(error)
    if isinstance(outcome, CompletableFuture):
        return outcome
    return CompletableFuture(outcome) if isinstance(outcome, Future) else CompletableFuture.completed(outcome)
