"""AttemptHost for execution in epochs: runs all stages of a job once per epoch."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NoReturn

from firesteel.common.errors import HostError, TaskFailure
from firesteel.config import checkpointing_options
from firesteel.execution.epochs.commits import CommitFailed, EpochCommits
from firesteel.execution.epochs.messages import EpochMessages, EpochResult
from firesteel.execution.epochs.read_quota import ReadQuotaControl, SplitRequests
from firesteel.execution.epochs.task import mixed_runs
from firesteel.execution.epochs.tasks import EpochTasks, PlannedEpoch
from firesteel.execution.epochs.trigger import create_epoch_trigger
from firesteel.execution.stages.played_slots import AttemptOver, PlayedSlots, PlayedSlotsHost, load_job_graph
from firesteel.execution.stages.stage_graph import stage_descriptors
from firesteel.execution.stages.stage_runner import EpochRun, StageError, StageRunner
from firesteel.graph.rescaling import limit_parallelism
from firesteel.jobmaster.checkpoints.epoch_settings import EpochSettings
from firesteel.jobmaster.client_channels import is_printed
from firesteel.jobmaster.model.events import CheckpointWanted
from firesteel.jobmaster.model.host import Attempt, Post
from firesteel.process.concurrency import SYSTEM, Concurrency
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model.messages import (
    Accumulators,
    AcknowledgeCheckpoint,
    ClientAck,
    ClientPayload,
    Deploy,
    JobMasterMessage,
    MetricScope,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    ReaderStarted,
    Shutdown,
    SlotFailed,
    TaskKey,
    TaskStateChanged,
    TriggerCheckpoint,
)
from firesteel.runtime.slot.mailbox import Clock, ProcessClock

__all__ = ["EpochHost"]

_log = logging.getLogger(__name__)

_MAX_WAIT_S = 1.0
"""No wait is longer without a look at the clock."""
_CHECKPOINT_REQUEST_INTERVAL_S = 30.0
"""A checkpoint that was asked for and did not come is asked for again."""
_STOP_TIMEOUT_S = 30.0
"""How long a failed attempt waits for the JobMaster to stop it before it stops by itself."""
_OUTCOME_GRACE_S = 60.0
"""How much longer than the checkpoint timeout an attempt waits for the outcome of a checkpoint."""
_OVERDUE = "An epoch has taken longer than execution.checkpointing.timeout."
_OVERDUE_HINT = "Does a function of the job hang? An epoch also has to load the state where a worker is new."
_READ_TIME_FACTOR = 2
"""A source may read for so many times what an epoch should take, should its quota be too large."""


class EpochHost(PlayedSlotsHost["_EpochAttempt"]):
    """An AttemptHost that simulates all slots of an attempt, and runs its tasks with a StageRunner, epoch by epoch.

    An epoch goes through these steps:

    1. The trigger (``execution.epoch.trigger``) is due: CheckpointWanted.
    2. The JobMaster triggers checkpoint n, or a requested savepoint, which does not wait for 1.
    3. The runner runs all tasks: each gets the messages since the last epoch, processes its input, takes its part of
       the checkpoint and reports.
    4. The reports of the tasks are sent to the JobMaster as slot messages, and it completes the checkpoint.
    5. It notifies the host: what the sinks prepared is committed, only here.
    6. From now on a worker that does not have the state of its task at hand loads it from checkpoint n.

    A run that fails fails the attempt, and so does a commit; the JobMaster's restart strategy decides, and the next
    attempt starts from the last checkpoint. If a checkpoint is given up but the job continues, so do the tasks, with
    the state they have: should a worker have lost it by then, the epoch fails. An epoch that still runs when its
    checkpoint is given up, which is when it takes too long, fails as well: nothing else would notice a worker that
    hangs.
    """

    def __init__(self, runner: StageRunner, clock: Clock | None = None, concurrency: Concurrency = SYSTEM):
        super().__init__(runner, concurrency)
        self._clock = clock or ProcessClock(concurrency)

    def _create(self, attempt: Attempt, post: Post, predecessor: _EpochAttempt | None) -> _EpochAttempt:
        return _EpochAttempt(self._runner, self._clock, self._concurrency, attempt, post, predecessor)

    # -- for a fake clock ---------------------------------------------------------------------------

    def wakeup(self) -> None:
        """Makes the host read the clock again."""
        if self._current is not None:
            self._current.wakeup()

    def rests(self) -> int | None:
        """While the job waits for its next epoch: how often it has done so; None while it works."""
        return None if self._current is None else self._current.rests()

    def is_current_thread(self) -> bool:
        """Whether the caller is a function of the job itself, run in this process."""
        return any(attempt.is_current_thread() for attempt in self._attempts)


class _Failed(Exception):
    """The attempt has failed, and the JobMaster has the reason."""


class _EpochAttempt(PlayedSlots):
    """One attempt."""

    def __init__(
        self,
        runner: StageRunner,
        clock: Clock,
        concurrency: Concurrency,
        attempt: Attempt,
        post: Post,
        predecessor: _EpochAttempt | None,
    ):
        super().__init__(attempt, post, runner, predecessor, concurrency, "firesteel-epochs")
        self._clock = clock
        self._visible_graph = limit_parallelism(attempt.job_graph, attempt.slots)
        self._job_graph = load_job_graph(attempt)
        configuration = self._job_graph.configuration
        settings = EpochSettings.from_configuration(configuration)
        self._messages = EpochMessages(self._job_graph, self.number)
        self._tasks = EpochTasks(self._job_graph, stage_descriptors(self._job_graph, self.number))
        self._commits = EpochCommits(self._job_graph)
        self._read_quota = ReadQuotaControl(settings.target_duration, settings.max_records)
        self._split_requests = SplitRequests()
        self._trigger = create_epoch_trigger(settings, clock.monotonic_ms(), self._tasks.sources)
        self._deployed: set[int] = set()
        self._asked_at: float | None = None
        self._next_timer: int | None = None
        """When the first processing-time timer of a task is due, by the wall clock."""
        self._ready_at: float | None = None
        """When a source expects more, by the monotonic clock."""
        self._completed: set[int] = set()
        self._aborted: set[int] = set()
        self._timeout_s = configuration.get(checkpointing_options.CHECKPOINTING_TIMEOUT).to_millis() / 1000
        self._running: int | None = None
        """The epoch that runs."""
        self._overdue = False
        """Whether its checkpoint was given up because it took too long."""
        self._unread: dict[tuple[str, int], int] = {}
        """The last payload for the client, by channel and subtask, where it has not been acknowledged."""
        self._rests = 0
        self._resting = False
        self._is_first = True

    # -- called from other threads ------------------------------------------------------------------

    def wakeup(self) -> None:
        """The clock has been moved."""
        with self._changed:
            self._resting = False
            self._changed.notify_all()

    def rests(self) -> int | None:
        """The number of the present rest, None if there is none."""
        with self._changed:
            return self._rests if self._resting else None

    def _take(self, slot: int, message: JobMasterMessage) -> None:
        with self._changed:
            self._accept(slot, message)
            self._resting = False
            self._changed.notify_all()
            overdue = self._overdue
        if overdue:
            self._cancel_run(_OVERDUE)

    def _accept(self, slot: int, message: JobMasterMessage) -> None:
        if isinstance(message, Deploy):
            self._tasks.deploy(message)
            self._deployed.add(slot)
        elif isinstance(message, Shutdown):
            self._ended = "all tasks have finished"
        elif isinstance(message, TriggerCheckpoint):
            # of all slots the first one counts: later messages to any of them come after the trigger
            if self._tasks.plan(message) and not message.options.kind.is_savepoint:
                self._asked_at = None
        else:
            if isinstance(message, NotifyCheckpointComplete):
                self._completed.add(message.checkpoint_id)
            elif isinstance(message, NotifyCheckpointAborted):
                self._aborted.add(message.checkpoint_id)
                self._overdue |= message.is_expired and message.checkpoint_id == self._running
                self._tasks.drop(message.checkpoint_id)
                self._asked_at = None
            elif isinstance(message, ClientAck):
                stream = message.channel, message.subtask
                if self._unread.get(stream, -1) <= message.sequence:
                    self._unread.pop(stream, None)
            task = self._tasks.tell(self._messages.tasks_in(slot), message)
            if task is not None:
                self._trigger.task_has_work(task, self._clock.monotonic_ms())

    # -- the attempt's life -------------------------------------------------------------------------

    def _play(self) -> None:
        try:
            self._start_slots()
            while True:
                self._run_epoch(self._next_epoch())
        except _Failed:
            with self._changed:
                self._changed.wait_for(lambda: self._ended is not None, _STOP_TIMEOUT_S)

    def _close(self, failure: TaskFailure | None) -> None:
        if failure is None and self._tasks.finished == set(self._tasks.descriptors):
            try:
                self._commits.finish()
            except Exception:  # noqa: BLE001 - all that counts is committed
                _log.warning("Output of tasks that were run twice could not be removed.", exc_info=True)
        try:
            self._commits.close()
        except Exception:  # noqa: BLE001 - what it had to do is done
            _log.warning("A committer could not be closed.", exc_info=True)

    def _accumulators(self) -> Mapping[int, Accumulators]:
        first = next((slot for slot in range(self._slots) if slot not in self._failed_slots), 0)
        return {first: self._messages.accumulators()}

    def _cancelled_because(self) -> str | None:
        return self._ended or (_OVERDUE if self._overdue else None)

    def _start_slots(self) -> None:
        self._register()
        with self._changed:
            while len(self._deployed) < self._slots:
                self._wait(_MAX_WAIT_S)
        for task in self._tasks.descriptors:
            self._report(task, "INITIALIZING")
            self._report(task, "RUNNING")
        for task, operator_id in self._tasks.sources.items():
            self._send(self._messages.slot_of(task), ReaderStarted(self.number, *_in(task, operator_id)))

    def _take_over(self, predecessor: PlayedSlots) -> None:
        assert isinstance(predecessor, _EpochAttempt)
        subtasks = len(self._tasks.sources)
        if subtasks:
            self._read_quota.resume(predecessor._read_quota, len(predecessor._tasks.sources) / subtasks)

    def _next_epoch(self) -> PlannedEpoch:
        """Steps 1 and 2."""
        with self._changed:
            while not self._tasks.planned:
                now, moment = self._clock.monotonic_ms(), self._concurrency.monotonic()
                due_in = None if self._next_timer is None else self._next_timer - self._clock.now_ms()
                if due_in is not None and due_in <= 0:
                    self._next_timer = None
                    self._trigger.timer_is_due(now)
                if self._ready_at is not None and self._ready_at <= moment:
                    self._ready_at = None
                    self._trigger.source_is_ready(now)
                # else there is an epoch more, with which the sinks hand over all they hold
                if self._trigger.is_over and not self._commits.any_sink_commits:
                    self._finish(set(self._tasks.descriptors))
                elif self._unread:
                    self._rest(_MAX_WAIT_S)  # the client has so much to read that it gets no more for now
                    continue
                elif self._asked_at is None or moment - self._asked_at > _CHECKPOINT_REQUEST_INTERVAL_S:
                    if self._trigger.due <= now:
                        self._asked_at = moment
                        self._post(CheckpointWanted(self.number))
                    else:
                        wait = self._trigger.due - now
                        self._rest((wait if due_in is None else min(wait, due_in)) / 1000)
                        continue
                self._wait(_MAX_WAIT_S)
            return self._tasks.planned.pop(0)

    def _rest(self, timeout_s: float) -> None:
        if self._ready_at is not None:
            timeout_s = min(timeout_s, max(self._ready_at - self._concurrency.monotonic(), 0.0))
        self._resting = True
        self._rests += 1
        self._wait(min(timeout_s, _MAX_WAIT_S))
        self._resting = False

    # -- an epoch -----------------------------------------------------------------------------------

    def _run_epoch(self, epoch: PlannedEpoch) -> None:
        """Steps 3 to 6."""
        began = self._concurrency.monotonic()
        checkpoint = epoch.trigger.options
        with self._changed:
            is_last = self._trigger.is_over and not checkpoint.kind.is_savepoint
            # a client waits for a savepoint: it takes no more than what is there already
            quota = 0 if is_last or checkpoint.kind.is_savepoint else self._read_quota.quota
            self._trigger.epoch_began(self._clock.monotonic_ms())
            commands = self._tasks.commands(
                epoch, quota, _READ_TIME_FACTOR * self._read_quota.duration_ms, is_last=is_last
            )
        result = self._run_tasks(EpochRun(epoch.number, commands))
        with self._changed:
            self._tasks.ran(epoch)
        took_ms = round((self._concurrency.monotonic() - began) * 1000)
        self._tell(epoch, result, self._measure(result, took_ms, quota))
        if checkpoint.kind.is_savepoint and checkpoint.stop is None:
            return  # the tasks are not notified of its completion, and what it prepared goes with the next checkpoint
        if self._await_completion(epoch):
            self._complete(epoch, result, round((self._concurrency.monotonic() - began) * 1000), is_last=is_last)
        else:
            with self._changed:
                self._trigger.epoch_failed(self._clock.monotonic_ms())

    def _run_tasks(self, run: EpochRun) -> EpochResult:
        """Step 3."""
        with self._changed:
            self._running = run.epoch
        try:
            with self._running_stages():
                messages = self._runner.run_epoch(self._visible_graph, run)
        except AttemptOver:
            raise
        except StageError as error:
            self._check_ended()
            if self._overdue:
                self._fail_slot(TaskFailure(_OVERDUE, "CheckpointError", hint=_OVERDUE_HINT))
            said = self._messages.failures(run.epoch, error.messages)
            if not said:
                self._fail_slot(describe_failure(error))
            for event in said:
                self._post(event)
            raise _Failed from error
        except HostError:
            self._check_ended()
            raise
        except Exception as error:  # noqa: BLE001 - for any error the JobMaster decides
            self._check_ended()
            self._fail_slot(describe_failure(error))
        finally:
            with self._changed:
                self._running, self._overdue = None, False
        self._check_ended()
        result = EpochResult.of(run.epoch, messages, self._tasks.sources)
        problem = mixed_runs(result.reports.values())
        if problem is not None:
            self._fail_slot(TaskFailure(problem, "StageError", hint="The epoch is run again from the last checkpoint."))
        return result

    def _tell(
        self, epoch: PlannedEpoch, result: EpochResult, measured: Mapping[MetricScope, Mapping[str, Any]]
    ) -> None:
        """Step 4."""

        def ask(requests: Mapping[TaskKey, int]) -> list[TaskKey]:
            more = {task: number for task, number in requests.items() if not self._tasks.has_all_splits(task)}
            return self._split_requests.ask(more, result.used_up)

        for message in result.others:
            if isinstance(message, AcknowledgeCheckpoint) and message.checkpoint_id == epoch.number:
                epoch.states[message.vertex_id, message.subtask] = message.state
        for event in self._messages.events(result, ask, measured):
            message = event.message
            if isinstance(message, ClientPayload) and not is_printed(message.channel):
                with self._changed:
                    self._unread[message.channel, message.subtask] = message.sequence
            self._post(event)

    def _await_completion(self, epoch: PlannedEpoch) -> bool:
        """Whether the checkpoint has completed; it may also have been given up."""
        deadline = self._concurrency.monotonic() + self._timeout_s + _OUTCOME_GRACE_S
        with self._changed:
            while epoch.number not in self._completed | self._aborted:
                self._wait(_MAX_WAIT_S)
                if self._concurrency.monotonic() > deadline:
                    self._fail_slot(
                        TaskFailure(f"There was no result for checkpoint {epoch.number}.", "CheckpointError")
                    )
            is_complete = epoch.number in self._completed
            # numbers only grow
            self._completed.clear()
            self._aborted.clear()
        return is_complete

    def _complete(self, epoch: PlannedEpoch, result: EpochResult, took_ms: int, *, is_last: bool) -> None:
        """Steps 5 and 6."""
        try:
            committed = self._commits.commit(epoch.number, epoch.states)
        except CommitFailed as error:
            self._report(error.task, "FAILED", error.failure)
            raise _Failed from error
        if not result.reloaded and not self._is_first:
            self._read_quota.epoch_ended(took_ms, result.records_ms, list(result.loads.values()))
        self._is_first = False
        _log.debug(
            "Epoch %d took %d ms, %d ms of that for records: %d records, %d tasks loaded, %d committables, backlog %s; "
            "the next has a quota of %d.",
            epoch.number,
            took_ms,
            result.records_ms,
            result.records,
            result.reloaded,
            committed,
            "unknown" if result.backlog is None else result.backlog,
            self._read_quota.quota,
        )
        with self._changed:
            self._tasks.completed(epoch)
            stopped = is_last or epoch.trigger.options.stop is not None
            self._finish(set(self._tasks.descriptors) if stopped else result.ended)
            if not stopped:
                outcome = result.outcome()
                self._trigger.epoch_ended(outcome, self._clock.monotonic_ms())
                self._next_timer = outcome.next_timer
                # splits that came meanwhile are there to be read, even if the epoch found none
                for task in self._tasks.with_work():
                    self._trigger.task_has_work(task, self._clock.monotonic_ms())
                ready = result.ready_in_ms
                self._ready_at = None if ready is None else self._concurrency.monotonic() + ready / 1000

    def _measure(self, result: EpochResult, took_ms: int, quota: int) -> dict[MetricScope, dict[str, Any]]:
        """What users see of an epoch, under each source."""
        measured: dict[MetricScope, dict[str, Any]] = {}
        for (vertex_id, subtask), operator_id in self._tasks.sources.items():
            report = result.reports.get((vertex_id, subtask))
            values: dict[str, Any] = {"lastEpoch": result.number, "lastEpochDuration": took_ms, "epochCredits": quota}
            if report is not None:
                values["lastEpochRecords"] = report.records
                if report.pending_records is not None:
                    values["pendingRecords"] = report.pending_records
            measured[vertex_id, operator_id, subtask] = values
        for (vertex_id, subtask), report in result.reports.items():
            if report.gauges:
                measured[vertex_id, "", subtask] = dict(report.gauges)
        return measured

    # -- messages of the slots -------------------------------------------------------------------------

    def _finish(self, tasks: set[TaskKey]) -> None:
        for task in self._tasks.descriptors:
            if task in tasks and task not in self._tasks.finished:
                self._tasks.finished.add(task)
                self._report(task, "FINISHED")

    def _report(self, task: TaskKey, state: str, failure: TaskFailure | None = None) -> None:
        self._send(self._messages.slot_of(task), TaskStateChanged(self.number, *task, state, failure))

    def _fail_slot(self, failure: TaskFailure) -> NoReturn:
        """A failure that no task has reported."""
        self._failed_slots.add(0)
        self._send(0, SlotFailed(self.number, 0, failure))
        raise AttemptOver


def _in(task: TaskKey, operator_id: str) -> tuple[str, str, int]:
    return task[0], operator_id, task[1]
