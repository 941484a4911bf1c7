"""What the API refuses while a program is built, and how it says so."""

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.datastream import (
    BroadcastProcessFunction,
    FilterFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    MemorySize,
    ProcessFunction,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import MapStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows


class Double(MapFunction):
    def map(self, value):
        return value * 2


class Keep(FilterFunction):
    def filter(self, value):
        return True


class Keyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class NotKeyed(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def stream(env):
    return env.from_collection([1, 2, 3]).map(str).name("to text")


@pytest.mark.parametrize("parallelism", [0, -1, 1.5, "2", True])
def test_parallelism_must_be_a_positive_number(stream, parallelism):
    with pytest.raises(InvalidProgramError) as refused:
        stream.set_parallelism(parallelism)
    assert "'to text'" in refused.value.message
    assert repr(parallelism) in refused.value.message
    assert __file__ in refused.value.message


def test_parallelism_above_max_parallelism_names_both(stream):
    stream.set_max_parallelism(4)
    with pytest.raises(InvalidProgramError, match=r"parallelism 5 of operator 'to text'.* max parallelism 4"):
        stream.set_parallelism(5)
    stream.set_parallelism(4)
    with pytest.raises(InvalidProgramError, match=r"max parallelism 3 of operator 'to text'.* parallelism 4"):
        stream.set_max_parallelism(3)


def test_parallelism_above_the_environments_max_parallelism(env, stream):
    env.set_max_parallelism(4)
    with pytest.raises(InvalidProgramError, match=r"parallelism 5 .* max parallelism 4"):
        stream.set_parallelism(5)
    with pytest.raises(InvalidProgramError, match=r"parallelism 5 of the environment .* max parallelism 4"):
        env.set_parallelism(5)
    env.set_parallelism(4)
    with pytest.raises(InvalidProgramError, match=r"parallelism 4 of the environment .* max parallelism 2"):
        env.set_max_parallelism(2)


@pytest.mark.parametrize("max_parallelism", [0, -1, 32769, "8"])
def test_max_parallelism_has_limits(env, stream, max_parallelism):
    for thing in (env, stream):
        with pytest.raises(InvalidProgramError, match="max parallelism"):
            thing.set_max_parallelism(max_parallelism)


def test_non_parallel_operators_stay_so(env):
    with pytest.raises(InvalidProgramError) as refused:
        env.from_collection([1]).set_parallelism(2)
    assert "parallelism 2" in refused.value.message
    assert refused.value.hint == "This operator cannot run in parallel."


@pytest.mark.parametrize("setting", ["name", "uid", "set_uid_hash"])
def test_names_must_be_texts(stream, setting):
    for value in ("", None, 7):
        with pytest.raises(InvalidProgramError, match="non-empty string"):
            getattr(stream, setting)(value)


SETTINGS = [
    lambda s: s.name("x"),
    lambda s: s.uid("x"),
    lambda s: s.set_uid_hash("0" * 32),
    lambda s: s.set_parallelism(2),
    lambda s: s.set_max_parallelism(2),
    lambda s: s.set_description("x"),
    lambda s: s.force_non_parallel(),
    lambda s: s.set_buffer_timeout(1),
    lambda s: s.start_new_chain(),
    lambda s: s.disable_chaining(),
    lambda s: s.slot_sharing_group("x"),
]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("virtual", [lambda s: s.key_by(str), lambda s: s.rebalance(), lambda s: s.union(s)])
def test_only_operators_have_settings(stream, virtual, setting):
    with pytest.raises(InvalidProgramError, match="not an operator"):
        setting(virtual(stream))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.map(Keep()), "map needs a MapFunction or a callable, got a Keep"),
        (lambda s: s.map(Double), r"write Double\(\)"),
        (lambda s: s.map(None), "got a NoneType"),
        (lambda s: s.flat_map(Double()), "FlatMapFunction"),
        (lambda s: s.filter(7), "FilterFunction"),
        (lambda s: s.key_by("name"), "KeySelector"),
        (lambda s: s.process(Keyed()), "call key_by first"),
        (lambda s: s.process(lambda v: v), "ProcessFunction"),
        (lambda s: s.key_by(str).process(NotKeyed()), "KeyedProcessFunction"),
        (lambda s: s.key_by(str).reduce(3), "ReduceFunction"),
        (lambda s: s.key_by(str).sum(1.5), "position"),
        (lambda s: s.key_by(str).window(Time.seconds(1)), "WindowAssigner"),
        (lambda s: s.key_by(str).window(TumblingEventTimeWindows.of(5)).trigger(5), "Trigger"),
        (lambda s: s.key_by(str).window(TumblingEventTimeWindows.of(5)).aggregate(max), "AggregateFunction"),
        (lambda s: s.key_by(str).window(TumblingEventTimeWindows.of(5)).apply(max), "WindowFunction"),
        (lambda s: s.key_by(str).window(TumblingEventTimeWindows.of(5)).reduce(max, max), "window_function"),
        (lambda s: s.window_all(TumblingEventTimeWindows.of(5)).process(NotKeyed()), "ProcessAllWindowFunction"),
        (lambda s: s.connect(s).map(max), "CoMapFunction"),
        (lambda s: s.connect(s).flat_map(max), "CoFlatMapFunction"),
        (lambda s: s.connect(s).process(max), "CoProcessFunction"),
        (lambda s: s.connect([1]), "DataStream"),
        (lambda s: s.union([1]), "DataStream"),
        (lambda s: s.sink_to(print), "Sink"),
        (lambda s: s.add_sink(print), "SinkFunction"),
        (lambda s: s.get_side_output("late"), "OutputTag"),
        (lambda s: s.assign_timestamps_and_watermarks(max), "WatermarkStrategy"),
        (lambda s: s.partition_custom(7, str), "Partitioner"),
        (lambda s: s.slot_sharing_group(7), "SlotSharingGroup"),
        (lambda s: s.broadcast("state"), "MapStateDescriptor"),
    ],
)
def test_wrong_kinds_of_arguments(stream, call, words):
    with pytest.raises(TypeError, match=words):
        call(stream)


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.set_parallelism(0),
        lambda env: env.set_buffer_timeout(-2),
        lambda env: env.enable_checkpointing(5),
        lambda env: env.from_collection([1, "x"], Types.INT()),
        lambda env: env.add_source(NotKeyed()),
        lambda env: env.from_collection([1]).set_buffer_timeout(-2),
        lambda env: env.from_collection([1]).execute_and_collect(limit=0),
        lambda env: env.from_collection([1]).key_by(str).window(TumblingEventTimeWindows.of(5)).allowed_lateness(-1),
        lambda env: SlotSharingGroup.builder("g").set_cpu_cores(1).build(),
        lambda env: SlotSharingGroup.builder("g").set_managed_memory_mb(1).build(),
        lambda env: SlotSharingGroup.builder("g").set_cpu_cores(0),
        lambda env: SlotSharingGroup.builder("").build(),
    ],
)
def test_impossible_settings(env, call):
    with pytest.raises(InvalidProgramError):
        call(env)


