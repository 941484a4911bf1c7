"""IntervalJoin: two keyed streams joined where timestamps are within an interval of each other."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from firesteel.api.generics import Generic, R, T1_co, T2_co
from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time, to_millis
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.functions import ProcessJoinFunction
from firesteel.datastream.streams.connected_streams import ConnectedStreams
from firesteel.runtime.operators.interval_join import IntervalJoinSpec

if TYPE_CHECKING:
    from typing_extensions import Self

    from firesteel.datastream.streams.keyed_stream import KeyedStream

__all__ = ["IntervalJoin", "IntervalJoined"]


class IntervalJoin(Generic[T1_co, T2_co]):
    """Two keyed streams that are to be joined over an interval of time. Not in PyFlink."""

    def __init__(self, stream_one: KeyedStream[T1_co, Any], stream_two: KeyedStream[T2_co, Any]):
        self._streams = stream_one, stream_two
        self._is_event_time = True

    def in_event_time(self) -> Self:
        """Joins by the timestamps of records; this is the default."""
        self._is_event_time = True
        return self

    def in_processing_time(self) -> Self:
        """Not supported, as in Flink: ``between`` raises an error."""
        self._is_event_time = False
        return self

    def between(
        self, lower_bound: Duration | Time | timedelta | int, upper_bound: Duration | Time | timedelta | int
    ) -> IntervalJoined[T1_co, T2_co]:
        """Joins where ``left + lower_bound <= right <= left + upper_bound``; bounds may be negative."""
        if not self._is_event_time:
            raise InvalidProgramError(
                "Interval joins are supported in event time only.",
                hint="Leave in_processing_time out, or join windows: stream.join(other).where(…).equal_to(…).",
            )
        lower, upper = to_millis(lower_bound), to_millis(upper_bound)
        if lower > upper:
            raise InvalidProgramError(f"The lower bound of {lower} ms is above the upper bound of {upper} ms.")
        return IntervalJoined(*self._streams, lower, upper)


class IntervalJoined(Generic[T1_co, T2_co]):
    """An interval join with its bounds, both of them inclusive unless set otherwise. Not in PyFlink."""

    def __init__(
        self, left: KeyedStream[T1_co, Any], right: KeyedStream[T2_co, Any], lower_bound: int, upper_bound: int
    ):
        self._left = left
        self._right = right
        self._bounds = lower_bound, upper_bound
        self._is_lower_exclusive = self._is_upper_exclusive = False
        self._left_late_tag: OutputTag | None = None
        self._right_late_tag: OutputTag | None = None

    def lower_bound_exclusive(self) -> Self:
        """Leaves out pairs that are apart by exactly the lower bound."""
        self._is_lower_exclusive = True
        return self

    def upper_bound_exclusive(self) -> Self:
        """Leaves out pairs that are apart by exactly the upper bound."""
        self._is_upper_exclusive = True
        return self

    def side_output_left_late_data(self, output_tag: OutputTag) -> Self:
        """Sends late records of the left stream to a side output of the result instead of dropping them."""
        self._left_late_tag = _checked(output_tag)
        return self

    def side_output_right_late_data(self, output_tag: OutputTag) -> Self:
        """Sends late records of the right stream to a side output of the result instead of dropping them."""
        self._right_late_tag = _checked(output_tag)
        return self

    def process(
        self, process_join_function: ProcessJoinFunction[T1_co, T2_co, R], output_type: Any = None
    ) -> DataStream[R]:
        """Applies a ProcessJoinFunction to each pair."""
        if not isinstance(process_join_function, ProcessJoinFunction):
            raise TypeError(f"process needs a ProcessJoinFunction, got {process_join_function!r}.")
        lower, upper = self._bounds
        spec = IntervalJoinSpec(
            process_join_function,
            lower_bound=lower + 1 if self._is_lower_exclusive else lower,
            upper_bound=upper - 1 if self._is_upper_exclusive else upper,
            left_late_tag=self._left_late_tag,
            right_late_tag=self._right_late_tag,
        )
        return ConnectedStreams(self._left, self._right)._transform("Interval Join", spec, output_type)


def _checked(output_tag: OutputTag) -> OutputTag:
    if not isinstance(output_tag, OutputTag):
        raise TypeError(f"An OutputTag is needed, got {output_tag!r}.")
    return output_tag
