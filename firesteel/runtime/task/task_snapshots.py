"""Task snapshot: a task's part of a checkpoint, from the barrier to the acknowledgement."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from firesteel.common.errors import FiresteelError
from firesteel.process import fault_points
from firesteel.runtime.checkpoint.files import SnapshotFiles
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.elements import CheckpointBarrier
from firesteel.runtime.model.state_handles import ChannelStateHandle, OperatorSubtaskState, TaskStateSnapshot
from firesteel.runtime.network.gate import InFlightItem
from firesteel.runtime.task.barriers import InFlightInput, alignment_delay

if TYPE_CHECKING:
    from firesteel.runtime.chain.output import TaskOutput
    from firesteel.runtime.chain.running_operator import OperatorSnapshot, RunningOperator
    from firesteel.runtime.model.deployment import InputDescriptor

__all__ = ["SnapshotServices", "TaskSnapshots"]


class SnapshotServices(Protocol):
    """What a task gives to its snapshots."""

    at_work: RunningOperator | None
    """The operator whose own code runs."""

    @property
    def watermark(self) -> int:
        """How far event time has come in the task."""
        ...

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        ...

    def call_after(self, delay: int, callback: Callable[[], None]) -> None:
        """Calls back between batches, after a delay in milliseconds, until the task is finished."""
        ...

    def run_async(self, work: Callable[[], None]) -> None:
        """Runs work in a thread beside the mailbox."""
        ...

    def create_files(self, barrier: CheckpointBarrier) -> SnapshotFiles:
        """Where the state of this task goes."""
        ...

    def acknowledge(self, checkpoint_id: int, state: TaskStateSnapshot, metrics: CheckpointMetrics) -> None:
        """Acknowledges the checkpoint; may be called from any thread."""
        ...

    def decline(self, checkpoint_id: int, reason: str) -> None:
        """Declines the checkpoint; may be called from any thread."""
        ...


@dataclass
class _Snapshot:
    """One checkpoint of this task, until it is acknowledged."""

    barrier: CheckpointBarrier
    finished: bool
    metrics: CheckpointMetrics
    operators: Mapping[str, OperatorSnapshot]
    inputs: InFlightInput | None
    watermark: int
    outputs: list[tuple[TaskOutput, list[list[InFlightItem]]]] = field(default_factory=list)
    unsent: int = 0
    """Aligned barriers that wait behind records in the task's outputs and may yet overtake them."""
    aborted: bool = False
    submitted: bool = False
    files: SnapshotFiles | None = None
    """While it is being written."""


