"""JobMaster runner: a thread that passes events to a JobMaster and executes its instructions."""

from __future__ import annotations

import heapq
import itertools
import linecache
import logging
import queue
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from firesteel.common.errors import (
    CheckpointError,
    FiresteelWarning,
    HostError,
    InvalidProgramError,
    JobCancelledError,
    JobExecutionError,
    NotEnoughSlotsError,
    RecordSerializationError,
    TaskFailure,
)
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.filesystem.stores import current_stores
from firesteel.graph.execution import JobExecution
from firesteel.graph.execution_graph import ExecutionGraph
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.rescaling import with_parallelism
from firesteel.graph.slots import assign_slots
from firesteel.jobmaster.checkpoints.coordinator import CheckpointCoordinator
from firesteel.jobmaster.client_channels import is_printed
from firesteel.jobmaster.job_master import JobMaster
from firesteel.jobmaster.job_snapshot import JobSnapshot
from firesteel.jobmaster.model import events, instructions
from firesteel.jobmaster.model.end_of_job import may_record
from firesteel.jobmaster.model.host import Attempt, AttemptHost
from firesteel.jobmaster.model.job_services import JobServices
from firesteel.jobmaster.model.log_line import LOG_STREAM
from firesteel.jobmaster.model.settings import JobMasterSettings
from firesteel.jobmaster.restart_strategy import create_restart_strategy
from firesteel.jobmaster.shell.checkpoint_io import CheckpointIO
from firesteel.jobmaster.shell.client_results import ClientResults
from firesteel.jobmaster.shell.host_calls import HostCalls
from firesteel.jobmaster.shell.job_preparation import PreparedJob
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.jobmaster.shell.serial_worker import SerialWorker
from firesteel.jobmaster.shell.slot_questions import SlotQuestions
from firesteel.jobmaster.shell.snapshot_requests import SnapshotRequests
from firesteel.process.concurrency import SYSTEM, BackgroundThread, Concurrency
from firesteel.process.futures import complete, dependent, fail
from firesteel.runtime.model import messages
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode
from firesteel.runtime.model.serialization import deserialize_batch

__all__ = ["JobMasterRunner"]

_log = logging.getLogger(__name__)
_OUTPUT_TIMEOUT_S = 10.0
"""How long the end of a job waits until what it printed is written."""


