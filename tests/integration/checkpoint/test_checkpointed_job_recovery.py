"""Jobs that fail and go on from a checkpoint: what they give is what they give without failing."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, Types
from firesteel.common.errors import CheckpointError
from firesteel.common.time import Time
from firesteel.datastream import KeyedProcessFunction, MapFunction, ProcessWindowFunction
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.jobmaster.checkpoints.failures import CheckpointFailureReason
from firesteel.testing import ABORT, WATERMARK, At, eventually
from tests.support.jobs.running_jobs import (
    HOUR,
    Gate,
    GatedSink,
    Numbered,
    Probe,
    clock_of_today,
    environment,
    no_job_goes_on,  # noqa: F401 - a fixture
    numbered,
    pairs,
    phases,
    source,
    start,
)

ALIGNED: dict[str, str] = {}
UNALIGNED = {"execution__checkpointing__unaligned__enabled": "true"}
WITH_TIMEOUT = {**UNALIGNED, "execution__checkpointing__aligned_checkpoint_timeout": "1 ms"}
AT_LEAST_ONCE = {"execution__checkpointing__mode": "AT_LEAST_ONCE"}
every_barrier = pytest.mark.parametrize(
    "barriers", [ALIGNED, UNALIGNED, WITH_TIMEOUT], ids=["aligned", "un", "timeout"]
)
every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])


@every_barrier
@every_backend
def test_a_restart_loses_and_repeats_nothing(backend: str, barriers: dict[str, str], tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, state__backend__type=backend, **barriers)
    items = phases(clock, pairs(0, 300), [*pairs(300, 400), ABORT(), *pairs(400, 500)])
    job = start(source(env, items).key_by(lambda pair: pair[0]).process(Numbered()).uid("numbered"))
    job.runs(clock)
    assert job.results == [], "nothing is given out before a checkpoint has it"
    job.checkpoint()
    eventually(lambda: len(job.results) == 300)
    clock.advance(HOUR)
    assert Counter(job.wait()) == numbered(pairs(0, 500))
    assert job.attempt == 1
    assert job.statistics["latest"]["restored"]["id"] == 1


@pytest.mark.parametrize("rolls", [True, False], ids=["a file per checkpoint", "files that go on"])
@every_barrier
def test_files_have_every_record_once(barriers: dict[str, str], rolls: bool, tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, **barriers)
    items = phases(clock, pairs(0, 300), [*pairs(300, 400), ABORT(), *pairs(400, 500)])
    stream = source(env, items).key_by(lambda pair: pair[0]).process(Numbered()).map(str, Types.STRING())
    policy = RollingPolicy.on_checkpoint_rolling_policy() if rolls else RollingPolicy.default_rolling_policy()
    builder = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    job = start(stream, builder.with_rolling_policy(policy).build())
    job.runs(clock)
    assert lines_in(tmp_path / "out") == Counter()
    job.checkpoint()
    eventually(lambda: sum(lines_in(tmp_path / "out").values()) == (300 if rolls else 0))
    clock.advance(HOUR)
    job.wait()
    assert lines_in(tmp_path / "out") == Counter(str(each) for each in numbered(pairs(0, 500)))
    hidden = [path.name for path in (tmp_path / "out").rglob("*") if path.is_file() and path.name.startswith(".")]
    assert hidden == [], "what the failed attempt left in progress is gone"


def lines_in(directory: Path) -> Counter[str]:
    """What a reader of the sink's files sees."""
    files = [path for path in directory.rglob("*") if path.is_file() and not path.name.startswith((".", "_"))]
    return Counter(line for path in files for line in path.read_text().splitlines())


def test_a_failure_before_the_first_checkpoint_starts_over(tmp_path: Path) -> None:
    env = environment(tmp_path, 2)
    items = [*pairs(0, 100), ABORT(), *pairs(100, 200)]
    job = start(source(env, items).key_by(lambda pair: pair[0]).process(Numbered()))
    assert Counter(job.wait()) == numbered(pairs(0, 200))
    assert job.attempt == 1
    assert job.statistics["counts"]["restored"] == 0


