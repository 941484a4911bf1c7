"""Unaligned checkpoints of jobs that are held back: they complete, and what was in flight arrives once and in order."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.time import Time
from firesteel.connectors.client.collect_sink import CollectWriter
from firesteel.datastream import MapFunction, Partitioner, ProcessWindowFunction
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.runtime.network.partition import ResultPartition
from firesteel.runtime.time.turns import Turn
from firesteel.spi.sink import WriterContext
from firesteel.testing import ABORT, WATERMARK, At, FakeClock, eventually
from tests.support.jobs.running_jobs import (
    HOUR,
    Gate,
    GatedSink,
    Numbered,
    Probe,
    RunningJob,
    clock_of_today,
    environment,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    phases,
    source,
    start,
)

SMALL_BUFFERS = {"taskmanager__memory__segment_size": "2 kb"}
UNALIGNED = {"execution__checkpointing__unaligned__enabled": "true", **SMALL_BUFFERS}
WITH_TIMEOUT = {**UNALIGNED, "execution__checkpointing__aligned_checkpoint_timeout": "50 ms"}
every_barrier = pytest.mark.parametrize("barriers", [UNALIGNED, WITH_TIMEOUT], ids=["unaligned", "timeout"])

KEYS = 7
RECORDS = 8000


def records(split: int, first: int, stop: int) -> list[Any]:
    return [(f"k{number % KEYS}", (split, number)) for number in range(first, stop)]


def in_order(results: list[Any]) -> bool:
    """Whether the records of each key and split came in their order, with numbers that are the key's own."""
    by_key: dict[str, list[Any]] = defaultdict(list)
    for key, value, number in results:
        by_key[key].append((number, value))
    for numbered in by_key.values():
        numbered.sort()
        assert [number for number, _ in numbered] == list(range(len(numbered))), "a number twice or not at all"
        for split in {value[0] for _, value in numbered}:
            own = [value for _, value in numbered if value[0] == split]
            assert own == sorted(own), f"out of order: {next(pair for pair in pairwise(own) if pair[0] > pair[1])}"
    return True


def splits_of(clock: Any, count: int = 2) -> list[list[Any]]:
    """Many records for each split, more later; the first one then fails the job."""
    later = [records(split, RECORDS, RECORDS + 50) for split in range(count)]
    later[0].insert(0, ABORT())
    return [phases(clock, records(split, 0, RECORDS), later[split]) for split in range(count)]


def everything(count: int = 2) -> list[Any]:
    return sorted(value for split in range(count) for _, value in records(split, 0, RECORDS + 50))