class JobMasterRunner:
    """Runs one job on a host. Is the JobHandle of its client."""

    def __init__(
        self,
        job: PreparedJob,
        host: AttemptHost,
        services: JobServices | None = None,
        concurrency: Concurrency = SYSTEM,
    ):
        self.job_graph = job_graph = job.job_graph
        """The graph that attempts are started with."""
        self._wanted_graph = job_graph
        """The graph as it was last asked for; the JobMaster may not know of it yet."""
        self._rescaling = threading.Lock()
        configuration = job_graph.configuration
        self._job = job
        self._services = services or JobServices()
        self._concurrency = concurrency
        coordinator = CheckpointCoordinator(
            job.settings,
            job_graph.job_id,
            job_graph.job_name,
            job.next_checkpoint_id,
            location_of=job.location_of,
            savepoint_location_of=job.savepoint_location_of,
        )
        coordinator.recover(job.own_checkpoints)
        self._master = JobMaster(
            ExecutionGraph(job_graph),
            create_restart_strategy(configuration),
            replace(
                JobMasterSettings.from_configuration(configuration),
                storage_token=job.storage_token,
                has_run=job.is_recovered,
                is_kept=self._services.is_kept,
            ),
            coordinator,
            job.restored,
        )
        self._requests = SnapshotRequests(job_graph.job_name)
        self._events: queue.Queue[events.Event] = concurrency.queue()
        self._host = HostCalls(
            host, self._hear, concurrency, job.stores, self._master.settings.heartbeat_timeout / 1000
        )
        self._questions = SlotQuestions(lambda: self.snapshot, self._host.send, concurrency)
        self._output = SerialWorker(concurrency, "firesteel-output", job.stores)
        self._checkpoint_io = CheckpointIO(job, self._services, self._events.put, concurrency)
        self._timers: dict[str, int] = {}
        self._caught_up = False
        """Whether all was heard that came before the timers that are due."""
        self._calls: list[tuple[int, int, instructions.CallAsync]] = []
        """Calls of enumerators that are not due yet, by time."""
        self._call_numbers = itertools.count()
        self._results = ClientResults(concurrency)
        self._result: Future[JobExecutionResult] = Future()
        self._started_at = concurrency.monotonic()
        self._done = False
        self.ended_as: JobStatus | None = None
        """How the job ended, once whoever would run it again knows; None also if the JobMaster broke down."""
        self._outcome: tuple[JobExecutionResult | None, BaseException | None] = (None, None)
        self._thread: BackgroundThread | None = None

    def start(self) -> None:
        """Starts the job; returns at once."""
        self._events.put(events.StartJob())
        if self._master.slots.is_adaptive:
            self._host.watch_slots()
        self._thread = self._concurrency.start(
            self._job.stores.bind(self._run), name=f"firesteel-jobmaster-{self.job_graph.job_id[:8]}"
        )

    # -- JobHandle ----------------------------------------------------------------------------------

    def job_id(self) -> JobID:
        return JobID(self.job_graph.job_id)

    @property
    def snapshot(self) -> JobSnapshot:
        """The job after the last event that was handled."""
        return self._master.snapshot

    def status(self) -> JobStatus:
        return self.snapshot.status

    def cancel(self) -> Future[None]:
        """Cancels the job; the future completes when it is over."""
        self._events.put(events.CancelJob())
        return self._when_over()

    def suspend(self) -> Future[None]:
        """Ends the job here, but keeps its checkpoints: it will go on elsewhere. Completes when nothing of it runs."""
        self._events.put(events.SuspendJob())
        return self._when_over()

    def _when_over(self) -> Future[None]:
        over: Future[None] = Future()
        self._result.add_done_callback(lambda _result: complete(over, None))
        return over

    def rescale(self, parallelism: Mapping[str, int], keep: Callable[[JobGraph], None] | None = None) -> JobGraph:
        """Rescales the job to the given parallelisms of its vertices, by id; returns its new graph.

        Raises what is wrong with them, and NotEnoughSlotsError if there are not enough slots now; the job then keeps
        running as it is. With the adaptive scheduler it uses what there is, and more slots when they come. The job
        takes a checkpoint and restarts from it. ``keep`` is given the new graph before anything happens: should it
        raise, nothing does.
        """
        if self._job.storage is None or not self.job_graph.execution.traits.is_long_lived:
            raise InvalidProgramError(
                f"Job '{self.job_graph.job_name}' cannot be rescaled while it runs: this requires pipelined "
                "execution with checkpoints.",
                hint="Set execution.checkpointing.interval, or stop the job and start it with another parallelism.",
            )
        with self._rescaling:
            job_graph = with_parallelism(self._wanted_graph, parallelism)
            before, after = assign_slots(self._wanted_graph).total, assign_slots(job_graph).total
            if after > before and not self._master.slots.is_adaptive:
                self._check_slots(after)
            serialized = serialize_job(job_graph)
            if keep is not None:
                keep(job_graph)
            self._wanted_graph = job_graph
            reason = f"the job is rescaled from {before} to {after} slots"
            self._events.put(events.RescaleJob(job_graph, reason, serialized))
        return job_graph

    def _check_slots(self, needed: int) -> None:
        """Refuses a rescaling for which the job would have to be stopped without having slots to continue in."""
        left = self._host.slots_left()
        if left is not None and needed > left:
            raise NotEnoughSlotsError(
                needed,
                left,
                None,
                hint=f"Job '{self.job_graph.job_name}' keeps its present parallelism. Stop other jobs or add slots "
                "first, or set jobmanager.scheduler: Adaptive; a job then uses more slots when they become available.",
            )

    def _adopt(self, rescaled: events.RescaleJob) -> None:
        """Attempts from the next one on start with the new graph. In the JobMaster's thread, which starts them."""
        self.job_graph = rescaled.job_graph
        self._job = replace(self._job, job_graph=rescaled.job_graph, serialized=rescaled.serialized)

    def trigger_savepoint(self, savepoint_directory: str | None = None, *, native: bool = False) -> Future[str]:
        """Takes a savepoint while the job continues; a future of its path."""
        kind = SnapshotKind.NATIVE_SAVEPOINT if native else SnapshotKind.SAVEPOINT
        return self._request(kind, savepoint_directory, None)

    def stop_with_savepoint(
        self, advance_to_end_of_event_time: bool, savepoint_directory: str | None = None, *, native: bool = False
    ) -> Future[str]:
        """Stops the sources, takes a savepoint and ends the job; a future of the savepoint's path."""
        kind = SnapshotKind.NATIVE_SAVEPOINT if native else SnapshotKind.SAVEPOINT
        stop = StopMode.DRAIN if advance_to_end_of_event_time else StopMode.SUSPEND
        return self._request(kind, savepoint_directory, stop)

    def trigger_checkpoint(self, *, full: bool = False) -> Future[str]:
        """Takes a checkpoint now; a future of its path. A full one shares nothing with those before."""
        return self._request(SnapshotKind.FULL_CHECKPOINT if full else SnapshotKind.CHECKPOINT, None, None)

    def checkpoint_statistics(self) -> Mapping[str, Any]:
        """Counts, summaries and history of the job's checkpoints, as Flink's REST API gives them."""
        return self.snapshot.checkpoints.to_json()

    def _request(self, kind: SnapshotKind, directory: str | None, stop: StopMode | None) -> Future[str]:
        directory = directory or self._job.settings.savepoint_directory
        refused: Future[str] = Future()
        if self.job_graph.execution.kind is JobExecution.BATCH:
            refused.set_exception(
                CheckpointError(
                    f"Job '{self.job_graph.job_name}' runs as a batch, which does not support checkpoints and "
                    "savepoints.",
                    hint="Set execution.runtime-mode to STREAMING to stop and resume the job.",
                )
            )
            return refused
        if kind.is_savepoint and directory is None:
            refused.set_exception(
                CheckpointError(
                    "There is no target directory for the savepoint.",
                    hint="Specify one, or set execution.checkpointing.savepoint-dir.",
                )
            )
            return refused
        request_id, future = self._requests.add(stops=stop is not None)
        trigger = events.TriggerSavepoint(request_id, kind, directory, stop)
        if kind.is_savepoint:
            self._checkpoint_io.check_target(trigger, self._requests.failed)
        else:
            self._events.put(trigger)
        return future

    def result_future(self) -> Future[JobExecutionResult]:
        """Completes with the result, or with the error the job ended with. Cancelling it does nothing to the job."""
        return dependent(self._result)

    @property
    def is_over(self) -> bool:
        """Whether nothing of the job runs any more."""
        return self._result.done()

    def accumulators(self) -> Mapping[str, Any]:
        """The accumulators' present values."""
        return self.snapshot.metrics.accumulators()

    @property
    def has_pending_events(self) -> bool:
        """Whether events or instructions are pending."""
        return self._events.unfinished_tasks > 0 or not self._host.is_idle or not self._output.is_idle

    def metrics(self) -> Mapping[Any, Mapping[str, Any]]:
        """The latest metrics by (vertex id, operator id, subtask)."""
        return self.snapshot.metrics.by_scope()

    def ask(self, slot_index: int, question: Any, timeout_s: float) -> Future[Any]:
        """Asks a slot of the running attempt (see ``runtime.slot.answers``); fails with a SlotQuestionError."""
        return self._questions.ask(slot_index, question, timeout_s)

    def _hear(self, event: events.Event) -> None:
        """Takes what a host posts, in the host's thread."""
        if self._questions.hears(event):
            return
        if not isinstance(event, events.MessageReceived):
            self._events.put(event)
            return
        message = event.message
        if isinstance(message, messages.ClientPayload) and not is_printed(message.channel):
            event = events.MessageReceived(event.slot_index, self._results.store(message))
        elif isinstance(message, messages.Heartbeat):
            attempt = message.attempt
            # Not in the JobMaster's thread, which an enumerator may hold up. A slot of an attempt that is over gets no
            # answer: should it still run, because it could not be ended, it ends itself.
            if attempt == self.snapshot.attempt:
                self._host.send(attempt, message.slot_index, messages.HeartbeatReceived())
        self._events.put(event)

    def collect_iterator(self, channel: str) -> Iterator[Any]:
        """The records of a collect sink, as they come; raises the job's error at the end if it failed.

        Closing it discards the rest.
        """
        records = self._records(channel)
        next(records)  # so that it has begun, and its ``finally`` runs when it is closed
        return records

    def _records(self, channel: str) -> Iterator[Any]:
        try:
            yield None
            while (taken := self._results.take(channel)) is not None:
                consumed, payload = taken
                yield from self._read(payload)
                self._events.put(consumed)
            error = self._result.exception()
            if error is not None and not isinstance(error, JobCancelledError):
                raise error
        finally:
            self._results.drop(channel)

    def take_results(self, channel: str, timeout_s: float) -> tuple[events.ClientConsumed, bytes] | None:
        """The next records of a collect sink, serialized, and what to `acknowledge` once they are where they belong.

        None if nothing came in time. Raises EOFError when nothing will come any more.
        """
        taken = self._results.take(channel, timeout_s)
        # a JobMaster that broke down has not ended: neither have the results
        if taken is None and self.ended_as is not None and self._results.is_at_end(channel):
            raise EOFError(channel)
        return taken

    def acknowledge(self, consumed: events.ClientConsumed) -> None:
        """The client has what `take_results` gave: the slot may send more."""
        self._events.put(consumed)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing more is written to the checkpoint storage. For a runner that has ended."""
        return self._checkpoint_io.is_idle

    def release_slots(self) -> None:
        """The job is over, but its end cannot be recorded yet: others may have its slots. In the runner's thread."""
        self._host.close()

    def abandon(self) -> None:
        """The job is not started after all: leaves nothing behind."""
        self._events.put(events.SuspendJob())  # should the thread run all the same
        self._host.close()
        self._checkpoint_io.close()

    def release(self) -> None:
        """The job is over: releases the resources of a running job. What is shown of it stays."""
        self._job = replace(self._job, serialized=b"", artifacts={}, own_checkpoints=(), restored=None)

    def _read(self, payload: bytes) -> Sequence[Any]:
        try:
            return deserialize_batch(payload).values
        except RecordSerializationError:
            # no client is left that could take the results
            self.cancel().result()
            raise

    # -- the thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._done:
                for event in self._next_events():
                    if isinstance(event, events.RescaleJob):
                        self._adopt(event)
                    decided = self._master.handle(event, self._now_ms(), self._concurrency.wall_ms())
                    for done in decided:
                        if isinstance(done, instructions.JobDone):
                            self._end(done)
                    for instruction in decided:
                        self._execute(instruction)
                    if not isinstance(event, events.TimerFired):
                        self._events.task_done()
        except BaseException as error:  # noqa: BLE001 - the client must be notified
            self._finish(error=error)
        finally:
            self._host.close()
            self._output.close(_OUTPUT_TIMEOUT_S)
            self._close_storage()
            self._publish()

    def _now_ms(self) -> int:
        """The monotonic clock, which timers go by."""
        return int(self._concurrency.monotonic() * 1000)

    def _next_events(self) -> list[events.Event]:
        now = self._now_ms()
        while self._calls and self._calls[0][0] <= now:
            self._call(heapq.heappop(self._calls)[2])
        due = [name for name, at in self._timers.items() if at <= now]
        if due and not self._caught_up and not self._events.empty():
            # after a delay of this thread, process pending messages first: else slots would seem to have missed
            # heartbeats
            self._caught_up = True
            return [self._events.get() for _ in range(self._events.qsize())]
        self._caught_up = False
        for name in due:
            del self._timers[name]
        if due:
            return [events.TimerFired(name) for name in due]
        times = [*self._timers.values(), *(at for at, _, _ in self._calls[:1])]
        timeout = (min(times) - now) / 1000 if times else 60.0
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
        elif isinstance(instruction, instructions.CallAsync):
            due = self._now_ms() + instruction.call.delay_ms
            heapq.heappush(self._calls, (due, next(self._call_numbers), instruction))
        elif isinstance(instruction, instructions.StartAttempt):
            if instruction.attempt > 0:
                self._say_why(instruction.attempt)
                self._requests.end_stops("the job failed before it ended, and restarts from the savepoint")
            self._checkpoint_io.attempt_starts()
            self._results.begin_attempt(instruction.attempt)
            attempt = Attempt(
                instruction.attempt,
                instruction.slots_needed,
                self.job_graph,
                self._job.serialized,
                self._job.artifacts,
            )
            self._host.start(attempt)
        elif isinstance(instruction, instructions.KillAttempt):
            self._host.kill(instruction.attempt, instruction.reason)
        elif isinstance(instruction, instructions.NotifyStatus):
            self._tell_status(instruction)
        elif isinstance(instruction, instructions.JobDone):
            self._complete(instruction)
        else:
            self._execute_checkpoint(instruction)

    def _end(self, done: instructions.JobDone) -> None:
        """Records the end of the job before its checkpoints are deleted; raises an error if that fails."""
        is_end = done.status.is_globally_terminal_state()
        if is_end and self._services.is_kept and not may_record(done.status, host_lives=self._host.answers):
            raise HostError(f"The job is {done.status.name}, but Spark does not respond: that does not count.")
        self._services.job_ending(done.status, done.failure)
        self.ended_as = done.status

    def _tell_status(self, changed: instructions.NotifyStatus) -> None:
        try:
            self._services.status_changed(changed.new, changed.at)
        except Exception:  # noqa: BLE001 - an error of a listener must not fail the job
            _log.exception("The status %s of job '%s' could not be reported", changed.new.name, self.job_graph.job_name)

    def _call(self, instruction: instructions.CallAsync) -> None:
        """Makes a call for an enumerator in a thread that is never joined, as it may block."""
        if instruction.attempt != self._master.attempt:
            return

        def make() -> None:
            call = instruction.call
            result, error = call.make()
            self._events.put(events.CallReturned(instruction.attempt, call.operator_id, call.number, result, error))

        self._concurrency.start(current_stores().bind(make), name="firesteel-enumerator-call")

    def _say_why(self, attempt: int) -> None:
        """Logs what made a restart necessary: a job that fails again and again must not look like one that is slow."""
        failures = self._master.exception_history.entries()
        if failures and failures[-1].attempt == attempt - 1:
            why = _with_source(failures[-1].failure).describe()
            _log.warning("Job '%s' is restarted (restart %d).\n%s", self.job_graph.job_name, attempt, why)

    # -- checkpoints --------------------------------------------------------------------------------

    def _execute_checkpoint(self, instruction: instructions.Instruction) -> None:
        if isinstance(
            instruction,
            (
                instructions.StoreMetadata,
                instructions.DeleteCheckpoint,
                instructions.DeleteFiles,
                instructions.RemoveLeftovers,
            ),
        ):
            self._checkpoint_io.execute(instruction)
        elif isinstance(instruction, instructions.RequestDone):
            self._requests.done(instruction.request_id, instruction.path)
        elif isinstance(instruction, instructions.RequestFailed):
            error = CheckpointError(f"Job '{self.job_graph.job_name}': {instruction.reason}")
            self._requests.failed(instruction.request_id, error)
        elif isinstance(instruction, instructions.Say):
            try:
                warnings.warn(instruction.text, FiresteelWarning, stacklevel=2)
            except Exception:  # noqa: BLE001 - where warnings are errors, this thread is no place to raise one
                _log.warning(instruction.text)

    def _close_storage(self) -> None:
        """Waits for pending writes and deletions. Nothing of a job is deleted before its end is recorded."""
        if self.ended_as is None:
            self._checkpoint_io.close()
            return
        coordinator = self._master.checkpoints.coordinator
        self._checkpoint_io.close(
            instructions.RemoveLeftovers(self._master.attempt, coordinator.needed_files(), coordinator.retained_paths)
        )

    def _deliver(self, delivery: instructions.DeliverToClient) -> None:
        if not is_printed(delivery.channel):
            self._results.deliver(delivery)
            return
        consumed = events.ClientConsumed(delivery.attempt, delivery.channel, delivery.subtask, delivery.sequence)
        self._output.submit(self._write_output, delivery.payload, consumed)

    def _write_output(self, payload: bytes, consumed: events.ClientConsumed) -> None:
        try:
            stream, lines = deserialize_batch(payload).values
            if stream == LOG_STREAM:
                self._services.write_log(lines)
            else:
                self._services.write_output(stream, lines)
        except Exception as error:  # noqa: BLE001 - a full disk, a closed terminal: the job does not depend on it
            _log.warning("The printed output of job '%s' was lost: %s", self.job_graph.job_name, error)
        self._events.put(consumed)

    def _complete(self, done: instructions.JobDone) -> None:
        if done.status is JobStatus.FINISHED:
            net_runtime = int((self._concurrency.monotonic() - self._started_at) * 1000)
            self._finish(JobExecutionResult(self.job_id(), net_runtime, dict(done.accumulators)))
        elif done.status in (JobStatus.CANCELED, JobStatus.SUSPENDED):
            how = "cancelled" if done.status is JobStatus.CANCELED else "suspended: its JobManager was shut down"
            self._finish(error=JobCancelledError(f"Job '{self.job_graph.job_name}' was {how}."))
        else:
            failure = done.failure or TaskFailure("the job failed without an error message")
            self._finish(error=JobExecutionError(self.job_graph.job_name, _with_source(failure)))

    def _finish(self, result: JobExecutionResult | None = None, error: BaseException | None = None) -> None:
        if self._done:
            return
        self._done = True
        self._outcome = result, error

    def _publish(self) -> None:
        """Notifies the client of the job's end, once nothing of it is left running."""
        result, error = self._outcome
        if error is not None:
            fail(self._result, error)
        else:
            assert result is not None
            complete(self._result, result)
        self._requests.end_stops(None if error is None else "the job did not end well")
        self._requests.close()
        self._questions.close()
        self._results.close()


def _with_source(failure: TaskFailure) -> TaskFailure:
    """The program's text may be here although it is not where the task ran."""
    if failure.user_source is not None or failure.user_file is None or failure.user_line is None:
        return failure
    return replace(failure, user_source=linecache.getline(failure.user_file, failure.user_line).strip() or None)
