"""WindowedStream and AllWindowedStream: operations on the records of a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, overload

from firesteel.api.generics import Generic, K_co, R, S, T, T_co, W_co
from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import to_millis
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream import DataStream, check_function
from firesteel.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    NullByteKeySelector,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from firesteel.datastream.streams.bundled_aggregation import Aggregator, WindowedAggregation
from firesteel.datastream.windowing.assigners import MergingWindowAssigner, WindowAssigner
from firesteel.datastream.windowing.count_windows import CountWindowFunction
from firesteel.datastream.windowing.evictors import Evictor
from firesteel.datastream.windowing.triggers import Trigger
from firesteel.runtime.operators.window.spec import WindowSpec

if TYPE_CHECKING:
    from typing_extensions import Self

    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
    from firesteel.datastream.streams.keyed_stream import KeyedStream

__all__ = ["AllWindowedStream", "CountWindowedStream", "WindowedStream"]


_WindowFunctions: TypeAlias = (
    WindowFunction[T, R, Any, Any]
    | ProcessWindowFunction[T, R, Any, Any]
    | AllWindowFunction[T, R, Any]
    | ProcessAllWindowFunction[T, R, Any]
)


class _Windowed(Generic[T_co]):
    """What both kinds share: settings that the window operator is made from once a function is given."""

    _all_windows: ClassVar[bool] = False
    _kind: ClassVar[str] = ""
    _window_function: ClassVar[type[Any]]
    _process_function: ClassVar[type[Any]]

    def __init__(self, keyed_stream: KeyedStream[T_co, Any], window_assigner: WindowAssigner[Any, Any]):
        if not isinstance(window_assigner, WindowAssigner):
            raise TypeError(
                "A WindowAssigner is needed, such as TumblingEventTimeWindows.of(Time.minutes(5)), "
                f"got {window_assigner!r}."
            )
        self._keyed_stream = keyed_stream
        self._window_assigner = window_assigner
        self._window_trigger: Trigger[Any, Any] | None = None
        self._window_evictor: Evictor[Any, Any] | None = None
        self._allowed_lateness = 0
        self._late_data_output_tag: OutputTag | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._window_assigner!r} of {self._keyed_stream!r}>"

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment of the stream."""
        return self._keyed_stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """The type of the records in the windows."""
        return self._keyed_stream.get_type()

    def trigger(self, trigger: Trigger[Any, Any]) -> Self:
        """Sets the trigger, which replaces the default trigger of the assigner."""
        if not isinstance(trigger, Trigger):
            raise TypeError(f"A Trigger is needed, got {trigger!r}.")
        if isinstance(self._window_assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise InvalidProgramError(
                f"{type(self._window_assigner).__name__} merge windows, but {type(trigger).__name__} cannot.",
                hint="Implement can_merge and on_merge in the trigger, or use windows that do not merge.",
            )
        self._window_trigger = trigger
        return self

    def evictor(self, evictor: Evictor[Any, Any]) -> Self:
        """Sets the evictor, which removes elements before or after the function. Not in PyFlink.

        The window then keeps all its elements: reduce and aggregate run over them whenever it fires.
        """
        if not isinstance(evictor, Evictor):
            raise TypeError(f"An Evictor is needed, got {evictor!r}.")
        self._window_evictor = evictor
        return self

    def allowed_lateness(self, time_ms: int) -> Self:
        """Sets the allowed lateness, the time after its end in which a window accepts late records."""
        lateness = to_millis(time_ms)
        if lateness < 0:
            raise InvalidProgramError(f"The allowed lateness cannot be negative, got {lateness} ms.")
        self._allowed_lateness = lateness
        return self

    def side_output_late_data(self, output_tag: OutputTag) -> Self:
        """Sends records that are too late to a side output of the result instead of dropping them."""
        if not isinstance(output_tag, OutputTag):
            raise TypeError(f"An OutputTag is needed, got {output_tag!r}.")
        self._late_data_output_tag = output_tag
        return self

    @overload
    def reduce(
        self,
        reduce_function: Callable[[T_co, T_co], T_co] | ReduceFunction[T_co],
        window_function: None = None,
        output_type: Any = None,
    ) -> DataStream[T_co]: ...
    @overload
    def reduce(
        self,
        reduce_function: Callable[[T_co, T_co], T_co] | ReduceFunction[T_co],
        window_function: _WindowFunctions[T_co, R],
        output_type: Any = None,
    ) -> DataStream[R]: ...
    def reduce(
        self,
        reduce_function: Callable[[T_co, T_co], T_co] | ReduceFunction[T_co],
        window_function: Any = None,
        output_type: Any = None,
    ) -> DataStream:
        """Combines the records of a window incrementally; a window function then gets the result."""
        check_function("reduce", reduce_function, ReduceFunction)
        self._check_window_function(window_function)
        if window_function is None and output_type is None:
            output_type = self._keyed_stream._transformation.output_type
        return self._evaluate("reduce", reduce_function, window_function, output_type)

    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, Any, R],
        window_function: None = None,
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream[R]: ...
    @overload
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, Any, S],
        window_function: _WindowFunctions[S, R],
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream[R]: ...
    def aggregate(
        self,
        aggregate_function: AggregateFunction[T_co, Any, Any],
        window_function: Any = None,
        accumulator_type: Any = None,
        output_type: Any = None,
    ) -> DataStream:
        """Aggregates a window's records as they come; a window function then gets the one result."""
        if not isinstance(aggregate_function, AggregateFunction):
            raise TypeError(f"aggregate needs an AggregateFunction, got {aggregate_function!r}.")
        self._check_window_function(window_function)
        return self._evaluate("aggregate", aggregate_function, window_function, output_type)

    def pre_aggregate(
        self,
        function: Aggregator,
        window_function: Any = None,
        *,
        max_keys: int = 100_000,
        output_type: Any = None,
    ) -> DataStream[Any]:
        """Aggregates before the exchange, then merges in the windows: for keys with most of the records. Not in Flink.

        The function is a reduce function or an AggregateFunction, and must be associative and commutative. The results
        are those of ``reduce`` or ``aggregate``. Each subtask of the input aggregates its records by key and window,
        and sends a partial result before the watermark that the window ends with, before a barrier, and when it has
        ``max_keys`` of them. Windows must be tumbling or sliding event-time windows with their default trigger.
        """
        self._check_window_function(window_function)
        aggregation = WindowedAggregation("pre_aggregate", function, max_keys)
        keyed = self._keyed_stream
        spec = self._spec("aggregate", aggregation.merging(), window_function, reads_partials=True)
        pairs = aggregation.aggregate_locally(keyed, spec)
        if window_function is None and output_type is None and not isinstance(function, AggregateFunction):
            output_type = keyed._transformation.output_type
        result = self._transform(pairs, spec, output_type)
        pairs._origin_stream._transformation.part_of = result._transformation
        return result

    def _apply(self, window_function: Any, expected: type[Any], output_type: Any) -> DataStream:
        if not isinstance(window_function, expected):
            raise TypeError(f"A {expected.__name__} is needed, got {window_function!r}.")
        return self._evaluate(None, None, window_function, output_type)

    def _check_window_function(self, function: Any) -> None:
        expected = (self._window_function, self._process_function)
        if function is not None and not isinstance(function, expected):
            raise TypeError(f"Not a {expected[0].__name__} or {expected[1].__name__}: window_function={function!r}.")

    def _evaluate(
        self, aggregation: str | None, aggregate_function: Any, window_function: Any, output_type: Any
    ) -> DataStream:
        spec = self._spec(aggregation, aggregate_function, window_function)
        return self._transform(self._keyed_stream, spec, output_type)

    def _spec(
        self, aggregation: str | None, aggregate_function: Any, window_function: Any, *, reads_partials: bool = False
    ) -> WindowSpec:
        assigner = self._window_assigner
        return WindowSpec(
            assigner=assigner,
            trigger=self._window_trigger or assigner.get_default_trigger(self.get_execution_environment()),
            aggregation=aggregation,
            aggregate_function=aggregate_function,
            window_function=window_function,
            allowed_lateness=self._allowed_lateness,
            late_tag=self._late_data_output_tag,
            all_windows=self._all_windows,
            evictor=self._window_evictor,
            reads_partials=reads_partials,
        )

    def _transform(self, keyed_stream: KeyedStream[Any, Any], spec: WindowSpec, output_type: Any) -> DataStream:
        assigner, evictor = self._window_assigner, self._window_evictor
        stream = keyed_stream._transform(type(assigner).__name__, spec, output_type)
        aggregate = spec.aggregate_function.wrapped_function if spec.reads_partials else spec.aggregate_function
        parts = (spec.trigger, evictor, aggregate, spec.window_function)
        kinds = [type(part).__name__ for part in parts if part is not None]
        stream.set_description(f"{self._kind}({', '.join([str(assigner), *kinds])})")
        return stream


