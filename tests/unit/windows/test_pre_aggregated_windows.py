"""Windows whose records are aggregated before the exchange: the results are those of the plain windows."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.common.time import Time
from firesteel.datastream import AggregateFunction, KeyedStream, OutputTag, StreamExecutionEnvironment
from firesteel.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.graph.job_graph_generator import create_job_graph
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.model.key_groups import key_group_of, subtask_of
from firesteel.runtime.operators.window.aligned import alignment_of
from firesteel.runtime.operators.window.local_aggregate import LocalWindowAggregateSpec
from firesteel.runtime.operators.window.partials import PartialAggregate
from firesteel.runtime.operators.window.spec import WindowSpec
from firesteel.testing import HarnessSnapshot, OneInputHarness

LATE = OutputTag("late")

Result = tuple[Any, int | None]


def add(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1]


def key_of(record: Any) -> Any:
    return record[0]


class Numbers(AggregateFunction):
    """Key and numbers of a window, in a list that it changes; merge keeps the key of the first accumulator."""

    def create_accumulator(self) -> list[Any]:
        return [None]

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator[0] = value[0]
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: list[Any]) -> Any:
        return accumulator[0], tuple(sorted(accumulator[1:]))

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_a += acc_b[1:]
        return acc_a


def plain_spec(function: Any, assigner: Any, **settings: Any) -> WindowSpec:
    kind = "aggregate" if isinstance(function, AggregateFunction) else "reduce"
    return WindowSpec(assigner, assigner.get_default_trigger(None), kind, function, **settings)


def merging_spec(function: Any, assigner: Any, **settings: Any) -> WindowSpec:
    trigger = assigner.get_default_trigger(None)
    return WindowSpec(assigner, trigger, "aggregate", PartialAggregate(function), reads_partials=True, **settings)


def local(function: Any, assigner: Any, max_keys: int = 1000) -> OneInputHarness:
    windows = alignment_of(plain_spec(function, assigner))
    assert windows is not None
    return OneInputHarness(LocalWindowAggregateSpec(function, key_of, windows, max_keys))


def tumbling(size: int, offset: int = 0) -> Any:
    return TumblingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(offset))


# -- what is sent, and when -------------------------------------------------------------------------


def feed(harness: OneInputHarness, records: Iterable[tuple[Any, int]]) -> None:
    """Processes a batch of records with their timestamps."""
    values, times = zip(*records, strict=True)
    loops = harness._loops
    if (0, True) not in loops:
        loops[0, True] = harness.open()._compile(0, True)
    loops[0, True](list(values), list(times))


def test_a_partial_result_is_sent_before_the_watermark_that_ends_its_window() -> None:
    with local(add, tumbling(10)) as harness:
        feed(harness, [(("a", 1), 3), (("b", 2), 12), (("a", 3), 9), (("a", 5), 11)])
        harness.process_watermark(8)
        assert harness.output == []
        harness.process_watermark(9)
        assert [tuple(record) for record in harness.records] == [(("a", ("a", 4)), 9)]
        harness.take_output()
        harness.process_watermark(30)
        assert sorted(harness.output) == [("a", ("a", 5)), ("b", ("b", 2))]


def test_sliding_windows_send_a_partial_result_per_slice() -> None:
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(4))
    with local(add, assigner) as harness:
        feed(harness, [(("a", 1), 8), (("a", 2), 9), (("a", 3), 10), (("a", 4), 11)])
        harness.process_watermark(8)
        assert harness.output == []
        harness.process_watermark(9)  # [0, 10) ends
        assert [tuple(record) for record in harness.records] == [(("a", ("a", 3)), 9)]
        harness.take_output()
        harness.process_watermark(13)  # [4, 14) ends
        assert [tuple(record) for record in harness.records] == [(("a", ("a", 7)), 11)]


@pytest.mark.parametrize("event", ["barrier", "idle", "end"])
def test_everything_is_sent_before(event: str) -> None:
    with local(add, tumbling(10)) as harness:
        feed(harness, [(("a", 1), 3), (("a", 2), 4)])
        if event == "barrier":
            harness.snapshot()
        elif event == "idle":
            harness._chained.process_idle(True)
        else:
            harness._chained.operator.finish()
        assert harness.output == [("a", ("a", 3))]


def test_partial_results_are_sent_when_there_are_too_many() -> None:
    with local(add, tumbling(10), max_keys=3) as harness:
        feed(harness, [(("a", 1), 1), (("a", 2), 2), (("b", 3), 3), (("a", 4), 11), (("b", 5), 4)])
        assert sorted(harness.take_output()) == [("a", ("a", 3)), ("a", ("a", 4)), ("b", ("b", 3))]
        harness.process_watermark(9)
        assert harness.output == [("b", ("b", 5))]


def test_a_flush_ends_with_the_turn() -> None:
    with local(add, tumbling(10), max_keys=50_000) as harness:
        feed(harness, [((number, 1), 1) for number in range(5000)])
        turn = harness._chained.turn
        turn.is_over = True
        assert not harness._chained.operator.fire_timers(9)
        assert 0 < len(harness.output) < 5000
        turn.is_over = False
        harness.process_watermark(9)
        assert sorted(harness.output) == [(number, (number, 1)) for number in range(5000)]


def test_records_that_may_be_late_are_sent_as_they_came() -> None:
    with local(add, tumbling(10)) as harness:
        harness.process_watermark(9)
        feed(harness, [(("a", 1), 3), (("a", 2), 12), (("a", 3), 4)])
        assert [tuple(record) for record in harness.records] == [
            (("a", None, ("a", 1)), 3),
            (("a", None, ("a", 3)), 4),
        ]


def test_after_a_pause_records_are_sent_as_they_came_until_event_time_is_known() -> None:
    with local(add, tumbling(10)) as harness:
        harness._chained.process_idle(True)
        harness._chained.process_idle(False)
        feed(harness, [(("a", 1), 3)])
        assert harness.take_output() == [("a", None, ("a", 1))]
        harness.process_watermark(2)
        feed(harness, [(("a", 2), 3)])
        assert harness.output == []


def test_keys_that_cannot_be_hashed_are_sent_as_they_came() -> None:
    with local(add, tumbling(10)) as harness:
        feed(harness, [(([1], 2), 3)])
        assert harness.output == [([1], None, ([1], 2))]


def test_a_record_without_a_timestamp_is_refused() -> None:
    with local(add, tumbling(10)) as first, OneInputHarness(merging_spec(add, tumbling(10)), [key_of]) as second:
        first.process_element(("a", 1))
        with pytest.raises(FiresteelError, match="without a timestamp"):
            second.process_element(first.output[0])


def test_a_function_that_returns_none_is_refused() -> None:
    with local(lambda one, other: None, tumbling(10)) as harness:
        with pytest.raises(InvalidProgramError, match="reduce function returned None"):
            feed(harness, [(("a", 1), 1), (("a", 2), 2)])


# -- the program ------------------------------------------------------------------------------------


def _keyed(**settings: str) -> tuple[StreamExecutionEnvironment, KeyedStream[Any, Any]]:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    return env, env.from_collection([("a", 1)]).uid("source").key_by(key_of)


@pytest.mark.parametrize("kind", ["keyed", "all"])
def test_the_local_part_is_in_the_task_of_its_input(kind: str) -> None:
    env, keyed = _keyed(**{"pipeline.auto-generate-uids": "false"})
    stream = keyed._origin_stream.map(lambda record: record).set_parallelism(3).uid("map")
    windowed: Any = stream.window_all(tumbling(10)) if kind == "all" else stream.key_by(key_of).window(tumbling(10))
    windowed.pre_aggregate(add).uid("sums").print().uid("sink")
    vertices = create_job_graph(env._generate_stream_graph("job", clear=False)).vertices
    nodes = [[(node.node.name, node.node.uid) for node in vertex.operators] for vertex in vertices[1:3]]
    assert nodes[0] == [("Map", "map"), ("LocalWindowAggregate", "sums-LocalWindowAggregate")]
    assert nodes[1][0] == ("TumblingEventTimeWindows", "sums")
    assert vertices[1].parallelism == 3
    assert kind == "keyed" or vertices[2].parallelism == 1


def test_windows_that_are_not_the_same_for_all_keys_are_refused() -> None:
    _, keyed = _keyed()
    for windowed in (
        keyed.window(EventTimeSessionWindows.with_gap(Time.seconds(1))),
        keyed.window(TumblingProcessingTimeWindows.of(Time.seconds(1))),
        keyed.window(tumbling(10)).trigger(CountTrigger.of(3)),
        keyed.count_window(3),
    ):
        with pytest.raises(InvalidProgramError, match="cannot be aggregated before the exchange"):
            windowed.pre_aggregate(add)


def test_something_else_than_a_function_is_refused() -> None:
    _, keyed = _keyed()
    with pytest.raises(TypeError, match="pre_aggregate needs a ReduceFunction or a callable"):
        keyed.window(tumbling(10)).pre_aggregate(1)  # type: ignore[arg-type]
    with pytest.raises(InvalidProgramError, match="max_keys must be"):
        keyed.window(tumbling(10)).pre_aggregate(add, max_keys=0)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_accumulators_are_those_of_the_plain_window(backend: str) -> None:
    with OneInputHarness(plain_spec(Numbers(), tumbling(10)), [key_of], backend=backend) as plain:
        plain.process_element(("a", 1), 3)
        snapshot = plain.snapshot()
    merging = OneInputHarness(merging_spec(Numbers(), tumbling(10)), [key_of], backend=backend)
    with merging.initialize_state(snapshot):
        merging.process_element(("a", ["a", 2, 3]), 9)
        snapshot = merging.snapshot(2)
    with OneInputHarness(plain_spec(Numbers(), tumbling(10)), [key_of]).initialize_state(snapshot) as plain:
        plain.process_watermark(9)
        assert plain.output == [("a", (1, 2, 3))]


# -- against the plain window -----------------------------------------------------------------------


class Windows:
    """The subtasks of a window operator, each with the watermark that its inputs agree on."""

    def __init__(self, spec: WindowSpec, count: int, backend: str, snapshot: HarnessSnapshot | None):
        self._subtasks = [
            OneInputHarness(spec, [key_of], parallelism=count, subtask=subtask, backend=backend)
            .initialize_state(snapshot)
            .open()
            for subtask in range(count)
        ]

    def process(self, element: Any, timestamp: int) -> None:
        subtask = subtask_of(key_group_of(element[0], 128), 128, len(self._subtasks))
        feed(self._subtasks[subtask], [(element, timestamp)])

    def advance(self, watermark: int) -> None:
        for harness in self._subtasks:
            harness.process_watermark(watermark)

    def stop(self) -> tuple[HarnessSnapshot, list[Result], list[Result], int]:
        """Takes a snapshot and closes; returns it, the results, what was late and how many late records there were."""
        snapshot = HarnessSnapshot.combine(*(harness.snapshot() for harness in self._subtasks))
        results = [tuple(record) for harness in self._subtasks for record in harness.records]
        late = [tuple(record) for harness in self._subtasks for record in harness.side_records(LATE)]
        count = sum(harness.counter("numLateRecords") for harness in self._subtasks)
        for harness in self._subtasks:
            harness.close()
        return snapshot, results, late, count


class Trial:
    """One stream, through plain windows and through local parts and windows that merge."""

    def __init__(self, draw: random.Random):
        self._draw = draw
        self._function: Any = draw.choice([add, Numbers()])
        size = draw.randint(1, 12)
        offset = draw.randint(0, size - 1)
        self._assigner: Any = tumbling(size, offset)
        if draw.random() < 0.6:
            slide = draw.randint(1, 14)
            shift = Time.milliseconds(draw.randint(0, slide - 1))
            self._assigner = SlidingEventTimeWindows.of(Time.milliseconds(size), Time.milliseconds(slide), shift)
        self._settings = {"allowed_lateness": draw.choice([0, 0, 3, 10]), "late_tag": draw.choice([None, LATE])}
        self._snapshots: tuple[HarnessSnapshot | None, HarnessSnapshot | None] = None, None
        self.plain: list[tuple[list[Result], list[Result], int]] = []
        self.merged: list[tuple[list[Result], list[Result], int]] = []

    def run(self) -> None:
        draw, time = self._draw, 0
        for _ in range(draw.randint(1, 3)):  # each restored from the last, at another parallelism
            inputs = draw.randint(1, 3)
            backend = draw.choice(["hashmap", "hashmap", "rocksdb"])
            count, max_keys = draw.randint(1, 3), draw.choice([1, 3, 1000])
            plain_windows = plain_spec(self._function, self._assigner, **self._settings)
            plain = Windows(plain_windows, 1, "hashmap", self._snapshots[0])
            merging_windows = merging_spec(self._function, self._assigner, **self._settings)
            merging = Windows(merging_windows, count, backend, self._snapshots[1])
            locals_ = [local(self._function, self._assigner, max_keys) for _ in range(inputs)]
            watermarks = [MIN_TIMESTAMP] * inputs
            for number in range(draw.randint(0, 60)):
                source = draw.randrange(inputs)
                if draw.random() < 0.2:
                    watermarks[source] = max(watermarks[source], time - draw.randint(0, 8))
                    locals_[source].process_watermark(watermarks[source])
                    self._exchange(locals_[source], merging)
                    for windows in (plain, merging):
                        windows.advance(min(watermarks))
                    continue
                records = []
                for _ in range(draw.randint(1, 4)):
                    time += draw.choice([0, 0, 1, 1, 2, 6])
                    record = f"key {min(draw.randint(0, 5), 2)}", number
                    records.append((record, max(0, time - draw.choice([0, 0, 1, 3, 15]))))
                feed(locals_[source], records)
                for record, timestamp in records:
                    plain.process(record, timestamp)
                self._exchange(locals_[source], merging)
            for harness in locals_:
                harness.snapshot()
                self._exchange(harness, merging)
                harness.close()
            first, *plain_results = plain.stop()
            second, *merged_results = merging.stop()
            self._snapshots = first, second
            self.plain.append(tuple(plain_results))  # type: ignore[arg-type]
            self.merged.append(tuple(merged_results))  # type: ignore[arg-type]

    def _exchange(self, source: OneInputHarness, merging: Windows) -> None:
        for element, timestamp in source.records:
            assert timestamp is not None
            merging.process(element, timestamp)
        source.take_output()


@pytest.mark.parametrize("_number", range(40))
def test_results_and_late_records_are_those_of_the_plain_window(_number: int) -> None:
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    trial = Trial(random.Random(seed))
    trial.run()
    for plain, merged in zip(trial.plain, trial.merged, strict=True):
        assert sorted(merged[0]) == sorted(plain[0])
        assert sorted(merged[1]) == sorted(plain[1])
        assert merged[2] == plain[2]
