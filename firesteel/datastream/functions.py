"""The functions users write, and the contexts they are called with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from firesteel.api.generics import (
    ACC,
    Generic,
    IN1_contra,
    IN2_contra,
    IN_contra,
    KEY_contra,
    OUT_co,
    T,
    W_co,
    W_contra,
)
from firesteel.common.errors import InvalidProgramError
from firesteel.datastream.async_io.async_functions import (
    AsyncFunction,
    AsyncFunctionDescriptor,
    AsyncRetryPredicate,
    AsyncRetryStrategy,
)
from firesteel.datastream.broadcast_functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from firesteel.datastream.function_base import (
    CheckpointedFunction,
    CheckpointListener,
    Function,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedStateStore,
    Results,
    RuntimeContext,
)
from firesteel.datastream.time_domain import TimeDomain
from firesteel.datastream.timerservice import TimerService

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointListener",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "MapFunction",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
    "TimerService",
    "WindowFunction",
]


class MapFunction(Function, Generic[IN_contra, OUT_co]):
    """Emits one record per input record."""

    @abstractmethod
    def map(self, value: IN_contra) -> OUT_co:
        """The result for one record."""


class CoMapFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Emits one record per input record of two connected streams."""

    @abstractmethod
    def map1(self, value: IN1_contra) -> OUT_co | None:
        """The result for a record of the first stream; None emits nothing."""

    @abstractmethod
    def map2(self, value: IN2_contra) -> OUT_co | None:
        """The result for a record of the second stream; None emits nothing."""


class FlatMapFunction(Function, Generic[IN_contra, OUT_co]):
    """Emits zero or more records per input record."""

    @abstractmethod
    def flat_map(self, value: IN_contra) -> Iterable[OUT_co] | None:
        """The results for one record: yield them, or return an iterable."""


class CoFlatMapFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Emits zero or more records per input record of two connected streams."""

    @abstractmethod
    def flat_map1(self, value: IN1_contra) -> Iterable[OUT_co] | None:
        """The results for a record of the first stream."""

    @abstractmethod
    def flat_map2(self, value: IN2_contra) -> Iterable[OUT_co] | None:
        """The results for a record of the second stream."""


class ReduceFunction(Function, Generic[T]):
    """Combines two records into one of the same type."""

    @abstractmethod
    def reduce(self, value1: T, value2: T) -> T:
        """Combines two values into one; value1 is the result so far."""


class AggregateFunction(Function, Generic[IN_contra, ACC, OUT_co]):
    """Aggregates records in an accumulator of its own type."""

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """A new accumulator of nothing."""

    @abstractmethod
    def add(self, value: IN_contra, accumulator: ACC) -> ACC:
        """The accumulator with one more record: the given one changed, or a new one."""

    @abstractmethod
    def get_result(self, accumulator: ACC) -> OUT_co:
        """The result an accumulator stands for."""

    @abstractmethod
    def merge(self, acc_a: ACC, acc_b: ACC) -> ACC:
        """Merges two accumulators; called when session windows merge."""


class KeySelector(Function, Generic[IN_contra, OUT_co]):
    """Extracts the key of a record."""

    @abstractmethod
    def get_key(self, value: IN_contra) -> OUT_co:
        """The key; the same record must always have the same key."""


class NullByteKeySelector(KeySelector[Any, int]):
    """Gives every record the same key."""

    def get_key(self, value: Any) -> int:
        """Always 0."""
        return 0


class FilterFunction(Function, Generic[IN_contra]):
    """Decides which records are kept."""

    @abstractmethod
    def filter(self, value: IN_contra) -> bool:
        """True to keep the record."""


class Partitioner(Function, Generic[KEY_contra]):
    """Selects the subtask to which a record is sent."""

    @abstractmethod
    def partition(self, key: KEY_contra, num_partitions: int) -> int:
        """The index of the subtask, from 0 to num_partitions - 1."""


class FunctionWrapper(Function):
    """Holds a bare callable where a Function is expected."""

    def __init__(self, func: Callable[..., Any]):
        self._func = func


class ReduceFunctionWrapper(FunctionWrapper):
    """A callable of two values as a ReduceFunction."""

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Calls the callable with both values."""
        return self._func(value1, value2)


class JavaFunctionWrapper:
    """A function in Java. Its name can be imported; it cannot be created."""

    def __init__(self, j_function: Any):
        raise InvalidProgramError(
            f"{j_function!r} is a function in Java, which Firesteel does not run.",
            hint="Write the function in Python: a class derived from MapFunction, ProcessFunction, Source or Sink.",
        )


class SourceFunction(Function):
    """Flink's old source interface, here only so that its name can be imported.

    A source function blocks, so it cannot share a thread with tasks: implement ``Source`` instead.
    """


class SinkFunction(Function, Generic[IN_contra]):
    """A sink that is called record by record; use it with ``add_sink``."""

    @abstractmethod
    def invoke(self, value: IN_contra) -> None:
        """Writes one record."""


class ProcessFunction(Function, Generic[IN_contra, OUT_co]):
    """Emits zero or more records per input record, with access to time, timestamps and side outputs."""

    class Context(ABC):
        """The context of a record; only valid while the record is processed."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Reads the clocks; timers need a keyed stream."""

        @abstractmethod
        def timestamp(self) -> int:
            """The record's timestamp, or None if it has none."""

    @abstractmethod
    def process_element(self, value: IN_contra, ctx: ProcessFunction.Context) -> Results[OUT_co]:
        """Yields the results for one record, and ``(output_tag, value)`` for a side output."""


