"""Source operator, the head of a source task: polls a reader and emits its records and watermarks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.api.output_tag import OutputTag
from firesteel.runtime.codegen.at_work import TIMESTAMP_ASSIGNER
from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.model.state_handles import SPLIT, UNION
from firesteel.runtime.operators.base import OperatorContext, StateInitializationContext, StreamOperator
from firesteel.runtime.operators.held_records import (
    HELD,
    Held,
    HeldItem,
    Records,
    SplitEnd,
    SplitWatermark,
    items_of,
    own_items,
)
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.runtime.state.api.pickling import can_be_pickled
from firesteel.runtime.time.watermark_generation import WatermarkAssigner
from firesteel.runtime.time.watermark_state import WATERMARKS, SubtaskWatermarks, WatermarkState
from firesteel.spi.execution_traits import ExecutionTraits
from firesteel.spi.metrics import ConnectorMetrics
from firesteel.spi.source import Boundedness, InputStatus, Source, SourceReader

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["SPLITS", "SourceOperator", "SourceSpec", "timestamp_functions"]

SPLITS = "_splits"
"""The splits a reader has not finished, each with its position."""


@dataclass(frozen=True)
class SourceSpec(OperatorSpec):
    """Reads a source and assigns timestamps and watermarks per split."""

    source: Source[Any]
    watermark_strategy: Any

    def create(self, runtime: OperatorRuntime) -> SourceOperator:
        """Returns a new operator for one subtask."""
        return SourceOperator(self.source, self.watermark_strategy, runtime.watermark_interval_ms)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Returns the timestamp assigner."""
        return timestamp_functions(self.watermark_strategy)

    def get_source(self) -> Source[Any]:
        return self.source

    def get_watermark_strategy(self) -> Any:
        """Returns the strategy for each split."""
        return self.watermark_strategy

    def declares_states(self, *, is_keyed: bool) -> bool:
        """No: a reader's state is not the program's, and opening the reader would connect to what it reads."""
        return False


def timestamp_functions(watermark_strategy: Any) -> Mapping[str, Callable[..., Any]]:
    """Returns the user's functions of a watermark strategy."""
    assigner = getattr(watermark_strategy, "timestamp_assigner", None)
    return {} if assigner is None else {TIMESTAMP_ASSIGNER: method_of(assigner, "extract_timestamp")}


