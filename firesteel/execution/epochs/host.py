"""Runs the attempts of a job as epochs: one run of all its stages after the other, with nothing held in between."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

import cloudpickle

from firesteel.common.errors import HostError, TaskFailure
from firesteel.config import options
from firesteel.execution.epochs.admission import AdmissionControl, SplitRequests
from firesteel.execution.epochs.commits import CommitFailed, EpochCommits
from firesteel.execution.epochs.messages import EpochMessages, EpochResult
from firesteel.execution.epochs.task import mixed_runs
from firesteel.execution.epochs.tasks import EpochTasks, PlannedEpoch
from firesteel.execution.epochs.trigger import create_epoch_trigger
from firesteel.execution.stages.stage_orders import stage_descriptors
from firesteel.execution.stages.stage_runner import EpochRun, StageError, StageRunner
from firesteel.filesystem.stores import current_stores
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.rescaling import limit_parallelism
from firesteel.jobmaster.checkpoints.epoch_settings import EpochSettings
from firesteel.jobmaster.client_channels import is_printed
from firesteel.jobmaster.model.events import AttemptEnded, CheckpointWanted, MessageReceived, SlotsAvailable
from firesteel.jobmaster.model.host import Attempt, Post
from firesteel.jobmaster.shell.host_calls import host_failure
from firesteel.process.concurrency import SYSTEM, BackgroundThread, Concurrency, Condition
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model.messages import (
    AcknowledgeCheckpoint,
    CancelSlot,
    ClientAck,
    ClientPayload,
    Deploy,
    Heartbeat,
    HeartbeatReceived,
    JobMasterMessage,
    MetricScope,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    ReaderStarted,
    RegisterSlot,
    SendBeforeBarrier,
    Shutdown,
    SlotFailed,
    SlotMessage,
    SlotStopped,
    TaskKey,
    TaskStateChanged,
    TriggerCheckpoint,
)
from firesteel.runtime.slot.artifacts import importable
from firesteel.runtime.slot.mailbox import Clock, ProcessClock

__all__ = ["EpochHost"]

_log = logging.getLogger(__name__)

UNLIMITED_SLOTS = 2**31 - 1
_MAX_WAIT_S = 1.0
"""No wait is longer without a look at the clock."""
_ASK_AGAIN_S = 30.0
"""A checkpoint that was asked for and did not come is asked for again."""
_FAREWELL_S = 30.0
"""How long an attempt that has failed waits to be told to stop before it stops by itself."""
_PREDECESSOR_S = 60.0
"""How long an attempt waits for the end of a run that the one before it has left."""
_OUTCOME_S = 60.0
"""So much longer than a checkpoint may take, an attempt waits to hear what became of it."""
_OVERDUE = "An epoch has taken longer than execution.checkpointing.timeout."
_OVERDUE_HINT = "Does a function of the job hang? An epoch also has to load the state where a worker is new."
_BUDGET = 2
"""A source may read for so many times what an epoch should take, should its credits be too many."""


class EpochHost:
    """An AttemptHost that plays all slots of an attempt itself, and has a StageRunner run its tasks epoch by epoch.

    An epoch goes through these steps:

    1. The trigger (``execution.epoch.trigger``) says that it is time: CheckpointWanted.
    2. The JobMaster triggers checkpoint n, or a savepoint that somebody asked for, which does not wait for 1.
    3. The runner runs all tasks: each gets what it was told since the last time, processes its input, takes its part of
       the checkpoint and reports.
    4. The JobMaster hears what the tasks told as if slots had said it, and completes the checkpoint.
    5. It says so: what the sinks prepared is committed, here and by nobody else.
    6. From now on a worker that does not have the state of its task at hand loads it from checkpoint n.

    A run that fails fails the attempt, and so does a commit; the JobMaster's restart strategy decides, and the next
    attempt starts from the last checkpoint. If a checkpoint is given up but the job goes on, so do the tasks, with the
    state they have: should a worker have lost it by then, the epoch fails. An epoch that still runs when its checkpoint
    is given up, which is when it takes too long, fails as well: nothing else would notice a worker that hangs.
    """

    def __init__(self, runner: StageRunner, clock: Clock | None = None, concurrency: Concurrency = SYSTEM):
        self._runner = runner
        self._clock = clock or ProcessClock(concurrency)
        self._concurrency = concurrency
        self._attempts: list[_EpochAttempt] = []

    @property
    def _current(self) -> _EpochAttempt | None:
        return self._attempts[-1] if self._attempts else None

    def start(self, attempt: Attempt, post: Post) -> None:
        """Starts the attempt's threads."""
        successor = _EpochAttempt(self._runner, self._clock, self._concurrency, attempt, post, self._current)
        self._attempts = [*(other for other in self._attempts if other.is_alive), successor]
        successor.start()

    def watch_slots(self, post: Post) -> None:
        """There are always as many slots as the job wants."""
        post(SlotsAvailable(UNLIMITED_SLOTS))

    def send(self, attempt: int, slot: int, message: JobMasterMessage) -> None:
        """Keeps a message for the tasks of a slot, or does what it says."""
        if isinstance(message, (HeartbeatReceived, SendBeforeBarrier)):
            return  # for slots in processes of their own
        if self._current is not None and self._current.number == attempt:
            self._current.deliver(slot, message)

    def kill(self, attempt: int, reason: str) -> None:
        """Has the runner end the run."""
        if self._current is not None and self._current.number == attempt:
            self._current.cancel(reason)

    def close(self) -> None:
        """Ends what still runs, and lets go of the workers."""
        for attempt in self._attempts:
            attempt.cancel("the job is over")
        for attempt in self._attempts:
            attempt.join(10.0)
        self._runner.close()

    # -- for a fake clock ---------------------------------------------------------------------------

    def wakeup(self) -> None:
        """Has the host look at the clock again."""
        if self._current is not None:
            self._current.wakeup()

    def rests(self) -> int | None:
        """While the job waits for its next epoch: how often it has done so; None while it works."""
        return None if self._current is None else self._current.rests()

    def is_current_thread(self) -> bool:
        """Whether the caller is a function of the job itself, run in this process."""
        return any(attempt.is_current_thread() for attempt in self._attempts)


