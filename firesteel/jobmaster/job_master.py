"""The JobMaster: the life cycle of one job from submission to its end, events in, instructions out."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.common.errors import FiresteelError, HostError, TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.config.redaction import Redactor
from firesteel.graph.execution_graph import ExecutionGraph, ExecutionState
from firesteel.graph.rescaling import has_same_parallelism, limit_parallelism, rescale_execution_graph
from firesteel.jobmaster import executions
from firesteel.jobmaster.checkpoints.coordinator import CheckpointCoordinator
from firesteel.jobmaster.checkpoints.job_checkpoints import CheckpointMessage, JobCheckpoints, without_checkpoints
from firesteel.jobmaster.client_channels import ClientChannels
from firesteel.jobmaster.job_rescaling import JobRescaling
from firesteel.jobmaster.metrics import JobMetrics
from firesteel.jobmaster.model import events
from firesteel.jobmaster.model.end_of_job import retry_delay_ms
from firesteel.jobmaster.model.failure import ExceptionHistory, FailureKind, RootCause, failure_of, kind_of_task_failure
from firesteel.jobmaster.model.instructions import (
    CallAsync,
    FailJob,
    Instruction,
    JobDone,
    NotifyAborted,
    NotifyComplete,
    PartInstruction,
    RequestFailed,
    RequestSlots,
    RestartJob,
    Say,
    SendToSlot,
    SetTimer,
    StartAttempt,
    TakeCheckpoint,
    TriggerTasks,
)
from firesteel.jobmaster.model.restored_job import RestoredJob
from firesteel.jobmaster.model.settings import JobMasterSettings
from firesteel.jobmaster.model.timers import Timer
from firesteel.jobmaster.restart_strategy import RestartStrategy
from firesteel.jobmaster.slots import failures as slot_failures
from firesteel.jobmaster.slots.job_slots import JobSlots
from firesteel.jobmaster.slots.pool import Slot, SlotPool, SlotState
from firesteel.jobmaster.sources.job_sources import JobSources
from firesteel.jobmaster.sources.watermark_alignment import WatermarkAlignment
from firesteel.runtime.model import messages

__all__ = ["JobMaster"]

_WINDING_DOWN = frozenset({JobStatus.FAILING, JobStatus.CANCELLING, JobStatus.RESTARTING})
_FREQUENT = (messages.Heartbeat, messages.MetricReport, messages.ReportWatermark, messages.ClientPayload)


class JobMaster(JobRescaling):
    """Decides what happens to one job. Has no thread, socket or clock: `handle` is all there is. Other threads may read
    its `snapshot`, and nothing else.

    An attempt goes through these steps:

    1. StartAttempt asks for slots (see JobSlots for when, and for how many); each registers itself. The status is
       CREATED.
    2. All are there: Deploy sends each the addresses of its peers. The status is RUNNING.
    3. Tasks report their states, readers ask for splits, sinks send payloads for the client.
    4. All tasks have FINISHED: Shutdown, and each slot answers SlotStopped. The status is FINISHED.

    A failure at any step leads to RESTARTING or, if the restart strategy allows no restart, FAILING; one of the host
    itself leads to RESTARTING in any case (see `end_of_job`). CancelJob leads to CANCELLING. RESTARTING also comes
    without a failure, for another number of slots. In these three the attempt winds down:

    5. CancelSlot goes to every slot that is there, and to those that register late.
    6. KillAttempt, if slots have not stopped after the cancellation timeout, or if those left cannot be reached.
    7. No process is left: the status is FAILED, CANCELED or, after SuspendJob, SUSPENDED.
    8. Or else RemoveLeftovers deletes the unused files of the attempt, and step 1 follows once that is done, or has
       taken too long, and the restart delay is over.

    Which failure is the cause: a task that raises is followed by broken connections, a lost slot and a failed
    stage, which may overtake its own account. So a failure that may be a consequence is held for
    ``failure_grace`` before step 5; a cause that arrives meanwhile takes its place, and so does one that
    arrives while the attempt winds down.
    """

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        restart_strategy: RestartStrategy,
        settings: JobMasterSettings | None = None,
        coordinator: CheckpointCoordinator | None = None,
        restored: RestoredJob | None = None,
    ):
        if coordinator is None:
            coordinator = without_checkpoints(execution_graph.job_graph)
        super().__init__(coordinator.wall_clock)
        self.execution_graph = execution_graph
        self.settings = settings or JobMasterSettings()
        self.checkpoints = JobCheckpoints(
            self,
            coordinator,
            restored,
            allow_non_restored=self.settings.allow_non_restored_state,
            has_run=self.settings.has_run,
            is_kept=self.settings.is_kept,
        )
        self.sources = JobSources(self)
        self.slots = JobSlots(execution_graph.job_graph, self.settings.adaptive)
        self.metrics = JobMetrics()
        self.exception_history = ExceptionHistory(self.settings.exception_history_size)
        self._job_graph = execution_graph.job_graph
        self._restart_strategy = restart_strategy
        self._client = ClientChannels(hold=self.settings.checkpointing)
        self._alignment = WatermarkAlignment()
        self._root_cause = RootCause(self.exception_history, Redactor(self._job_graph.configuration.to_dict()))
        self._host_failures = 0
        """How many attempts in a row ended because of the host."""
        self._publish()

    def handle(self, event: events.Event, now: int, wall: int | None = None) -> list[Instruction]:
        """Takes an event and returns the instructions that follow from it, in order.

        ``now`` are milliseconds of a clock that is never set, ``wall`` is the time that people read (epoch
        milliseconds), if that is another one.
        """
        self._now = now
        self._wall_clock.set(now, now if wall is None else wall)
        if not isinstance(event, events.ClientConsumed) and not (
            isinstance(event, events.MessageReceived) and isinstance(event.message, _FREQUENT)
        ):
            said = event.message if isinstance(event, events.MessageReceived) else event
            self.story.add(self._wall, f"[{self.status.name}] {said!r}")
        if isinstance(event, events.MessageReceived):
            self._on_message(event.slot_index, event.message)
        elif isinstance(event, (events.MetadataStored, events.MetadataFailed)):
            self._perform(self.checkpoints.on_metadata(event, now))
        elif not self.status.is_terminal_state():
            self._on_event(event)
        elif isinstance(event, events.TriggerSavepoint):
            self._refuse(event)
        self._consider_slots()
        self._consider_client()
        self._keep_timer(Timer.CHECKPOINT, self.checkpoints.coordinator.next_due())
        self._out += (CallAsync(self.attempt, call) for call in self.sources.take_calls())
        self._publish()
        instructions, self._out = self._out, []
        return instructions

    @property
    def failure(self) -> TaskFailure | None:
        """Why the job failed or was restarted last."""
        return self._root_cause.failure

    # Events

    def _on_event(self, event: events.Event) -> None:
        if isinstance(event, events.TimerFired):
            self._on_timer(event.name)
        elif isinstance(event, events.ClientConsumed):
            self._perform(self._client.consumed(event, is_current=event.attempt == self.attempt))
        elif isinstance(event, events.CallReturned):
            self._on_call_returned(event)
        elif isinstance(event, (events.SlotsOffered, events.AttemptAccepted)):
            if self._pool is not None and event.attempt == self.attempt:
                if isinstance(event, events.SlotsOffered):
                    self._pool.offered = event.available
                    self._pool.granted = event.available >= self._pool.needed
                self._pool.accepted = True
        elif isinstance(event, events.SlotsQueued):
            self._on_slots_queued(event)
        elif isinstance(event, events.SlotsAvailable):
            self.slots.available(event.slots)
        elif isinstance(event, events.SlotLost):
            self._on_slot_lost(event)
        elif isinstance(event, events.AttemptEnded):
            self._on_attempt_ended(event)
        elif isinstance(event, events.LeftoversRemoved):
            self._on_leftovers_removed(event.attempt)
        elif isinstance(event, (events.CancelJob, events.SuspendJob)):
            self._on_cancel(event.reason, suspends=isinstance(event, events.SuspendJob))
        elif isinstance(event, events.RescaleJob):
            self._on_rescale(event)
        elif isinstance(event, events.TriggerSavepoint):
            if self.status is JobStatus.RUNNING:
                self._perform(self.checkpoints.on_request(event, self._now))
            else:
                self._refuse(event)
        elif isinstance(event, events.CheckpointWanted):
            if self.status is JobStatus.RUNNING and event.attempt == self.attempt:
                self._take_checkpoint()
        elif isinstance(event, events.StartJob) and self.status is JobStatus.INITIALIZING:
            self._start_attempt()

    def _refuse(self, event: events.TriggerSavepoint) -> None:
        self._out.append(RequestFailed(str(event.request_id), f"the job is {self.status.name}, not RUNNING"))

    def _on_cancel(self, reason: str, *, suspends: bool) -> None:
        if self.status is JobStatus.CANCELLING:
            if suspends is self._suspends:
                self._kill("cancelled again")
            self._suspends &= suspends  # a cancelled job must not be recovered elsewhere
            return
        self._suspends = suspends
        winding_down = self.status in _WINDING_DOWN
        self._transition(JobStatus.CANCELLING)
        self._cancel_timers(Timer.RESTART, Timer.LEFTOVERS)
        if winding_down:
            self._wind_down_further()
        else:
            self._wind_down(reason)

    def _on_message(self, slot_index: int, message: messages.SlotMessage) -> None:
        if isinstance(message, messages.RegisterSlot):
            self._on_register(message)
            return
        pool = self._pool
        if self.status.is_terminal_state() or pool is None or message.attempt != self.attempt:
            return
        if slot_index not in pool or pool[slot_index].state is not SlotState.REGISTERED:
            return
        slot = pool[slot_index]
        slot.heard(message, self._now, self._wall)
        if isinstance(message, messages.ClientPayload):
            self._perform(self._client.accept(slot_index, message))
        elif isinstance(message, messages.MetricReport):
            self.metrics.report(message)
        elif isinstance(message, messages.TaskStateChanged):
            self._on_task_state(message)
        elif isinstance(message, messages.SlotStopped):
            self._on_slot_stopped(slot, message)
        elif isinstance(message, messages.SlotFailed):
            self.metrics.ended(message)
            self._on_slot_failed(slot, message.failure)
        elif isinstance(message, (messages.ReaderStarted, messages.RequestSplit, messages.SourceEvent)):
            self._on_reader(message)
        elif isinstance(message, messages.ReportWatermark):
            self._send(slot_index, self._alignment.report(message))
        elif isinstance(message, CheckpointMessage) and self.status is JobStatus.RUNNING:
            self._perform(self.checkpoints.on_message(message, self._now))

    def _perform(self, instructions: Iterable[PartInstruction]) -> None:
        """Executes the instructions of parts that concern the job as a whole, and leaves the rest to the shell."""
        for instruction in instructions:
            if isinstance(instruction, TriggerTasks):
                self._perform(self.checkpoints.trigger(instruction, self._now))
            elif isinstance(instruction, NotifyComplete):
                self._on_checkpoint_completed(instruction.checkpoint_id)
            elif isinstance(instruction, NotifyAborted):
                self._on_checkpoint_aborted(instruction)
            elif isinstance(instruction, FailJob):
                self._fail(FailureKind.CAUSE, instruction.failure)
            elif isinstance(instruction, RequestSlots):
                self._request_slots(instruction.slots)
            elif isinstance(instruction, RestartJob):
                self._restart(instruction.reason)
            elif isinstance(instruction, TakeCheckpoint):
                self._take_checkpoint()
            elif isinstance(instruction, SendToSlot):
                self._send(instruction.slot_index, instruction.message)
            else:
                self._out.append(instruction)

    # Step 1: slots

    def _start_attempt(self) -> None:
        self.attempt += 1
        self._transition(JobStatus.CREATED)
        self.metrics.begin_attempt()
        self._client.begin_attempt()
        self._alignment = WatermarkAlignment()
        self._forget_pool()
        self._shutting_down = self._killed = self._restarts_by_plan = False
        self._rescale_reason = None
        self._perform(self.slots.begin_attempt(self._now))

    def _request_slots(self, slots: int) -> None:
        """Starts the attempt, at the parallelism for which there are slots."""
        job_graph = limit_parallelism(self._job_graph, slots)
        if not has_same_parallelism(job_graph, self.execution_graph.job_graph):
            self.execution_graph = rescale_execution_graph(self.execution_graph, job_graph, self._wall)
        elif self.attempt > 0:
            self.execution_graph.reset(self._wall)
        # Before slots are asked for: a source that cannot be read fails at once and costs nothing.
        try:
            restored = self.checkpoints.begin_attempt(self._now)
            self.sources.start(restored)
        except FiresteelError as error:
            self._fail(FailureKind.CAUSE, failure_of(error))
            return
        self._pool = SlotPool(self.attempt, self.execution_graph.slots.total, self._wall)
        executions.transition_all(self.execution_graph, ExecutionState.SCHEDULED, self._wall)
        self._out.append(StartAttempt(self.attempt, self._pool.needed))
        self._set_timer(Timer.SLOT_REQUEST, self.settings.slot_request_timeout)

    def _on_slots_queued(self, event: events.SlotsQueued) -> None:
        """The time that others take is no reason to give up: it counts from when the job is the next one."""
        if self._pool is None or event.attempt != self.attempt or self.status is not JobStatus.CREATED:
            return
        self._pool.queued(event)
        if event.ahead:
            self._cancel_timers(Timer.SLOT_REQUEST)
        elif not self._timers.is_set(Timer.SLOT_REQUEST):
            self._set_timer(Timer.SLOT_REQUEST, self.settings.slot_request_timeout)

    def _on_slot_request_timeout(self) -> None:
        pool, timeout = self._expect_pool(), self.settings.slot_request_timeout
        if self.settings.is_kept and (pool.granted or not pool.accepted):
            self._fail(FailureKind.HOST, slot_failures.host_did_not_start(pool, timeout))
        else:
            self._fail(FailureKind.CAUSE, slot_failures.did_not_come(pool, timeout))

    def _on_register(self, message: messages.RegisterSlot) -> None:
        pool = self._pool
        if (
            self.status.is_terminal_state()
            or pool is None
            or pool.ended
            or message.attempt != self.attempt
            or message.slot_index not in pool
            or pool[message.slot_index].state in (SlotState.STOPPED, SlotState.FAILED, SlotState.LOST)
        ):
            reason = f"attempt {message.attempt} has no use for slot {message.slot_index} any more"
            self._out.append(SendToSlot(message.attempt, message.slot_index, messages.CancelSlot(reason)))
            return
        slot = pool[message.slot_index]
        if slot.state is SlotState.REGISTERED:
            self._fail(FailureKind.CAUSE, slot_failures.registered_twice(slot, message))
            return
        pool.register(message, self._now, self._wall)
        if self.status in _WINDING_DOWN:
            self._send(slot.index, self._cancellation())
        elif pool.all_registered and not self._root_cause.is_pending:
            self._deploy(pool)

    def _consider_slots(self) -> None:
        """Lets the scheduler decide about changed slots, unless the attempt is about to end anyway."""
        if not self.slots.is_adaptive:
            return
        due = None
        if not self.status.is_terminal_state() and not self._ends_well and not self._root_cause.is_pending:
            if self.checkpoints.is_running:
                self.slots.tasks_run(self._now)
            while (instruction := self.slots.decide(self._now)) is not None:
                self._perform([instruction])
            due = self.slots.next_due()
        self._keep_timer(Timer.SLOTS, due)

    # Steps 2 and 3: tasks

    def _deploy(self, pool: SlotPool) -> None:
        self._cancel_timers(Timer.SLOT_REQUEST)
        self._transition(JobStatus.RUNNING)
        self._host_failures = 0
        executions.transition_all(self.execution_graph, ExecutionState.DEPLOYING, self._wall)
        peers = pool.peers()
        for slot in pool:
            restore = self.checkpoints.restore_of(slot.index)
            self._send(
                slot.index, messages.Deploy(self.attempt, peers, pool.needed, restore, self.settings.storage_token)
            )
            slot.last_seen = self._now
        self._set_timer(Timer.HEARTBEAT, self.settings.heartbeat_timeout)

    def _on_task_state(self, message: messages.TaskStateChanged) -> None:
        try:
            if self.status is JobStatus.CREATED and message.state != ExecutionState.FAILED.name:
                raise FiresteelError(f"A slot reported {message!r} before any task was deployed to it.")
            executions.report(self.execution_graph, message, self._wall)
        except FiresteelError as error:
            failure = TaskFailure(error.message, type(error).__name__, traceback=str(self.story))
            self._fail(FailureKind.CAUSE, failure)
            return
        if message.state == ExecutionState.FAILED.name:
            name = self.execution_graph.vertex(message.vertex_id, message.subtask).task_name
            text = f"{name} failed without an error message."
            failure = message.failure or TaskFailure(text, task=name, subtask=message.subtask)
            self._fail(kind_of_task_failure(failure), failure)
            return
        if message.state == ExecutionState.FINISHED.name:
            self._perform(self.checkpoints.task_finished(message.vertex_id, message.subtask, self._now))
        elif message.state == ExecutionState.RUNNING.name:
            self._perform(self.checkpoints.start_if_all_run(self._now))
        if self.execution_graph.all_finished and not self._shutting_down and not self._root_cause.is_pending:
            self._shut_down()

    def _on_reader(self, message: messages.ReaderStarted | messages.RequestSplit | messages.SourceEvent) -> None:
        if self.status is JobStatus.RUNNING:
            self.sources.accept(message)
            if isinstance(message, messages.ReaderStarted):
                self._perform(self.checkpoints.start_if_all_run(self._now))

    def _on_call_returned(self, event: events.CallReturned) -> None:
        if event.attempt == self.attempt and self.status not in _WINDING_DOWN and not self._root_cause.is_pending:
            self.sources.call_returned(event)

    def _on_heartbeat_timeout(self) -> None:
        pool = self._expect_pool()
        live = pool.live()
        timeout = self.settings.heartbeat_timeout
        silent = [slot for slot in live if self._now - slot.last_seen >= timeout]
        if silent:
            self._fail(FailureKind.CAUSE, slot_failures.fell_silent(silent, timeout))
        elif live:
            self._set_timer(Timer.HEARTBEAT, min(slot.last_seen for slot in live) + timeout - self._now)

    def _consider_client(self) -> None:
        """Has sinks go on that have waited for the client, or that a checkpoint has waited for long enough."""
        due = None
        if self._client.has_waiting and self._pool is not None:
            under_way = self.checkpoints.coordinator.under_way()
            patience = min(self.settings.client_patience, self.checkpoints.coordinator.settings.timeout // 4)
            answers, due = self._client.answer(under_way, self._now, patience)
            self._perform(answers)
        self._keep_timer(Timer.CLIENT, due)

    # Checkpoints

    def _on_checkpoint_completed(self, checkpoint_id: int) -> None:
        """The client gets what was collected before the checkpoint."""
        self.checkpoints.completed(checkpoint_id)
        self.slots.checkpoint_ended(completed=True)
        self.sources.checkpoint_completed(checkpoint_id)
        self._perform(self._client.release(checkpoint_id))
        self._rescale_now()
        self._send_to_all(messages.NotifyCheckpointComplete(checkpoint_id))

    def _on_checkpoint_aborted(self, aborted: NotifyAborted) -> None:
        self.slots.checkpoint_ended(completed=False)
        self._rescale_now()
        self._send_to_all(messages.NotifyCheckpointAborted(aborted.checkpoint_id, aborted.is_expired))
        self.checkpoints.aborted(aborted.checkpoint_id)

    def fail_job(self, failure: TaskFailure) -> None:
        """An enumerator has raised."""
        self._fail(FailureKind.CAUSE, failure)

    # Step 4: the end of a good job

    def _shut_down(self) -> None:
        self._shutting_down = True
        for slot in self._expect_pool().live():
            self._send(slot.index, messages.Shutdown())
        if self.settings.cancellation_timeout:
            self._set_timer(Timer.SHUTDOWN, self.settings.cancellation_timeout)

    def _on_slot_stopped(self, slot: Slot, message: messages.SlotStopped) -> None:
        slot.enter(SlotState.STOPPED)
        executions.end_slot(self.execution_graph, slot.index, self._wall, None)
        self.metrics.ended(message)
        if self.status in _WINDING_DOWN:
            self._wind_down_further()
        elif not self._shutting_down:
            self._fail(FailureKind.SLOT_LOST, slot_failures.stopped_early(slot))
        elif self._expect_pool().all_stopped:
            self._close_sources()
            self._finish(JobStatus.FINISHED)
        else:
            self._decide_if_all_is_told()

    # Failures

    def _on_slot_failed(self, slot: Slot, failure: TaskFailure) -> None:
        slot.enter(SlotState.FAILED)
        executions.end_slot(self.execution_graph, slot.index, self._wall, failure)
        self._fail(kind_of_task_failure(failure), failure)
        if self.status in _WINDING_DOWN:
            self._wind_down_further()

    def _on_slot_lost(self, event: events.SlotLost) -> None:
        pool = self._pool
        if pool is None or event.attempt != self.attempt or event.slot_index not in pool:
            return
        slot = pool[event.slot_index]
        if slot.state is not SlotState.REGISTERED:
            return
        slot.enter(SlotState.LOST)
        failure = slot_failures.was_lost(slot, event.reason)
        executions.end_slot(self.execution_graph, slot.index, self._wall, failure)
        if self.status in _WINDING_DOWN:
            self._wind_down_further()
        else:
            is_of_host = self.settings.is_kept and event.by_host
            self._fail(FailureKind.HOST if is_of_host else FailureKind.SLOT_LOST, failure)

    def _on_attempt_ended(self, event: events.AttemptEnded) -> None:
        pool = self._pool
        if pool is None or event.attempt != self.attempt:
            return
        pool.ended = True
        if self.status in _WINDING_DOWN:
            if event.failure is not None and not self._killed:
                self._fail(FailureKind.ATTEMPT_ENDED, event.failure)
            self._wind_down_further()
            return
        if event.failure is not None:
            is_of_host = self.settings.is_kept and isinstance(event.failure.cause, HostError)
            self._fail(FailureKind.HOST if is_of_host else FailureKind.ATTEMPT_ENDED, event.failure)
        else:
            # the least specific failure: any report of a slot, even of a lost connection, replaces it as the cause
            text = f"Attempt {self.attempt} ended although its slots had not stopped."
            self._fail(FailureKind.PEER_LOST, TaskFailure(text, error_type="AttemptEnded"))

    def _fail(self, kind: FailureKind, failure: TaskFailure) -> None:
        if self.status is JobStatus.CANCELLING:
            return
        if self.status in _WINDING_DOWN:
            if not self._restarts_by_plan:
                self._root_cause.add(kind, failure)
            return
        self._root_cause.hold(kind, failure, self._wall)
        if kind in (FailureKind.CAUSE, FailureKind.HOST):
            self._decide()
        elif not self._decide_if_all_is_told() and not self._timers.is_set(Timer.FAILURE_GRACE):
            self._set_timer(Timer.FAILURE_GRACE, self.settings.failure_grace)

    def _decide_if_all_is_told(self) -> bool:
        """Ends the grace period early when no slot is left that could report a cause."""
        pool = self._expect_pool()
        if self._root_cause.is_pending and pool.ended and not pool.speaking():
            self._decide()
            return True
        return False

    def _decide(self) -> None:
        cause = self._root_cause.conclude(self.attempt)
        delay: int | None
        if self._root_cause.is_of_host:
            self._host_failures += 1
            delay = retry_delay_ms(self._host_failures)
        else:
            delay = self._restart_strategy.restart_after(self._now)
            refusal = self.checkpoints.may_restart_after(cause)
            if isinstance(refusal, Say):
                self._out.append(refusal)
            elif refusal is not None:
                self._root_cause.replace(refusal)
                delay = None
        if delay is None:
            self._transition(JobStatus.FAILING)
        else:
            self._transition(JobStatus.RESTARTING)
            self._set_timer(Timer.RESTART, delay)
        self._wind_down(f"the job failed: {cause.message}")

    def _on_timer(self, name: str) -> None:
        timer = self._timers.fired(name, self._now)
        if isinstance(timer, SetTimer):
            self._out.append(timer)
        elif timer is Timer.SLOT_REQUEST:
            self._on_slot_request_timeout()
        elif timer is Timer.HEARTBEAT:
            self._on_heartbeat_timeout()
        elif timer is Timer.FAILURE_GRACE:
            self._decide()
        elif timer is Timer.SHUTDOWN:
            slots = self._expect_pool().speaking()
            self._fail(FailureKind.CAUSE, slot_failures.did_not_stop(slots, self.settings.cancellation_timeout))
        elif timer is Timer.CANCELLATION:
            seconds = self.settings.cancellation_timeout / 1000
            self._kill(f"slots did not stop within {seconds:g} s of the request")
        elif timer is Timer.KILL:
            self._expect_pool().ended = True
            self._wind_down_further()
        elif timer is Timer.RESTART:
            self._wind_down_further()
        elif timer is Timer.LEFTOVERS:
            self._on_leftovers_timeout()
        elif timer is Timer.CHECKPOINT:
            self._perform(self.checkpoints.coordinator.due(self._now))

    def _finish(self, status: JobStatus) -> None:
        self._perform(self.checkpoints.end_job(status, self._now))
        self._out += self._timers.cancel(*Timer)
        self._transition(status)
        failure = self.failure if status is JobStatus.FAILED else None
        self._out.append(JobDone(status, failure, self.metrics.snapshot().accumulators()))
