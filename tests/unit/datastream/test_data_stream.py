"""The transformations that API calls build."""

import inspect
import operator

import pytest

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.configuration import Configuration
from firesteel.connectors.client.discarding_sink import DiscardingSink
from firesteel.connectors.client.print_sink import PrintSink
from firesteel.datastream import (
    AggregateFunction,
    AllWindowFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    SinkFunction,
    SlotSharingGroup,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.state import MapStateDescriptor
from firesteel.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from firesteel.graph.stream_graph_generator import generate
from firesteel.graph.transformation import (
    ChainingStrategy,
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    TwoInputTransformation,
    UnionTransformation,
)
from firesteel.runtime.model import partitioner as partitioners
from firesteel.runtime.operators.broadcast import BroadcastProcessSpec, KeyedBroadcastProcessSpec
from firesteel.runtime.operators.co import CoFlatMapSpec, CoMapSpec, CoProcessSpec
from firesteel.runtime.operators.inline import FilterSpec, FlatMapSpec, MapSpec, ProcessSpec
from firesteel.runtime.operators.reduce import ReduceSpec
from firesteel.runtime.operators.sink import SinkSpec
from firesteel.runtime.operators.timestamps import TimestampsAndWatermarksSpec
from firesteel.runtime.operators.window.spec import WindowSpec

TAG = OutputTag("late", Types.INT())
MINUTE = TumblingEventTimeWindows.of(Time.minutes(1))


class Double(MapFunction):
    def map(self, value):
        return value * 2


class Key(KeySelector):
    def get_key(self, value):
        return value[0]


class Process(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class KeyedProcess(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class CoMap(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        return value


class CoFlatMap(CoFlatMapFunction):
    def flat_map1(self, value):
        return [value]

    def flat_map2(self, value):
        return [value]


class CoProcess(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    def process_element2(self, value, ctx):
        yield value


class Broadcast(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        yield value


class KeyedBroadcast(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        yield value


class KeyedCoProcess(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield value

    def process_element2(self, value, ctx):
        yield value


class Sum(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class Window(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, list(inputs))]


class AllWindow(AllWindowFunction):
    def apply(self, window, inputs):
        return [list(inputs)]


class ProcessWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        return [(key, list(elements))]


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def pairs(env):
    return env.from_collection([("a", 1), ("b", 2)], Types.TUPLE([Types.STRING(), Types.INT()]))


def transformation(stream):
    return stream._transformation


def stream_graph(env):
    return generate(env._transformations, Configuration(env._configuration), "test")


def test_a_source_is_not_an_operator_yet(env):
    source = transformation(env.from_collection([1, 2], Types.INT()))
    assert isinstance(source, SourceTransformation)
    assert source.spec.source.elements == [1, 2]
    assert source.name == "Collection Source"
    assert (source.parallelism, source.max_parallelism) == (1, 1)
    assert source.output_type == Types.INT()
    assert env._transformations == []


def test_elements_take_the_shape_of_their_type(env):
    named = Types.ROW_NAMED(["id", "tags"], [Types.INT(), Types.TUPLE([Types.STRING()])])
    rows = transformation(env.from_collection([(1, ["x"]), Row(2, ("y",)), {"id": 3, "tags": ("z",)}], named))
    assert [(row.id, row.tags) for row in rows.spec.source.elements] == [(1, ("x",)), (2, ("y",)), (3, ("z",))]


@pytest.mark.parametrize(
    ("apply", "name", "spec"),
    [
        (lambda s: s.map(str), "Map", MapSpec(str)),
        (lambda s: s.flat_map(list), "FlatMap", FlatMapSpec(list)),
        (lambda s: s.filter(bool), "Filter", FilterSpec(bool)),
    ],
)
def test_operators_on_one_stream(pairs, apply, name, spec):
    built = transformation(apply(pairs))
    assert isinstance(built, OneInputTransformation)
    assert (built.name, built.spec, built.input) == (name, spec, transformation(pairs))
    assert built.key_selector is None
    assert built.parallelism is None


def test_process(pairs):
    function = Process()
    built = transformation(pairs.process(function))
    assert (built.name, built.spec) == ("Process", ProcessSpec(function))


def test_function_objects_are_kept_as_they_are(pairs):
    function = Double()
    assert transformation(pairs.map(function)).spec.function is function


def test_types_are_recorded(pairs):
    assert pairs.map(str, Types.STRING()).get_type() == Types.STRING()
    assert pairs.map(str).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert pairs.filter(bool).get_type() == pairs.get_type()
    assert pairs.key_by(lambda x: x[0]).sum(1).get_type() == pairs.get_type()
    assert pairs.map(tuple, [Types.INT()]).get_type() == Types.ROW([Types.INT()])
    with pytest.raises(TypeError, match=r"Types\.INT"):
        pairs.map(str, int)


def test_every_step_knows_the_users_line(env):
    stream = env.from_collection([1])
    line = inspect.currentframe().f_lineno
    steps = [
        stream.map(str),
        stream.key_by(str).reduce(max),
        stream.union(stream),
        stream.print(),
        stream.connect(stream).map(CoMap()),
        stream.window_all(MINUTE).apply(AllWindow()),
    ]
    assert [transformation(step).defined_at for step in steps] == [f"{__file__}:{line + n}" for n in range(2, 8)]


def test_key_by_partitions_and_gives_keyed_operators(pairs):
    selector = Key()
    keyed = pairs.key_by(selector, Types.STRING())
    partition = transformation(keyed)
    assert isinstance(partition, PartitionTransformation)
    assert partition.partitioner == partitioners.KeyGroupPartitioner(selector)
    for built in map(transformation, (keyed.map(str), keyed.filter(bool), keyed.process(KeyedProcess()))):
        assert (built.input, built.key_selector, built.key_type) == (partition, selector, Types.STRING())


def test_key_by_twice_keeps_only_the_second_key(pairs):
    second = pairs.key_by(lambda x: x[0]).key_by(Key())
    assert transformation(second).input is transformation(pairs)


def test_reduce_and_aggregations(pairs):
    keyed = pairs.key_by(Key())
    reduced = transformation(keyed.reduce(max))
    assert (reduced.name, reduced.spec, reduced.key_selector) == ("Reduce", ReduceSpec(max), keyed._key_selector)
    summed = transformation(keyed.sum(1))
    assert isinstance(summed.spec, ReduceSpec)
    assert summed.spec.function.reduce(("a", 1), ("a", 2)) == ("a", 3)


@pytest.mark.parametrize(
    ("method", "partitioner"),
    [
        ("shuffle", partitioners.ShufflePartitioner()),
        ("rescale", partitioners.RescalePartitioner()),
        ("rebalance", partitioners.RebalancePartitioner()),
        ("forward", partitioners.ForwardPartitioner()),
        ("broadcast", partitioners.BroadcastPartitioner()),
    ],
)
def test_partitioning(pairs, method, partitioner):
    built = transformation(getattr(pairs, method)())
    assert isinstance(built, PartitionTransformation)
    assert (built.partitioner, built.input) == (partitioner, transformation(pairs))
    with pytest.raises(InvalidProgramError, match="keyed stream"):
        getattr(pairs.key_by(Key()), method)()


def test_custom_partitioning(pairs):
    by_name = pairs.partition_custom(operator.mod, len)
    assert transformation(by_name).partitioner == partitioners.CustomPartitioner(operator.mod, len)
    with pytest.raises(InvalidProgramError, match="keyed stream"):
        pairs.key_by(Key()).partition_custom(operator.mod, len)


def test_union(env, pairs):
    other = env.from_collection([("c", 3)], pairs.get_type())
    union = pairs.union(other, other)
    assert isinstance(transformation(union), UnionTransformation)
    assert transformation(union).inputs == tuple(map(transformation, (pairs, other, other)))
    assert union.get_type() == pairs.get_type()
    with pytest.raises(InvalidProgramError, match="different types"):
        pairs.union(env.from_collection([1], Types.INT()))
    with pytest.raises(InvalidProgramError, match="same StreamExecutionEnvironment"):
        pairs.union(StreamExecutionEnvironment.get_execution_environment().from_collection([1]))


def test_project(pairs):
    projected = pairs.project(1, 0)
    assert projected.get_type() == Types.TUPLE([Types.INT(), Types.STRING()])
    assert transformation(projected).spec.function(("a", 1)) == (1, "a")
    assert transformation(pairs.project(1)).spec.function(("a", 1)) == (1,)
    with pytest.raises(InvalidProgramError, match="no field 2"):
        pairs.project(2)
    with pytest.raises(InvalidProgramError, match="tuples"):
        pairs.map(str, Types.STRING()).project(0)
    assert transformation(pairs.map(tuple).project(0)).spec.function([1]) == (1,)


@pytest.mark.parametrize(
    ("method", "function", "name", "spec"),
    [
        ("map", CoMap(), "Co-Map", CoMapSpec),
        ("flat_map", CoFlatMap(), "Co-Flat Map", CoFlatMapSpec),
        ("process", CoProcess(), "Co-Process", CoProcessSpec),
    ],
)
def test_connected_streams(env, pairs, method, function, name, spec):
    other = env.from_collection([1])
    built = transformation(getattr(pairs.connect(other), method)(function))
    assert isinstance(built, TwoInputTransformation)
    assert (built.name, built.spec) == (name, spec(function))
    assert built.inputs == (transformation(pairs), transformation(other))
    assert built.state_key_selectors == ()


def test_connected_keyed_streams(pairs):
    for connected in (pairs.connect(pairs).key_by(len, str), pairs.key_by(len).connect(pairs.key_by(str))):
        built = transformation(connected.process(KeyedCoProcess()))
        assert (built.name, built.key_selectors) == ("Keyed Co-Process", (len, str))
        assert [t.partitioner.key_selector for t in built.inputs] == [len, str]
    half = transformation(pairs.key_by(len).connect(pairs).process(CoProcess()))
    assert half.key_selectors == (None, None)
    with pytest.raises(InvalidProgramError, match="not both keyed"):
        pairs.key_by(len).connect(pairs).process(KeyedCoProcess())


def test_broadcast_connected_streams(env, pairs):
    rules, limits = MapStateDescriptor("rules"), MapStateDescriptor("limits")
    other = env.from_collection([1])
    built = transformation(pairs.connect(other.broadcast(rules, limits)).process(function := Broadcast(), Types.INT()))
    assert (built.name, built.spec) == ("Co-Process-Broadcast", BroadcastProcessSpec(function, (rules, limits)))
    assert (built.state_key_selectors, built.output_type) == ((), Types.INT())
    assert built.input1 is transformation(pairs)
    assert (built.input2.input, built.input2.partitioner) == (
        transformation(other),
        partitioners.BroadcastPartitioner(),
    )
    keyed = pairs.key_by(len).connect(other.broadcast(rules)).process(function := KeyedBroadcast())
    built = transformation(keyed.uid("priced"))
    assert (built.name, built.uid) == ("Keyed-Co-Process-Broadcast", "priced")
    assert built.spec == KeyedBroadcastProcessSpec(function, (rules,))
    assert built.state_key_selectors == (len, None)


def test_windows(pairs):
    keyed = pairs.key_by(Key())
    result = keyed.window(MINUTE).allowed_lateness(5000).side_output_late_data(TAG).apply(window := Window())
    built = transformation(result)
    assert built.spec == WindowSpec(
        MINUTE, built.spec.trigger, window_function=window, allowed_lateness=5000, late_tag=TAG
    )
    assert isinstance(built.spec.trigger, EventTimeTrigger)
    assert (built.name, built.key_selector) == ("TumblingEventTimeWindows", keyed._key_selector)
    assert built.description == "Window(TumblingEventTimeWindows(60000, 0), EventTimeTrigger, Window)"


def test_window_aggregations(pairs):
    windowed = pairs.key_by(Key()).window(MINUTE).trigger(trigger := CountTrigger.of(3))
    process = ProcessWindow()
    aggregate = Sum()
    reduced = transformation(windowed.reduce(max)).spec
    assert (reduced.aggregation, reduced.aggregate_function, reduced.window_function) == ("reduce", max, None)
    assert reduced.trigger is trigger
    aggregated = transformation(windowed.aggregate(aggregate, process)).spec
    assert (aggregated.aggregation, aggregated.aggregate_function) == ("aggregate", aggregate)
    assert aggregated.window_function is process
    assert transformation(windowed.process(process)).spec.window_function is process
    assert windowed.reduce(max).get_type() == pairs.get_type()


def test_window_all_has_one_key_and_one_subtask(env, pairs):
    result = pairs.window_all(MINUTE).apply(AllWindow())
    built = transformation(result)
    assert built.spec.all_windows
    assert (built.parallelism, built.max_parallelism) == (1, 1)
    assert {built.key_selector.get_key(value) for value in ("a", 1, None)} == {0}
    assert built.description.startswith("AllWindow(")
    with pytest.raises(InvalidProgramError, match=r"parallelism 2 .* max parallelism 1"):
        result.set_parallelism(2)


def test_count_windows(pairs):
    keyed = pairs.key_by(Key())
    tumbling = transformation(keyed.count_window(3).reduce(max)).spec
    assert isinstance(tumbling.assigner, GlobalWindows)
    assert repr(tumbling.trigger) == "PurgingTrigger(CountTrigger(3))"
    sliding = transformation(keyed.count_window(3, 2).reduce(max)).spec
    assert repr(sliding.assigner) == "CountSlidingWindowAssigner(3, 2)"
    assert isinstance(sliding.trigger, PurgingTrigger)
    for size, slide in ((0, 0), (-1, 0), (0, 1), (3, -1)):
        with pytest.raises(InvalidProgramError, match="must be positive"):
            keyed.count_window(size, slide)


def test_side_outputs(env, pairs):
    process = pairs.process(Process())
    side = process.get_side_output(TAG)
    assert isinstance(transformation(side), SideOutputTransformation)
    assert (transformation(side).tag, transformation(side).input) == (TAG, transformation(process))
    assert side.get_type() == Types.INT()
    with pytest.raises(InvalidProgramError, match="no side outputs"):
        pairs.rebalance().get_side_output(TAG)


@pytest.mark.parametrize(
    "virtual", [lambda s: s.process(Process()).get_side_output(TAG), lambda s: s.partition_custom(operator.mod, len)]
)
def test_what_pyflink_makes_an_operator_becomes_one_when_it_is_set(pairs, virtual):
    stream = virtual(pairs)
    before = transformation(stream)
    stream.name("named").uid("u")
    built = transformation(stream)
    assert (built.name, built.uid, built.input) == ("named", "u", before)
    assert built.spec.function("x") == "x"


def test_timestamps_and_watermarks_are_as_parallel_as_the_input(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    built = transformation(env.from_collection([1]).rebalance().assign_timestamps_and_watermarks(strategy))
    assert (built.name, built.spec) == ("Timestamps/Watermarks", TimestampsAndWatermarksSpec(strategy))
    assert built.parallelism == 1
    assert transformation(env.from_sequence(1, 9).assign_timestamps_and_watermarks(strategy)).parallelism is None


def test_sinks(pairs):
    sink = DiscardingSink()
    built = transformation(pairs.sink_to(sink).name("nowhere").uid("s").set_parallelism(2).disable_chaining())
    assert isinstance(built, SinkTransformation)
    assert built.spec == SinkSpec(sink)
    assert (built.name, built.uid, built.parallelism, built.chaining) == ("nowhere", "s", 2, ChainingStrategy.NEVER)


def test_print(env, pairs):
    printed = transformation(pairs.print("id"))
    assert isinstance(printed.spec.sink, PrintSink)
    assert (printed.spec.sink.identifier, printed.name) == ("id", "Print to Std. Out")
    rows = env.from_collection([(1, "a")], Types.ROW([Types.INT(), Types.STRING()]))
    as_text = transformation(rows.print()).input
    assert as_text.spec.function(Row(1, "a")) == "+I[1,a]"


def test_sink_functions_are_called_with_each_record(pairs):
    class Collect(SinkFunction):
        def open(self, runtime_context):
            self.values = [runtime_context.get_task_name_with_subtasks()]

        def invoke(self, value):
            self.values.append(value)

        def close(self):
            self.values.append("closed")

    class Context:
        subtask_index = 1
        parallelism = 2

    function = Collect()
    writer = transformation(pairs.add_sink(function)).spec.sink.create_writer(Context())
    writer.write_batch([1, 2], None)
    writer.close()
    assert function.values == ["Collect (2/2)", 1, 2, "closed"]


def test_operator_settings(pairs):
    group = SlotSharingGroup.builder("heavy").set_cpu_cores(2).set_task_heap_memory_mb(100).build()
    built = transformation(
        pairs.map(str)
        .name("n")
        .uid("u")
        .set_uid_hash("0" * 32)
        .set_description("d")
        .set_max_parallelism(8)
        .set_parallelism(4)
        .set_buffer_timeout(0)
        .start_new_chain()
        .slot_sharing_group(group)
    )
    assert (built.name, built.uid, built.uid_hash, built.description) == ("n", "u", "0" * 32, "d")
    assert (built.parallelism, built.max_parallelism, built.buffer_timeout) == (4, 8, 0)
    assert built.chaining is ChainingStrategy.HEAD
    assert built.slot_sharing_group == "heavy"
    assert (built.resource_profile.cpu_cores, built.resource_profile.task_heap_memory_mb) == (2, 100)


def test_a_whole_program_becomes_a_stream_graph(env, pairs):
    late = OutputTag("late")
    windowed = pairs.key_by(Key()).window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
    counts = windowed.side_output_late_data(late).aggregate(Sum())
    counts.union(counts.get_side_output(late)).broadcast().map(str).print()
    graph = stream_graph(env)
    names = {node.id: node.name for node in graph.nodes}
    edges = {(names[e.source_id], names[e.target_id], e.partitioner.name, e.output_tag) for e in graph.edges}
    assert edges == {
        ("Source: Collection Source", "EventTimeSessionWindows", "HASH", None),
        ("EventTimeSessionWindows", "Map", "BROADCAST", None),
        ("EventTimeSessionWindows", "Map", "BROADCAST", late),
        ("Map", "Sink: Print to Std. Out", "FORWARD", None),
    }


def test_merging_windows_need_a_merging_trigger(pairs):
    sessions = pairs.key_by(Key()).window(EventTimeSessionWindows.with_gap(Time.seconds(1)))
    with pytest.raises(InvalidProgramError, match="NeverTrigger"):
        sessions.trigger(NeverTrigger())