class TaskSnapshots:
    """Takes snapshots of one task.

    In the mailbox, with no batch under way:

    1. Operators emit what must be before the barrier (``prepare_snapshot_pre_barrier``).
    2. The barrier goes to all consumers; an unaligned one overtakes what waits in the outputs, which is kept.
    3. Every operator's state is captured: the synchronous part.

    Then, once buffers in flight are complete, in a thread of its own:

    4. The state is written, and made durable.
    5. The coordinator gets the handles.

    A failure at any step declines the checkpoint and deletes what was written for it; the job continues. Not so if the
    code of a function or a connector raises something unforeseen in steps 1 and 3: what it was just about to hand over
    may be nowhere now, and would be missing from the next checkpoint. As in Flink the task fails then.
    """

    def __init__(
        self,
        chain: Sequence[RunningOperator],
        outputs: Sequence[TaskOutput],
        inputs: Sequence[InputDescriptor],
        services: SnapshotServices,
    ):
        self._chain = chain
        self._outputs = outputs
        self._overtaken = [output for output in outputs if output.descriptor.unaligned]
        """Those in which an unaligned barrier goes ahead of the records."""
        # one entry per channel of the gate
        self._channels = [(entry.edge, channel) for entry in inputs for channel in entry.channels]
        self._services = services
        self._writing = threading.Lock()
        self._current: dict[int, _Snapshot] = {}
        self.last_id = 0
        """The last checkpoint whose barrier has gone through the task."""

    @property
    def is_busy(self) -> bool:
        """Whether a snapshot was taken that has not been acknowledged yet."""
        return bool(self._current)

    def take(
        self, barrier: CheckpointBarrier, in_flight: InFlightInput | None, alignment_ms: int, *, finished: bool
    ) -> None:
        """Steps 1 to 3."""
        started = time.perf_counter()
        services, checkpoint_id = self._services, barrier.checkpoint_id
        start_delay = max(services.processing_time() - barrier.timestamp - alignment_ms, 0)
        operators: dict[str, OperatorSnapshot] = {}
        snapshot = _Snapshot(barrier, finished, CheckpointMetrics(), operators, in_flight, services.watermark)
        try:
            fault_points.reach("checkpoint.sync")
            if not finished:
                for chained in self._chain:
                    services.at_work = chained
                    chained.prepare_snapshot_pre_barrier(checkpoint_id)
                services.at_work = None
            self._send_barrier(snapshot)
            for chained in self._chain:
                services.at_work = chained
                chained.snapshot_operator(barrier)
                services.at_work = None
                operators[chained.descriptor.operator_id] = chained.snapshot(barrier)
        except Exception as error:
            _discard(operators)
            self._stop_waiting(snapshot)
            is_foreseen = isinstance(error, FiresteelError) and error.only_gives_up_checkpoint
            if services.at_work is not None and not is_foreseen:
                raise
            services.at_work = None
            services.decline(checkpoint_id, f"the snapshot failed: {type(error).__name__}: {error}")
            return
        finally:
            self.last_id = max(self.last_id, checkpoint_id)
        snapshot.metrics = CheckpointMetrics(
            start_delay_ms=start_delay,
            alignment_ms=alignment_ms,
            sync_ms=round((time.perf_counter() - started) * 1000),
            unaligned=in_flight is not None or bool(snapshot.outputs),
        )
        self._current[checkpoint_id] = snapshot
        if in_flight is not None and not in_flight.is_complete:
            in_flight.on_complete = lambda: self._write_when_ready(snapshot)
        self._write_when_ready(snapshot)

    def abort(self, checkpoint_id: int) -> None:
        snapshot = self._current.pop(checkpoint_id, None)
        if snapshot is not None:
            snapshot.aborted = True
            self._stop_waiting(snapshot)
            if not snapshot.submitted:
                _discard(snapshot.operators)
            elif snapshot.files is not None:
                snapshot.files.cancel()

    def close(self) -> None:
        """Gives up what has not been written."""
        for checkpoint_id in list(self._current):
            self.abort(checkpoint_id)

    # -- the barrier and what it overtakes ----------------------------------------------------------

    def _send_barrier(self, snapshot: _Snapshot) -> None:
        barrier = snapshot.barrier
        overtaken = self._overtaken if barrier.options.unaligned else []
        for output in self._outputs:
            if output in overtaken:
                snapshot.outputs.append((output, output.partition.overtake(barrier)))
            else:
                output.broadcast_event(barrier)
        timeout = barrier.options.alignment_timeout
        if timeout is not None and not barrier.options.unaligned:
            self._watch_outputs(snapshot, alignment_delay(barrier, self._services.processing_time()))

    def _watch_outputs(self, snapshot: _Snapshot, delay: int) -> None:
        """Converts an aligned barrier behind unread records to an unaligned one after the timeout."""
        checkpoint_id = snapshot.barrier.checkpoint_id

        def sent(sent_id: int) -> None:
            if sent_id == checkpoint_id and snapshot.unsent:
                snapshot.unsent -= 1
                self._write_when_ready(snapshot)

        for output in self._overtaken:
            for subpartition in output.partition.subpartitions:
                if subpartition.holds_barrier(checkpoint_id):
                    subpartition.on_barrier_sent = sent
                    snapshot.unsent += 1
        if snapshot.unsent:
            self._services.call_after(delay, lambda: self._overtake(snapshot))

    def _overtake(self, snapshot: _Snapshot) -> None:
        if snapshot.aborted or not snapshot.unsent:
            return
        snapshot.unsent = 0
        options = replace(snapshot.barrier.options, unaligned=True)
        barrier = replace(snapshot.barrier, options=options)
        for output in self._overtaken:
            overtaken: list[list[InFlightItem]] = [
                subpartition.overtake(barrier) if subpartition.holds_barrier(barrier.checkpoint_id) else []
                for subpartition in output.partition.subpartitions
            ]
            snapshot.outputs.append((output, overtaken))
        snapshot.metrics = replace(snapshot.metrics, unaligned=True)
        self._write_when_ready(snapshot)

    def _stop_waiting(self, snapshot: _Snapshot) -> None:
        snapshot.unsent = 0
        if snapshot.inputs is not None:
            snapshot.inputs.on_complete = lambda: None

    # -- steps 4 and 5 ------------------------------------------------------------------------------

    def _write_when_ready(self, snapshot: _Snapshot) -> None:
        if snapshot.submitted or snapshot.aborted or snapshot.unsent:
            return
        if snapshot.inputs is not None and not snapshot.inputs.is_complete:
            return
        # taken note of before this call: a barrier may leave while it is being sent
        if snapshot.barrier.checkpoint_id not in self._current:
            return
        snapshot.submitted = True
        self._services.run_async(lambda: self._write(snapshot))

    def _write(self, snapshot: _Snapshot) -> None:
        checkpoint_id = snapshot.barrier.checkpoint_id
        started = time.perf_counter()
        # one at a time: a backend's snapshots build on each other
        with self._writing:
            try:
                fault_points.reach("checkpoint.write")
                files = snapshot.files = self._services.create_files(snapshot.barrier)
                state = self._write_state(snapshot, files)
                files.finish(state.segments())
                fault_points.reach("checkpoint.ack")
            except Exception as error:  # noqa: BLE001 - storage may raise anything; the checkpoint fails, not the job
                self._give_up(snapshot)
                if not snapshot.aborted:
                    self._services.decline(
                        checkpoint_id, f"its state could not be written: {type(error).__name__}: {error}"
                    )
                return
            if snapshot.aborted:
                self._give_up(snapshot)
                return
        metrics = replace(
            snapshot.metrics,
            async_ms=round((time.perf_counter() - started) * 1000),
            bytes_written=files.bytes_written,
            bytes_persisted_in_flight=sum(channel.data.length for channel in state.channels),
        )
        self._services.acknowledge(checkpoint_id, state, metrics)
        self._current.pop(checkpoint_id, None)

    def _write_state(self, snapshot: _Snapshot, files: SnapshotFiles) -> TaskStateSnapshot:
        operators: dict[str, OperatorSubtaskState] = {}
        for operator_id, pending in snapshot.operators.items():
            operators[operator_id] = OperatorSubtaskState(
                None if pending.keyed is None else pending.keyed.write(files), pending.operator.write(files)
            )
        if self._channels:
            head = self._chain[0].descriptor.operator_id
            operators[head] = replace(operators[head], watermark=snapshot.watermark)
        return TaskStateSnapshot(operators, self._write_channels(snapshot, files), snapshot.finished)

    def _write_channels(self, snapshot: _Snapshot, files: SnapshotFiles) -> tuple[ChannelStateHandle, ...]:
        handles = []
        if snapshot.inputs is not None:
            for index, items in snapshot.inputs.channels.items():
                if items:
                    edge, channel = self._channels[index]
                    data = files.write(pickle.dumps(items, 5), shared=False)
                    handles.append(ChannelStateHandle(edge, channel.producer, channel.consumer, False, data))
        for output, overtaken in snapshot.outputs:
            for channel, items in zip(output.descriptor.channels, overtaken, strict=True):
                if items:
                    data = files.write(pickle.dumps(items, 5), shared=False)
                    edge = output.descriptor.edge
                    handles.append(ChannelStateHandle(edge, channel.producer, channel.consumer, True, data))
        return tuple(handles)

    def _give_up(self, snapshot: _Snapshot) -> None:
        self._current.pop(snapshot.barrier.checkpoint_id, None)
        _discard(snapshot.operators)
        if snapshot.files is not None:
            try:
                snapshot.files.discard()
            except Exception:  # noqa: BLE001, S110 - the storage that just failed need not work now
                pass


def _discard(operators: Mapping[str, OperatorSnapshot]) -> None:
    for snapshot in operators.values():
        if snapshot.keyed is not None:
            snapshot.keyed.discard()
