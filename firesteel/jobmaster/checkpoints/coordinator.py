"""Checkpoint coordinator of a job, for checkpoints and savepoints: events in, instructions out, no I/O."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from firesteel.common.errors import CheckpointError, FiresteelError, TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.checkpoints.completed import CompletedCheckpoint, CompletedCheckpointStore
from firesteel.jobmaster.checkpoints.disposal import CheckpointDisposal
from firesteel.jobmaster.checkpoints.failures import CheckpointFailureManager, CheckpointFailureReason
from firesteel.jobmaster.checkpoints.pending import AckResult, PendingCheckpoint, PendingStatus
from firesteel.jobmaster.checkpoints.plan import CheckpointPlan
from firesteel.jobmaster.checkpoints.requests import CheckpointRequest, CheckpointRequestDecider
from firesteel.jobmaster.checkpoints.settings import CheckpointSettings
from firesteel.jobmaster.checkpoints.shared_state_registry import SharedStateRegistry
from firesteel.jobmaster.checkpoints.stats import CheckpointStatsTracker
from firesteel.jobmaster.model.instructions import (
    DeleteCheckpoint,
    FailJob,
    NotifyAborted,
    NotifyComplete,
    PartInstruction,
    RequestDone,
    RequestFailed,
    Say,
    StoreMetadata,
    TriggerTasks,
)
from firesteel.jobmaster.model.task_key import TaskKey
from firesteel.jobmaster.model.wall_clock import WallClock
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions, SnapshotKind, StopMode
from firesteel.runtime.model.state_handles import TaskStateSnapshot

__all__ = ["CheckpointCoordinator"]

Instructions = list[PartInstruction]

_MAX_REMEMBERED = 10_000
"""Checkpoints that were given up are known so long, to clean up after acknowledgements that come late."""

_Reason = CheckpointFailureReason


class CheckpointCoordinator:
    """One per job; it lives through all attempts. Every method takes the time, milliseconds of a clock
    that is never set, and returns what to do.

    The life of a checkpoint, in the steps of the protocol:

    1. TriggerTasks. The enumerators' states come back at once with `coordinator_states`.
    6. Every task acknowledges. One that declines, or ends without having acknowledged, ends the checkpoint.
    7. StoreMetadata; `stored` comes back.
    8. It is complete: it subsumes checkpoints under way that are older, and completed ones beyond the retained.
    9. NotifyComplete.
    10. DeleteCheckpoint and DeleteFiles, for files that no checkpoint needs.

    Until step 8 it may be given up: NotifyAborted, and what was written is deleted, except while step 7 is under way:
    whether ``_metadata`` came to be must be known first.

    Savepoints differ as in Flink: they belong to the user, so they subsume nothing, share nothing and are not
    retained; only with ``stop`` are the tasks notified of their completion.
    """

    def __init__(
        self,
        settings: CheckpointSettings,
        job_id: str,
        job_name: str,
        next_id: int = 1,
        *,
        location_of: Callable[[int], CheckpointLocation],
        savepoint_location_of: Callable[[str], CheckpointLocation],
        random_source: Callable[[], float] = random.random,
    ):
        self.settings = settings
        self.job_id = job_id
        self.job_name = job_name
        self.next_id = next_id
        self.wall_clock = WallClock()
        self.stats = CheckpointStatsTracker()
        self.registry = SharedStateRegistry()
        self._location_of = location_of
        self._savepoint_location_of = savepoint_location_of
        self._random = random_source
        self._completed = CompletedCheckpointStore(settings.num_retained)
        self._disposal = CheckpointDisposal(self.registry)
        self._decider = CheckpointRequestDecider(settings.max_concurrent, settings.min_pause)
        self._failures = CheckpointFailureManager(settings.tolerable_failures)
        self._plan: CheckpointPlan | None = None
        self._finished: set[TaskKey] = set()
        self._pending: dict[int, PendingCheckpoint] = {}
        self._aborted: dict[int, CheckpointLocation] = {}
        self._aborted_while_storing: dict[int, CheckpointLocation] = {}
        self._next_trigger: int | None = None
        self._last_completion: int | None = None
        self._stop_request: CheckpointRequest | None = None
        """The stop-with-savepoint under way, or done: no other checkpoint is triggered."""
        self._force_full = False
        """The job started from a checkpoint that is not its own: nothing of that may be shared."""
        self._failed = False
        """The job was told to fail: nothing is triggered until its next attempt."""
        self._out: Instructions = []

    # -- looking ------------------------------------------------------------------------------------

    def latest(self) -> CompletedCheckpoint | None:
        """The checkpoint the next attempt is to be restored from."""
        return self._completed.latest()

    @property
    def retained_paths(self) -> tuple[str, ...]:
        """The directories of all checkpoints that are kept, oldest first."""
        return self._completed.paths

    def pending(self) -> list[int]:
        """The numbers of the checkpoints under way."""
        return sorted(self._pending)

    def under_way(self) -> list[tuple[int, int]]:
        """The checkpoints under way, oldest first, and when each was triggered; 0 for a savepoint, which is urgent."""
        return [(number, 0 if each.kind.is_savepoint else each.triggered_at) for number, each in self._pending.items()]

    @property
    def is_stopping(self) -> bool:
        """Whether the job is being stopped with a savepoint, or has been."""
        return self._stop_request is not None

    def needed_files(self) -> frozenset[str]:
        """The state files that must not be deleted; between two attempts, all others in the job's directory may be."""
        return self.registry.needed()

    def next_due(self) -> int | None:
        """When `due` has something to do."""
        times = [pending.triggered_at + self.settings.timeout for pending in self._pending.values()]
        if self._next_trigger is not None:
            times.append(self._next_trigger)
        return min(times, default=None)

    # -- attempts -----------------------------------------------------------------------------------

    def start(self, plan: CheckpointPlan, now: int, finished: Iterable[TaskKey] = ()) -> Instructions:
        """All tasks of an attempt run, or have run already: periodic triggering begins."""
        assert not self._pending, "an attempt starts while checkpoints of the previous one are in progress"
        self._plan = plan
        self._finished = {task for task in finished if task in plan.keys}
        self._failed = False
        self._stop_request = None
        latest = self.latest()
        self._force_full = latest is not None and not latest.is_owned
        self._start_scheduler(now)
        return self._take()

    def stop(self, reason: str, now: int) -> Instructions:
        """The attempt winds down: everything under way is given up."""
        self._plan = None
        self._next_trigger = None
        self._failed = False
        self._abort_all(_Reason.CHECKPOINT_COORDINATOR_SUSPEND, reason, now)
        self._out += self._disposal.release_all()
        return self._take()

    def task_finished(self, task: TaskKey, now: int) -> Instructions:
        """A task has ended; checkpoints it has not acknowledged cannot complete."""
        if self._plan is None or task not in self._plan.keys:
            return []
        self._finished.add(task)
        for pending in [each for each in self._pending.values() if task in each.waiting]:
            text = f"Task {pending.plan.name_of(task)} ended before it could take part."
            self._abort(pending, _Reason.CHECKPOINT_DECLINED_TASK_CLOSING, text, now, by_task=True)
        self._trigger_waiting(now)
        return self._take()

    def restored(self, metadata: CheckpointMetadata, path: str, owned: bool, now: int) -> None:
        """An attempt starts from a checkpoint: one of the job's own, or one it was given (``owned``: CLAIM)."""
        checkpoint_id = metadata.checkpoint_id
        self.next_id = max(self.next_id, checkpoint_id + 1)
        if checkpoint_id not in self._completed:
            self._keep(CompletedCheckpoint(metadata, path, is_owned=owned, is_claimed=owned))
        self.stats.restored(checkpoint_id, metadata.kind, path, self.wall_clock.at(now))

    def recover(self, checkpoints: Iterable[tuple[CheckpointMetadata, str]]) -> None:
        """Takes over the job's own checkpoints, or a savepoint it was stopped with; call before `restored`."""
        for metadata, path in checkpoints:
            self.next_id = max(self.next_id, metadata.checkpoint_id + 1)
            self._keep(CompletedCheckpoint(metadata, path, is_owned=not metadata.kind.is_savepoint))

    def unusable(self, checkpoint_id: int, reason: str) -> Instructions:
        """A checkpoint cannot be restored from: `latest` is the next older one. Its files stay until one completes."""
        if self._completed.mark_unusable(checkpoint_id):
            older = self._completed.latest()
            instead = "there is no older one" if older is None else f"checkpoint {older.checkpoint_id} is used instead"
            self._out.append(Say(f"Checkpoint {checkpoint_id} cannot be restored from, {instead}: {reason}"))
        return self._take()

    def job_ended(self, status: JobStatus, now: int) -> Instructions:
        """The job is over: what to delete, according to ``externalized-checkpoint-retention``."""
        self._plan = None
        self._next_trigger = None
        self._abort_all(_Reason.CHECKPOINT_COORDINATOR_SHUTDOWN, f"The job is {status.name}.", now)
        for location_id, location in self._aborted_while_storing.items():
            self._out += self._disposal.discard(location_id, location)
        self._aborted_while_storing.clear()
        if not self.settings.keeps(status):
            for checkpoint in self._completed.clear():
                self._out += self._disposal.retire(checkpoint, self.next_id)
                self.stats.discarded(checkpoint.checkpoint_id)
        self._out += self._disposal.release_all()
        return self._take()

    # -- triggering ---------------------------------------------------------------------------------

    def due(self, now: int) -> Instructions:
        """Gives up what took too long, and triggers the periodic checkpoint if it is time."""
        for pending in list(self._pending.values()):
            if pending.triggered_at + self.settings.timeout <= now:
                text = f"After {self.settings.timeout} ms {_missing(pending)}."
                self._abort(pending, _Reason.CHECKPOINT_EXPIRED, text, now)
        if self._next_trigger is not None and self._next_trigger <= now:
            period = self.settings.period
            assert period is not None
            self._next_trigger += (1 + (now - self._next_trigger) // period) * period
            self._decider.add(CheckpointRequest(is_periodic=True, at=now))
        self._trigger_waiting(now)
        return self._take()

    def trigger_savepoint(
        self,
        request_id: str,
        kind: SnapshotKind,
        target_directory: str,
        stop: StopMode | None,
        now: int,
    ) -> Instructions:
        """Takes a savepoint, which does not wait for the interval or the pause.

        It does not wait for checkpoints under way either, unless those are unaligned. With ``stop`` checkpoints under
        way are given up and no more are triggered; should the savepoint fail after that, so does the attempt, as some
        sources may have stopped already.
        """
        if not kind.is_savepoint:
            raise ValueError(f"{kind} is not a kind of savepoint")
        forced = not self.settings.unaligned
        request = CheckpointRequest(kind, request_id, target_directory, stop, is_forced=forced, at=now)
        if self._stop_request is not None:
            self._refuse(request, _Reason.CHECKPOINT_COORDINATOR_SUSPEND, "The job is being stopped with a savepoint.")
            return self._take()
        if stop is not None:
            self._next_trigger = None
            reason = "The job is being stopped with a savepoint."
            self._abort_all(_Reason.CHECKPOINT_COORDINATOR_SUSPEND, reason, now)
            self._stop_request = request
        self._request(request, now)
        return self._take()

    def trigger_checkpoint(
        self, request_id: str | None, now: int, kind: SnapshotKind = SnapshotKind.CHECKPOINT
    ) -> Instructions:
        """Takes a checkpoint, perhaps a full one, as soon as none is under way, regardless of interval and pause.

        Without a ``request_id`` it is for tasks that wait for a last checkpoint. Such requests are one while they wait,
        and are made again if a task ends meanwhile.
        """
        request = CheckpointRequest(kind, request_id, at=now)
        if self._stop_request is not None:
            self._refuse(request, _Reason.CHECKPOINT_COORDINATOR_SUSPEND, "The job is being stopped with a savepoint.")
        elif request_id is not None or not self._decider.has_waiting(request_id=None):
            self._request(request, now)
        return self._take()

    def _request(self, request: CheckpointRequest, now: int) -> None:
        if not self._decider.add(request):
            self._refuse(request, _Reason.TOO_MANY_CHECKPOINT_REQUESTS)
        self._trigger_waiting(now)

    def _trigger_waiting(self, now: int) -> None:
        """Triggers the next request, if one may be triggered now."""
        while not self._failed:
            choice = self._decider.choose(len(self._pending), self._last_completion, now)
            if choice.retry_at is not None and self._next_trigger is not None:
                self._next_trigger = choice.retry_at
            if choice.request is None:
                return
            self._trigger(choice.request, now)

    def _trigger(self, request: CheckpointRequest, now: int) -> None:
        plan = self._plan
        if plan is None or self._finished.issuperset(plan.keys):
            self._refuse(request, _Reason.NOT_ALL_REQUIRED_TASKS_RUNNING, now=now)
            return
        if self._finished and not self.settings.after_tasks_finish:
            text = "Some tasks have finished, and execution.checkpointing.checkpoints-after-tasks-finish is off."
            self._refuse(request, _Reason.NOT_ALL_REQUIRED_TASKS_RUNNING, text, now)
            return
        checkpoint_id = self.next_id
        kind = request.kind
        if self._force_full and kind is SnapshotKind.CHECKPOINT:
            kind = SnapshotKind.FULL_CHECKPOINT
        try:
            if kind.is_savepoint:
                location = self._savepoint_location_of(request.target_directory or "")
            else:
                location = self._location_of(checkpoint_id)
        except FiresteelError as error:  # a job without a checkpoint directory, a target that is no path
            self._refuse(request, _Reason.TRIGGER_CHECKPOINT_FAILURE, error.message, now)
            return
        self.next_id += 1
        timestamp = self.wall_clock.at(now)
        pending = PendingCheckpoint(
            checkpoint_id, timestamp, kind, location, request, plan, self._finished, triggered_at=now
        )
        self._pending[checkpoint_id] = pending
        self.stats.triggered(checkpoint_id, kind, request.stop, now, timestamp, plan.tasks, pending.finished)
        tasks = plan.tasks_to_trigger(self._finished)
        coordinators = tuple(sorted(pending.coordinators))
        options = self._options(kind, location, request.stop)
        self._out.append(TriggerTasks(checkpoint_id, timestamp, options, tasks, coordinators))

    def _options(self, kind: SnapshotKind, location: CheckpointLocation, stop: StopMode | None) -> CheckpointOptions:
        settings = self.settings
        may_be_unaligned = settings.unaligned and settings.exactly_once and not kind.is_savepoint
        return CheckpointOptions(
            kind,
            location,
            exactly_once=settings.exactly_once,
            unaligned=may_be_unaligned and settings.aligned_timeout == 0,
            alignment_timeout=settings.aligned_timeout if may_be_unaligned and settings.aligned_timeout else None,
            stop=stop,
        )

    def _start_scheduler(self, now: int) -> None:
        """The first periodic checkpoint comes after a random time, so that jobs started together spread out."""
        period = self.settings.period
        if period is not None:
            least = self.settings.min_pause
            self._next_trigger = now + least + int(self._random() * (period - least + 1))

    # -- reports of tasks and the storage ---------------------------------------------------------------

    def coordinator_states(self, checkpoint_id: int, states: Mapping[str, bytes], now: int) -> Instructions:
        """The states of the enumerators, by operator id, taken when the checkpoint was triggered."""
        pending = self._pending.get(checkpoint_id)
        if pending is not None:
            pending.acknowledge_coordinators(states)
            self._store_if_acknowledged(pending, now)
        return self._take()

    def trigger_failed(self, checkpoint_id: int, reason: str, now: int) -> Instructions:
        """An enumerator could not be snapshotted, or a message to a task could not be sent."""
        pending = self._pending.get(checkpoint_id)
        if pending is not None:
            self._abort(pending, _Reason.TRIGGER_CHECKPOINT_FAILURE, reason, now)
            self._trigger_waiting(now)
        return self._take()

    def acknowledge(
        self,
        checkpoint_id: int,
        vertex_id: str,
        subtask: int,
        state: TaskStateSnapshot,
        metrics: CheckpointMetrics,
        now: int,
    ) -> Instructions:
        """A task's state is stored. Acknowledgements that are late, repeated or of unknown tasks change nothing."""
        task = (vertex_id, subtask)
        paths = {segment.path for segment in state.segments()}
        pending = self._pending.get(checkpoint_id)
        if pending is None:
            self.stats.acknowledged(checkpoint_id, task, state.size, metrics, now)
            if checkpoint_id in self._aborted:
                self._out += self._disposal.discard_files(paths)
            return self._take()
        result = pending.acknowledge(task, state)
        if result is AckResult.UNKNOWN:
            self._out += self._disposal.discard_files(paths)
        if result is not AckResult.SUCCESS:
            return self._take()
        self.stats.acknowledged(checkpoint_id, task, state.size, metrics, now)
        deleted = None if pending.kind.is_savepoint else self._disposal.was_deleted(paths)
        if deleted is not None:
            # Never seen, but it would be state lost for good: so it is looked at.
            text = f"Task {pending.plan.name_of(task)} refers to a file that has been deleted: {deleted}"
            self._abort(pending, _Reason.FINALIZE_CHECKPOINT_FAILURE, text, now)
            self._out += self._disposal.discard_files(paths)
            self._trigger_waiting(now)
            return self._take()
        if not pending.kind.is_savepoint:
            self.registry.register(checkpoint_id, paths)
        self._store_if_acknowledged(pending, now)
        return self._take()

    def decline(
        self,
        checkpoint_id: int,
        vertex_id: str,
        subtask: int,
        reason: str,
        now: int,
        failure: CheckpointFailureReason = CheckpointFailureReason.CHECKPOINT_DECLINED,
    ) -> Instructions:
        """A task cannot take part; ``failure`` is whether that counts among the failures in a row."""
        pending = self._pending.get(checkpoint_id)
        if pending is not None:
            text = f"Task {pending.plan.name_of((vertex_id, subtask))} declined: {reason}"
            self._abort(pending, failure, text, now, by_task=True)
            self._trigger_waiting(now)
        return self._take()

    def _store_if_acknowledged(self, pending: PendingCheckpoint, now: int) -> None:
        if pending.status is not PendingStatus.ACKNOWLEDGING or not pending.is_fully_acknowledged:
            return
        latest = self._completed.latest()
        union = pending.inherit_unions(None if latest is None else latest.metadata)
        if union is not None:
            text = (
                f"Operator '{union.name}'{f' (uid {union.uid})' if union.uid else ''} has union list state, and the "
                "state of finished subtasks is not available."
            )
            self._abort(pending, _Reason.CHECKPOINT_DECLINED_TASK_CLOSING, text, now)
            self._trigger_waiting(now)
            return
        pending.status = PendingStatus.STORING
        if not pending.kind.is_savepoint:
            self.registry.register(pending.checkpoint_id, pending.inherited_files())
        metadata = pending.metadata(self.job_id, self.job_name)
        pending.stored_metadata = metadata
        is_committed = not pending.kind.is_savepoint or pending.request.stop is not None
        self._out.append(StoreMetadata(pending.checkpoint_id, metadata, pending.location, is_committed))

    def store_failed(self, checkpoint_id: int, reason: str, now: int) -> Instructions:
        """``_metadata`` could not be written."""
        if self._clean_up_after_store(checkpoint_id):
            return self._take()
        pending = self._pending.get(checkpoint_id)
        if pending is None:
            return []
        pending.status = PendingStatus.ACKNOWLEDGING  # nothing is being written any more
        self._abort(pending, _Reason.FINALIZE_CHECKPOINT_FAILURE, reason, now)
        self._trigger_waiting(now)
        return self._take()

    def stored(self, checkpoint_id: int, path: str, now: int) -> Instructions:
        """``_metadata`` is written: the checkpoint is complete, unless it was given up meanwhile."""
        if self._clean_up_after_store(checkpoint_id):
            return self._take()
        self._complete(self._expect_storing(checkpoint_id), path, now)
        self._trigger_waiting(now)
        return self._take()

    def _clean_up_after_store(self, checkpoint_id: int) -> bool:
        location = self._aborted_while_storing.pop(checkpoint_id, None)
        if location is not None:
            self._out += self._disposal.discard(checkpoint_id, location)
        elif checkpoint_id in self._aborted:  # the job has ended meanwhile
            self._out.append(DeleteCheckpoint(self._aborted[checkpoint_id].exclusive))
        else:
            return False
        return True

    def _expect_storing(self, checkpoint_id: int) -> PendingCheckpoint:
        pending = self._pending.get(checkpoint_id)
        if pending is None or pending.status is not PendingStatus.STORING:
            raise CheckpointError(f"Storing the metadata of checkpoint {checkpoint_id} was not requested.")
        return pending

    # -- ends -----------------------------------------------------------------------------------------

    def _complete(self, pending: PendingCheckpoint, path: str, now: int) -> None:
        checkpoint_id, request = pending.checkpoint_id, pending.request
        metadata = pending.stored_metadata
        assert metadata is not None
        del self._pending[checkpoint_id]
        self._last_completion = now
        self._failures.succeeded(checkpoint_id)
        self.stats.completed(checkpoint_id, path, now)
        subsumed: list[CompletedCheckpoint] = []
        if not pending.kind.is_savepoint:
            subsumed = self._completed.add(CompletedCheckpoint(metadata, path))
            self._force_full = False
        elif request.stop is not None:
            # Its side effects are committed: should the attempt fail before it has stopped, nothing older will do.
            self._keep(CompletedCheckpoint(metadata, path, is_owned=False))
        if not pending.kind.is_savepoint or request.stop is not None:
            text = f"Checkpoint {checkpoint_id} has completed."
            for older in [each for each in self._pending.values() if each.checkpoint_id < checkpoint_id]:
                if not older.kind.is_savepoint:
                    self._abort(older, _Reason.CHECKPOINT_SUBSUMED, text, now)
            self._out.append(NotifyComplete(checkpoint_id))
        if request.request_id is not None:
            self._out.append(RequestDone(request.request_id, path, checkpoint_id))
        for checkpoint in subsumed:
            self._out += self._disposal.retire(checkpoint, self.next_id)
            if checkpoint.is_owned:
                self.stats.discarded(checkpoint.checkpoint_id)
        if not pending.kind.is_savepoint:
            self._out += self._disposal.release(checkpoint_id, self._pending)

    def _abort(
        self,
        pending: PendingCheckpoint,
        reason: CheckpointFailureReason,
        text: str,
        now: int,
        *,
        by_task: bool = False,
    ) -> None:
        checkpoint_id, request = pending.checkpoint_id, pending.request
        del self._pending[checkpoint_id]
        self._aborted[checkpoint_id] = pending.location
        while len(self._aborted) > _MAX_REMEMBERED:
            del self._aborted[next(iter(self._aborted))]
        message = f"{reason.value} {text}".strip() if text else reason.value
        self.stats.failed(checkpoint_id, message, now)
        self._out.append(NotifyAborted(checkpoint_id, message, is_expired=reason is _Reason.CHECKPOINT_EXPIRED))
        if request.request_id is not None:
            self._out.append(RequestFailed(request.request_id, message))
        if pending.status is PendingStatus.STORING:
            self._aborted_while_storing[checkpoint_id] = pending.location
        else:
            self._out += self._disposal.discard(checkpoint_id, pending.location)
        if reason.counts:
            what = "Savepoint" if pending.kind.is_savepoint else "Checkpoint"
            self._out.append(Say(f"{what} {checkpoint_id} was aborted: {message}"))
        self._consider_failing(pending, reason, message, by_task)
        if self._wants_another(request, reason):
            self._decider.add(CheckpointRequest(at=now))

    def _consider_failing(
        self, pending: PendingCheckpoint, reason: CheckpointFailureReason, message: str, by_task: bool
    ) -> None:
        if self._plan is None or self._failed:
            return
        if pending.request.stop is not None:
            self._fail(f"The job could not be stopped with a savepoint: {message}")
        elif (by_task or not pending.kind.is_savepoint) and self._failures.failed(pending.checkpoint_id, reason):
            tolerable = self.settings.tolerable_failures
            self._fail(
                f"Exceeded checkpoint tolerable failure threshold ({tolerable}, "
                f"execution.checkpointing.tolerable-failed-checkpoints). The last failure: {message}"
            )

    def _fail(self, reason: str) -> None:
        self._failed = True
        self._next_trigger = None
        self._out.append(FailJob(TaskFailure(reason, error_type="CheckpointError")))

    def _wants_another(self, request: CheckpointRequest, reason: CheckpointFailureReason) -> bool:
        """Whether tasks that wait for a last checkpoint would wait for ever without a new request."""
        if request.kind.is_savepoint or request.is_periodic or request.request_id is not None:
            return False
        if self._plan is None or self._failed or self._decider.has_waiting(request_id=None):
            return False
        if reason in (_Reason.CHECKPOINT_SUBSUMED, _Reason.CHECKPOINT_COORDINATOR_SUSPEND):
            return False
        return reason is _Reason.CHECKPOINT_DECLINED_TASK_CLOSING or self.settings.interval is None

    def _abort_all(self, reason: CheckpointFailureReason, text: str, now: int) -> None:
        for request in self._decider.clear():
            self._refuse(request, reason, text)
        for pending in list(self._pending.values()):
            self._abort(pending, reason, text, now)

    def _refuse(
        self, request: CheckpointRequest, reason: CheckpointFailureReason, text: str = "", now: int | None = None
    ) -> None:
        if request.request_id is not None:
            self._out.append(RequestFailed(request.request_id, f"{reason.value} {text}".strip()))
        if request is self._stop_request:
            self._stop_request = None
            if self._plan is not None and now is not None:
                self._start_scheduler(now)

    def _keep(self, checkpoint: CompletedCheckpoint) -> None:
        self._completed.insert(checkpoint)
        if checkpoint.is_owned:
            self.registry.register(checkpoint.checkpoint_id, checkpoint.metadata.files())

    def _take(self) -> Instructions:
        instructions, self._out = self._out, []
        return instructions


def _missing(pending: PendingCheckpoint) -> str:
    if pending.status is PendingStatus.STORING:
        return "its metadata was not written"
    if not pending.waiting:
        return "the state of its sources' enumerators was missing"
    tasks = sorted(pending.waiting)
    names = ", ".join(pending.plan.name_of(task) for task in tasks[:3])
    return f"{len(tasks)} tasks had not acknowledged it: {names}{' …' if len(tasks) > 3 else ''}"
