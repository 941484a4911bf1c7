"""Interval join: pairs of records of two keyed streams whose timestamps are within an interval of each other.

A record is joined with what the other side has buffered, and is buffered itself until the watermark says that no record
it could match will come. Timers remove the buckets; the namespace of a timer is the side and the timestamp of its
bucket, so that a job restored with other bounds removes what it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

from firesteel.api.output_tag import OutputTag
from firesteel.api.state import MapStateDescriptor
from firesteel.common.errors import FiresteelError
from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.operators.co import TwoInputOperator
from firesteel.runtime.operators.inline import write_tagged_results
from firesteel.runtime.operators.join_buffers import JoinBuffer, ObjectJoinBuffer, SortedJoinBuffer, StateJoinBuffer
from firesteel.runtime.state.api.backend import ObjectStateBackend
from firesteel.types.copying import copy_value

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.runtime.operators.base import OperatorContext

__all__ = ["BUFFERS", "IntervalJoinOperator", "IntervalJoinSpec", "JoinContext", "SortedIntervalJoinOperator"]

BUFFERS = ("LEFT_BUFFER", "RIGHT_BUFFER")
"""The states of the two sides, with Flink's names."""

_TIMERS = "CLEANUP_TIMER"
_LEFT, _RIGHT = 0, 1

Pairs = Iterable[tuple[Any, Any]]


