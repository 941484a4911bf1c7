"""Sink operator, the end of a chain that writes to a sink."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.process import fault_points
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.model.serialization import serialize_records
from firesteel.runtime.model.state_handles import SPLIT, UNION
from firesteel.runtime.operators.base import OperatorContext, StateInitializationContext, StreamOperator
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.spi.execution_traits import PIPELINED
from firesteel.spi.metrics import ConnectorMetrics
from firesteel.spi.sink import Committer, DeliveryGuarantee, Sink, SinkWriter

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["COMMITTABLES", "WRITER_STATE", "SinkOperator", "SinkSpec", "attempt_id_of", "sink_id_of"]

COMMITTABLES = "_committables"
"""Pairs of the checkpoint something was prepared for and what is to be committed."""

WRITER_STATE = "_writer"


@dataclass(frozen=True)
class SinkSpec(OperatorSpec):
    """Writes records to a sink."""

    sink: Sink
    required_guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    """The delivery guarantee that the program requires."""

    def create(self, runtime: OperatorRuntime) -> SinkOperator:
        """Returns a new operator for one subtask."""
        return SinkOperator(self.sink)

    def get_sink(self) -> Sink:
        return self.sink

    def get_required_guarantee(self) -> DeliveryGuarantee:
        """Returns the delivery guarantee that the program requires."""
        return self.required_guarantee

    def declares_states(self, *, is_keyed: bool) -> bool:
        """No: a writer's state is not the program's, and opening the writer would connect to what it writes to."""
        return False


class SinkOperator(StreamOperator):
    """Writes one subtask's records. Is its writer's WriterContext.

    With checkpoints, what is written becomes visible in two phases:

    1. At the barrier of checkpoint n the writer flushes, and hands over what it has finished: the committables of n.
    2. The checkpoint stores all committables that have not been committed yet, also those of earlier checkpoints, and
       the writer's own state.
    3. Checkpoint n is complete: all committables of checkpoints up to n are committed. Those of a checkpoint that was
       aborted, or of whose completion this task was not notified, are committed with the next one.
    4. They are forgotten; the next checkpoint no longer stores them.

    A failure before 3 leaves what was prepared invisible, and the records come again. A failure during or after 3
    restores n or a later checkpoint:

    5. Before anything is written the restored committables are committed again, by the subtasks that got them:
       those that were committed before the failure twice, which is why commits are idempotent.

    After the end of the input there is one more checkpoint, for which the task waits, so that 1 to 4 happen to the last
    records too. Without checkpoints the end of the input is the only point at which output is known to be whole:
    ``finish`` commits it. What cannot be committed fails the task.

    In an epoch a task is gone, perhaps with its process, when the checkpoint is complete. 3 is then done for all sinks
    where the JobMaster is, with the committables that the checkpoint has stored; this operator does only 4, when it is
    notified of it in the next epoch, and 5. In a batch there are no checkpoints: ``finish`` hands over what it prepared
    (``prepared``), and it is committed where the JobMaster is once the tasks of all sinks have ended.
    """

    def __init__(self, sink: Sink):
        self._sink = sink
        # the function of a SinkFunctionSink
        self.user_function = getattr(sink, "function", None)
        self._writer: SinkWriter[Any] | None = None
        self._committer: Committer[Any] | None = None
        self._prepared: dict[int, list[Any]] = {}
        self._restored: tuple[list[tuple[int, Any]], list[Any]] | None = None
        self._ended = False
        self.prepared: list[Any] = []
        """After the end of a batch: what is to be committed."""
        self._send: Callable[[str, Any], None] = lambda _channel, _payload: None
        self._client_has_room: Callable[[str], bool] = lambda _channel: True
        self._channel: str | None = None
        self.subtask_index = 0
        self.parallelism = 1
        self.attempt_number = 0
        self.sink_id = ""
        self.attempt_id = ""
        self.execution = PIPELINED
        self.records = 0

    def connect(
        self, subtask: int, parallelism: int, send: Callable[[str, Any], None], has_room: Callable[[str], bool]
    ) -> None:
        """Sets the operator's place in the job, and its channel to the client."""
        self.subtask_index = subtask
        self.parallelism = parallelism
        self._send = send
        self._client_has_room = has_room

    def initialize_state(self, context: StateInitializationContext) -> None:
        """Restores the prepared committables, and the writer's state."""
        super().initialize_state(context)
        if context.is_restored:
            state = context.operator_state
            self._restored = state.restored(COMMITTABLES), state.restored(WRITER_STATE)

    def open(self, context: OperatorContext) -> None:
        """Commits what was restored (5), then creates the writer."""
        super().open(context)
        self.attempt_number = context.runtime_context.get_attempt_number()
        self.sink_id = sink_id_of(context.runtime_context)
        self.attempt_id = attempt_id_of(context.runtime_context)
        self.execution = context.execution
        self._committer = self._sink.create_committer()
        if self._restored is None:
            self._writer = self._sink.create_writer(self)
        else:
            committables, writer_state = self._restored
            self._restored = None
            if committables and self._committer is not None:
                fault_points.reach("sink.commit")
                self._committer.recommit([item for _, item in sorted(committables, key=lambda pair: pair[0])])
                fault_points.reach("sink.committed")
            self._writer = self._sink.restore_writer(self, writer_state)
        self._write = self._writer.write_batch
        self._write_record = self._writer.write_record
        if self._write_record is not None and self.execution.is_long_lived:
            self.record_function = self._process_record

    @property
    def discards(self) -> bool:
        """Whether records need not even be handed over."""
        return bool(getattr(self._writer, "discards_records", False))

    def has_room(self) -> bool:
        """Whether the writer and the client can take more."""
        if self._channel is not None and not self._client_has_room(self._channel):
            return False
        return self._writer is None or self._writer.has_room()

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Writes records in order."""
        self.records += len(values)
        self._write(values, timestamps)

    def _process_record(self, value: Any) -> None:
        self.records += 1
        self._write_record(value)  # type: ignore[misc]

    def get_metrics_group(self) -> ConnectorMetrics:
        return self.context

    def send_to_client(self, channel: str, payload: Any) -> None:
        """Hands a payload to the client that runs the job."""
        self._channel = channel
        # pickled here, where a record that cannot be pickled still has its operator
        self._send(channel, serialize_records(payload, None))

    def snapshot_state(
        self, checkpoint_id: int, operator_state: OperatorStateBackend, timestamp: int | None = None
    ) -> None:
        """Steps 1 and 2."""
        super().snapshot_state(checkpoint_id, operator_state, timestamp)
        assert self._writer is not None
        if not self._ended:
            self._writer.flush(end_of_input=False)
        committables = self._writer.prepare_commit_for(checkpoint_id)
        if committables and self._committer is not None:
            # kept at once: should the rest of the snapshot fail, they go with the next checkpoint
            self._prepared.setdefault(checkpoint_id, []).extend(committables)
        writer_state = self._writer.snapshot_state(checkpoint_id) or ()
        pending = [(number, item) for number, items in self._prepared.items() for item in items]
        operator_state.put(COMMITTABLES, SPLIT, pending)
        operator_state.put(WRITER_STATE, UNION if self._sink.shares_writer_state else SPLIT, writer_state)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Steps 3 and 4; 4 alone where the driver commits."""
        super().notify_checkpoint_complete(checkpoint_id)
        due = sorted(number for number in self._prepared if number <= checkpoint_id)
        if due and not self.execution.commits_in_driver:
            assert self._committer is not None
            fault_points.reach("sink.commit")
            self._committer.commit([item for number in due for item in self._prepared[number]])
            fault_points.reach("sink.committed")
        for number in due:
            del self._prepared[number]
        if self._writer is not None:
            self._writer.notify_checkpoint_complete(checkpoint_id)

    def finish(self) -> None:
        """Writes out what is left and, without checkpoints, commits it or, in a batch, hands it over."""
        assert self._writer is not None
        self._ended = True
        self._writer.flush(end_of_input=True)
        if self.context.checkpointing:
            return
        if self.execution.commits_in_driver:
            committables = self._writer.prepare_commit_for(None)
            if self._committer is not None:
                self.prepared = committables
        else:
            # with what was prepared for a savepoint, the only snapshot there can have been
            committables = [item for items in self._prepared.values() for item in items]
            committables += self._writer.prepare_commit_for(None)
            if self._committer is not None:
                self._committer.commit(committables)
            self._prepared.clear()

    def close(self) -> None:
        """Closes the writer and the committer."""
        writer, self._writer = self._writer, None
        committer, self._committer = self._committer, None
        try:
            if writer is not None:
                writer.close()
        finally:
            if committer is not None:
                committer.close()


def sink_id_of(runtime_context: Any) -> str:
    """Identifies the sink and the job."""
    if not runtime_context.job_id:
        return uuid.uuid4().hex[:16]
    return _digest(runtime_context.job_id, runtime_context.operator_id)


def attempt_id_of(runtime_context: Any) -> str:
    """Identifies the run and the attempt."""
    if not runtime_context.run_id:
        return uuid.uuid4().hex[:16]
    return _digest(runtime_context.run_id, str(runtime_context.get_attempt_number()))


def _digest(*parts: str) -> str:
    return hashlib.blake2b("/".join(parts).encode(), digest_size=8).hexdigest()