@pytest.mark.parametrize("checkpoints_in", [{0}, {0, 1, 2}, {1}, {0, 2}])
def test_several_failures_in_a_row(checkpoints_in: set[int], tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock)
    parts = [[*pairs(100 * n, 100 * n + 60), ABORT(), *pairs(100 * n + 60, 100 * n + 100)] for n in range(1, 4)]
    job = start(source(env, phases(clock, pairs(0, 100), *parts)).key_by(lambda pair: pair[0]).process(Numbered()))
    for number in range(3):
        job.runs(clock)
        if number in checkpoints_in:
            job.checkpoint()
        clock.advance(HOUR)
        eventually(lambda n=number: job.attempt == n + 1)
    assert Counter(job.wait()) == numbered(pairs(0, 400))
    assert job.statistics["counts"]["restored"] == len([n for n in range(3) if min(checkpoints_in) <= n])


def test_at_least_once_repeats_but_loses_nothing(tmp_path: Path) -> None:
    """While one channel's barrier is far behind, what the other brings after its own counts, and will come again."""
    clock = clock_of_today()
    gate = Gate()
    env = environment(tmp_path, 2, clock, taskmanager__memory__segment_size="1 kb", **AT_LEAST_ONCE)
    env.set_buffer_timeout(0)
    behind = phases(clock, pairs(0, 3000), [], [ABORT(), *pairs(3000, 3050)])
    ahead = phases(clock, [], pairs(10_000, 10_050), [])
    stream = source(env, behind, ahead).key_by(lambda pair: pair[0]).process(Numbered()).uid("numbered")
    job = start(stream, GatedSink("results", gate)).runs(clock)
    checkpoint = job.handle.trigger_checkpoint()
    eventually(lambda: [each["num_acknowledged_subtasks"] for each in job.statistics["history"]] == [2])
    clock.advance(HOUR)
    gate.open()
    checkpoint.result(120)
    clock.advance(HOUR)
    results = Counter((key, value) for key, value, _ in job.wait())
    assert set(results) == {*pairs(0, 3050), *pairs(10_000, 10_050)}
    assert {pair for pair, count in results.items() if count > 1} == set(pairs(10_000, 10_050))
    assert job.attempt == 1


@pytest.mark.parametrize("kind", ["checkpoint", "savepoint"])
def test_at_least_once_and_two_at_once(kind: str, tmp_path: Path) -> None:
    """Nothing is held back: on one channel the barriers of both are read before the first one on the other."""
    gate = Gate()
    env = environment(
        tmp_path,
        2,
        execution__checkpointing__max_concurrent_checkpoints="2",
        taskmanager__memory__segment_size="1 kb",
        **AT_LEAST_ONCE,
    )
    stream = source(env, pairs(0, 4000), [], bounded=False).key_by(lambda pair: pair[0]).process(Numbered())
    job = start(stream, GatedSink("results", gate)).runs()
    first = job.handle.trigger_checkpoint()
    second = job.handle.trigger_checkpoint() if kind == "checkpoint" else job.handle.trigger_savepoint()
    eventually(lambda: job.statistics["counts"]["in_progress"] == 2)
    gate.open()
    assert name_unless_subsumed(first) in ("chk-1", None)
    assert Path(second.result(120)).name.startswith("chk-2" if kind == "checkpoint" else "savepoint-")
    job.checkpoint()
    eventually(lambda: Counter(job.results) == numbered(pairs(0, 4000)))
    assert job.attempt == 0
    job.cancel()


def test_two_checkpoints_at_once(tmp_path: Path) -> None:
    clock = clock_of_today()
    gate = Gate()
    env = environment(tmp_path, 2, clock, execution__checkpointing__max_concurrent_checkpoints="2")
    splits = [phases(clock, pairs(n * 1000, n * 1000 + 100), pairs(n * 1000 + 100, n * 1000 + 200)) for n in (0, 1)]
    splits[0] += [ABORT(), *pairs(200, 300)]
    job = start(source(env, *splits).key_by(lambda pair: pair[0]).process(Numbered()), GatedSink("results", gate))
    job.runs()
    first, second = job.handle.trigger_checkpoint(), job.handle.trigger_checkpoint()
    eventually(lambda: job.statistics["counts"]["in_progress"] == 2)
    third = job.handle.trigger_checkpoint()
    gate.open()
    # the third is triggered when one of the others has completed
    names = name_unless_subsumed(first), name_unless_subsumed(second)
    assert names in [("chk-1", "chk-2"), ("chk-1", None), (None, "chk-2")]
    assert Path(third.result(120)).name == "chk-3"
    clock.advance(HOUR)
    assert numbered_each(job.wait(), pairs(0, 300), pairs(1000, 1200))
    assert job.attempt == 1