@dataclass(frozen=True)
class IntervalJoinSpec(FunctionSpec):
    """Joins left with right records if ``left + lower_bound <= right <= left + upper_bound``; bounds are inclusive."""

    lower_bound: int
    upper_bound: int
    left_late_tag: OutputTag | None = None
    right_late_tag: OutputTag | None = None

    def create(self, runtime: OperatorRuntime) -> IntervalJoinOperator:
        """Returns a new operator for one subtask."""
        if runtime.execution.one_key_at_a_time:
            return SortedIntervalJoinOperator(self)
        return IntervalJoinOperator(self)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Returns the join function."""
        return {"join function": method_of(self.function, "process_element")}


class JoinContext:
    """The ctx argument of a ProcessJoinFunction."""

    __slots__ = ("left", "right", "time")

    def __init__(self) -> None:
        self.left = self.right = self.time = MIN_TIMESTAMP

    def get_left_timestamp(self) -> int:
        """The timestamp of the left record."""
        return self.left

    def get_right_timestamp(self) -> int:
        """The timestamp of the right record."""
        return self.right

    def get_timestamp(self) -> int:
        """The timestamp of results: the later of both."""
        return self.time


class IntervalJoinOperator(TwoInputOperator):
    """Joins each record with those buffered on the other side, in event time."""

    method = "process_element"

    def __init__(self, spec: IntervalJoinSpec):
        super().__init__(spec.function)
        lower, upper = spec.lower_bound, spec.upper_bound
        self._bounds = ((lower, upper), (-upper, -lower))
        """Of each side: what the other's timestamps may be, relative to its own."""
        self._delays = (max(upper, 0), max(-lower, 0))
        """Of each side: how long after its timestamp a record is needed."""
        self._late_tags = (spec.left_late_tag, spec.right_late_tag)
        self.join_context = JoinContext()

    def open(self, context: OperatorContext) -> None:
        """Gets the buffers and their timers, and opens the function."""
        assert context.backend is not None
        self._backend = context.backend
        self._timers = context.timer_service(_TIMERS, self)
        self._buffers = self._open_buffers()
        self._is_plain = context.reuses_objects or all(buffer.is_plain() for buffer in self._buffers)
        """Whether no record can be changed by the function, so that none is copied."""
        self._dropped = context.counter("numLateRecordsDropped")
        super().open(context)

    def _open_buffers(self) -> tuple[JoinBuffer, JoinBuffer]:
        left, right = (MapStateDescriptor(name) for name in BUFFERS)
        backend = self._backend
        if isinstance(backend, ObjectStateBackend):
            return ObjectJoinBuffer(backend, left), ObjectJoinBuffer(backend, right)
        return (
            StateJoinBuffer(backend, left, self._restored_buckets(_LEFT)),
            StateJoinBuffer(backend, right, self._restored_buckets(_RIGHT)),
        )

    def _restored_buckets(self, side: int) -> Iterator[tuple[Any, int]]:
        for _, key, (timer_side, timestamp) in self._backend.timer_queue(f"{_TIMERS}/event").live:
            if timer_side == side:
                yield key, timestamp

    def fire_timers(self, timestamp: int) -> bool:
        return self._timers.advance_watermark(timestamp)

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """No record that matches those of a bucket will come: removes it."""
        side, bucket = namespace
        needed_until = self._cleanup_time(side, bucket)
        if needed_until > timestamp:
            # the bounds were closer together when the timer was registered
            self._timers.register_event_time_timer(namespace, needed_until)
        else:
            self._buffers[side].remove(bucket)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Never called: there are no such timers."""

    def _cleanup_time(self, side: int, timestamp: int) -> int:
        return min(timestamp + self._delays[side], MAX_WATERMARK)

    def _join_left(self, value: Any, timestamp: int) -> Iterable[tuple[int, Pairs]]:
        """Buffers a left record, and returns what it is joined with: timestamps and pairs of left and right."""
        self._add(_LEFT, value, timestamp)
        lower, upper = self._bounds[_LEFT]
        buffer = self._buffers[_RIGHT]
        found = buffer.between(timestamp + lower, timestamp + upper)
        if not found:
            return ()
        if self._is_plain:
            return ((time, zip(repeat(value), bucket)) for time, bucket in found)
        return ((time, zip(_copies(value), _own(bucket, buffer))) for time, bucket in found)  # noqa: B905

    def _join_right(self, value: Any, timestamp: int) -> Iterable[tuple[int, Pairs]]:
        """Does so with a right record."""
        self._add(_RIGHT, value, timestamp)
        lower, upper = self._bounds[_RIGHT]
        buffer = self._buffers[_LEFT]
        found = buffer.between(timestamp + lower, timestamp + upper)
        if not found:
            return ()
        if self._is_plain:
            return ((time, zip(bucket, repeat(value))) for time, bucket in found)
        return ((time, zip(_own(bucket, buffer), _copies(value))) for time, bucket in found)  # noqa: B905

    def _add(self, side: int, value: Any, timestamp: int) -> None:
        if timestamp == MIN_TIMESTAMP:
            self._refuse()
        if self._is_plain and not self.context.reuses_objects and copy_value(value) is not value:
            self._is_plain = False
        if self._buffers[side].add(timestamp, value):
            self._timers.register_event_time_timer((side, timestamp), self._cleanup_time(side, timestamp))

    def _refuse(self) -> None:
        raise FiresteelError(
            "A record without a timestamp cannot be joined in event time.",
            hint="Call assign_timestamps_and_watermarks on both streams before the interval join.",
        )

    def write_call(self, writer: LoopWriter, value: str, index: int) -> None:
        """``for left, right in join(v0, t): for v1 in process_element(left, right, ctx):`` and on."""
        if not writer.with_timestamps:
            writer.line(f"{writer.bind('refuse', self._refuse)}()", element=value)
            return
        own = writer.timestamp
        with writer.block(f"if {own} < {writer.bind('timers', self._timers)}.current_watermark:"):
            self._write_late(writer, value, index)
        other, time = writer.new_variable("b"), writer.new_variable("b")
        left, right, pairs = (writer.new_variable("p") for _ in range(3))
        join = writer.bind("join", self._join_left if index == _LEFT else self._join_right)
        context = writer.bind("ctx", self.join_context)
        with (
            writer.block("else:"),
            writer.block(f"for {other}, {pairs} in {join}({value}, {own}):", element=value),
        ):
            times = (own, other) if index == _LEFT else (other, own)
            writer.line(f"{context}.left, {context}.right = {', '.join(times)}")
            writer.line(f"{context}.time = {time} = {other} if {other} > {own} else {own}")
            writer.timestamp = time
            with writer.block(f"for {left}, {right} in {pairs}:", element=value):
                write_tagged_results(writer, self.call, f"{left}, {right}, {context}", value)
            writer.timestamp = own

    def _write_late(self, writer: LoopWriter, value: str, index: int) -> None:
        with writer.block(f"if {writer.timestamp} == {MIN_TIMESTAMP}:"):
            writer.line(f"{writer.bind('refuse', self._refuse)}()", element=value)
        tag = self._late_tags[index]
        if tag is None:
            writer.line(f"{writer.bind('dropped', self._dropped.inc)}()")
            return
        late = writer.new_variable("v")
        writer.line(f"{late} = ({writer.bind('late', tag)}, {value})")
        writer.write_tagged_consumers(late)


class SortedIntervalJoinOperator(IntervalJoinOperator):
    """An interval join in a batch: reads the records of one key at a time in the order of time, without state."""

    def _open_buffers(self) -> tuple[SortedJoinBuffer, SortedJoinBuffer]:
        self._sorted = SortedJoinBuffer(), SortedJoinBuffer()
        return self._sorted

    def _add(self, side: int, value: Any, timestamp: int) -> None:
        if timestamp == MIN_TIMESTAMP:
            self._refuse()
        if self._is_plain and not self.context.reuses_objects and copy_value(value) is not value:
            self._is_plain = False
        self._buffers[side].add(timestamp, value)

    def end_key(self) -> None:
        """Removes the records of the current key."""
        for buffer in self._sorted:
            buffer.end_key()


def _copies(value: Any) -> Iterator[Any]:
    return map(copy_value, repeat(value))


def _own(bucket: list[Any], buffer: JoinBuffer) -> Iterable[Any]:
    """The records of a bucket, as the function may change them."""
    return map(copy_value, bucket) if buffer.shares_objects else bucket
