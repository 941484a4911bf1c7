"""The shell around a JobMaster: a thread that feeds it events and does what it says."""

from __future__ import annotations

import linecache
import queue
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from firesteel.common.errors import JobCancelledError, JobExecutionError, RecordSerializationError, TaskFailure
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.graph.execution_graph import ExecutionGraph
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster import events, instructions
from firesteel.jobmaster.host import Attempt, AttemptHost
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.job_serialization import serialize_job
from firesteel.jobmaster.restart_strategy import create_restart_strategy
from firesteel.jobmaster.settings import JobMasterSettings
from firesteel.runtime.network.serialization import deserialize_batch

__all__ = ["JobMasterRunner"]

PRINT_CHANNEL = "print"
_END = object()


class JobMasterRunner:
    """Runs one job on a host. Is the JobHandle of its client."""

    def __init__(self, job_graph: JobGraph, host: AttemptHost, serialized: bytes | None = None):
        self.job_graph = job_graph
        configuration = job_graph.configuration
        self._serialized = serialize_job(job_graph) if serialized is None else serialized
        self._host = host
        self._master = JobMaster(
            ExecutionGraph(job_graph),
            create_restart_strategy(configuration),
            JobMasterSettings.from_configuration(configuration),
        )
        self._events: queue.Queue[events.Event] = queue.Queue()
        self._timers: dict[str, int] = {}
        self._collected: dict[str, queue.SimpleQueue[Any]] = {}
        self._result: Future[JobExecutionResult] = Future()
        self._started_at = time.monotonic()
        self._done = False
        self._outcome: tuple[JobExecutionResult | None, BaseException | None] = (None, None)
        self._thread = threading.Thread(
            target=self._run, name=f"firesteel-jobmaster-{job_graph.job_id[:8]}", daemon=True
        )

    def start(self) -> None:
        """Starts the job; returns at once."""
        self._events.put(events.StartJob())
        self._thread.start()

    # -- JobHandle ----------------------------------------------------------------------------------

    def job_id(self) -> JobID:
        """The job's id."""
        return JobID(self.job_graph.job_id)

    def status(self) -> JobStatus:
        """The job's present state."""
        return self._master.status

    def cancel(self) -> Future[None]:
        """Cancels the job; the future completes when it is over."""
        self._events.put(events.CancelJob())
        over: Future[None] = Future()
        self._result.add_done_callback(lambda _result: over.set_result(None))
        return over

    def result_future(self) -> Future[JobExecutionResult]:
        """Completes with the result, or with the error the job ended with."""
        return self._result

    def accumulators(self) -> Mapping[str, Any]:
        """The accumulators' present values."""
        return dict(self._master.accumulators) if self._done else self._master.metrics.accumulators()

    @property
    def has_pending_events(self) -> bool:
        """Whether something has happened that the JobMaster has not dealt with yet."""
        return self._events.unfinished_tasks > 0

    def metrics(self) -> Mapping[Any, Mapping[str, Any]]:
        """The latest metrics by (vertex id, operator id, subtask)."""
        return self._master.metrics.snapshot()

    def collect_iterator(self, channel: str) -> Iterator[Any]:
        """The records of a collect sink, as they come; raises the job's error at the end if it failed."""
        incoming = self._channel(channel)
        while True:
            item = incoming.get()
            if item is _END:
                break
            delivery, payload = item
            yield from self._read(payload)
            self._events.put(delivery)
        error = self._result.exception()
        if error is not None and not isinstance(error, JobCancelledError):
            raise error

    def _read(self, payload: bytes) -> Sequence[Any]:
        try:
            return deserialize_batch(payload).values
        except RecordSerializationError:
            # nobody is left who could take the results
            self.cancel().result()
            raise

    # -- the thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._done:
                for event in self._next_events():
                    for instruction in self._master.handle(event, _now_ms()):
                        self._execute(instruction)
                    if not isinstance(event, events.TimerFired):
                        self._events.task_done()
        except BaseException as error:  # noqa: BLE001 - the client must hear of it
            self._finish(error=error)
        finally:
            try:
                self._host.close()
            finally:
                self._publish()

    def _next_events(self) -> list[events.Event]:
        now = _now_ms()
        due = [name for name, at in self._timers.items() if at <= now]
        for name in due:
            del self._timers[name]
        if due:
            return [events.TimerFired(name) for name in due]
        timeout = (min(self._timers.values()) - now) / 1000 if self._timers else 60.0
        try:
            return [self._events.get(timeout=min(timeout, 60.0))]
        except queue.Empty:
            return []

    def _execute(self, instruction: instructions.Instruction) -> None:
        if isinstance(instruction, instructions.SendToSlot):
            self._host.send(instruction.attempt, instruction.slot_index, instruction.message)
        elif isinstance(instruction, instructions.DeliverToClient):
            self._deliver(instruction)
        elif isinstance(instruction, instructions.SetTimer):
            self._timers[instruction.name] = instruction.at
        elif isinstance(instruction, instructions.CancelTimer):
            self._timers.pop(instruction.name, None)
        elif isinstance(instruction, instructions.StartAttempt):
            attempt = Attempt(instruction.attempt, instruction.slots_needed, self.job_graph, self._serialized)
            self._host.start(attempt, self._events.put)
        elif isinstance(instruction, instructions.KillAttempt):
            self._host.kill(instruction.attempt, instruction.reason)
        elif isinstance(instruction, instructions.JobDone):
            self._complete(instruction)

    def _deliver(self, delivery: instructions.DeliverToClient) -> None:
        consumed = events.ClientConsumed(delivery.attempt, delivery.channel, delivery.subtask, delivery.sequence)
        channel = delivery.channel.partition("#")[0]
        if channel == PRINT_CHANNEL:
            stream, lines = deserialize_batch(delivery.payload).values
            out = sys.stderr if stream == "stderr" else sys.stdout
            out.write("\n".join(lines) + "\n")
            out.flush()
            self._events.put(consumed)
        else:
            self._channel(channel).put((consumed, delivery.payload))

    def _channel(self, channel: str) -> queue.SimpleQueue[Any]:
        return self._collected.setdefault(channel, queue.SimpleQueue())

    def _complete(self, done: instructions.JobDone) -> None:
        if done.status is JobStatus.FINISHED:
            net_runtime = int((time.monotonic() - self._started_at) * 1000)
            self._finish(JobExecutionResult(self.job_id(), net_runtime, dict(done.accumulators)))
        elif done.status is JobStatus.CANCELED:
            self._finish(error=JobCancelledError(f"Job '{self.job_graph.job_name}' was cancelled."))
        else:
            failure = done.failure or TaskFailure("the job failed without saying why")
            self._finish(error=JobExecutionError(self.job_graph.job_name, _with_source(failure)))

    def _finish(self, result: JobExecutionResult | None = None, error: BaseException | None = None) -> None:
        if self._done:
            return
        self._done = True
        self._outcome = result, error

    def _publish(self) -> None:
        """Tells the client how the job ended, once nothing of it is left running."""
        result, error = self._outcome
        if error is not None:
            self._result.set_exception(error)
        else:
            assert result is not None
            self._result.set_result(result)
        for incoming in self._collected.values():
            incoming.put(_END)
        self._collected = _Ended(self._collected)


class _Ended(dict[str, Any]):
    """After the job: a channel keeps what nobody has taken yet; one that never was ends at once."""

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The channel; a new one holds just its end."""
        if key not in self:
            default.put(_END)
            self[key] = default
        return self[key]


def _with_source(failure: TaskFailure) -> TaskFailure:
    """The program's text may be here although it is not where the task ran."""
    if failure.user_source is not None or failure.user_file is None or failure.user_line is None:
        return failure
    return replace(failure, user_source=linecache.getline(failure.user_file, failure.user_line).strip() or None)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