class WindowedStream(_Windowed[T_co], Generic[T_co, K_co, W_co]):
    """Each key's records in windows."""

    _kind = "Window"
    _window_function = WindowFunction
    _process_function = ProcessWindowFunction

    def apply(self, window_function: WindowFunction[T_co, R, K_co, W_co], output_type: Any = None) -> DataStream[R]:
        """Gives all records of a window to a WindowFunction."""
        return self._apply(window_function, WindowFunction, output_type)

    def process(
        self, process_window_function: ProcessWindowFunction[T_co, R, K_co, W_co], output_type: Any = None
    ) -> DataStream[R]:
        """Gives all records of a window to a ProcessWindowFunction."""
        return self._apply(process_window_function, ProcessWindowFunction, output_type)


class CountWindowedStream(WindowedStream[T_co, K_co, W_co]):
    """Each key's records in windows of so many records: global windows, which functions see as ``CountWindow``."""

    def _evaluate(
        self, aggregation: str | None, aggregate_function: Any, window_function: Any, output_type: Any
    ) -> DataStream:
        seen = None if window_function is None else CountWindowFunction(window_function)
        return super()._evaluate(aggregation, aggregate_function, seen, output_type)


class AllWindowedStream(_Windowed[T_co], Generic[T_co, W_co]):
    """All records in windows, whatever their key; runs with parallelism 1."""

    _all_windows = True
    _kind = "AllWindow"
    _window_function = AllWindowFunction
    _process_function = ProcessAllWindowFunction

    def __init__(self, data_stream: DataStream[T_co], window_assigner: WindowAssigner[Any, W_co]):
        super().__init__(data_stream.key_by(NullByteKeySelector()), window_assigner)

    def apply(self, window_function: AllWindowFunction[T_co, R, W_co], output_type: Any = None) -> DataStream[R]:
        """Gives all records of a window to an AllWindowFunction."""
        return self._apply(window_function, AllWindowFunction, output_type)

    def process(
        self, process_window_function: ProcessAllWindowFunction[T_co, R, W_co], output_type: Any = None
    ) -> DataStream[R]:
        """Gives all records of a window to a ProcessAllWindowFunction."""
        return self._apply(process_window_function, ProcessAllWindowFunction, output_type)

    def _transform(self, keyed_stream: KeyedStream[Any, Any], spec: WindowSpec, output_type: Any) -> DataStream:
        return super()._transform(keyed_stream, spec, output_type).force_non_parallel()
