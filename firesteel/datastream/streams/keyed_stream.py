"""KeyedStream: a stream partitioned by key, with state and timers per key."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, overload

from firesteel.api.generics import Generic, K_co, R, S, T_co
from firesteel.api.pickled_key import plain_key
from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.common.types import Row, named_row
from firesteel.datastream.closeable_iterator import CloseableIterator
from firesteel.datastream.data_stream import DataStream, check_function
from firesteel.datastream.functions import KeyedProcessFunction, KeySelector, ReduceFunction
from firesteel.datastream.streams.bundled_aggregation import Aggregator, BundledAggregation
from firesteel.datastream.streams.field_aggregation import AccumulateType, FieldAggregation
from firesteel.datastream.windowing.assigners import CountSlidingWindowAssigner, GlobalWindows, WindowAssigner
from firesteel.datastream.windowing.triggers import CountTrigger, PurgingTrigger
from firesteel.graph.transformation import PartitionTransformation, Transformation
from firesteel.runtime.operators.inline import ProcessSpec
from firesteel.runtime.operators.reduce import ReduceSpec

if TYPE_CHECKING:
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
    from firesteel.datastream.streams.interval_join import IntervalJoin
    from firesteel.datastream.streams.windowed_stream import WindowedStream

__all__ = ["KeyedStream"]


_KEY_AND_VALUE = ("f0", "f1")
"""The fields of collected records."""


class KeyedStream(DataStream[T_co], Generic[T_co, K_co]):
    """A stream whose records with the same key go to the same subtask, in order.

    Functions applied to it have keyed state. It is not an operator: it has no name or parallelism.
    """

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        transformation: PartitionTransformation,
        key_selector: Callable[[T_co], K_co] | KeySelector[T_co, K_co],
        key_type: TypeInformation | None,
        origin_stream: DataStream[T_co],
    ):
        super().__init__(environment, transformation)
        self._key_selector = key_selector
        self._key_type = key_type
        self._origin_stream = origin_stream

    def process(  # type: ignore[override]
        self, func: KeyedProcessFunction[K_co, T_co, R], output_type: Any = None
    ) -> DataStream[R]:
        """Applies a KeyedProcessFunction to each record."""
        if not isinstance(func, KeyedProcessFunction):
            raise TypeError(f"process on a keyed stream needs a KeyedProcessFunction, got a {type(func).__name__}.")
        return self._transform("KeyedProcess", ProcessSpec(func), output_type)

    def reduce(self, func: Callable[[T_co, T_co], T_co] | ReduceFunction[T_co]) -> DataStream[T_co]:
        """Combines all records of a key, two at a time, and emits the result so far with each record."""
        check_function("reduce", func, ReduceFunction)
        return self._transform("Reduce", ReduceSpec(func), self._transformation.output_type)

    def pre_aggregate(
        self,
        function: Aggregator,
        *,
        max_records: int | None = None,
        max_keys: int = 100_000,
        max_delay: Duration | Time | timedelta | int = 200,
        output_type: Any = None,
    ) -> DataStream[Any]:
        """Aggregates before the exchange, then merges after it: for keys that have most of the records. Not in Flink.

        The function is a reduce function or an AggregateFunction, and must be associative. Each subtask of the input
        aggregates its records by key, in bundles of at most ``max_records`` records (None: any number), ``max_keys``
        keys and ``max_delay`` milliseconds. Per key and bundle one partial result is sent, of an AggregateFunction the
        accumulator, and merged into the state of the key. A result is emitted per partial result, not per record; it
        has the largest timestamp of the records. The last result of a key is that of ``reduce``.
        """
        aggregation = BundledAggregation("pre_aggregate", function, max_records, max_keys, max_delay, output_type)
        return aggregation.local_and_global(self)

    def salted_aggregate(
        self,
        function: Aggregator,
        salts: int = 32,
        *,
        max_records: int | None = None,
        max_keys: int = 100_000,
        max_delay: Duration | Time | timedelta | int = 200,
        output_type: Any = None,
    ) -> DataStream[Any]:
        """Aggregates the records of a key in several subtasks, then in the one of the key. Not in Flink.

        Each record gets one of ``salts`` salts in turn, and goes to the subtask of its key and salt. That aggregates in
        bundles as ``pre_aggregate`` does, and the subtask of the key merges the partial results. For an input that is
        itself uneven, or a function that takes long: all subtasks take part. The function must be associative and
        commutative. The arguments and results are those of ``pre_aggregate``.
        """
        aggregation = BundledAggregation("salted_aggregate", function, max_records, max_keys, max_delay, output_type)
        return aggregation.salted(self, salts)

    def mini_batch_aggregate(
        self,
        function: Aggregator,
        *,
        max_records: int = 5_000,
        max_delay: Duration | Time | timedelta | int = 200,
        output_type: Any = None,
    ) -> DataStream[Any]:
        """Aggregates with one access to the state per key and bundle: for large state on disk. Not in Flink.

        The arguments and the results are those of ``pre_aggregate``, but records are aggregated after the exchange, as
        with ``table.exec.mini-batch.enabled`` in Flink's tables: ``max_records`` is ``table.exec.mini-batch.size``, and
        ``max_delay`` is ``table.exec.mini-batch.allow-latency``.
        """
        aggregation = BundledAggregation(
            "mini_batch_aggregate", function, max_records, max_records, max_delay, output_type
        )
        return aggregation.in_mini_batches(self)

    def cache(self) -> NoReturn:
        """Not supported, as in Flink."""
        raise InvalidProgramError("Cache for KeyedStream is not supported.", hint="Call cache() before key_by().")

    def sum(self, position_to_sum: int | str = 0) -> DataStream[T_co]:
        """A running sum of one field per key; position 0 of a plain number is the number."""
        return self._accumulate(position_to_sum, AccumulateType.SUM)

    def min(self, position_to_min: int | str = 0) -> DataStream[T_co]:
        """The running minimum of one field per key; other fields are those of the first record."""
        return self._accumulate(position_to_min, AccumulateType.MIN)

    def max(self, position_to_max: int | str = 0) -> DataStream[T_co]:
        """The running maximum of one field per key; other fields are those of the first record."""
        return self._accumulate(position_to_max, AccumulateType.MAX)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream[T_co]:
        """The record with the smallest field so far per key; the first of equals."""
        return self._accumulate(position_to_min_by, AccumulateType.MIN_BY)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream[T_co]:
        """The record with the largest field so far per key; the first of equals."""
        return self._accumulate(position_to_max_by, AccumulateType.MAX_BY)

    def key_by(
        self, key_selector: Callable[[T_co], S] | KeySelector[T_co, S], key_type: TypeInformation | None = None
    ) -> KeyedStream[T_co, S]:
        """Partitions by another key instead."""
        return self._origin_stream.key_by(key_selector, key_type)

    def window(self, window_assigner: WindowAssigner[Any, S]) -> WindowedStream[T_co, K_co, S]:
        """Assigns the records of each key to windows."""
        from firesteel.datastream.streams.windowed_stream import WindowedStream

        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[T_co, K_co, Any]:
        """Windows of ``size`` records of a key, one after the other or one every ``slide`` records.

        As in PyFlink the first sliding window is evaluated when it is full.
        """
        if slide != 0:
            return self.window(CountSlidingWindowAssigner.of(size, slide))
        if size <= 0:
            raise InvalidProgramError(f"The size of a count window must be positive, got {size}.")
        from firesteel.datastream.streams.windowed_stream import CountWindowedStream

        return CountWindowedStream(self, GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(size)))

    def interval_join(self, other_stream: KeyedStream[S, K_co]) -> IntervalJoin[T_co, S]:
        """Joins with records of another keyed stream that have the same key and a timestamp within an interval."""
        from firesteel.datastream.streams.interval_join import IntervalJoin

        if not isinstance(other_stream, KeyedStream):
            raise TypeError(f"interval_join needs a KeyedStream, got {type(other_stream).__name__}: call key_by first.")
        self._check_same_environment(other_stream, "interval_join")
        return IntervalJoin(self, other_stream)

    @overload  # type: ignore[override]
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[Row]: ...
    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[Row]: ...
    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[Row]: ...
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[Row] | list[Row]:
        """Runs the program and iterates over this stream's records, each as a Row of its key and the record."""
        key_of = self._key_selector
        select = key_of.get_key if isinstance(key_of, KeySelector) else key_of
        with_keys = DataStream(self._environment, self._transformation).map(
            lambda value: named_row(_KEY_AND_VALUE, [plain_key(select(value)), value]), output_type=None
        )
        return with_keys.execute_and_collect(job_execution_name, limit)

    def _accumulate(self, position: int | str, accumulate_type: AccumulateType) -> DataStream[T_co]:
        return self.reduce(FieldAggregation(position, accumulate_type))

    def _operator(self) -> Transformation:
        raise InvalidProgramError(
            "A keyed stream is not an operator: it has no name, uid, parallelism or chaining.",
            hint="Call the setting on the operator before key_by or on the one after it.",
        )

    def get_name(self) -> str:
        """Not available: a keyed stream is not an operator."""
        return self._operator().name

    def shuffle(self) -> NoReturn:
        """Not available: the stream is partitioned by key."""
        self._refuse_partitioning()

    def rescale(self) -> NoReturn:
        """Not available: the stream is partitioned by key."""
        self._refuse_partitioning()

    def rebalance(self) -> NoReturn:
        """Not available: the stream is partitioned by key."""
        self._refuse_partitioning()

    def forward(self) -> NoReturn:
        """Not available: the stream is partitioned by key."""
        self._refuse_partitioning()

    def broadcast(self, *args: Any) -> NoReturn:
        """Not available: the stream is partitioned by key."""
        self._refuse_partitioning()

    def partition_custom(self, partitioner: Any, key_selector: Any) -> NoReturn:
        """Not available: the stream is partitioned by key."""
        self._refuse_partitioning()

    def _refuse_partitioning(self) -> NoReturn:
        raise InvalidProgramError(
            "The partitioning of a keyed stream cannot be changed: state belongs to the key's subtask.",
            hint="Repartition before key_by, or apply a function first.",
        )