class SourceOperator(StreamOperator):
    """Reads one subtask's share of a source. Is its reader's ReaderContext and ReaderOutput.

    If records take longer than a turn, those that are left are held for the next one. A checkpoint keeps them, the
    reader's splits, and how far event time had come in each and in the subtask. (Flink forgets
    the latter: after a failure records that were late are no longer late.) In a restored job a split may be read by
    another subtask than before. Splits that no reader had are the enumerator's state.

    In a slot the operator emits watermarks by a timer of its own. In an epoch its task calls ``emit_periodic``, the
    last time when all has been read, so that windows fire in the epoch that closes them. In a batch event time stands
    still until the end.
    """

    MAX_RECORDS = 4096
    leaves_rest = True

    def __init__(self, source: Source[Any], watermark_strategy: Any, interval_ms: int):
        self._source = source
        self.emits_columns = source.emits_columns
        self.emits_own_records = source.emits_own_records or source.emits_columns
        self._strategy = watermark_strategy
        self._interval = interval_ms
        self._reader: SourceReader[Any] | None = None
        self._ready_at: float | None = 0.0
        self.ended = False
        self.records = 0
        self.subtask_index = 0
        self.parallelism = 1
        self._max_allowed = MAX_WATERMARK
        self._held: deque[Held] = deque()
        self._has_read_all = False
        """The reader has ended; records may be held."""
        self._restored_splits: list[Any] = []
        self._restored_held: list[HeldItem] = []
        self._restored_watermarks: WatermarkState | None = None
        self._request_split: Callable[[], None] = lambda: None
        self._report_watermark: Callable[[int], None] = lambda _watermark: None
        self._send_event: Callable[[Any], None] = lambda _event: None

    def connect(
        self,
        subtask: int,
        parallelism: int,
        request_split: Callable[[], None],
        report_watermark: Callable[[int], None],
        send_event: Callable[[Any], None],
    ) -> None:
        """Sets the operator's place in the job, and its channel to the coordinator."""
        self.subtask_index = subtask
        self.parallelism = parallelism
        self._request_split = request_split
        self._report_watermark = report_watermark
        self._send_event = send_event

    def initialize_state(self, context: StateInitializationContext) -> None:
        """Restores the splits of this subtask."""
        super().initialize_state(context)
        self._restored_splits = context.operator_state.restored(SPLITS)
        self._restored_held = context.operator_state.restored(HELD)
        watermarks = context.operator_state.restored(WATERMARKS)
        if watermarks:
            self._restored_watermarks = WatermarkState(tuple(watermarks))

    def open(self, context: OperatorContext) -> None:
        """Creates and starts the reader."""
        super().open(context)
        emit_watermark = _stands_still if context.execution.event_time_stands_still else context.emit_watermark
        self._assigner = WatermarkAssigner(
            self._strategy,
            context.input_clock,
            context.emit_in_turn,
            self._emit,
            emit_watermark,
            context.emit_idle,
            # the end of an epoch, in which nothing is left to read, is gap enough
            split_gap_ms=self._interval if context.execution.is_long_lived else 0,
        )
        self._reader = self._source.create_reader(self)
        self._take_up_splits()
        if self._restored_watermarks is not None:
            watermarks, self._restored_watermarks = self._restored_watermarks, None
            self._assigner.restore(
                watermarks.sent_by(self.subtask_index, self.parallelism),
                watermarks.splits_of(self.subtask_index, self.parallelism),
            )
        self._reader.start()
        if not context.execution.is_long_lived:
            return
        if self._interval > 0:
            context.schedule_after(self._interval, self._on_interval)
        if self._strategy.alignment is not None:
            context.gauge("pausedSplits", lambda: self._assigner.paused_splits)
            self._align()

    def _take_up_splits(self) -> None:
        splits, self._restored_splits = self._restored_splits, []
        if splits:
            # before start(), so that a reader that asks for splits when it has none does not ask
            self.add_splits(splits)
        names = [split.split_id for split in splits]
        self._held.extend(own_items(self._restored_held, names, self.subtask_index, self.parallelism))
        self._restored_held = []
        for held in self._held:
            self._assigner.add_split(held.split_id)

    # -- what the task calls ------------------------------------------------------------------------

    def has_data(self, now: float) -> bool:
        """Whether a poll may give something now."""
        if self.ended or self.is_ahead:
            return False
        return bool(self._held) or (self._ready_at is not None and self._ready_at <= now)

    @property
    def ready_at(self) -> float | None:
        """When to poll again, None if only a new split helps."""
        if self.ended or self.is_ahead:
            return None
        return 0.0 if self._held else self._ready_at

    @property
    def is_ahead(self) -> bool:
        """Whether the source waits for the slowest of its alignment group."""
        return self.watermark > self._max_allowed

    @property
    def watermark(self) -> int:
        """The last watermark sent."""
        return self._assigner.watermark

    def resume_event_time(self) -> None:
        """Sends the restored watermark: ahead of all records, but not before all tasks and their channels are there."""
        self._assigner.resume()

    def emit_periodic(self, *, judge_idleness: bool = True) -> None:
        """Sends the watermark if it has advanced; which splits are idle shows only when all there was has been read."""
        if self.ended or self._interval <= 0:
            return
        self.resume_event_time()
        if self.is_ahead or self._held:
            # that no records come does not mean that there are none
            self._assigner.restart_idle_timeouts()
        if judge_idleness:
            self._assigner.periodic()
        else:
            self._assigner.advance()
        self._align_splits()

    def restart_idle_timeouts(self) -> None:
        """Reading stopped while there were records: it is unknown which splits have none."""
        self._assigner.restart_idle_timeouts()

    @property
    def idle_at(self) -> int | None:
        """When the next split is idle if nothing comes, by the monotonic clock."""
        return None if self.ended or self._interval <= 0 else self._assigner.idle_at

    def report_alignment(self) -> None:
        """Reports the watermark of the subtask to its alignment group, if there is one."""
        if self._strategy.alignment is not None and not self.ended:
            self._report_watermark(MAX_WATERMARK if self._assigner.idle else self.watermark)

    @property
    def alignment_interval(self) -> int | None:
        """How often that should be done, in milliseconds; None without a group."""
        return None if self._strategy.alignment is None else self._strategy.alignment.update_interval

    def pending_records(self) -> int | None:
        """The reader's backlog, if it is known."""
        return None if self._reader is None or self.ended else self._reader.pending_records()

    def align(self, max_allowed: int) -> None:
        """The coordinator's answer: how far this subtask may go."""
        self._max_allowed = max_allowed
        self._align_splits()

    def poll(self, max_records: int = MAX_RECORDS) -> None:
        """Emits what the reader has, after what it gave before and is held."""
        assert self._reader is not None
        self.resume_event_time()
        if self._held:
            self._process_held(max_records)
            self.ended = self._has_read_all and not self._held
            return
        status = self._reader.poll_next(self, max_records)
        if status is InputStatus.MORE_AVAILABLE:
            self._ready_at = 0.0
        elif status is InputStatus.NOTHING_AVAILABLE:
            self._ready_at = self._reader.available_at()
        else:
            self._has_read_all = True
            self.ended = not self._held

    def add_splits(self, splits: Sequence[Any]) -> None:
        assert self._reader is not None
        for split in splits:
            self._assigner.add_split(split.split_id)
        self._reader.add_splits(splits)
        self._ready_at = 0.0

    def no_more_splits(self) -> None:
        """The enumerator has no more."""
        assert self._reader is not None
        self._reader.notify_no_more_splits()
        self._ready_at = 0.0

    def handle_source_event(self, event: Any) -> None:
        """Passes an event of the enumerator to the reader."""
        assert self._reader is not None
        self._reader.handle_source_event(event)
        self._ready_at = 0.0

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The reader may now commit its positions externally."""
        super().notify_checkpoint_complete(checkpoint_id)
        if self._reader is not None:
            self._reader.notify_checkpoint_complete(checkpoint_id)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """Processes held records that no checkpoint can keep."""
        while self._held and not can_be_pickled(list(self._held)):
            self._process_held()

    def snapshot_state(
        self, checkpoint_id: int, operator_state: OperatorStateBackend, timestamp: int | None = None
    ) -> None:
        """Keeps the splits and the event time."""
        super().snapshot_state(checkpoint_id, operator_state, timestamp)
        assert self._reader is not None
        # called also at the end: it may commit its positions externally once the checkpoint is complete
        splits = self._reader.snapshot_state(checkpoint_id)
        if self.ended:
            return
        operator_state.put(SPLITS, SPLIT, splits)
        names = [split.split_id for split in splits]
        operator_state.put(HELD, UNION, items_of(self._held, names, self.subtask_index))
        assigner = self._assigner
        if self._interval > 0:
            # a new generator will not know records that were read since the last interval
            assigner.advance_splits()
        watermarks = (assigner.watermark, assigner.split_watermarks())
        operator_state.put(WATERMARKS, UNION, [SubtaskWatermarks(self.subtask_index, self.parallelism, *watermarks)])

    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """A source has no input."""
        raise AssertionError("a source has no input")

    def finish(self) -> None:
        """Event time ends with the source."""
        while self._held:
            self._process_held()
        if self._strategy.alignment is not None:
            self._report_watermark(MAX_WATERMARK)
        self._assigner.activate()
        self.context.emit_watermark(MAX_WATERMARK)

    def close(self) -> None:
        if self._reader is not None:
            reader, self._reader = self._reader, None
            reader.close()

    # -- what the reader calls ----------------------------------------------------------------------

    @property
    def attempt_number(self) -> int:
        """How often the job was started before."""
        return int(self.context.runtime_context.get_attempt_number())

    @property
    def execution(self) -> ExecutionTraits:
        """What holds because of how the job is executed."""
        return self.context.execution

    @property
    def reuses_objects(self) -> bool:
        """Whether the job is configured with ``pipeline.object-reuse``."""
        return self.context.reuses_objects

    def send_split_request(self) -> None:
        """Asks the enumerator for another split."""
        self._request_split()

    def send_source_event(self, event: Any) -> None:
        """Sends an event to the enumerator."""
        self._send_event(event)

    def get_metrics_group(self) -> ConnectorMetrics:
        return self.context

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self.context.processing_time()

    def poll_at(self, timestamp: int) -> None:
        """Polls again once the wall clock reaches the timestamp."""
        self.context.schedule(timestamp, lambda _now: self._poll_again())

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        return self.context.monotonic_ms()

    def poll_after(self, delay: int) -> None:
        """Polls again after a delay in milliseconds."""
        self.context.schedule_after(delay, self._poll_again)

    def collect(self, split_id: str, values: Sequence[Any], timestamps: Sequence[int] | None = None) -> None:
        """Takes records of a split."""
        left = len(values)
        if not self._held and not self.context.turn.is_over:
            left = self._process(split_id, values, timestamps)
        if left:
            records = Records(split_id, values, timestamps).last(left)
            self._held.append(records if self.emits_own_records else records.copy())

    def emit_watermark(self, split_id: str, timestamp: int) -> None:
        """Takes a watermark that the reader found in a split."""
        if self._held:
            self._held.append(SplitWatermark(split_id, timestamp))
        else:
            self._assigner.emit_watermark(split_id, timestamp)

    def emit_side(self, tag: OutputTag, values: Sequence[Any]) -> None:
        """Emits records to a side output."""
        self.context.emit_side(tag, list(values), None)

    def release_split(self, split_id: str) -> None:
        """A split has ended."""
        if self._held:
            self._held.append(SplitEnd(split_id))
            return
        # a split may be read from beginning to end within an interval: if another one may be long in coming, its
        # watermark must not be lost. A bounded source ends, and with it event time.
        is_endless = self._source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
        self._assigner.release_split(split_id, keeps_watermark=is_endless)

    def _process_held(self, max_records: int = MAX_RECORDS) -> None:
        """Processes what is held, until the turn is over.

        Of records not more than that at a time: the remaining ones get new timestamps in the next turn.
        """
        held, self._held = self._held, deque()
        while held and not self._held:
            item = held.popleft()
            if isinstance(item, Records):
                part = item.first(max_records)
                left = len(item.values) - len(part.values)
                left += self._process(part.split_id, part.values, part.timestamps)
                if left:
                    self._held.append(item.last(left))
            elif isinstance(item, SplitWatermark):
                self._assigner.emit_watermark(item.split_id, item.timestamp)
            else:
                self.release_split(item.split_id)
        self._held += held

    def _process(self, split_id: str, values: Sequence[Any], timestamps: Sequence[int] | None) -> int:
        """Emits records until the turn is over; returns how many of the last are left."""
        left = self._assigner.process(split_id, values, timestamps)
        if left:
            self.context.turn.take_rest()
        self.records += len(values) - left
        return left

    def _emit(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self.context.emit(values, timestamps)  # type: ignore[arg-type]

    def _poll_again(self) -> None:
        self._ready_at = 0.0

    def _align_splits(self) -> None:
        """Pauses the splits that are too far ahead of the alignment group, where the reader can do that."""
        if self._strategy.alignment is None or self._reader is None or not self._reader.can_pause_splits:
            return
        to_pause, to_resume = self._assigner.pause_splits_beyond(self._max_allowed)
        if to_pause or to_resume:
            self._reader.pause_or_resume_splits(to_pause, to_resume)
            self._ready_at = 0.0

    def _align(self) -> None:
        """Reports the watermark to the alignment group, and again after its interval."""
        if not self.ended:
            self.report_alignment()
            self.context.schedule_after(self._strategy.alignment.update_interval, self._align)

    def _on_interval(self) -> None:
        if not self.ended:
            self.emit_periodic()
            self.context.schedule_after(self._interval, self._on_interval)


def _stands_still(_watermark: int) -> None:
    """What a batch does with watermarks before the last one."""