@every_barrier
@pytest.mark.parametrize("partitioning", ["keyed", "rebalanced"])
def test_a_checkpoint_completes_while_records_wait(partitioning: str, barriers: dict[str, str], tmp_path: Path) -> None:
    clock = clock_of_today()
    gate = Gate()
    env = environment(tmp_path, 2, clock, **barriers)
    stream = source(env, *splits_of(clock))
    if partitioning == "keyed":
        stream = stream.key_by(lambda pair: pair[0]).process(Numbered()).uid("slow")
    else:
        stream = stream.rebalance().map(lambda pair: pair).uid("slow")
    job = start(stream, GatedSink("results", gate)).runs(clock)
    checkpoint = job.handle.trigger_checkpoint()
    if barriers is WITH_TIMEOUT:
        eventually(lambda: job.statistics["counts"]["in_progress"] == 1)
        clock.settle()
        assert not checkpoint.done()
        clock.advance(HOUR // 2)
    metadata = metadata_of(checkpoint.result(120))
    assert metadata.channels, "records are in flight"
    assert {channel.at_producer for channel in metadata.channels} == {False, True}
    persisted = sum(channel.data.length for channel in metadata.channels)
    assert job.statistics["latest"]["completed"]["persisted_data"] == persisted > 1000
    assert job.results == []
    gate.open()
    clock.advance(HOUR)
    results = job.wait()
    assert job.attempt == 1
    assert job.statistics["counts"]["restored"] == 1
    if partitioning == "keyed":
        assert sorted(value for _, value, _ in results) == everything()
        assert in_order(results)
    else:
        assert sorted(value for _, value in results) == everything()


def end_turns_while_buffers_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the watch does if that takes long."""
    turns: dict[int, Turn] = {}
    begin, after_batch = Turn.begin, ResultPartition.after_batch

    def begin_noted(turn: Turn, now: float) -> None:
        turns[threading.get_ident()] = turn
        begin(turn, now)

    def close_and_end(partition: ResultPartition) -> None:
        after_batch(partition)
        turns[threading.get_ident()].end()

    monkeypatch.setattr(Turn, "begin", begin_noted)
    monkeypatch.setattr(ResultPartition, "after_batch", close_and_end)


@pytest.mark.parametrize("ends_turns", [False, True], ids=["", "slow"])
@pytest.mark.parametrize("at", ["source", "chained", "head"])
def test_a_batch_that_is_far_too_much_for_the_buffers_holds_up_no_checkpoint(
    at: str, ends_turns: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task whose outputs are full ends its turn: in the middle of a turn no checkpoint can be taken."""
    if ends_turns:
        end_turns_while_buffers_are_closed(monkeypatch)
    clock = clock_of_today()
    gate = Gate()
    env = environment(tmp_path, 2, clock, **UNALIGNED)
    copies = 1 if at == "source" else 10
    count = 300 if at == "chained" else 3000
    items = [(f"k{number % KEYS}", number, f"{number:01000}") for number in range(count)]
    stream = source(env, phases(clock, items, [ABORT()]))

    def several(item: Any) -> Any:
        for copy in range(copies):
            yield (*item[:2], f"{item[2]}{copy}")

    if at == "head":
        stream = stream.rebalance()
    if at != "source":
        stream = stream.flat_map(several).uid("several")
    stream = stream.key_by(lambda item: item[0]).map(lambda item: item[1])
    job = start(stream, GatedSink("results", gate)).runs(clock)
    job.handle.trigger_checkpoint().result(120)
    gate.open()
    clock.advance(HOUR)
    assert sorted(job.wait()) == [number for number in range(count) for _ in range(copies)]
    assert job.attempt == 1


def test_an_aligned_one_does_not_complete(tmp_path: Path) -> None:
    """The same job without unaligned barriers: what the others are measured against."""
    clock = clock_of_today()
    gate = Gate()
    env = environment(tmp_path, 2, clock, **SMALL_BUFFERS)
    stream = source(env, *splits_of(clock)).key_by(lambda pair: pair[0]).process(Numbered()).uid("slow")
    job = start(stream, GatedSink("results", gate)).runs(clock)
    checkpoint = job.handle.trigger_checkpoint()
    eventually(lambda: job.statistics["counts"]["in_progress"] == 1)
    clock.settle()
    assert not checkpoint.done()
    gate.open()
    assert metadata_of(checkpoint.result(120)).channels == ()
    clock.advance(HOUR)
    assert in_order(job.wait())


@pytest.mark.parametrize(("before", "after"), [(2, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("partitioning", ["keyed", "rebalanced"])
def test_what_was_in_flight_is_restored_at_another_parallelism(
    partitioning: str, before: int, after: int, tmp_path: Path
) -> None:
    """Other subtasks than before may read the splits on, and must not overtake what was in flight."""
    clock = clock_of_today()
    gate = Gate()
    splits = splits_of(clock, 3)

    def build(width: int, **overrides: str) -> RunningJob:
        env = environment(
            tmp_path,
            width,
            clock,
            execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
            **UNALIGNED,
            **overrides,
        )
        stream = source(env, *splits)
        if partitioning == "keyed":
            stream = stream.key_by(lambda pair: pair[0]).process(Numbered()).uid("slow")
        else:
            stream = stream.rebalance().map(lambda pair: pair).uid("slow")
        return start(stream, GatedSink("results", gate))

    first = build(before).runs(clock)
    path = first.handle.trigger_checkpoint().result(120)
    assert metadata_of(path).channels
    first.cancel()
    assert first.results == []
    gate.open()
    second = build(after, execution__state_recovery__path=path)
    clock.advance(HOUR)
    results = second.wait()
    if partitioning == "keyed":
        assert sorted(value for _, value, _ in results) == everything(3)
        assert in_order(results)
    else:
        assert sorted(value for _, value in results) == everything(3)


def test_what_was_restored_at_another_parallelism_is_read_before_the_next_checkpoint(tmp_path: Path) -> None:
    """Another subtask reads the long split on. In a second checkpoint its records would be in another channel than
    what was in flight before them, and nothing would keep the two in order."""
    clock = clock_of_today()
    gate = Gate()
    counts = (1, 1, RECORDS)
    splits = [phases(clock, records(split, 0, count), records(split, 0, 1)) for split, count in enumerate(counts)]

    def build(width: int, **overrides: str) -> RunningJob:
        env = environment(
            tmp_path,
            width,
            clock,
            execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
            **UNALIGNED,
            **overrides,
        )
        stream = source(env, *splits).key_by(lambda pair: pair[0]).process(Numbered()).uid("slow")
        return start(stream, GatedSink("results", gate))

    first = build(2).runs(clock)
    path = first.handle.trigger_checkpoint().result(120)
    first.cancel()
    second = build(3, execution__state_recovery__path=path).runs(clock)
    checkpoint = second.handle.trigger_checkpoint()
    eventually(lambda: second.statistics["counts"]["in_progress"] == 1)
    clock.settle()
    gate.open()
    path = checkpoint.result(120)
    second.cancel()
    third = build(3, execution__state_recovery__path=path)
    by_key: dict[str, list[Any]] = defaultdict(list)
    clock.advance(HOUR)
    for key, value, number in third.wait():
        if value[1] > 0:
            by_key[key].append((number, value))
    for numbered in by_key.values():
        assert [value for _, value in sorted(numbered)] == sorted(value for _, value in numbered)


class FirstGatedSink(GatedSink):
    """Collects; its gate is that of the first subtask."""

    def create_writer(self, context: WriterContext) -> CollectWriter:
        return CollectWriter(context, self.channel) if context.subtask_index else super().create_writer(context)


@every_barrier
@pytest.mark.parametrize("edge", ["forward", "rescale"])
def test_nothing_is_in_flight_behind_a_pointwise_edge(edge: str, barriers: dict[str, str], tmp_path: Path) -> None:
    """At another parallelism the records of a key would come through another subtask, which may be faster."""
    clock = clock_of_today()
    last = RECORDS + 100
    splits = [phases(clock, records(split, 0, RECORDS), records(split, RECORDS, last)) for split in range(3)]

    def build(width: int, probe: Probe, sink: GatedSink, **overrides: str) -> RunningJob:
        env = environment(
            tmp_path,
            width,
            clock,
            execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
            **barriers,
            **overrides,
        )
        stream = source(env, *splits).key_by(lambda pair: pair[0]).process(Numbered()).uid("numbered")
        stream = stream.rescale() if edge == "rescale" else stream.forward()
        return start(stream.map(probe.pass_on).start_new_chain().uid("behind"), sink)

    gate = Gate()
    first = build(2, Probe(), GatedSink("results", gate)).runs(clock)
    checkpoint = first.handle.trigger_checkpoint()
    eventually(lambda: first.statistics["counts"]["in_progress"] == 1 or checkpoint.done())
    clock.settle()
    clock.advance(1000)
    clock.settle()
    gate.open()
    path = checkpoint.result(120)
    first.cancel()
    gate, probe = Gate(), Probe()
    second = build(3, probe, FirstGatedSink("results", gate), execution__state_recovery__path=path)
    clock.advance(HOUR)
    probe.awaits(20)
    clock.settle()
    gate.open()
    second.wait()
    by_key: dict[str, list[int]] = defaultdict(list)
    for key, _, number in probe.values:
        by_key[key].append(number)
    assert len(by_key) == KEYS
    assert {key: numbers for key, numbers in by_key.items() if numbers != sorted(numbers)} == {}
    (numbered,) = [each.operator_id for each in metadata_of(path).operators if each.uid == "numbered"]
    assert all(channel.edge.endswith(f"->{numbered}#0") for channel in metadata_of(path).channels)


class BySubtask(MapFunction):
    """Says where a record came."""

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> Any:
        return value, self.subtask


class Turns(Partitioner):
    """Gives each record to another subtask than the one before, whatever its key."""

    def __init__(self) -> None:
        self.number = 0

    def partition(self, key: Any, num_partitions: int) -> int:
        self.number += 1
        return self.number % num_partitions


def parted_jobs(
    directory: Path, clock: FakeClock, gate: Gate, partitioner: Any, settings: dict[str, str]
) -> Callable[..., RunningJob]:
    """Starts jobs that differ in their parallelism, with records in flight behind a partitioner of the user's own."""
    items = phases(clock, range(RECORDS), [])

    def build(width: int, **overrides: str) -> RunningJob:
        env = environment(
            directory,
            width,
            clock,
            execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
            **settings,
            **overrides,
        )
        parted = source(env, items).partition_custom(partitioner, lambda number: number // 7)
        return start(parted.map(BySubtask()).uid("slow"), GatedSink("results", gate))

    return build


@every_barrier
@pytest.mark.parametrize("partitioner", [lambda key, count: key % count, Turns()], ids=["of the key", "of turns"])
def test_nothing_is_in_flight_behind_a_partitioner_of_the_users_own(
    partitioner: Any, barriers: dict[str, str], tmp_path: Path
) -> None:
    """It need not choose the same subtask for a record again: that could go to several, or to none."""
    clock = clock_of_today()
    gate = Gate()
    build = parted_jobs(tmp_path, clock, gate, partitioner, barriers)
    first = build(2).runs(clock)
    checkpoint = first.handle.trigger_checkpoint()
    eventually(lambda: first.statistics["counts"]["in_progress"] == 1 or checkpoint.done())
    clock.settle()
    clock.advance(1000)
    clock.settle()
    gate.open()
    path = checkpoint.result(120)
    assert not metadata_of(path).channels
    first.cancel()
    second = build(3, execution__state_recovery__path=path)
    clock.advance(HOUR)
    came = sorted(number for number, _ in first.results + second.wait())
    assert came == list(range(RECORDS))


def test_a_partitioner_of_the_users_own_chooses_again_if_that_is_forced(tmp_path: Path) -> None:
    clock = clock_of_today()
    gate = Gate()
    forced = {"execution__checkpointing__unaligned__forced": "true", **UNALIGNED}
    build = parted_jobs(tmp_path, clock, gate, lambda key, count: key % count, forced)
    first = build(2).runs(clock)
    path = first.handle.trigger_checkpoint().result(120)
    assert metadata_of(path).channels
    first.cancel()
    gate.open()
    second = build(3, execution__state_recovery__path=path)
    clock.advance(HOUR)
    assert sorted(second.wait()) == [(number, number // 7 % 3) for number in range(RECORDS)]


def test_several_unaligned_checkpoints_of_the_same_records(tmp_path: Path) -> None:
    """What is in flight for long is in every checkpoint, and what was restored is in flight again."""
    clock = clock_of_today()
    gate = Gate()
    env = environment(tmp_path, 2, clock, **UNALIGNED)
    splits = splits_of(clock)
    splits[0] = [*splits[0][: RECORDS + 1], ABORT(), *splits[0][RECORDS + 1 :]]
    probe = Probe()
    stream = source(env, *splits).key_by(lambda pair: pair[0]).process(Numbered()).uid("slow").map(probe.pass_on)
    job = start(stream, GatedSink("results", gate)).runs(clock)
    sizes = [metadata_of(job.handle.trigger_checkpoint().result(120)).size for _ in range(3)]
    assert sizes[0] == sizes[1] == sizes[2] > 1000
    gate.open()
    probe.awaits(100)
    gate.close()
    job.handle.trigger_checkpoint().result(120)
    gate.open()
    clock.advance(HOUR)
    assert sorted(value for _, value, _ in job.wait()) == everything()
    assert in_order(job.results)


class Values(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().start, sorted(value for _, value in elements)


def timed(first: int, stop: int) -> list[Any]:
    items: list[Any] = []
    for number in range(first, stop):
        items.append(At((f"k{number % KEYS}", number), number))
        if number % 100 == 99:
            items.append(WATERMARK(number))
    return items


def windows(stop: int, copies: int = 1) -> list[Any]:
    """What windows of 50 ms hold of the records that ``timed`` gives."""
    expected = [
        (f"k{key}", begin, [n for n in range(begin, begin + 50) if n % KEYS == key for _ in range(copies)])
        for key in range(KEYS)
        for begin in range(0, stop, 50)
    ]
    return sorted(entry for entry in expected if entry[2])


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("parallelism", [2, 3])
def test_watermarks_in_flight(parallelism: int, copies: int, tmp_path: Path) -> None:
    """Windows have the same content whether their records and watermarks were read or in flight at the checkpoint.

    A stream that is united with itself has several channels between the same two tasks, each with its own watermarks.
    """
    clock = clock_of_today()
    gate = Gate()
    items = phases(clock, timed(0, RECORDS), timed(RECORDS, RECORDS + 500))

    def build(width: int, **overrides: str) -> RunningJob:
        env = environment(
            tmp_path,
            width,
            clock,
            execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
            **UNALIGNED,
            **overrides,
        )
        stream = source(env, items)
        keyed = (stream if copies == 1 else stream.union(*[stream] * (copies - 1))).key_by(lambda pair: pair[0])
        windowed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(50))).process(Values()).uid("windows")
        return start(windowed, GatedSink("results", gate))

    first = build(2).runs(clock)
    path = first.handle.trigger_checkpoint().result(120)
    assert metadata_of(path).channels
    first.cancel()
    gate.open()
    second = build(parallelism, execution__state_recovery__path=path)
    clock.advance(HOUR)
    assert sorted(second.wait()) == windows(RECORDS + 500, copies)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_late_record_in_flight_stays_late(parallelism: int, tmp_path: Path) -> None:
    """The window had fired when the checkpoint was taken, and must not fire again for a record that came too late."""
    clock = clock_of_today()
    gate = Gate(is_open=True)
    items = phases(clock, [At(("k", 1), 1), WATERMARK(99), At(("k", -1), 2), At(("k", 100), 100)], [])

    def build(width: int, **overrides: str) -> RunningJob:
        env = environment(
            tmp_path,
            width,
            clock,
            execution__checkpointing__externalized_checkpoint_retention="RETAIN_ON_CANCELLATION",
            **UNALIGNED,
            **overrides,
        )

        def close(result: Any) -> Any:
            gate.close()
            return result

        keyed = source(env, items).set_parallelism(1).key_by(lambda pair: pair[0])
        windowed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(50))).process(Values()).uid("windows")
        return start(windowed.map(close) if gate.is_open else windowed.map(lambda result: result), sink)

    sink = GatedSink("results", gate)
    first = build(1)
    eventually(lambda: not gate.is_open)
    path = first.handle.trigger_checkpoint().result(120)
    assert metadata_of(path).channels
    first.cancel()
    second = build(parallelism, execution__state_recovery__path=path)
    gate.open()
    clock.advance(HOUR)
    assert [result for result in second.wait() if result[1] >= 0 and result[2] != [1]] == [("k", 100, [100])]