class KeyedProcessFunction(Function, Generic[KEY_contra, IN_contra, OUT_co]):
    """Processes the records of a keyed stream, with keyed state and timers."""

    class Context(ABC):
        """The context of a record; only valid while the record is processed."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the record."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Reads the clocks and sets timers for the current key."""

        @abstractmethod
        def timestamp(self) -> int:
            """The record's timestamp, or None if it has none."""

    class OnTimerContext(Context):
        """The context of a timer."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """The time domain of the timer."""

    @abstractmethod
    def process_element(self, value: IN_contra, ctx: KeyedProcessFunction.Context) -> Results[OUT_co]:
        """Yields the results for one record, and ``(output_tag, value)`` for a side output."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Results[OUT_co]:
        """Yields the results when a timer fires."""


class CoProcessFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes the records of two connected streams."""

    class Context(ABC):
        """The context of a record; only valid while the record is processed."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Reads the clocks; timers need keyed streams."""

        @abstractmethod
        def timestamp(self) -> int:
            """The record's timestamp, or None if it has none."""

    @abstractmethod
    def process_element1(self, value: IN1_contra, ctx: CoProcessFunction.Context) -> Results[OUT_co]:
        """Yields the results for a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: IN2_contra, ctx: CoProcessFunction.Context) -> Results[OUT_co]:
        """Yields the results for a record of the second stream."""


class KeyedCoProcessFunction(Function, Generic[KEY_contra, IN1_contra, IN2_contra, OUT_co]):
    """Processes the records of two connected keyed streams, which share keyed state and timers."""

    class Context(ABC):
        """The context of a record; only valid while the record is processed."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the record."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Reads the clocks and sets timers for the current key."""

        @abstractmethod
        def timestamp(self) -> int:
            """The record's timestamp, or None if it has none."""

    class OnTimerContext(Context):
        """The context of a timer."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """The time domain of the timer."""

    @abstractmethod
    def process_element1(self, value: IN1_contra, ctx: KeyedCoProcessFunction.Context) -> Results[OUT_co]:
        """Yields the results for a record of the first stream."""

    @abstractmethod
    def process_element2(self, value: IN2_contra, ctx: KeyedCoProcessFunction.Context) -> Results[OUT_co]:
        """Yields the results for a record of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Results[OUT_co]:
        """Yields the results when a timer fires."""


class JoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Emits one record per pair of records that a window join finds."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> OUT_co:
        """The result for a pair."""


class FlatJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Emits zero or more records per pair of records that a window join finds."""

    @abstractmethod
    def join(self, first: IN1_contra, second: IN2_contra) -> Iterable[OUT_co] | None:
        """The results for a pair: yield them, or return an iterable."""


class CoGroupFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Emits zero or more records per key and window of two streams."""

    @abstractmethod
    def co_group(self, first: list[IN1_contra], second: list[IN2_contra]) -> Iterable[OUT_co] | None:
        """The results for the records of both streams with a key in a window; one of the lists may be empty."""


class ProcessJoinFunction(Function, Generic[IN1_contra, IN2_contra, OUT_co]):
    """Processes each pair of records that an interval join finds."""

    class Context(ABC):
        """The context of a pair; only valid while the pair is processed."""

        @abstractmethod
        def get_left_timestamp(self) -> int:
            """The timestamp of the left record."""

        @abstractmethod
        def get_right_timestamp(self) -> int:
            """The timestamp of the right record."""

        @abstractmethod
        def get_timestamp(self) -> int:
            """The timestamp of the results: the later of both."""

    @abstractmethod
    def process_element(self, left: IN1_contra, right: IN2_contra, ctx: ProcessJoinFunction.Context) -> Results[OUT_co]:
        """Yields the results for a pair, and ``(output_tag, value)`` for a side output."""


class WindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Emits zero or more records per window of a key."""

    @abstractmethod
    def apply(self, key: KEY_contra, window: W_contra, inputs: Iterable[IN_contra]) -> Results[OUT_co]:
        """The results for the records of a window, or for its aggregate (``inputs`` then has only that)."""


class AllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Emits zero or more records per window of a non-keyed stream."""

    @abstractmethod
    def apply(self, window: W_contra, inputs: Iterable[IN_contra]) -> Results[OUT_co]:
        """The results for the records of a window, or for its aggregate (``inputs`` then has only that)."""


class ProcessWindowFunction(Function, Generic[IN_contra, OUT_co, KEY_contra, W_contra]):
    """Emits zero or more records per window of a key, with access to state and time."""

    class Context(ABC, Generic[W_co]):
        """The context of the window being processed."""

        @abstractmethod
        def window(self) -> W_co:
            """The window."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The current event time in milliseconds."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of this key and window; clean it up in ``clear``."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State of this key over all its windows."""

    @abstractmethod
    def process(
        self, key: KEY_contra, context: ProcessWindowFunction.Context[W_contra], elements: Iterable[IN_contra]
    ) -> Results[OUT_co]:
        """The results for the records of a window, or for its aggregate (``elements`` then has only that)."""

    def clear(self, context: ProcessWindowFunction.Context[W_contra]) -> None:
        """The window is about to disappear: clear its ``window_state``."""


class ProcessAllWindowFunction(Function, Generic[IN_contra, OUT_co, W_contra]):
    """Emits zero or more records per window of a non-keyed stream, with access to state."""

    class Context(ABC, Generic[W_co]):
        """The context of the window being processed."""

        @abstractmethod
        def window(self) -> W_co:
            """The window."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """State of this window; clean it up in ``clear``."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """State of all windows."""

    @abstractmethod
    def process(
        self, context: ProcessAllWindowFunction.Context[W_contra], elements: Iterable[IN_contra]
    ) -> Results[OUT_co]:
        """The results for the records of a window, or for its aggregate (``elements`` then has only that)."""

    def clear(self, context: ProcessAllWindowFunction.Context[W_contra]) -> None:
        """The window is about to disappear: clear its ``window_state``."""
