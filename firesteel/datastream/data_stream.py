"""DataStream: a stream of records and its operations."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, overload

from firesteel.api.generics import Generic, R, S, T_co
from firesteel.api.notebook import html_table
from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config import pipeline_options
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.connectors.client.print_sink import PrintSink
from firesteel.datastream.closeable_iterator import CloseableIterator
from firesteel.datastream.connectors.base import SupportsPreprocessing
from firesteel.datastream.dataframes import create_dataframe, dataframe_sink
from firesteel.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    SinkFunction,
)
from firesteel.datastream.state import MapStateDescriptor
from firesteel.datastream.streams.call_site import user_call_site
from firesteel.datastream.streams.collected_values import collected_value
from firesteel.datastream.streams.coroutine_check import refuse_coroutines
from firesteel.datastream.streams.data_stream_sink import DataStreamSink
from firesteel.datastream.streams.description import describe_stream
from firesteel.datastream.streams.key_selection import select_keys
from firesteel.datastream.streams.operator_settings import OperatorSettings
from firesteel.datastream.streams.output_types import to_type_info
from firesteel.datastream.streams.projection import Projection, identity, row_to_text
from firesteel.datastream.streams.sink_function import SinkFunctionSink
from firesteel.graph.transformation import (
    ChainingStrategy,
    OneInputTransformation,
    PartitionTransformation,
    PhysicalTransformation,
    SideOutputTransformation,
    SinkTransformation,
    Transformation,
    UnionTransformation,
)
from firesteel.process.pyflink_names import is_pyflink_program
from firesteel.runtime.model import partitioner as partitioners
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.global_commit import GlobalCommitSink, SinkWriterSpec
from firesteel.runtime.operators.inline import FilterSpec, FlatMapSpec, MapSpec, ProcessSpec
from firesteel.runtime.operators.sink import SinkSpec
from firesteel.runtime.operators.timestamps import TimestampsAndWatermarksSpec
from firesteel.spi.sink import Sink
from firesteel.types.java_text import java_text

if TYPE_CHECKING:
    from typing_extensions import Self

    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
    from firesteel.datastream.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
    from firesteel.datastream.streams.cached_data_stream import CachedDataStream
    from firesteel.datastream.streams.connected_streams import ConnectedStreams
    from firesteel.datastream.streams.joined_streams import CoGroupedStreams, JoinedStreams
    from firesteel.datastream.streams.keyed_stream import KeyedStream
    from firesteel.datastream.streams.windowed_stream import AllWindowedStream, WindowedStream
    from firesteel.datastream.windowing.assigners import WindowAssigner

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CachedDataStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
    "WindowedStream",
]

_STREAMS = {
    "AllWindowedStream": "windowed_stream",
    "BroadcastConnectedStream": "broadcast_stream",
    "BroadcastStream": "broadcast_stream",
    "CachedDataStream": "streams.cached_data_stream",
    "ConnectedStreams": "connected_streams",
    "KeyedStream": "keyed_stream",
    "WindowedStream": "windowed_stream",
}


def __getattr__(name: str) -> Any:
    # PyFlink has all stream classes in this module; here they build on this one, so they are found on demand
    if name in _STREAMS:
        return getattr(importlib.import_module(f"firesteel.datastream.{_STREAMS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class DataStream(OperatorSettings, Generic[T_co]):
    """A stream of records. Nothing runs before ``execute``: each method adds a step to the program."""

    _key_selector: Any = None
    _key_type: TypeInformation | None = None

    def __init__(self, environment: StreamExecutionEnvironment, transformation: Transformation):
        self._environment = environment
        self._transformation = transformation

    def __repr__(self) -> str:
        name, *rest = describe_stream(self._transformation, self._environment.get_parallelism())
        shown = ", ".join(f"{what} {value}" for what, value in rest if what != "plan")
        return f"<{type(self).__name__} {name[1]!r}, {shown}>"

    def _repr_html_(self) -> str:
        return html_table(
            type(self).__name__, describe_stream(self._transformation, self._environment.get_parallelism())
        )

    def get_name(self) -> str:
        """The operator's name."""
        return self._transformation.name

    def get_type(self) -> TypeInformation:
        """The type of the records, pickled bytes if none was given."""
        known = self._transformation.output_type
        if isinstance(known, RowTypeInfo):
            return Types.ROW_NAMED(known.get_field_names(), known.get_field_types())
        return known or Types.PICKLED_BYTE_ARRAY()

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        """The environment this stream was made with."""
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        """The environment's execution config."""
        return self._environment.get_config()

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Sets the operator's number of key groups: the most subtasks it can ever have."""
        self._set_max_parallelism(max_parallelism)
        return self

    def force_non_parallel(self) -> Self:
        """Sets parallelism and max parallelism to 1; they cannot be changed afterwards."""
        operator = self._operator()
        operator.parallelism = operator.max_parallelism = 1
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Sets the buffer timeout in milliseconds; -1 sends only full buffers, 0 sends each record at once."""
        if timeout_millis < -1:
            raise InvalidProgramError(f"The buffer timeout must be -1, 0 or more milliseconds, got {timeout_millis}.")
        self._operator().buffer_timeout = timeout_millis
        return self

    def start_new_chain(self) -> Self:
        """Starts a new task with this operator; operators after it may still join."""
        self._operator().chaining = ChainingStrategy.HEAD
        return self

    def map(self, func: Callable[[T_co], R] | MapFunction[T_co, R], output_type: Any = None) -> DataStream[R]:
        """Emits one record per input record."""
        check_function("map", func, MapFunction)
        return self._transform("Map", MapSpec(func), output_type)

    def flat_map(
        self, func: Callable[[T_co], Iterable[R] | None] | FlatMapFunction[T_co, R], output_type: Any = None
    ) -> DataStream[R]:
        """Emits zero or more records per input record."""
        check_function("flat_map", func, FlatMapFunction)
        return self._transform("FlatMap", FlatMapSpec(func), output_type)

    def filter(self, func: Callable[[T_co], bool] | FilterFunction[T_co]) -> DataStream[T_co]:
        """Keeps the records for which the function is true."""
        check_function("filter", func, FilterFunction)
        return self._transform("Filter", FilterSpec(func), self._transformation.output_type)

    def process(self, func: ProcessFunction[T_co, R], output_type: Any = None) -> DataStream[R]:
        """Applies a ProcessFunction to each record."""
        given: Any = func
        if not isinstance(given, ProcessFunction):
            hint = ": call key_by first" if isinstance(given, KeyedProcessFunction) else ""
            raise TypeError(f"process needs a ProcessFunction, got {_shown(given)}{hint}.")
        return self._transform("Process", ProcessSpec(func), output_type)

    def project(self, *field_indexes: int) -> DataStream[tuple[Any, ...]]:
        """Keeps some fields of tuples, in the given order."""
        known = self._transformation.output_type
        if known is not None and not isinstance(known, TupleTypeInfo):
            raise InvalidProgramError(f"Only streams of tuples can be projected; this one has {known}.")
        projected = None
        if known is not None:
            fields = known.get_field_types()
            wrong = [index for index in field_indexes if not 0 <= index < len(fields)]
            if wrong:
                raise InvalidProgramError(f"There is no field {wrong[0]} in a tuple of {len(fields)} fields.")
            projected = Types.TUPLE([fields[index] for index in field_indexes])
        return self._transform("Projection", MapSpec(Projection(field_indexes)), projected)

    def key_by(
        self, key_selector: Callable[[T_co], S] | KeySelector[T_co, S], key_type: TypeInformation | None = None
    ) -> KeyedStream[T_co, S]:
        """Partitions the stream by key: records with the same key go to the same subtask, in order."""
        from firesteel.datastream.streams.keyed_stream import KeyedStream

        check_function("key_by", key_selector, KeySelector)
        converts = self._environment._configuration.get(pipeline_options.CONVERT_TYPED_RECORDS)
        selector = select_keys(key_selector, key_type, converts=converts)
        partitioner = partitioners.KeyGroupPartitioner(selector)
        return KeyedStream(self._environment, self._partition(partitioner), selector, key_type, self)

    def window_all(self, window_assigner: WindowAssigner[Any, S]) -> AllWindowedStream[T_co, S]:
        """Assigns the records of the whole stream to windows; runs with parallelism 1."""
        from firesteel.datastream.streams.windowed_stream import AllWindowedStream

        return AllWindowedStream(self, window_assigner)

    def union(self, *streams: DataStream[S]) -> DataStream[T_co | S]:
        """All records of this stream and the others."""
        types = [self._transformation.output_type]
        for stream in streams:
            if not isinstance(stream, DataStream):
                raise TypeError(f"union needs DataStreams, got {type(stream).__name__}.")
            self._check_same_environment(stream, "union")
            types.append(stream._transformation.output_type)
        known = [type_info for type_info in types if type_info is not None]
        for other in known[1:]:
            if other != known[0]:
                raise InvalidProgramError(f"Streams of different types cannot be united: {known[0]} and {other}.")
        union = UnionTransformation(
            [self._transformation, *(stream._transformation for stream in streams)],
            output_type=known[0] if len(known) == len(types) else None,
            defined_at=user_call_site(),
        )
        return DataStream(self._environment, union)

    @overload
    def connect(self, ds: DataStream[S]) -> ConnectedStreams[T_co, S]: ...
    @overload
    def connect(self, ds: BroadcastStream[S]) -> BroadcastConnectedStream[T_co, S]: ...
    def connect(
        self, ds: DataStream[S] | BroadcastStream[S]
    ) -> ConnectedStreams[T_co, S] | BroadcastConnectedStream[T_co, S]:
        """Connects this stream with another one, possibly of another type, as inputs of one operator."""
        from firesteel.datastream.streams.broadcast_stream import BroadcastConnectedStream, BroadcastStream
        from firesteel.datastream.streams.connected_streams import ConnectedStreams

        if isinstance(ds, BroadcastStream):
            self._check_same_environment(ds.input_stream, "connect")
            return BroadcastConnectedStream(self, ds, ds.broadcast_state_descriptors)
        if not isinstance(ds, DataStream):
            raise TypeError(f"connect needs a DataStream, got {type(ds).__name__}.")
        self._check_same_environment(ds, "connect")
        return ConnectedStreams(self, ds)

    def join(self, other_stream: DataStream[S]) -> JoinedStreams[T_co, S]:
        """Joins with records of another stream that have an equal key and are in the same window."""
        from firesteel.datastream.streams.joined_streams import JoinedStreams

        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream[S]) -> CoGroupedStreams[T_co, S]:
        """Groups with records of another stream that have an equal key and are in the same window."""
        from firesteel.datastream.streams.joined_streams import CoGroupedStreams

        return CoGroupedStreams(self, other_stream)

    def shuffle(self) -> DataStream[T_co]:
        """Sends each record to a random subtask of the next operator."""
        return self._repartition(partitioners.ShufflePartitioner())

    def rescale(self) -> DataStream[T_co]:
        """Sends records round robin to a few near subtasks of the next operator."""
        return self._repartition(partitioners.RescalePartitioner())

    def rebalance(self) -> DataStream[T_co]:
        """Sends records round robin to all subtasks of the next operator."""
        return self._repartition(partitioners.RebalancePartitioner())

    def forward(self) -> DataStream[T_co]:
        """Sends records to the same subtask of the next operator, which must have the same parallelism."""
        return self._repartition(partitioners.ForwardPartitioner())

    @overload
    def broadcast(self) -> DataStream[T_co]: ...
    @overload
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> BroadcastStream[T_co]: ...
    def broadcast(
        self,
        broadcast_state_descriptor: MapStateDescriptor | None = None,
        *other_broadcast_state_descriptors: MapStateDescriptor,
    ) -> DataStream[T_co] | BroadcastStream[T_co]:
        """Sends each record to every subtask of the next operator; with descriptors, for broadcast state."""
        stream = self._repartition(partitioners.BroadcastPartitioner())
        if broadcast_state_descriptor is None:
            return stream
        from firesteel.datastream.streams.broadcast_stream import BroadcastStream

        return BroadcastStream(stream, [broadcast_state_descriptor, *other_broadcast_state_descriptors])

    def partition_custom(
        self,
        partitioner: Callable[[S, int], int] | Partitioner[S],
        key_selector: Callable[[T_co], S] | KeySelector[T_co, S],
    ) -> DataStream[T_co]:
        """Sends each record to the subtask that the partitioner returns for its key."""
        check_function("partition_custom", partitioner, Partitioner)
        check_function("partition_custom", key_selector, KeySelector)
        return self._repartition(partitioners.CustomPartitioner(partitioner, key_selector))

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream[T_co]:
        """Gives records timestamps and the stream watermarks, replacing those it had."""
        if not isinstance(watermark_strategy, WatermarkStrategy):
            raise TypeError(f"A WatermarkStrategy is needed, got {_shown(watermark_strategy)}.")
        stream = self._transform(
            "Timestamps/Watermarks",
            TimestampsAndWatermarksSpec(watermark_strategy),
            self._transformation.output_type,
        )
        # as in Flink it is as parallel as its input: no subtask without input holds back the watermark
        stream._transformation.parallelism = parallelism_of(self._transformation)
        return stream

    def get_side_output(self, output_tag: OutputTag[S]) -> DataStream[S]:
        """The records this operator sent to a side output, or that came too late for its windows."""
        if not isinstance(output_tag, OutputTag):
            raise TypeError(f"An OutputTag is needed, got {_shown(output_tag)}.")
        if not isinstance(self._transformation, PhysicalTransformation):
            raise InvalidProgramError(
                f"'{self._transformation.name}' is not an operator, so it has no side outputs.",
                hint="Call get_side_output on the stream that process(), or a window function, returned.",
            )
        side = SideOutputTransformation(
            self._transformation,
            output_tag,
            output_type=to_type_info(output_tag.type_info),
            defined_at=user_call_site(),
        )
        return DataStream(self._environment, side)

    def add_sink(self, sink_func: SinkFunction[T_co] | Sink) -> DataStreamSink:
        """Calls a SinkFunction with each record."""
        if isinstance(sink_func, Sink):
            return self.sink_to(sink_func)
        refuse_coroutines("add_sink", sink_func)
        if not isinstance(sink_func, SinkFunction):
            raise TypeError(f"add_sink needs a SinkFunction or a Sink, got {_shown(sink_func)}.")
        return self.sink_to(SinkFunctionSink(sink_func))

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Writes the stream to a sink."""
        if not isinstance(sink, Sink):
            raise TypeError(f"sink_to needs a Sink, got {_shown(sink)}.")
        stream: DataStream = self
        transformer = sink.get_transformer() if isinstance(sink, SupportsPreprocessing) else None
        if transformer is not None:
            stream = transformer.apply(self)
        to_text = java_text(stream._transformation.output_type)
        if to_text is not None:
            sink = sink.with_text(to_text)
        name = getattr(sink, "name", None) or type(sink).__name__
        writer: OneInputTransformation | None = None
        if sink.commits_globally:
            # the settings of the sink are those of its writers
            writer = OneInputTransformation(
                stream._transformation, SinkWriterSpec(sink), name=name, defined_at=user_call_site()
            )
            self._environment._add_operator(writer)
            sink, name = GlobalCommitSink(sink), "Global Committer"
            stream = DataStream(self._environment, writer)._repartition(partitioners.CommittablePartitioner())
        transformation = SinkTransformation(
            stream._transformation, SinkSpec(sink), name=name, defined_at=user_call_site(), part_of=writer
        )
        if writer is not None:
            transformation.parallelism = transformation.max_parallelism = 1
        self._environment._add_operator(transformation)
        return DataStreamSink(self._environment, transformation, writer)

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Prints each record where the program runs, after the identifier and the subtask if any.

        Records with a declared type are printed as Flink prints them (``(1,1.0E20)``), others by Python's ``str``.
        """
        stream: DataStream = self
        if isinstance(self._transformation.output_type, RowTypeInfo):
            stream = self.map(row_to_text, Types.STRING())
        return stream.sink_to(PrintSink(sink_identifier))

    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: None = None
    ) -> CloseableIterator[T_co]: ...
    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[T_co]: ...
    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[T_co]: ...
    @overload
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T_co] | list[T_co]: ...
    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator[T_co] | list[T_co]:
        """Runs the program and iterates over this stream's records; with a limit, lists the first ones."""
        if limit is not None and limit <= 0:
            raise InvalidProgramError(f"The limit of execute_and_collect must be positive, got {limit}.")
        channel = f"collect-{uuid.uuid4().hex}"
        sink = self.sink_to(CollectSink(channel))
        operator = self._transformation
        while isinstance(operator, SideOutputTransformation):
            operator = operator.inputs[0]
        if operator.parallelism is not None:
            # each subtask's records are collected beside it, so that they keep their order
            sink.set_parallelism(operator.parallelism)
        client = self._environment.execute_async(job_execution_name or "DataStream Collect")
        handle: Any = client._handle
        records: Iterator[Any] = handle.collect_iterator(channel)
        convert = collected_value(self._transformation.output_type) if is_pyflink_program() else None
        results: CloseableIterator[T_co] = CloseableIterator(map(convert, records) if convert else records, client)
        if limit is None:
            return results
        with results:
            # zip asks the range first, so no result beyond the limit is waited for
            return [record for _, record in zip(range(limit), results)]  # noqa: B905

    def cache(self) -> CachedDataStream:
        """Keeps the records after the first batch job that computes them; later jobs read them instead.

        They are kept until ``invalidate``, or until the environment is closed.
        """
        if not isinstance(self._transformation, (PhysicalTransformation, SideOutputTransformation)):
            raise InvalidProgramError(
                "Cache can only be called with physical transformation or side output transformation.",
                hint="Call it on the result of an operator, such as map().",
            )
        from firesteel.datastream.streams.cached_data_stream import CachedDataStream

        return CachedDataStream(self)

    def to_dataframe(self, schema: Any = None) -> Any:
        """A Spark DataFrame of this stream's records, for programs whose sources are bounded; needs PyArrow.

        The program runs as a batch with each action on the DataFrame; ``cache()`` keeps the result. Sinks of the
        program are not executed, and ``execute`` is not needed. The columns are those of the stream's type (``f0``,
        ``f1``, … for a tuple; ``f0`` for anything but rows and tuples) or of a schema, a StructType or a DDL string
        such as ``"name STRING, total BIGINT"``.
        """
        configuration = self._environment.get_configuration()
        sink = dataframe_sink(schema, self._transformation.output_type, configuration)
        transformation = SinkTransformation(
            self._transformation, SinkSpec(sink), name="DataFrame", defined_at=user_call_site()
        )
        return create_dataframe(self._environment._create_batch_graph(transformation), sink)

    def _transform(self, name: str, spec: OperatorSpec, output_type: Any) -> DataStream:
        transformation = OneInputTransformation(
            self._transformation,
            spec,
            key_selector=self._key_selector,
            key_type=self._key_type,
            name=name,
            output_type=to_type_info(output_type),
            defined_at=user_call_site(),
        )
        self._environment._add_operator(transformation)
        return DataStream(self._environment, transformation)

    def _partition(self, partitioner: partitioners.StreamPartitioner) -> PartitionTransformation:
        return PartitionTransformation(
            self._transformation,
            partitioner,
            output_type=self._transformation.output_type,
            defined_at=user_call_site(),
        )

    def _repartition(self, partitioner: partitioners.StreamPartitioner) -> DataStream[T_co]:
        return DataStream(self._environment, self._partition(partitioner))

    def _operator(self) -> Transformation:
        transformation = self._transformation
        if isinstance(transformation, PhysicalTransformation):
            return transformation
        custom = isinstance(transformation, PartitionTransformation) and isinstance(
            transformation.partitioner, partitioners.CustomPartitioner
        )
        if custom or isinstance(transformation, SideOutputTransformation):
            # in PyFlink these are operators, so they can be named and set: here they become one when they are
            self._transformation = self._transform("Map", MapSpec(identity), transformation.output_type)._transformation
            return self._transformation
        raise InvalidProgramError(
            f"'{transformation.name}' is not an operator: it has no name, uid or parallelism.",
            hint="Call the setting on the operator before or after it.",
        )

    def _check_same_environment(self, other: DataStream, method: str) -> None:
        if other._environment is not self._environment:
            raise InvalidProgramError(f"{method} needs streams of the same StreamExecutionEnvironment.")


def check_function(method: str, func: Any, function_class: type[Function]) -> None:
    """Raises an error unless the argument is a function object of the right class or a callable."""
    refuse_coroutines(method, func)
    if isinstance(func, function_class):
        return
    if isinstance(func, type) and issubclass(func, Function):
        raise TypeError(f"{method} needs an object, got the class {func.__name__}: write {func.__name__}().")
    if isinstance(func, Function) or not callable(func):
        raise TypeError(f"{method} needs a {function_class.__name__} or a callable, got {_shown(func)}.")


def _shown(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def parallelism_of(transformation: Transformation) -> int | None:
    """The parallelism that was set for the operator whose records a stream has."""
    while not isinstance(transformation, PhysicalTransformation):
        transformation = transformation.inputs[0]
    return transformation.parallelism
