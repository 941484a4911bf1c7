"""TaskExecutor of one slot: a single mailbox thread that runs tasks, timers, network and mails in turn.

A task can run when it has input (or is a source with data) and its outputs have room; ``runtime.slot.scheduling``
chooses among those that can. An operator that produces more than its outputs can take in the middle of a record waits
in ``wait_for_room``, which runs the network and the tasks further downstream meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from firesteel.common.errors import RecordSerializationError, UserCodeError
from firesteel.config.cluster_options import METRICS_INTERVAL
from firesteel.process.concurrency import SYSTEM, Concurrency
from firesteel.process.current_task import CURRENT_TASK
from firesteel.process.event_loop import EventLoopThread
from firesteel.runtime.chain.output import TaskOutput
from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
from firesteel.runtime.failure.failure_report import describe_failure
from firesteel.runtime.model import messages
from firesteel.runtime.model.assigned_state import TaskRestore
from firesteel.runtime.model.deployment import TaskDeploymentDescriptor
from firesteel.runtime.model.elements import CheckpointBarrier
from firesteel.runtime.operators.source import SourceOperator
from firesteel.runtime.slot.answers import SlotAnswers
from firesteel.runtime.slot.mailbox import Clock, Poller, ProcessingTimers
from firesteel.runtime.slot.scheduling import TaskScheduler, rank_vertices
from firesteel.runtime.slot.wiring import Wiring
from firesteel.runtime.task.slot_messages import JobMasterGateway, SlotMessages
from firesteel.runtime.task.slot_snapshots import SlotSnapshots
from firesteel.runtime.task.task import Task
from firesteel.runtime.task.task_metrics import BACKPRESSURED, BUSY, measure_times
from firesteel.runtime.time.turns import MAX_TURN_S, TurnWatch

__all__ = ["JobMasterGateway", "TaskCancelled", "TaskExecutor"]

IDLE_FLUSH_S = 0.001
"""With nothing else to do, buffers leave after a millisecond instead of at the buffer timeout."""
MAX_WAIT_S = 1.0
_CHECKPOINT_MESSAGES = (
    messages.TriggerCheckpoint,
    messages.NotifyCheckpointComplete,
    messages.NotifyCheckpointAborted,
)
BACKPRESSURED_WAIT_S = 0.05
"""How long to sleep at most with unsent records, so that buffer timeouts are kept."""
_STALL_THRESHOLD_S = 2 * MAX_TURN_S
"""A step that takes longer has kept the slot's other tasks from their work."""
SINK_WAIT_S = 0.005
"""How long to sleep while a writer has no room: there is no notification when it has again."""


class TaskCancelled(BaseException):
    """Unwinds the mailbox when the JobMaster stops the slot. Not an Exception: user code must not catch it."""