class _Ended(Exception):
    """The JobMaster wants the attempt to end."""


class _Failed(Exception):
    """The attempt has failed, and the JobMaster knows why."""


class _EpochAttempt:
    """One attempt, in a thread of its own. What the JobMaster's thread and a clock's touch is under the lock."""

    def __init__(
        self,
        runner: StageRunner,
        clock: Clock,
        concurrency: Concurrency,
        attempt: Attempt,
        post: Post,
        predecessor: _EpochAttempt | None,
    ):
        self.number = attempt.number
        self._runner = runner
        self._clock = clock
        self._concurrency = concurrency
        self._slots = attempt.slots
        self._post = post
        self._predecessor = predecessor
        self._visible_graph = limit_parallelism(attempt.job_graph, attempt.slots)
        # as it was when the job was submitted; the attempt's own may hold what only this process can use
        with importable(attempt.artifacts):
            self._job_graph: JobGraph = limit_parallelism(cloudpickle.loads(attempt.serialized_job), attempt.slots)
        configuration = self._job_graph.configuration
        settings = EpochSettings.from_configuration(configuration)
        self._messages = EpochMessages(self._job_graph, self.number)
        self._tasks = EpochTasks(self._job_graph, stage_descriptors(self._job_graph, self.number))
        self._commits = EpochCommits(self._job_graph)
        self._admission = AdmissionControl(settings.target_duration, settings.max_records)
        self._split_requests = SplitRequests()
        self._trigger = create_epoch_trigger(settings, clock.monotonic_ms(), self._tasks.sources)
        self._heartbeat_s = min(configuration.get(options.HEARTBEAT_TIMEOUT).to_millis() / 4000, 10.0)
        self._changed = Condition(concurrency)
        self._deployed: set[int] = set()
        self._ended: str | None = None
        self._asked_at: float | None = None
        self._next_timer: int | None = None
        """When the first processing-time timer of a task is due, by the wall clock."""
        self._ready_at: float | None = None
        """When a source expects more, by the monotonic clock."""
        self._completed: set[int] = set()
        self._aborted: set[int] = set()
        self._timeout_s = configuration.get(options.CHECKPOINTING_TIMEOUT).to_millis() / 1000
        self._running: int | None = None
        """The epoch that runs."""
        self._overdue = False
        """Whether its checkpoint was given up because it took too long."""
        self._unread: dict[tuple[str, int], int] = {}
        """The last payload for the client, by channel and subtask, where it has not been acknowledged."""
        self._failed_slots: set[int] = set()
        self._rests = 0
        self._resting = False
        self._is_first = True
        self._over = concurrency.event()
        self._threads: list[BackgroundThread] = []
        self._thread_id: int | None = None

    # -- called from other threads ------------------------------------------------------------------

    def start(self) -> None:
        """Starts the threads."""
        self._threads = [
            self._concurrency.start(current_stores().bind(self._run), name="firesteel-epochs"),
            self._concurrency.start(self._beat, name="firesteel-epochs-heartbeat"),
        ]

    def join(self, timeout_s: float) -> None:
        """Waits for the threads."""
        for thread in self._threads:
            thread.join(timeout_s)

    @property
    def is_alive(self) -> bool:
        """Whether any of its threads runs."""
        return any(thread.is_alive() for thread in self._threads)

    @property
    def runs(self) -> bool:
        """Whether the thread that runs epochs has not ended."""
        return self._threads[0].is_alive()

    def is_current_thread(self) -> bool:
        """Whether the caller runs in the attempt's thread."""
        return self._thread_id == threading.get_ident() and self.runs

    def cancel(self, reason: str) -> None:
        """Ends the attempt soon."""
        with self._changed:
            self._ended = self._ended or reason
            self._changed.notify_all()
        if not self._over.is_set():
            self._runner.cancel(reason)

    def wakeup(self) -> None:
        """The clock has been moved."""
        with self._changed:
            self._resting = False
            self._changed.notify_all()

    def rests(self) -> int | None:
        """The number of the present rest, None if there is none."""
        with self._changed:
            return self._rests if self._resting else None

    def deliver(self, slot: int, message: JobMasterMessage) -> None:
        """Takes what the JobMaster says to a slot."""
        if isinstance(message, CancelSlot):
            self.cancel(message.reason)
            return
        with self._changed:
            self._take(slot, message)
            self._resting = False
            self._changed.notify_all()
            overdue = self._overdue
        if overdue:
            self._runner.cancel(_OVERDUE)

    def _take(self, slot: int, message: JobMasterMessage) -> None:
        if isinstance(message, Deploy):
            self._tasks.deploy(message)
            self._deployed.add(slot)
        elif isinstance(message, Shutdown):
            self._ended = "all tasks have finished"
        elif isinstance(message, TriggerCheckpoint):
            # of all slots the first one counts: what is said to any of them later is said after the trigger
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

    def _run(self) -> None:
        failure: TaskFailure | None = None
        self._thread_id = threading.get_ident()
        try:
            self._start_slots()
            while True:
                self._run_epoch(self._next_epoch())
        except _Ended:
            pass
        except _Failed:
            with self._changed:
                self._changed.wait_for(lambda: self._ended is not None, _FAREWELL_S)
        except BaseException as error:  # noqa: BLE001 - the JobMaster must hear of it
            failure = host_failure(error) if isinstance(error, HostError) else describe_failure(error)
        if failure is None and self._tasks.finished == set(self._tasks.descriptors):
            try:
                self._commits.finish()
            except Exception:  # noqa: BLE001 - all that counts is committed
                _log.warning("What tasks have left that were run twice could not be removed.", exc_info=True)
        try:
            self._commits.close()
        except Exception:  # noqa: BLE001 - what it had to do is done
            _log.warning("A committer could not be closed.", exc_info=True)
        self._over.set()
        accumulators = self._messages.accumulators()
        for slot in range(self._slots):
            if failure is None and slot not in self._failed_slots:
                self._say(slot, SlotStopped(self.number, slot, accumulators))
                accumulators = {}
        self._post(AttemptEnded(self.number, failure))

    def _start_slots(self) -> None:
        if self._predecessor is not None:
            self._predecessor.join(_PREDECESSOR_S)
            if self._predecessor.runs:
                raise TimeoutError("A run of the attempt before does not end: does a function of the job hang?")
            self._resume_admission(self._predecessor)
            self._predecessor = None
        host = socket.gethostname()
        for slot in range(self._slots):
            self._say(slot, RegisterSlot(self.number, slot, host, (host, 0), os.getpid()))
        with self._changed:
            while len(self._deployed) < self._slots:
                self._wait(_MAX_WAIT_S)
        for task in self._tasks.descriptors:
            self._report(task, "INITIALIZING")
            self._report(task, "RUNNING")
        for task, operator_id in self._tasks.sources.items():
            self._say(self._messages.slot_of(task), ReaderStarted(self.number, *_in(task, operator_id)))

    def _resume_admission(self, predecessor: _EpochAttempt) -> None:
        subtasks = len(self._tasks.sources)
        if subtasks:
            self._admission.resume(predecessor._admission, len(predecessor._tasks.sources) / subtasks)

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
                elif self._asked_at is None or moment - self._asked_at > _ASK_AGAIN_S:
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

    def _wait(self, timeout_s: float) -> None:
        """Waits for a word of the JobMaster or the clock; to be called with the lock."""
        if self._ended is None:
            self._changed.wait(timeout_s)
        if self._ended is not None:
            raise _Ended

    # -- an epoch -----------------------------------------------------------------------------------

    def _run_epoch(self, epoch: PlannedEpoch) -> None:
        """Steps 3 to 6."""
        began = self._concurrency.monotonic()
        checkpoint = epoch.trigger.options
        with self._changed:
            is_last = self._trigger.is_over and not checkpoint.kind.is_savepoint
            # for a savepoint somebody waits: it takes no more than what is there already
            credits = 0 if is_last or checkpoint.kind.is_savepoint else self._admission.credits
            self._trigger.epoch_began(self._clock.monotonic_ms())
            orders = self._tasks.orders(epoch, credits, _BUDGET * self._admission.duration_ms, is_last=is_last)
        result = self._run_tasks(EpochRun(epoch.number, orders))
        with self._changed:
            self._tasks.ran(epoch)
        took_ms = round((self._concurrency.monotonic() - began) * 1000)
        self._tell(epoch, result, self._measure(result, took_ms, credits))
        if checkpoint.kind.is_savepoint and checkpoint.stop is None:
            return  # the tasks do not hear of its completion, and what it prepared goes with the next checkpoint
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
            messages = self._runner.run_epoch(self._visible_graph, run)
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
        except Exception as error:  # noqa: BLE001 - whatever goes wrong there, the JobMaster decides
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
        deadline = self._concurrency.monotonic() + self._timeout_s + _OUTCOME_S
        with self._changed:
            while epoch.number not in self._completed | self._aborted:
                self._wait(_MAX_WAIT_S)
                if self._concurrency.monotonic() > deadline:
                    self._fail_slot(TaskFailure(f"Nothing was heard of checkpoint {epoch.number}.", "CheckpointError"))
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
            self._admission.epoch_ended(took_ms, result.records_ms, list(result.loads.values()))
        self._is_first = False
        _log.debug(
            "Epoch %d took %d ms, %d ms of that for records: %d records, %d tasks loaded, %d committables, backlog %s; "
            "the next has %d credits.",
            epoch.number,
            took_ms,
            result.records_ms,
            result.records,
            result.reloaded,
            committed,
            "unknown" if result.backlog is None else result.backlog,
            self._admission.credits,
        )
        with self._changed:
            self._tasks.completed(epoch)
            stopped = is_last or epoch.trigger.options.stop is not None
            self._finish(set(self._tasks.descriptors) if stopped else result.ended)
            if not stopped:
                outcome = result.outcome()
                self._trigger.epoch_ended(outcome, self._clock.monotonic_ms())
                self._next_timer = outcome.next_timer
                # splits that came meanwhile are there to be read, whatever the epoch found
                for task in self._tasks.with_work():
                    self._trigger.task_has_work(task, self._clock.monotonic_ms())
                ready = result.ready_in_ms
                self._ready_at = None if ready is None else self._concurrency.monotonic() + ready / 1000

    def _measure(self, result: EpochResult, took_ms: int, credits: int) -> dict[MetricScope, dict[str, Any]]:
        """What users see of an epoch, under each source."""
        measured: dict[MetricScope, dict[str, Any]] = {}
        for (vertex_id, subtask), operator_id in self._tasks.sources.items():
            report = result.reports.get((vertex_id, subtask))
            values: dict[str, Any] = {"lastEpoch": result.number, "lastEpochDuration": took_ms, "epochCredits": credits}
            if report is not None:
                values["lastEpochRecords"] = report.records
                if report.pending_records is not None:
                    values["pendingRecords"] = report.pending_records
            measured[vertex_id, operator_id, subtask] = values
        for (vertex_id, subtask), report in result.reports.items():
            if report.gauges:
                measured[vertex_id, "", subtask] = dict(report.gauges)
        return measured

    # -- what the slots say -------------------------------------------------------------------------

    def _finish(self, tasks: set[TaskKey]) -> None:
        for task in self._tasks.descriptors:
            if task in tasks and task not in self._tasks.finished:
                self._tasks.finished.add(task)
                self._report(task, "FINISHED")

    def _report(self, task: TaskKey, state: str, failure: TaskFailure | None = None) -> None:
        self._say(self._messages.slot_of(task), TaskStateChanged(self.number, *task, state, failure))

    def _fail_slot(self, failure: TaskFailure) -> NoReturn:
        """No task has an account of what went wrong, but there is one."""
        self._failed_slots.add(0)
        self._say(0, SlotFailed(self.number, 0, failure))
        raise _Ended

    def _check_ended(self) -> None:
        with self._changed:
            if self._ended is not None:
                raise _Ended

    def _say(self, slot: int, message: SlotMessage) -> None:
        self._post(MessageReceived(slot, message))

    def _beat(self) -> None:
        """A slot that is silent is taken for lost, and an epoch may be long."""
        while not self._over.wait(self._heartbeat_s):
            for slot in range(self._slots):
                self._say(slot, Heartbeat(self.number, slot, self._concurrency.wall_ms()))
            with self._changed:
                reason = self._ended or (_OVERDUE if self._overdue else None)
                cancels = reason if self._running is not None else None
            if cancels is not None:
                self._runner.cancel(cancels)  # it may have been about to begin when it was told so first


def _in(task: TaskKey, operator_id: str) -> tuple[str, str, int]:
    return task[0], operator_id, task[1]
