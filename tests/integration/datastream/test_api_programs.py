"""Small programs through the whole API, run in this process at parallelism 2."""

import pytest

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import JobExecutionError
from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import (
    CoMapFunction,
    KeyedCoProcessFunction,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
    WindowFunction,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    TumblingEventTimeWindows,
)
from firesteel.testing.in_process import InProcessExecutor

RECORDS = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("a", 5), ("a", 7)]
SECONDS = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[1] * 1000)
ODD = OutputTag("odd", Types.INT())


class CountPerWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        window = context.window()
        return [(key, window.start, window.end, len(list(elements)))]


class CountAll(ProcessAllWindowFunction):
    def process(self, context, elements):
        return [(context.window().start, len(list(elements)))]


class WithWindowId(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.id, [value for _, value in inputs])]


class Tagged(CoMapFunction):
    def map1(self, value):
        return "first", value

    def map2(self, value):
        return None if value == 2 else ("second", value)


class SharedSum(KeyedCoProcessFunction):
    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.INT()))

    def process_element1(self, value, ctx):
        self.total.update((self.total.value() or 0) + value[1])
        yield ctx.get_current_key(), self.total.value()

    def process_element2(self, value, ctx):
        yield from self.process_element1(value, ctx)


class SplitOdd(ProcessFunction):
    def process_element(self, value, ctx):
        yield (ODD, value) if value % 2 else value


@pytest.fixture
def env():
    env = StreamExecutionEnvironment.get_execution_environment()
    env._executor = InProcessExecutor()
    return env.set_parallelism(2)


@pytest.fixture
def keyed(env):
    return env.from_collection(RECORDS).assign_timestamps_and_watermarks(SECONDS).key_by(lambda record: record[0])


def test_a_stream_of_parallelism_1_is_collected_in_order(env):
    numbers = list(range(500))
    split = env.from_collection(numbers).process(SplitOdd()).set_parallelism(1)
    with split.execute_and_collect() as results:
        assert list(results) == numbers[::2]
    split = env.from_collection(numbers).process(SplitOdd()).set_parallelism(1)
    with split.get_side_output(ODD).execute_and_collect() as results:
        assert list(results) == numbers[1::2]


def test_a_keyed_stream_is_collected_with_its_keys(env):
    keyed = env.from_collection(["a", "bb", "c"]).key_by(lambda text: len(text))
    with keyed.execute_and_collect() as rows:
        assert sorted(tuple(row) for row in rows) == [(1, "a"), (1, "c"), (2, "bb")]


def collect(stream):
    with stream.execute_and_collect() as results:
        return sorted(results)


def add(first, second):
    return first[0], first[1] + second[1]


def test_running_aggregates(env, keyed):
    assert collect(keyed.sum(1)) == [("a", 1), ("a", 4), ("a", 9), ("a", 16), ("b", 2), ("b", 6)]
    assert collect(keyed.min_by(1)) == [("a", 1)] * 4 + [("b", 2)] * 2
    assert collect(env.from_collection([1, 2, 1]).key_by(lambda x: x).sum()) == [1, 2, 2]


def test_count_windows(keyed):
    assert collect(keyed.count_window(2).reduce(add)) == [("a", 4), ("a", 12), ("b", 6)]
    assert collect(keyed.count_window(3, 1).reduce(add)) == [("a", 9), ("a", 15)]
    assert collect(keyed.window(CountTumblingWindowAssigner.of(2)).apply(WithWindowId())) == [
        ("a", 0, [1, 3]),
        ("a", 1, [5, 7]),
        ("b", 0, [2, 4]),
    ]


def test_time_windows(keyed):
    tumbling = keyed.window(TumblingEventTimeWindows.of(Time.seconds(4)))
    assert collect(tumbling.process(CountPerWindow())) == [
        ("a", 0, 4000, 2),
        ("a", 4000, 8000, 2),
        ("b", 0, 4000, 1),
        ("b", 4000, 8000, 1),
    ]
    sessions = keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(2000)))
    assert collect(sessions.process(CountPerWindow())) == [("a", 1000, 9000, 4), ("b", 2000, 6000, 2)]
    continuous = keyed.window(TumblingEventTimeWindows.of(Time.seconds(10)))
    every_three_seconds = continuous.trigger(ContinuousEventTimeTrigger.of(Time.seconds(3)))
    assert collect(every_three_seconds.process(CountPerWindow()))[:4] == [("a", 0, 10000, 4)] * 4


def test_window_all(env):
    stream = env.from_collection(RECORDS).assign_timestamps_and_watermarks(SECONDS)
    windows = stream.window_all(TumblingEventTimeWindows.of(Time.seconds(4)))
    assert collect(windows.process(CountAll())) == [(0, 3), (4000, 3)]


def test_connected_streams(env):
    first, second = env.from_collection([1, 2]), env.from_collection([2, 3])
    assert collect(first.connect(second).map(Tagged())) == [("first", 1), ("first", 2), ("second", 3)]
    left, right = env.from_collection([("a", 1)]), env.from_collection([("a", 1), ("b", 3)])
    keyed = left.connect(right).key_by(lambda x: x[0], lambda x: x[0])
    assert collect(keyed.process(SharedSum())) == [("a", 1), ("a", 2), ("b", 3)]


def test_side_outputs_and_union(env):
    split = env.from_collection([1, 2, 3, 4]).process(SplitOdd())
    odd = split.get_side_output(ODD).name("odd numbers").map(lambda x: -x)
    assert collect(odd.union(split)) == [-3, -1, 2, 4]


def test_partitioning(env):
    numbers = env.from_collection(range(6))
    assert collect(numbers.partition_custom(lambda key, n: key % n, lambda x: x).map(lambda x: x)) == list(range(6))
    assert collect(env.from_collection([1, 2]).broadcast().map(lambda x: x)) == [1, 1, 2, 2]
    assert collect(env.from_collection(RECORDS).project(1)) == [(1,), (2,), (3,), (4,), (5,), (7,)]


def test_print_and_limit(env, capsys):
    rows = env.from_collection([(1, "x")], Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()]))
    rows.map(lambda row: row.name).print("named").set_parallelism(1)
    rows.print().set_parallelism(1)
    env.execute()
    assert sorted(capsys.readouterr().out.splitlines()) == ["+I[1,x]", "named> x"]
    assert len(env.from_sequence(0, 10**9).execute_and_collect(limit=3)) == 3


def test_records_without_timestamps_fail_event_time_windows(env):
    windows = env.from_collection(RECORDS).key_by(lambda record: record[0]).window(TumblingEventTimeWindows.of(1000))
    with pytest.raises(JobExecutionError) as failed:
        collect(windows.process(CountPerWindow()))
    failure = failed.value.failure
    assert failure.operator == "TumblingEventTimeWindows"
    assert failure.defined_at.startswith(__file__)
    assert "assign_timestamps_and_watermarks" in failure.hint