class TaskExecutor(SlotMessages):
    """Runs the tasks of one slot, or in the in-process runner those of all slots. Is its tasks' TaskServices."""

    def __init__(
        self,
        slots: Mapping[int, Sequence[TaskDeploymentDescriptor]],
        gateway: JobMasterGateway,
        poller: Poller,
        clock: Clock,
        wiring: Wiring,
        *,
        attempt: int,
        host: str,
        concurrency: Concurrency = SYSTEM,
        watch_turns: bool = True,
    ):
        """Without ``watch_turns`` the caller, which controls the clock, must end turns that take too long."""
        super().__init__(gateway, poller.wakeup, attempt=attempt, host=host)
        self._descriptors = [descriptor for slot in slots.values() for descriptor in slot]
        self._slots = list(slots)
        self._poller = poller
        self._concurrency = concurrency
        self._watch_turns = watch_turns
        self._watch: TurnWatch | None = None
        self._clock = clock
        self.monotonic = concurrency.monotonic
        """The clock of deadlines and delays, in seconds."""
        self.event_loop = EventLoopThread(concurrency)
        """Where async functions run."""
        self._wiring = wiring
        self._mails: deque[messages.JobMasterMessage] = deque()
        self._cancel_reason: str | None = None
        self._job_is_over = False
        self._shutdown = False
        self._deployed = False
        self._timers = ProcessingTimers(clock)
        self._tasks: list[Task] = []
        self._ranks = rank_vertices(slots.values())
        self._timers_from = 0.0
        """Not before this time, unless there is nothing else to do, are timers looked at again."""
        self._looked_at = 0
        """When the timers were looked at last, in milliseconds of their clock."""
        self._waiting_rank = -1
        """Of the task furthest downstream that waits for room in the middle of a batch."""
        self._ending: list[Task] = []
        self._postponed: dict[Task, deque[Callable[[], None]]] = {}
        self._restore: Mapping[messages.TaskKey, TaskRestore] = {}
        self._storage_token: str | None = None
        first = self._descriptors[0]
        self._metrics_interval = first.configuration.get(METRICS_INTERVAL).to_millis()
        """0 for neither measurements nor reports."""
        self._snapshots = SlotSnapshots(first.configuration, first.job_id, concurrency)
        self._answers = SlotAnswers(
            attempt, self._slots[0], self.send_from_any_thread, self._between_batches, concurrency
        )
        self._unflushed = False
        self._last_flush = 0.0
        self._next_report = 0

    # -- called from other threads ------------------------------------------------------------------

    def deliver(self, message: messages.JobMasterMessage) -> None:
        """Puts a message from the JobMaster into the mailbox."""
        if isinstance(message, messages.Ask) and self._answers.beside(message):
            return
        self._mails.append(message)
        if isinstance(message, messages.CancelSlot):
            self._job_is_over = message.job_is_over
            self._cancel_reason = message.reason
        self._poller.wakeup()

    @property
    def has_unsent_records(self) -> bool:
        """Whether partial buffers are about to leave."""
        return self._unflushed and not self._is_backpressured(self.monotonic())

    @property
    def cancel_requested(self) -> bool:
        """Whether the JobMaster has stopped the slot."""
        return self._cancel_reason is not None

    # -- the slot's life ----------------------------------------------------------------------------

    def run(self) -> None:
        """Runs until the JobMaster ends or cancels the job. Always closes what it opened."""
        try:
            self._run_until_shutdown()
        except TaskCancelled:
            self._close_tasks("CANCELED")
        except BaseException:
            self._close_tasks(None)
            raise
        finally:
            if self._watch is not None:
                self._watch.close()
            self._answers.close()
            self._snapshots.close(job_is_over=self._shutdown or self._job_is_over)
        accumulators = self.accumulators()
        for slot in self._slots:
            self._gateway.send(messages.SlotStopped(self._attempt, slot, accumulators))
            accumulators = {}

    def accumulators(self) -> messages.Accumulators:
        """The user's counters and Firesteel's own, by task."""
        return self._wiring.accumulators(self._tasks)

    def _run_until_shutdown(self) -> None:
        while not self._deployed:
            self._handle_mails()
            self._check_cancelled()
            if not self._deployed:
                self._poller.poll(MAX_WAIT_S)
        if not self._start_tasks():
            self._await_cancel()
        while not self._shutdown:
            try:
                if not self._step(self.monotonic()) and not self._shutdown:
                    self._wait()
            except UserCodeError:
                self._await_cancel()

    def _await_cancel(self) -> NoReturn:
        """A task has failed and the failure was sent: wait for the JobMaster's instruction."""
        while True:
            self._check_cancelled()
            self._poller.poll(MAX_WAIT_S)

    def _start_tasks(self) -> bool:
        for descriptor in self._descriptors:
            self._report(descriptor, "INITIALIZING")
            try:
                if not self._tasks:
                    self._snapshots.check_storage(self._storage_token)
                task = self._wiring.create_task(descriptor, self)
            except Exception as error:  # noqa: BLE001 - user code may raise anything
                self._report(descriptor, "FAILED", describe_failure(error, descriptor))
                return False
            task.rank = self._ranks[descriptor.vertex_id]
            self._tasks.append(task)
        self._scheduler = TaskScheduler(self._tasks)
        if self._watch_turns:
            self._watch = TurnWatch([task.turn for task in self._tasks], self._concurrency)
        if self._metrics_interval:
            measure_times(self._tasks)
        self._answers.open(self._tasks)
        self._wiring.connect()
        files = self._snapshots.create_reader()
        try:
            return self._open_tasks(files)
        except UserCodeError:
            return False
        finally:
            files.close()

    def _open_tasks(self, files: StateFileReader) -> bool:
        # downstream tasks open first: an upstream one may emit as soon as it is open
        for task in reversed(self._tasks):
            restore = self._restore.get((task.descriptor.vertex_id, task.descriptor.subtask))
            self._guarded(task, partial(task.open, restore, files))
            self._report(task.descriptor, "RUNNING")
            if task.times is not None:
                task.times.start()
            if task.source is not None:
                head = task.head.descriptor
                self._gateway.send(
                    messages.ReaderStarted(
                        self._attempt, task.descriptor.vertex_id, head.operator_id, task.descriptor.subtask, self._host
                    )
                )
        if self._metrics_interval:
            self._next_report = self._clock.monotonic_ms() + self._metrics_interval
        return True

    def _close_tasks(self, state: str | None) -> None:
        for task in self._tasks:
            was_finished = task.finished and task not in self._ending
            task.finished = True
            self._close(task)
            if state is not None and not was_finished:
                self._report(task.descriptor, state)

    @staticmethod
    def _close(task: Task) -> list[BaseException]:
        before, CURRENT_TASK.name = CURRENT_TASK.name, task.log_name
        try:
            return task.close()
        finally:
            CURRENT_TASK.name = before

    # -- one step -----------------------------------------------------------------------------------

    def _step(self, now: float) -> bool:
        """Network, mails, due timers, then one unit of work of one task."""
        self._poller.poll(0)
        if self._mails:
            self._handle_mails()
        self._check_cancelled()
        acted = bool(self._postponed) and self._run_postponed()
        ran = now >= self._timers_from and self._run_timers()
        task = self._scheduler.next_task(now, self._waiting_rank)
        if task is None and now < self._timers_from:
            ran = self._run_timers()
        progressed = ran or acted
        if task is not None:
            self._act(task, task.run_once)
            progressed = True
        if self._unflushed:
            after = self.monotonic()
            has_stalled = after - now > _STALL_THRESHOLD_S
            # a function that stalled has made everything wait, and the task may have its next turn at once
            self._flush_due(after if has_stalled else now)
            if has_stalled:
                self._note_stall()
        if self._ending:
            self._end_tasks()
        return progressed

    def _note_stall(self) -> None:
        """Notifies all tasks that none of them could run for a while, unless their clock stood still."""
        if self._clock.monotonic_ms() - self._looked_at > _STALL_THRESHOLD_S * 1000:
            for task in self._tasks:
                task.input_clock.stalls += 1

    def _act(self, task: Task, action: Callable[[], None]) -> None:
        """Calls a task, after which it may have records to send, or have finished."""
        was_finished = task.finished
        if task.times is not None and task.times.state != BUSY:
            task.times.become_busy()
        self._guarded(task, action)
        self._unflushed = True
        if task.finished and not was_finished:
            self._ending.append(task)

    def _between_batches(self, task: Task, action: Callable[[], None]) -> None:
        """Acts on a task as soon as no step of it is on the stack; what is postponed keeps its order."""
        if task.running or task in self._postponed:
            self._postponed.setdefault(task, deque()).append(action)
        elif not task.finished:
            self._act_aside(task, action)

    def _act_aside(self, task: Task, action: Callable[[], None]) -> None:
        """Calls a task outside its record processing; its idle, busy or backpressured state stays as it was."""
        before = BUSY if task.times is None else task.times.interrupt()
        self._act(task, action)
        if task.times is not None and before != BUSY:
            task.times.enter(before)

    def act_soon(self, task: Task, action: Callable[[], None]) -> None:
        """Calls a task before any task continues with records, but not in the middle of a batch."""
        self._postponed.setdefault(task, deque()).append(action)

    def _run_postponed(self) -> bool:
        idle = [task for task in self._postponed if not task.running]
        for task in idle:
            for action in self._postponed.pop(task):
                if not task.finished:
                    self._act_aside(task, action)
        return bool(idle)

    def _run_timers(self) -> bool:
        now, began = self._clock.monotonic_ms(), self.monotonic()
        self._looked_at = now
        ran = False
        while now >= self._timers.due_at and (due := self._timers.pop_due(now)) is not None:
            task, callback, time = due
            task.running = True
            before = BUSY if task.times is None else task.times.interrupt()
            task.turn.begin(self.monotonic())
            try:
                self._guarded(task, partial(callback, time))
            finally:
                task.turn.finish()
                task.running = False
            if task.times is not None and before != BUSY:
                task.times.enter(before)
            ran = self._unflushed = True
            took = self.monotonic() - began
            if took > MAX_TURN_S:
                # what is left is not more urgent than the tasks, which get as much time
                self._timers_from = began + 2 * took
                break
        if now >= self._next_report > 0:
            self._next_report = now + self._metrics_interval
            self._report_metrics()
        return ran

    def _flush_due(self, now: float) -> None:
        """Sends partial buffers whose timeout has passed."""
        for task in self._tasks:
            for output in task.outputs:
                timeout = output.descriptor.buffer_timeout
                if timeout >= 0 and now - output.last_flush >= timeout / 1000:
                    self._flush(task, output, now)

    def _flush_idle(self, now: float) -> None:
        for task in self._tasks:
            for output in task.outputs:
                if output.descriptor.buffer_timeout >= 0:
                    self._flush(task, output, now)
        self._unflushed = False
        self._last_flush = now

    def _flush(self, task: Task, output: TaskOutput, now: float) -> None:
        try:
            output.flush(now)
        except RecordSerializationError as error:
            self._fail(task, error)

    def _end_tasks(self) -> None:
        """A finished task has ended once everything it produced is gone, and its snapshots are acknowledged."""
        for task in list(self._ending):
            if task.snapshots.is_busy:
                continue
            if all(output.partition.queued == 0 for output in task.outputs) and self._wiring.is_drained():
                self._ending.remove(task)
                errors = self._close(task)
                if errors:
                    self._check_cancelled()  # which interrupts a close() that hangs
                    self._fail(task, errors[0])
                self._report(task.descriptor, "FINISHED")
                if task.times is not None:
                    task.times.stop()
                self._report_metrics()

    def _wait(self) -> None:
        """Nothing can run: sleep until data, a mail, a timer, a source or a flush is due."""
        now = self.monotonic()
        timeout = MAX_WAIT_S
        if self._unflushed:
            if self._is_backpressured(now):
                timeout = BACKPRESSURED_WAIT_S
            elif now - self._last_flush >= IDLE_FLUSH_S:
                self._flush_idle(now)
                self._poller.poll(0)
                return
            else:
                timeout = IDLE_FLUSH_S - (now - self._last_flush)
        clock_now = self._clock.monotonic_ms()
        due_in = self._timers.due_in(clock_now)
        if due_in is not None:
            timeout = min(timeout, due_in / 1000)
        if self._next_report:
            timeout = min(timeout, (self._next_report - clock_now) / 1000)
        for task in self._tasks:
            if task.finished:
                continue
            if not task.sinks_have_room():
                timeout = min(timeout, SINK_WAIT_S)
            elif task.source is not None and task.rank > self._waiting_rank:
                ready = task.source.ready_at
                if ready is not None and task.can_read and task.has_room():
                    timeout = min(timeout, ready - now)
        if timeout > 0:
            self._poller.poll(timeout)

    def _is_backpressured(self, now: float) -> bool:
        """Whether a task could go on if its consumers were faster: then small buffers would only cost more."""
        return any(
            not task.finished and (task.running or task.has_work(now)) and not task.has_room() for task in self._tasks
        )

    def wait_for_room(self, task: Task) -> None:
        """Runs the network and the tasks further downstream until the task's outputs have room.

        Only tasks of a higher rank run meanwhile, in all slots: any other could come to wait itself for a task that is
        on the stack below it, here or in another slot, and neither would ever go on. For the same reason a task does
        not wait, but exceeds its limit, if it acts on a timer or a mail while one of a higher rank waits.
        """
        before = self._waiting_rank
        if task.rank < before:
            return
        if task.times is not None:
            task.times.enter(BACKPRESSURED)
        self._waiting_rank = task.rank
        task.input_clock.stop()
        try:
            while not task.has_room():
                relieved = task.relieve()
                if not self._step(self.monotonic()) and not relieved and not task.has_room():
                    self._wait()
        finally:
            self._waiting_rank = before
        task.input_clock.go_on()
        if task.times is not None:
            task.times.become_busy()

    # -- mails --------------------------------------------------------------------------------------

    def _check_cancelled(self) -> None:
        if self._cancel_reason is not None:
            raise TaskCancelled(self._cancel_reason)

    def _handle_mails(self) -> None:
        while self._mails:
            message = self._mails.popleft()
            if isinstance(message, messages.Deploy):
                self._storage_token = message.storage_token
                self._wiring.connect_peers(message.peers)
                self._restore = message.restore
                self._deployed = True
            elif isinstance(message, messages.AddSplits):
                # behind a barrier that has not been injected yet: the enumerator's snapshot is without these splits
                task, source = self._reader(message)
                self._between_batches(task, partial(source.add_splits, message.splits))
            elif isinstance(message, messages.NoMoreSplits):
                task, source = self._reader(message)
                self._between_batches(task, source.no_more_splits)
            elif isinstance(message, messages.ReaderEvent):
                task, source = self._reader(message)
                self._between_batches(task, partial(source.handle_source_event, message.event))
            elif isinstance(message, _CHECKPOINT_MESSAGES):
                self._handle_checkpoint(message)
            elif isinstance(message, messages.AlignWatermark):
                task, source = self._reader(message)
                self._between_batches(task, partial(source.align, message.max_allowed))
            elif isinstance(message, messages.Ask):
                self._answers.ask(message)
            elif isinstance(message, messages.ClientAck):
                self.client_acknowledged(message)
            elif isinstance(message, messages.SendBeforeBarrier):
                self.send_before_barrier(message)
            elif isinstance(message, messages.Shutdown):
                self._shutdown = True

    def _handle_checkpoint(
        self,
        message: messages.TriggerCheckpoint | messages.NotifyCheckpointComplete | messages.NotifyCheckpointAborted,
    ) -> None:
        if isinstance(message, messages.TriggerCheckpoint):
            barrier = CheckpointBarrier(message.checkpoint_id, message.timestamp, message.options)
            for task in self._tasks:
                if (task.descriptor.vertex_id, task.descriptor.subtask) in message.tasks:
                    self._between_batches(task, partial(task.checkpoints.trigger, barrier))
        elif isinstance(message, messages.NotifyCheckpointComplete):
            self._snapshots.confirm(message.checkpoint_id)
            for task in self._tasks:
                self._between_batches(task, partial(task.checkpoints.notify_complete, message.checkpoint_id))
        else:
            self.await_no_barrier(message.checkpoint_id)
            for task in self._tasks:
                self._between_batches(task, partial(task.checkpoints.notify_aborted, message.checkpoint_id))

    def _reader(
        self, message: messages.AddSplits | messages.NoMoreSplits | messages.ReaderEvent | messages.AlignWatermark
    ) -> tuple[Task, SourceOperator]:
        for task in self._tasks:
            if (
                task.source is not None
                and task.head.descriptor.operator_id == message.operator_id
                and task.descriptor.subtask == message.subtask
            ):
                return task, task.source
        raise AssertionError(f"no source {message.operator_id} subtask {message.subtask} in this slot")

    # -- failures and reports -----------------------------------------------------------------------

    def _guarded(self, task: Task, action: Callable[[], None]) -> None:
        """Runs user code; an exception becomes the task's failure, sent to the JobMaster at once."""
        before, CURRENT_TASK.name = CURRENT_TASK.name, task.log_name
        try:
            action()
        except (UserCodeError, TaskCancelled):
            raise
        except BaseException as error:  # noqa: BLE001 - user code may raise anything, SystemExit too
            self._fail(task, error)
        finally:
            CURRENT_TASK.name = before

    def _fail(self, task: Task, error: BaseException) -> NoReturn:
        failure = describe_failure(error, task.descriptor, task.chain, task.at_work)
        self._report(task.descriptor, "FAILED", failure)
        # its end has been reported: it is not cancelled in addition
        task.finished = True
        if task in self._ending:
            self._ending.remove(task)
        raise UserCodeError(failure) from error

    def _report(self, descriptor: TaskDeploymentDescriptor, state: str, failure: Any = None) -> None:
        self._gateway.send(
            messages.TaskStateChanged(self._attempt, descriptor.vertex_id, descriptor.subtask, state, failure)
        )

    def _report_metrics(self) -> None:
        if not self._metrics_interval:
            return
        by_slot: dict[int, dict[messages.MetricScope, Mapping[str, Any]]] = {slot: {} for slot in self._slots}
        for task in self._tasks:
            descriptor = task.descriptor
            task.reports.mailbox_size = len(self._mails)
            for operator_id, values in task.metrics().items():
                by_slot[descriptor.slot][descriptor.vertex_id, operator_id, descriptor.subtask] = values
        accumulators = self.accumulators()
        for slot, metrics in by_slot.items():
            self._gateway.send(messages.MetricReport(self._attempt, slot, metrics, accumulators))
            accumulators = {}

    # -- TaskServices -------------------------------------------------------------------------------

    def wakeup(self) -> None:
        """Ends a wait of the slot's thread; may be called from any thread."""
        self._poller.wakeup()

    def wait_for_wakeup(self) -> None:
        """Never needed: tasks take turns."""
        raise AssertionError("a task of a slot does not wait for results")

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._clock.now_ms()

    def schedule(self, task: Task, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back while the task is not running, once the wall clock reaches the timestamp."""
        self._timers.schedule(task, timestamp, callback)

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        return self._clock.monotonic_ms()

    def schedule_after(self, task: Task, delay: int, callback: Callable[[], None]) -> None:
        """Calls back while the task is not running, after a delay in milliseconds."""
        self._timers.schedule_after(task, delay, callback)

    def run_async(self, work: Callable[[], None]) -> None:
        """Runs work in a thread beside the mailbox."""
        self._snapshots.run_async(work)

    def create_files(self, barrier: CheckpointBarrier) -> SnapshotFiles:
        """Where the state of a task goes."""
        return self._snapshots.create_files(barrier)

    def open_state_files(self) -> StateFileReader:
        """Reads state files of earlier checkpoints; to be closed."""
        return self._snapshots.create_reader()
