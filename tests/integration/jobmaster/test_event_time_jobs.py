"""Event time of whole jobs: idle, finished and restored inputs never lose records nor stop the windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Duration, Encoder, WatermarkStrategy
from firesteel.common.watermark_strategy import WatermarkGenerator
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.datastream import CoProcessFunction, DataStream, KeyedProcessFunction
from firesteel.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import ABORT, PAUSE, FakeClock, TestingSource, eventually
from firesteel.testing.source import TestingSplit
from tests.support.jobs.running_jobs import (
    HOUR,
    Gate,
    GatedSink,
    RunningJob,
    clock_of_today,
    environment,
    no_job_goes_on,  # noqa: F401 - a fixture
    phases,
    start,
)
from tests.support.visible_files import visible_lines

EPOCHS = {"execution__exchange": "spark", "execution__epoch__trigger": "continuous"}
NO_CHECKPOINTS = {"execution__checkpointing__interval": ""}
UNALIGNED = {"execution__checkpointing__unaligned__enabled": "true"}
EXECUTIONS = {"pipelined": NO_CHECKPOINTS, "checkpoints": {}, "unaligned": UNALIGNED, "epochs": EPOCHS}
every_execution = pytest.mark.parametrize("settings", EXECUTIONS.values(), ids=EXECUTIONS)
live_executions = pytest.mark.parametrize("settings", [NO_CHECKPOINTS, EPOCHS], ids=["pipelined", "epochs"])
IDLE_MS = 1000


def times(idle_ms: int | None = IDLE_MS) -> WatermarkStrategy:
    """Records that are their own timestamps."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value: value)
    return strategy if idle_ms is None else strategy.with_idleness(Duration.of_millis(idle_ms))


def last_of_each_second(stream: DataStream) -> DataStream:
    return stream.key_by(lambda _: 0).window(TumblingEventTimeWindows.of(1000)).reduce(max)


class Timers(KeyedProcessFunction):
    """An event-time timer a little after each record."""

    def process_element(self, value: int, ctx: Any) -> Iterator[int]:
        ctx.timer_service().register_event_time_timer(value + 10)
        return iter(())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[int]:
        yield timestamp


