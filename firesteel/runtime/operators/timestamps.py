"""Timestamp and watermark assigner in the middle of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.model.state_handles import UNION
from firesteel.runtime.operators.base import OperatorContext, StateInitializationContext, StreamOperator
from firesteel.runtime.operators.source import timestamp_functions
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.runtime.time.watermark_generation import WatermarkAssigner
from firesteel.runtime.time.watermark_state import WATERMARKS, SubtaskWatermarks, WatermarkState

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["TimestampsAndWatermarksOperator", "TimestampsAndWatermarksSpec"]

_INPUT = ""
"""The name of the whole input where a source has splits."""


@dataclass(frozen=True)
class TimestampsAndWatermarksSpec(OperatorSpec):
    """Assigns timestamps and generates watermarks in the middle of a stream."""

    watermark_strategy: Any

    def create(self, runtime: OperatorRuntime) -> TimestampsAndWatermarksOperator:
        """Returns a new operator for one subtask."""
        return TimestampsAndWatermarksOperator(self.watermark_strategy, runtime.watermark_interval_ms)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Returns the timestamp assigner."""
        return timestamp_functions(self.watermark_strategy)

    def get_watermark_strategy(self) -> Any:
        """Returns the strategy of the stream."""
        return self.watermark_strategy

    def declares_states(self, *, is_keyed: bool) -> bool:
        """No: the watermarks in its state are not the program's."""
        return False


class TimestampsAndWatermarksOperator(StreamOperator):
    """Replaces the timestamps and watermarks that come from upstream, except the end of event time.

    A checkpoint keeps the last watermark of each subtask, and the one that its next interval would send. A subtask
    continues from its own: the input of one may be far ahead of another's. With another parallelism all continue from
    the lowest, at or before which every record was late already. Who calls ``emit_periodic`` is as with a source.
    """

    emits_own_records = True
    is_one_to_one = True
    leaves_rest = True

    def __init__(self, watermark_strategy: Any, interval_ms: int):
        self._strategy = watermark_strategy
        self._interval = interval_ms
        self._restored: WatermarkState | None = None

    def initialize_state(self, context: StateInitializationContext) -> None:
        super().initialize_state(context)
        watermarks = context.operator_state.restored(WATERMARKS)
        if watermarks:
            self._restored = WatermarkState(tuple(watermarks))

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        emit_watermark = _stands_still if context.execution.event_time_stands_still else context.emit_watermark
        self._assigner = WatermarkAssigner(
            self._strategy, context.input_clock, context.emit_in_turn, self._emit, emit_watermark, context.emit_idle
        )
        self._assigner.add_split(_INPUT)
        self._subtask = context.runtime_context.get_index_of_this_subtask()
        self._parallelism = context.runtime_context.get_number_of_parallel_subtasks()
        if self._restored is not None:
            restored, self._restored = self._restored, None
            place = (self._subtask, self._parallelism)
            self._assigner.restore(restored.sent_by(*place), restored.splits_of(*place))
        if self._interval > 0 and context.execution.is_long_lived:
            context.schedule_after(self._interval, self._on_interval)

    def _emit(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self.context.emit(values, timestamps)  # type: ignore[arg-type]

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Assigns timestamps and hands the records on; those that are left when the turn is over come again."""
        self.resume_event_time()
        self._assigner.process(_INPUT, values, timestamps)

    def snapshot_state(
        self, checkpoint_id: int, operator_state: OperatorStateBackend, timestamp: int | None = None
    ) -> None:
        super().snapshot_state(checkpoint_id, operator_state, timestamp)
        if self._interval > 0:
            # a new generator will not know records that came since the last interval
            self._assigner.advance_splits()
        reached = {_INPUT: self._assigner.split_watermarks().get(_INPUT, MIN_TIMESTAMP)}
        item = SubtaskWatermarks(self._subtask, self._parallelism, self._assigner.watermark, reached)
        operator_state.put(WATERMARKS, UNION, [item])

    def resume_event_time(self) -> None:
        """Sends the restored watermark: with the first record or the first interval, once all outputs are there."""
        self._assigner.resume()

    def emit_periodic(self, *, judge_idleness: bool = True) -> None:
        """Sends the watermark if it has advanced; idleness shows only when all records of an epoch have come."""
        if self._interval <= 0:
            return
        self.resume_event_time()
        if judge_idleness:
            self._assigner.periodic()
        else:
            self._assigner.advance()

    @property
    def idle_at(self) -> int | None:
        """When the stream is idle if nothing comes, by the monotonic clock."""
        return None if self._interval <= 0 else self._assigner.idle_at

    def _on_interval(self) -> None:
        self.emit_periodic()
        self.context.schedule_after(self._interval, self._on_interval)

    def process_watermark(self, timestamp: int) -> None:
        """Only the end of event time comes through."""
        if timestamp == MAX_WATERMARK:
            self._assigner.activate()
            self.context.emit_watermark(timestamp)

    def process_idle(self, idle: bool) -> None:
        """Idleness is judged by this operator's own strategy."""


def _stands_still(_watermark: int) -> None:
    """What a batch does with watermarks before the last one."""