def name_unless_subsumed(checkpoint: Future[str]) -> str | None:
    """The name of a checkpoint. Threads write the snapshots, so a later one may complete first and subsume it: None."""
    error = checkpoint.exception(30)
    if isinstance(error, CheckpointError):
        assert CheckpointFailureReason.CHECKPOINT_SUBSUMED.value in str(error)
        return None
    return Path(checkpoint.result()).name


def numbered_each(results: list[Any], *splits: list[tuple[str, int]]) -> bool:
    """Whether all records of the splits are there once, those of a split and key in order, and so are all numbers."""
    records = [record for split in splits for record in split]
    keys = Counter(key for key, _ in records)
    assert Counter((key, value) for key, value, _ in results) == Counter(records)
    assert Counter((key, number) for key, _, number in results) == Counter(
        (key, number) for key, count in keys.items() for number in range(count)
    )
    for split in splits:
        own = sorted((key, number, value) for key, value, number in results if (key, value) in set(split))
        assert [(key, value) for key, _, value in own] == sorted(split)
    return True


# -- what is kept -----------------------------------------------------------------------------------


class Sums(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        window = context.window()
        bounds = (window.start, window.end) if hasattr(window, "start") else ()
        yield key, bounds, sorted(value for _, value in elements)


WINDOWS: dict[str, Any] = {
    "tumbling": lambda keyed: keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(100))),
    "sliding": lambda keyed: keyed.window(SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(50))),
    "session": lambda keyed: keyed.window(EventTimeSessionWindows.with_gap(Time.milliseconds(10))),
    "count": lambda keyed: keyed.count_window(7),
    "sliding count": lambda keyed: keyed.count_window(7, 3),
}


def timed(first: int, stop: int) -> list[Any]:
    """Records in event time with gaps for sessions, and a watermark now and then."""
    items: list[Any] = []
    for number in range(first, stop):
        time = number * 2 + number // 40 * 30
        items.append(At((f"k{number % 3}", number), time))
        if number % 10 == 0:
            items.append(WATERMARK(time - 5))
    return items


@every_backend
@pytest.mark.parametrize("windows", sorted(WINDOWS))
def test_windows_that_are_half_full(windows: str, backend: str, tmp_path: Path) -> None:
    def build(env: Any, items: list[Any]) -> Any:
        return WINDOWS[windows](source(env, items).key_by(lambda pair: pair[0])).process(Sums())

    whole = start(build(environment(tmp_path, 2), timed(0, 300))).wait()
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, state__backend__type=backend)
    job = start(build(env, phases(clock, timed(0, 123), [*timed(123, 150), ABORT(), *timed(150, 300)])))
    job.runs(clock).checkpoint()
    eventually(lambda: 0 < len(job.results) < len(whole))
    clock.advance(HOUR)
    assert sorted(job.wait()) == sorted(whole)
    assert job.statistics["counts"]["restored"] == 1


class Alarms(KeyedProcessFunction):
    """Says when each record's timer fires."""

    def __init__(self, *, event_time: bool):
        self.event_time = event_time

    def process_element(self, value: Any, ctx: Any) -> Any:
        service = ctx.timer_service()
        if self.event_time:
            service.register_event_time_timer(value[1])
            service.register_event_time_timer(value[1] + 1)
            service.delete_event_time_timer(value[1] + 1)
        else:
            service.register_processing_time_timer(service.current_processing_time() + 2 * HOUR + value[1])
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp


@every_backend
def test_timers_in_event_time(backend: str, tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock, state__backend__type=backend)
    first, second = [At(pair, 0) for pair in pairs(100, 200)], [At(pair, 0) for pair in pairs(200, 220)]
    items = phases(clock, [*first, WATERMARK(150)], [*second, WATERMARK(210), ABORT(), WATERMARK(400)])
    job = start(source(env, items).key_by(lambda pair: pair[0]).process(Alarms(event_time=True)))
    job.runs(clock).checkpoint()
    eventually(lambda: sorted(job.results) == sorted(pairs(100, 151)))
    clock.advance(HOUR)
    assert sorted(job.wait()) == sorted(pairs(100, 220))