def passes(clock: FakeClock, milliseconds: int) -> None:
    """Time passes in steps in which watermarks are sent."""
    for _ in range(milliseconds // 100):
        clock.advance(100)


def comes_to(job: RunningJob, expected: list[Any]) -> None:
    def check() -> None:
        assert sorted(job.results) == expected

    eventually(check)


# -- sources that fall silent -------------------------------------------------------------------------


@live_executions
def test_the_first_watermark_after_a_pause_counts(settings: dict[str, str], tmp_path: Path) -> None:
    clock = FakeClock()
    env = environment(tmp_path, 1, clock, **settings)
    source = TestingSource([500, PAUSE(2500), 5000], bounded=False)
    job = start(last_of_each_second(env.from_source(source, times(), "numbers")))
    passes(clock, 2400)
    assert job.results == []
    passes(clock, 400)
    comes_to(job, [500])
    job.cancel()


AT_THE_SOURCE = "at the source"
IN_THE_MIDDLE = "in the middle"


@pytest.mark.parametrize("place", [AT_THE_SOURCE, IN_THE_MIDDLE])
@every_execution
def test_windows_that_are_open_when_an_idle_source_ends(settings: dict[str, str], place: str, tmp_path: Path) -> None:
    clock = FakeClock()
    env = environment(tmp_path, 1, clock, **settings)
    source = TestingSource([500, 1500, PAUSE(2500)])
    if place == AT_THE_SOURCE:
        stream = env.from_source(source, times(), "numbers")
    else:
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        stream = stream.map(lambda value: value).assign_timestamps_and_watermarks(times())
    job = start(last_of_each_second(stream))
    passes(clock, 2500)
    assert job.wait() == [500, 1500]


@every_execution
def test_two_subtasks_that_end_while_they_are_idle(settings: dict[str, str], tmp_path: Path) -> None:
    clock = FakeClock()
    env = environment(tmp_path, 2, clock, **settings)
    source = TestingSource.with_splits([500, 1400, PAUSE(2500)], [600, PAUSE(3500)])
    job = start(last_of_each_second(env.from_source(source, times(), "numbers")))
    passes(clock, 3500)
    assert job.wait() == [600, 1400]


@every_execution
def test_timers_that_are_set_when_an_idle_source_ends(settings: dict[str, str], tmp_path: Path) -> None:
    clock = FakeClock()
    env = environment(tmp_path, 1, clock, **settings)
    source = TestingSource([500, 1500, PAUSE(2500)])
    job = start(env.from_source(source, times(), "numbers").key_by(lambda _: 0).process(Timers()))
    passes(clock, 2500)
    assert job.wait() == [510, 1510]


@pytest.mark.parametrize("settings", [{}, UNALIGNED, EPOCHS], ids=["aligned", "unaligned", "epochs"])
def test_a_job_that_is_stopped_and_drained_while_its_source_is_idle(settings: dict[str, str], tmp_path: Path) -> None:
    clock = FakeClock()
    env = environment(tmp_path, 1, clock, **settings)
    source = TestingSource([500, 1500], bounded=False)
    stream = last_of_each_second(env.from_source(source, times(), "numbers")).map(str)
    sink = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build()
    job = start(stream, sink)
    passes(clock, 2500)
    job.stop(drain=True)
    assert sorted(visible_lines(tmp_path / "out")) == ["1500", "500"]


class EveryRecord(WatermarkGenerator):
    """A watermark with each record, none in between."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


@live_executions
def test_a_punctuated_generator_after_a_pause(settings: dict[str, str], tmp_path: Path) -> None:
    clock = FakeClock()
    env = environment(tmp_path, 1, clock, **settings)
    strategy = WatermarkStrategy.for_generator(EveryRecord).with_timestamp_assigner(lambda value: value)
    strategy = strategy.with_idleness(Duration.of_millis(300))
    source = TestingSource([500, PAUSE(1500), 5000, 6000, 7000, 8000], bounded=False)
    job = start(last_of_each_second(env.from_source(source, strategy, "numbers")))
    passes(clock, 2000)
    comes_to(job, [500, 5000, 6000, 7000])
    job.cancel()


# -- subtasks without splits --------------------------------------------------------------------------


class SilentEnumerator(OwnedSplitEnumerator[TestingSplit]):
    """Does not say to a reader without splits that there are no more, as that of a Kafka topic does not."""

    def handle_split_request(self, subtask: int, host: str | None) -> None:
        for split in self._pending.pop(subtask, ()):
            self._context.assign_split(split, subtask)


class Partitions(TestingSource):
    """One split, perhaps more later."""

    def create_enumerator(self, context: Any) -> SilentEnumerator:
        return SilentEnumerator(context, [TestingSplit("0")])

    def restore_enumerator(self, context: Any, state: Any) -> SilentEnumerator:
        return SilentEnumerator(context, state)


@live_executions
def test_more_readers_than_partitions(settings: dict[str, str], tmp_path: Path) -> None:
    clock = FakeClock()
    env = environment(tmp_path, 3, clock, **settings)
    items = [item for second in range(10) for item in (second * 1000, PAUSE(500))]
    job = start(last_of_each_second(env.from_source(Partitions(items, bounded=False), times(), "numbers")))
    passes(clock, 5500)
    comes_to(job, list(range(0, 9000, 1000)))
    job.cancel()


@live_executions
def test_files_that_are_read_within_an_interval(settings: dict[str, str], tmp_path: Path) -> None:
    """Each file is a split, which has ended before a periodic watermark could be sent."""
    clock = FakeClock()
    env = environment(tmp_path, 2, clock, **settings)
    landing = tmp_path / "landing"
    landing.mkdir()
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(landing))
    source = files.monitor_continuously(Duration.of_millis(20)).build()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda line: int(line))
    strategy = strategy.with_idleness(Duration.of_millis(IDLE_MS))
    job = start(last_of_each_second(env.from_source(source, strategy, "landing").map(int)))
    for number in range(5):
        hidden = landing / f".{number}"
        hidden.write_text("".join(f"{number * 1000 + each}\n" for each in (1, 2)))
        hidden.rename(landing / f"{number}.txt")

        def fired(count: int = number) -> None:
            passes(clock, 100)
            assert sorted(job.results) == [second * 1000 + 2 for second in range(count)]

        eventually(fired)
    job.cancel()


# -- inputs that have finished ------------------------------------------------------------------------


@live_executions
def test_a_finished_and_an_idle_input(settings: dict[str, str], tmp_path: Path) -> None:
    """Event time does not end before all inputs have: what comes after the pause is not late."""
    clock = FakeClock()
    env = environment(tmp_path, 1, clock, **settings)
    bounded = env.from_source(TestingSource([100]), times(), "bounded")
    items = [500, PAUSE(2500), 1500, 5000, PAUSE(300), 5100, 9000]
    endless = env.from_source(TestingSource(items, bounded=False), times(), "endless")
    job = start(last_of_each_second(bounded.union(endless)))
    passes(clock, 5000)
    comes_to(job, [500, 1500, 5100])
    job.cancel()


@live_executions
def test_readers_without_splits_that_end_beside_an_idle_one(settings: dict[str, str], tmp_path: Path) -> None:
    clock = FakeClock()
    env = environment(tmp_path, 2, clock, **settings)
    source = TestingSource([500, PAUSE(2500), 1500, 3000], bounded=False)
    job = start(last_of_each_second(env.from_source(source, times(), "numbers")))
    passes(clock, 5000)
    comes_to(job, [500, 1500])
    job.cancel()


@every_execution
def test_inputs_that_end_one_after_the_other_while_idle(settings: dict[str, str], tmp_path: Path) -> None:
    clock = FakeClock()
    env = environment(tmp_path, 2, clock, **settings)
    first = env.from_source(TestingSource([100, PAUSE(2500), 1200]), times(), "first")
    second = env.from_source(TestingSource([500, 1500, PAUSE(5000), 1600]), times(), "second")
    job = start(last_of_each_second(first.union(second)))
    passes(clock, 5000)
    assert job.wait() == [500, 1600]


# -- restored jobs ------------------------------------------------------------------------------------


def seconds(values: list[int]) -> list[Any]:
    """What ``counted`` gives: key, second and number of records."""
    return sorted((*window, count) for window, count in Counter((each % 3, each // 1000) for each in values).items())


def counted(stream: DataStream) -> DataStream:
    """How many records each second of each key has."""
    ones = stream.map(lambda value: (value % 3, value // 1000, 1)).key_by(lambda one: one[0])
    windows = ones.window(TumblingEventTimeWindows.of(1000))
    return windows.reduce(lambda a, b: (*a[:2], a[2] + b[2])).uid("windows")


NEAR, FAR = list(range(0, 8000, 7)), list(range(20_000, 28_000, 7))
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(50)).with_timestamp_assigner(lambda v: v)
BACKENDS = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])


def assigned(env: Any, clock_parts: tuple[list[Any], list[Any]]) -> DataStream:
    """The most usual shape: a source without watermarks, a map, watermarks, windows."""
    source = TestingSource.with_splits(*clock_parts)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    mapped = numbers.map(lambda value: value).uid("mapped").assign_timestamps_and_watermarks(STRATEGY).uid("times")
    return counted(mapped)


def halves(clock: FakeClock, values: list[int], *, fails: bool = False) -> list[Any]:
    """The second half comes an hour later and takes a second, so that watermarks are sent in between."""
    middle = len(values) // 2
    rest = [item for start in range(middle, len(values), 150) for item in (*values[start : start + 150], PAUSE(200))]
    return phases(clock, values[:middle], [*([ABORT()] if fails else []), *rest])


@BACKENDS
@pytest.mark.parametrize("settings", [{}, UNALIGNED, EPOCHS], ids=["aligned", "unaligned", "epochs"])
@pytest.mark.parametrize("failing", [0, 1])
def test_no_record_is_late_after_a_restart_that_was_not_before(
    settings: dict[str, str], failing: int, backend: str, tmp_path: Path
) -> None:
    """The event time of one subtask is far ahead of the other's."""
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, state__backend__type=backend, **settings)
    job = start(assigned(env, tuple(halves(clock, each, fails=i == failing) for i, each in enumerate((NEAR, FAR)))))
    passes(clock, 400)
    if settings is not EPOCHS:
        job.checkpoint()
    clock.advance(HOUR)
    eventually(lambda: job.attempt == 1)
    job.runs(clock)
    passes(clock, 1500)
    assert sorted(job.wait()) == seconds(NEAR + FAR)
    assert job.attempt == 1


