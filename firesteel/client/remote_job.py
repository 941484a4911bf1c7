"""RemoteJob: the handle of a job on a cluster, for the program that submitted it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from firesteel.client.connection import PATIENCE_S, ClusterClient
from firesteel.client.metrics import metric_names, metric_values
from firesteel.client.savepoints import trigger_savepoint, trigger_stop
from firesteel.common.errors import FiresteelError, JobCancelledError, JobExecutionError, TaskFailure
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.process.futures import complete, dependent, fail
from firesteel.rest import jobs as rest
from firesteel.rest.client import ConnectionFailedError, RestClientError
from firesteel.rest.endpoint import Endpoint
from firesteel.rest.submission import CANCEL_JOB, CLIENT_HEARTBEAT, JOB_CHANNEL, ClientHeartbeat
from firesteel.runtime.model.serialization import deserialize_batch

__all__ = ["DetachedResult", "RemoteJob", "ResultsLostError", "failure_of"]

_FIRST_POLL_S, _LAST_POLL_S = 0.02, 0.5
_CHANNEL_WAIT_MS = 5000
_TRACEBACK = "Traceback (most recent call last):"
_HEARTBEAT_S, _HEARTBEAT_TIMEOUT_S = 30.0, 180.0

OnStatus = Callable[[JobStatus], None]


class ResultsLostError(FiresteelError):
    """The remaining results of a collect sink are lost."""


class RemoteJob:
    """The handle of a job's client.

    After ``watch``, a thread monitors the job until it ends, unless it is detached: then an empty result is available
    at once. With ``heartbeat``, the cluster cancels the job when this process has ended.
    """

    def __init__(
        self,
        client: ClusterClient,
        job_id: str,
        job_name: str,
        *,
        detached: bool = False,
        heartbeat: bool = False,
        on_status: OnStatus | None = None,
    ):
        self._client = client
        self._id = job_id
        self.job_name = job_name
        self._heartbeat = heartbeat
        self._on_status = on_status
        self._result: Future[Any] = Future()
        self._detached = detached
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"firesteel-watch-{job_id[:8]}", daemon=True)
        if detached:
            self._result.set_result(DetachedResult(JobID(job_id)))

    def watch(self) -> None:
        """Begins to monitor the job."""
        if not self._detached:
            self._thread.start()

    def job_id(self) -> JobID:
        return JobID(self._id)

    @property
    def web_url(self) -> str:
        """The job's page in the web UI."""
        return f"{self._client.url}/#/jobs/{self._id}"

    def status(self) -> JobStatus:
        return JobStatus[self._call(rest.JOB_STATUS).status]

    def cancel(self) -> Future[None]:
        """Cancels the job; the future completes when it has ended, or at once if it is detached."""
        over: Future[None] = Future()
        try:
            self._client.call(CANCEL_JOB, {"jobid": self._id})
        except RestClientError as error:
            if error.status != 409:  # it has ended by itself
                raise
        self._result.add_done_callback(lambda _: complete(over, None))
        return over

    def result_future(self) -> Future[Any]:
        """Completes with the result, or with the error the job ended with."""
        return dependent(self._result)

    def accumulators(self) -> Mapping[str, Any]:
        """The current values of the accumulators: numbers and strings unchanged, others as text."""
        return {each.name: _value(each) for each in self._call(rest.JOB_ACCUMULATORS).user_task_accumulators}

    def metrics(self) -> Mapping[Any, Mapping[str, Any]]:
        """The latest metrics by (vertex id, operator name, subtask); those of a task have '' for an operator."""
        found: dict[tuple[str, str, int], dict[str, Any]] = {}
        for vertex in self._call(rest.JOB).vertices:
            names = metric_names(self._client, self._id, vertex.id)
            for subtask, full_name, value in metric_values(self._client, self._id, vertex.id, names):
                operator, _, name = full_name.rpartition(".")
                if subtask.isdecimal() and value is not None:
                    found.setdefault((vertex.id, operator, int(subtask)), {})[name] = _number(value)
        return found

    def trigger_savepoint(self, savepoint_directory: str | None = None) -> Future[str]:
        """Takes a savepoint of the running job; returns a future of its path."""
        return _in_background(lambda: trigger_savepoint(self._client, self._id, savepoint_directory))

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None
    ) -> Future[str]:
        """Stops the sources, takes a savepoint and ends the job; returns a future of the savepoint's path."""
        drain = advance_to_end_of_event_time
        return _in_background(lambda: trigger_stop(self._client, self._id, savepoint_directory, drain=drain))

    def collect_iterator(self, channel: str) -> Iterator[Any]:
        """Iterates over the records of a collect sink as they arrive; raises the job's error at the end."""
        received, run = 0, ""
        while True:
            query = {"received": received, "timeout": _CHANNEL_WAIT_MS}
            try:
                answer = self._client.call(
                    JOB_CHANNEL, {"jobid": self._id, "channel": channel}, query, patience=PATIENCE_S
                )
            except RestClientError as error:
                if error.status == 409:
                    raise ResultsLostError(error.message) from None
                raise
            if received and answer.run and answer.run != run:
                raise ResultsLostError(
                    f"Another JobManager has taken over job '{self.job_name}': results in transit are lost.",
                    hint="Run the program again. Use a sink for results that must not be lost.",
                )
            run = answer.run or run
            for payload in answer.payloads[received - answer.first :]:
                yield from deserialize_batch(payload).values
                received += 1
            if answer.end and received == answer.first + len(answer.payloads):
                break
        self._raise_failure()

    def close(self) -> None:
        """Stops monitoring the job; the job continues."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(_LAST_POLL_S + 5)

    def _raise_failure(self) -> None:
        error = None if self._detached else self._result.exception()
        if error is not None and not isinstance(error, JobCancelledError):
            raise error

    def _call(self, endpoint: Endpoint[Any, Any]) -> Any:
        return self._client.call(endpoint, {"jobid": self._id}, patience=PATIENCE_S)

    # -- the thread ---------------------------------------------------------------------------------

    def _watch(self) -> None:
        pause, beat_at = _FIRST_POLL_S, 0.0
        known: JobStatus | None = None
        try:
            while True:
                if self._heartbeat and time.monotonic() >= beat_at:
                    self._beat()
                    beat_at = time.monotonic() + _HEARTBEAT_S
                status = self.status()
                if status is not known:
                    known, pause = status, _FIRST_POLL_S
                    if self._on_status is not None:
                        self._on_status(status)
                if status.is_globally_terminal_state():
                    break
                if self._closed.wait(pause):
                    return
                pause = min(pause * 1.5, _LAST_POLL_S)
            self._finish(self._call(rest.JOB_EXECUTION_RESULT).job_execution_result)
        except BaseException as error:  # noqa: BLE001 - the caller that waits for the result must get it
            with suppress(Exception):
                self._result.set_exception(self._lost(error))

    def _beat(self) -> None:
        body = ClientHeartbeat(int((time.time() + _HEARTBEAT_TIMEOUT_S) * 1000), int(_HEARTBEAT_TIMEOUT_S * 1000))
        with suppress(ConnectionFailedError, RestClientError):
            self._client.call(CLIENT_HEARTBEAT, {"jobid": self._id}, body=body)

    def _finish(self, ended: rest.JobExecutionResult) -> None:
        if ended.application_status == "SUCCEEDED":
            values = self.accumulators()
            self._result.set_result(JobExecutionResult(JobID(self._id), ended.net_runtime, values))
        elif ended.application_status == "CANCELED":
            self._result.set_exception(JobCancelledError(f"Job '{self.job_name}' was cancelled."))
        else:
            self._result.set_exception(failure_of(self.job_name, ended))

    def _lost(self, error: BaseException) -> BaseException:
        if not isinstance(error, FiresteelError):
            return error
        return FiresteelError(
            f"Job '{self.job_name}' ({self._id}) can no longer be monitored: {error.message}",
            hint=f"The job may still be running. Check it with firesteel status {self._id} when the cluster responds.",
        )


def failure_of(job_name: str, ended: rest.JobExecutionResult) -> JobExecutionError:
    """The error of a failed job, as an embedded job would raise it."""
    cause = ended.failure_cause
    if not isinstance(cause, rest.FailureCause):
        return JobExecutionError(job_name, TaskFailure("No cause was reported."))
    told, begins, trace = cause.stack_trace.partition(_TRACEBACK)
    return JobExecutionError(job_name, TaskFailure(told.rstrip(), traceback=(begins + trace).strip()))


class DetachedResult(JobExecutionResult):
    """The handle of a job that is not waited for: its id."""

    def __init__(self, job_id: JobID):
        super().__init__(job_id, 0)

    def get_net_runtime(self) -> int:
        """Not known."""
        raise _not_known()

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Not known."""
        raise _not_known()

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Not known."""
        raise _not_known()

    def __str__(self) -> str:
        return f"Job {self.get_job_id()} was submitted."


def _not_known() -> FiresteelError:
    return FiresteelError(
        "The job was submitted in detached mode: its run time and accumulators are not available.",
        hint="Run the program without -d.",
    )


def _in_background(call: Callable[[], str]) -> Future[str]:
    future: Future[str] = Future()

    def run() -> None:
        try:
            complete(future, call())
        except BaseException as error:  # noqa: BLE001 - the caller finds it in the future
            fail(future, error)

    threading.Thread(target=run, name="firesteel-request", daemon=True).start()
    return future


def _value(accumulator: rest.Accumulator) -> Any:
    """An accumulator's value, which comes as text with the name of its type."""
    try:
        if accumulator.type in ("int", "float"):
            return int(accumulator.value) if accumulator.type == "int" else float(accumulator.value)
    except ValueError:
        pass
    return accumulator.value == "True" if accumulator.type == "bool" else accumulator.value


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