@every_backend
def test_timers_in_processing_time(backend: str, tmp_path: Path) -> None:
    """A timer that comes due while the job is down fires as soon as it is up again."""
    clock = clock_of_today()
    started = clock.now
    env = environment(tmp_path, 2, clock, state__backend__type=backend)
    items = phases(clock, pairs(0, 20), [ABORT()], [], [], [])
    job = start(source(env, items).key_by(lambda pair: pair[0]).process(Alarms(event_time=False)))
    job.runs(clock).checkpoint()
    clock.advance(HOUR)
    eventually(lambda: job.attempt == 1)
    job.runs(clock)
    clock.advance_to(started + 2 * HOUR + 9)
    job.checkpoint()
    eventually(lambda: len(job.results) == 10)
    clock.advance(3 * HOUR)
    assert sorted(job.wait()) == sorted((key, started + 2 * HOUR + value) for key, value in pairs(0, 20))


def test_processing_time_windows(tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock)
    keyed = source(env, phases(clock, pairs(0, 20), [ABORT(), *pairs(20, 30)], [], [])).key_by(lambda pair: pair[0])
    windowed = keyed.window(TumblingProcessingTimeWindows.of(Time.milliseconds(24 * HOUR), Time.milliseconds(1)))
    job = start(windowed.process(Sums()))
    job.runs(clock).checkpoint()
    clock.advance(HOUR)
    eventually(lambda: job.attempt == 1)
    job.runs(clock)
    clock.advance(24 * HOUR)
    values = Counter(value for _, _, elements in job.wait() for value in elements)
    assert values == Counter(range(30))


class Remembering(MapFunction):
    """Keeps all it has seen in a list, which is even-split or union."""

    def __init__(self, probe: Probe, *, union: bool):
        self.probe = probe
        self.union = union

    def open(self, runtime_context: Any) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        descriptor = ListStateDescriptor("seen", Types.LONG())
        self.state = store.get_union_list_state(descriptor) if self.union else store.get_list_state(descriptor)
        self.seen = list(self.state.get())
        if context.is_restored():
            self.probe.add(list(self.seen))

    def snapshot_state(self, context: Any) -> None:
        self.state.update(self.seen)

    def map(self, value: int) -> int:
        self.seen.append(value)
        return value


@pytest.mark.parametrize("union", [False, True], ids=["even-split", "union"])
def test_operator_list_state(union: bool, tmp_path: Path) -> None:
    clock = clock_of_today()
    env = environment(tmp_path, 2, clock)
    probe = Probe()
    splits = [phases(clock, range(50), [ABORT(), *range(50, 100)]), phases(clock, range(100, 150), range(150, 200))]
    job = start(source(env, *splits).map(Remembering(probe, union=union)).uid("remembering"))
    job.runs(clock).checkpoint()
    clock.advance(HOUR)
    assert sorted(job.wait()) == list(range(200))
    first, second = list(range(50)), list(range(100, 150))
    restored = sorted(sorted(each) for each in probe.values)
    assert restored == ([sorted(first + second)] * 2 if union else [first, second])


class Stumbling(KeyedProcessFunction):
    """Fails where a test says, once, with state and timers under way."""

    def __init__(self, probe: Probe):
        self.probe = probe

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.total.update((self.total.value() or 0) + value[1])
        if value[1] == 350 and not self.probe.values:
            self.probe.add("failed")
            raise ValueError("once")
        yield value[0], self.total.value()


@every_barrier
def test_periodic_checkpoints_and_a_function_that_raises(barriers: dict[str, str], tmp_path: Path) -> None:
    env = environment(tmp_path, 2, execution__checkpointing__interval="10 ms", **barriers)
    job = start(source(env, pairs(0, 500)).map(paced).key_by(lambda p: p[0]).process(Stumbling(Probe())))
    results = job.wait()
    assert len(results) == 500
    assert {key: max(total for k, total in results if k == key) for key, _ in pairs(0, 5)} == {
        f"k{key}": sum(range(key, 500, 5)) for key in range(5)
    }
    assert job.attempt == 1


def paced(value: Any) -> Any:
    """Takes a millisecond for each record, so that checkpoints fall in between."""
    threading.Event().wait(0.001)
    return value