@BACKENDS
@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("settings", [{}, EPOCHS], ids=["pipelined", "epochs"])
def test_no_record_is_late_at_another_parallelism(
    settings: dict[str, str], parallelism: int, backend: str, tmp_path: Path
) -> None:
    """One subtask is two seconds ahead when the job is stopped; afterwards a subtask may read both splits.

    Each record is in its window, once: of the job that was stopped or of the one that goes on.
    """
    clock = clock_of_today()
    even, odd = list(range(0, 8000, 8)), list(range(4, 8000, 8))
    behind = [item for start in range(250, 500, 50) for item in (*odd[start : start + 50], PAUSE(200))]
    parts = (phases(clock, odd[:250], behind, odd[500:]), phases(clock, even[:500], [], even[500:]))
    results: list[Any] = []
    savepoint = ""
    for number in (2, parallelism):
        recovery = {"execution__state_recovery__path": savepoint} if savepoint else {}
        env = environment(tmp_path, number, clock, state__backend__type=backend, **recovery, **settings)
        job = start(assigned(env, parts))
        passes(clock, 400)
        if not savepoint:
            savepoint = job.stop()
        else:
            clock.advance(HOUR)
            passes(clock, 1500)
            clock.advance(HOUR)
        results += job.wait()
    assert sorted(results) == seconds(even + odd)