def test_an_element_that_does_not_fit_is_named(env):
    with pytest.raises(InvalidProgramError, match=r"Element 1 .*'x'"):
        env.from_collection([1, "x"], Types.INT())


class Ruled(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        yield value


class KeyedRuled(KeyedBroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value

    def process_broadcast_element(self, value, ctx):
        yield value


def test_a_broadcast_stream_needs_a_function_for_it(stream):
    rules = stream.broadcast(MapStateDescriptor("rules"))
    with pytest.raises(TypeError, match="BroadcastProcessFunction"):
        stream.connect(rules).process(NotKeyed())
    with pytest.raises(TypeError, match="needs a keyed stream"):
        stream.connect(rules).process(KeyedRuled())
    with pytest.raises(TypeError, match="not keyed"):
        stream.key_by(str).connect(rules).process(Ruled())


def test_a_broadcast_stream_of_another_environment(stream):
    other = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    with pytest.raises(InvalidProgramError, match="same StreamExecutionEnvironment"):
        stream.connect(other.broadcast(MapStateDescriptor("rules")))


def test_slot_sharing_groups_and_memory_sizes():
    group = (
        SlotSharingGroup.builder("g")
        .set_cpu_cores(0.5)
        .set_task_heap_memory(MemorySize(bytes_size=(64 << 20) + 1))
        .set_task_off_heap_memory_mb(2)
        .set_managed_memory_mb(3)
        .set_external_resource("gpu", 1)
        .build()
    )
    assert (group.get_name(), group.get_cpu_cores(), group.get_external_resources()) == ("g", 0.5, {"gpu": 1})
    assert group.get_task_heap_memory().get_mebi_bytes() == 64
    assert group.resource_profile().task_heap_memory_mb == 65  # never less than asked for
    assert group.get_managed_memory() == MemorySize.of_mebi_bytes(3)
    assert MemorySize.of_mebi_bytes(1) < MemorySize.of_mebi_bytes(2) <= MemorySize.of_mebi_bytes(2)
    size = MemorySize.of_mebi_bytes(3 << 20)
    assert (size.get_kibi_bytes(), size.get_gibi_bytes(), size.get_tebi_bytes()) == (3 << 30, 3 << 10, 3)
    assert SlotSharingGroup.builder("g").build().resource_profile() is None
