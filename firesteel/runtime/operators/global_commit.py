"""Sinks with one committer for all writers: parallel writers send what they prepared to a single subtask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.sink import attempt_id_of, sink_id_of
from firesteel.spi.execution_traits import PIPELINED
from firesteel.spi.metrics import ConnectorMetrics
from firesteel.spi.sink import Committer, DeliveryGuarantee, Sink, SinkWriter, WriterContext

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["GlobalCommitSink", "SinkWriterOperator", "SinkWriterSpec"]


@dataclass(frozen=True)
class SinkWriterSpec(OperatorSpec):
    """Writes records with the writers of a sink, and emits what they prepared."""

    sink: Sink

    def create(self, runtime: OperatorRuntime) -> SinkWriterOperator:
        """Returns a new operator for one subtask."""
        return SinkWriterOperator(self.sink)

    def declares_states(self, *, is_keyed: bool) -> bool:
        return False


class SinkWriterOperator(StreamOperator):
    """Writes one subtask's records. Is its writer's WriterContext.

    1. Before the barrier of a checkpoint is sent on, the writer flushes, and what it prepared is emitted. So it is with
       the committer when the barrier is, which does not overtake it.
    2. At the end of the input the rest is emitted.

    The operator has no state: what it wrote after the last checkpoint is lost with it, and its records come again.
    """

    emits_own_records = True

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._writer: SinkWriter[Any] | None = None
        self.subtask_index = 0
        self.parallelism = 1
        self.attempt_number = 0
        self.sink_id = ""
        self.attempt_id = ""
        self.execution = PIPELINED

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        runtime = context.runtime_context
        self.subtask_index = runtime.get_index_of_this_subtask()
        self.parallelism = runtime.get_number_of_parallel_subtasks()
        self.attempt_number = runtime.get_attempt_number()
        self.sink_id = sink_id_of(runtime)
        self.attempt_id = attempt_id_of(runtime)
        self.execution = context.execution
        self._writer = self._sink.create_writer(self)
        self._write = self._writer.write_batch

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self._write(values, timestamps)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """Step 1."""
        self._emit(checkpoint_id, end_of_input=False)

    def finish(self) -> None:
        """Step 2."""
        self._emit(None, end_of_input=True)

    def _emit(self, checkpoint_id: int | None, *, end_of_input: bool) -> None:
        assert self._writer is not None
        self._writer.flush(end_of_input)
        prepared = self._writer.prepare_commit_for(checkpoint_id)
        if prepared:
            self.context.emit(list(prepared), None)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        super().notify_checkpoint_complete(checkpoint_id)
        if self._writer is not None:
            self._writer.notify_checkpoint_complete(checkpoint_id)

    def get_metrics_group(self) -> ConnectorMetrics:
        return self.context

    def send_to_client(self, channel: str, payload: Any) -> None:
        """Not possible: there is a channel to the client only behind the exchange."""
        raise NotImplementedError("A writer with a global committer cannot send to the client")

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


class GlobalCommitSink(Sink):
    """Commits what the writers of another sink prepared; one subtask gets all of it."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        return _Collector(self.sink, context)

    def create_committer(self) -> Committer[Any] | None:
        return self.sink.create_committer()

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        return self.sink.get_delivery_guarantee()

    def needs_checkpoints(self) -> bool:
        return self.sink.needs_checkpoints()


class _Collector(SinkWriter[Any]):
    """Gathers what was prepared for a checkpoint."""

    def __init__(self, sink: Sink, context: WriterContext) -> None:
        self._sink = sink
        self._context = context
        self._prepared: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self._prepared.extend(values)

    def prepare_commit_for(self, checkpoint_id: int | None) -> list[Any]:
        prepared, self._prepared = self._prepared, []
        return self._sink.combine_committables(prepared, self._context, checkpoint_id) if prepared else []