@pytest.mark.parametrize("settings", [UNALIGNED, {}], ids=["unaligned", "aligned"])
@pytest.mark.parametrize("hops", [1, 2])
def test_a_status_that_was_in_flight_does_not_stop_event_time(
    settings: dict[str, str], hops: int, tmp_path: Path
) -> None:
    """The idle status waits before a task that is held back, or before the one after a task that has seen it."""
    clock = clock_of_today()
    gate = Gate(is_open=not settings)
    env = environment(tmp_path, 2, clock, **settings)
    later = [item for second in range(1, 20) for item in (second * 1000, PAUSE(100))]
    items = phases(clock, list(range(100)), [ABORT(), *later])
    stream = env.from_source(TestingSource.with_splits(items, items, bounded=False), times(), "numbers")
    for _ in range(hops):
        stream = stream.rebalance().map(lambda value: value)
    stream.sink_to(GatedSink("held", gate))
    job = start(last_of_each_second(stream)).runs(clock)
    passes(clock, 2 * IDLE_MS)
    job.handle.trigger_checkpoint().result(60)
    gate.open()
    clock.advance(HOUR)
    eventually(lambda: job.attempt == 1)
    job.runs(clock)
    passes(clock, 3000)
    job.checkpoint()
    comes_to(job, [99, *range(1000, 19_000, 1000)])
    job.cancel()


class Late(CoProcessFunction):
    """Tells which records are late."""

    def process_element1(self, value: int, ctx: Any) -> Iterator[tuple[int, bool]]:
        yield value, value <= ctx.timer_service().current_watermark()

    process_element2 = process_element1


BACK_BEHIND = [40, PAUSE(2000), 60, PAUSE(900), 150], [100, *(PAUSE(600), 101) * 3, PAUSE(600), 300, PAUSE(600), 301]
"""Only the first record after the pause is late: then the stream holds back event time until it has caught up."""
BOTH_SILENT = [40, PAUSE(500), 41, PAUSE(2500), 50], [100]
"""The one ahead first."""


@pytest.mark.parametrize(
    ("lists", "late"), [(BACK_BEHIND, [60]), (BOTH_SILENT, [])], ids=["back behind", "both silent"]
)
def test_connected_streams_wait_for_each_other(lists: Any, late: list[int], tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 1, clock, **NO_CHECKPOINTS)
    first, second = (env.from_source(TestingSource(items, bounded=False), times(), "numbers") for items in lists)
    job = start(first.connect(second).process(Late())).runs(clock)
    passes(clock, 6000)
    records = [item for items in lists for item in items if isinstance(item, int)]
    eventually(lambda: len(job.results) == len(records))
    job.cancel()
    assert [value for value, is_late in job.results if is_late] == late
