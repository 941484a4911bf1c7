"""Jobs of this process that a test watches and steers: checkpoints at will, gates that hold records back, probes."""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, JobStatus, Types, WatermarkStrategy
from firesteel.common.errors import FiresteelWarning
from firesteel.connectors.client.collect_sink import CollectSink, CollectWriter
from firesteel.datastream import DataStream, KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.runtime.checkpoint import storage
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.spi.sink import Sink, SinkWriter, WriterContext
from firesteel.testing import PAUSE, FakeClock, TestingSource, eventually, test_environment

__all__ = [
    "HOUR",
    "DiscardingSink",
    "Gate",
    "GatedSink",
    "Numbered",
    "Probe",
    "RunningJob",
    "Slow",
    "clock_of_today",
    "environment",
    "files_in",
    "metadata_of",
    "no_job_goes_on",
    "number_pairs",
    "numbered",
    "pairs",
    "phases",
    "settings",
    "source",
    "start",
    "warning",
]

DEADLINE_S = 120.0
HOUR = 3_600_000

# whoever makes a gate or a probe makes its entry: two threads that did so at once would not have the same one
_open_gates: dict[str, threading.Event] = defaultdict(threading.Event)
_seen: dict[str, list[Any]] = defaultdict(list)
_started: list[RunningJob] = []


@pytest.fixture(autouse=True)
def no_job_goes_on() -> Iterator[None]:
    """Ends what a test that failed has left; each test module that starts jobs imports it."""
    yield
    try:
        for job in _started:
            job.cancel()
    finally:
        _started.clear()
        _open_gates.clear()
        _seen.clear()


class Gate:
    """Closed until a test opens it; a copy that travelled with a job is the same gate, in this process."""

    def __init__(self, *, is_open: bool = False) -> None:
        self._name = uuid.uuid4().hex
        _open_gates[self._name] = threading.Event()
        if is_open:
            self.open()

    def open(self) -> None:
        """Lets everything through from now on."""
        _open_gates[self._name].set()

    def close(self) -> None:
        """Holds everything back from now on."""
        _open_gates[self._name].clear()

    @property
    def is_open(self) -> bool:
        """Whether it lets anything through."""
        return _open_gates[self._name].is_set()


class Probe:
    """Remembers what the functions of a job tell it, in this process."""

    def __init__(self) -> None:
        self._name = uuid.uuid4().hex
        _seen[self._name] = []

    def add(self, value: Any) -> None:
        """Takes note of a value."""
        _seen[self._name].append(value)

    def pass_on(self, value: Any) -> Any:
        """Takes note of a value, as a function for ``map``."""
        self.add(value)
        return value

    @property
    def values(self) -> list[Any]:
        """All that was told so far."""
        return list(_seen[self._name])

    def awaits(self, count: int) -> None:
        """Waits until that many values have been told."""

        def enough() -> None:
            assert len(_seen[self._name]) >= count, f"{len(_seen[self._name])} of {count}"

        eventually(enough, timeout=DEADLINE_S)


class GatedSink(CollectSink):
    """Collects; while its gate is closed the task it is in processes no records, so those before it pile up."""

    def __init__(self, channel: str, gate: Gate):
        super().__init__(channel)
        self.gate = gate

    def create_writer(self, context: WriterContext) -> CollectWriter:
        """A writer that has room while the gate is open."""
        return _GatedWriter(context, self.channel, self.gate)


class _GatedWriter(CollectWriter):
    def __init__(self, context: WriterContext, channel: str, gate: Gate):
        super().__init__(context, channel)
        self._gate = gate

    def has_room(self) -> bool:
        return self._gate.is_open


class DiscardingSink(Sink):
    """Takes everything, commits nothing."""

    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        """A writer that forgets."""
        return _DiscardingWriter()


class _DiscardingWriter(SinkWriter[Any]):
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        pass


class Numbered(KeyedProcessFunction):
    """Each record with the number of those of its key before it: shows every record that is lost or comes twice."""

    def open(self, runtime_context: Any) -> None:
        """Finds the count of each key."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        """The record with its number."""
        number = self.count.value() or 0
        self.count.update(number + 1)
        yield value[0], value[1], number


class Slow(MapFunction):
    """Takes its time with each record, in the first attempt or until there is a file: that much a test has, too."""

    def __init__(self, seconds: float, until: Path | None = None):
        self.seconds = seconds
        self.until = until

    def open(self, runtime_context: Any) -> None:
        """Finds out which attempt it is."""
        self.is_slow = runtime_context.get_attempt_number() == 0

    def map(self, value: Any) -> Any:
        """The record."""
        if self.is_slow:
            time.sleep(self.seconds)
            self.is_slow = self.until is None or not self.until.exists()
        return value


def pairs(first: int, stop: int, keys: int = 5) -> list[tuple[str, int]]:
    """Numbers, each with one of a few keys."""
    return [(f"k{number % keys}", number) for number in range(first, stop)]


def number_pairs(env: StreamExecutionEnvironment, items: Sequence[Any], **options: Any) -> DataStream[Any]:
    """A stream that numbers the pairs of each key."""
    return source(env, items, **options).key_by(lambda pair: pair[0]).process(Numbered()).uid("numbered")


def numbered(values: Iterable[tuple[str, int]]) -> Counter[Any]:
    """What Numbered gives for these records."""
    counts: Counter[str] = Counter()
    expected: Counter[Any] = Counter()
    for key, number in values:
        expected[key, number, counts[key]] += 1
        counts[key] += 1
    return expected


def clock_of_today() -> FakeClock:
    """A fake clock near the wall clock, by which the JobMaster dates its barriers."""
    return FakeClock(int(time.time() * 1000))


def phases(clock: FakeClock, *parts: Iterable[Any]) -> list[Any]:
    """The parts one after the other, each but the first when the clock has moved on by another hour."""
    items: list[Any] = []
    for number, part in enumerate(parts):
        if number:
            items.append(PAUSE(until=clock.now + number * HOUR))
        items += part
    return items


def settings(directory: Path, **overrides: str) -> dict[str, str]:
    """Checkpoints only when the test wants one, and quick restarts; ``a__b_c`` stands for the key ``a.b-c``."""
    return {
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.dir": str(directory / "checkpoints"),
        "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "10",
        "restart-strategy.fixed-delay.delay": "1 ms",
        **{key.replace("__", ".").replace("_", "-"): value for key, value in overrides.items()},
    }


def environment(
    directory: Path, parallelism: int = 1, clock: Any = None, executor: Any = None, **overrides: str
) -> StreamExecutionEnvironment:
    """An environment in this process with these settings; a value of "" leaves a key out."""
    configuration = Configuration()
    for key, value in settings(directory, **overrides).items():
        if value:
            configuration.set_string(key, value)
    env = test_environment(parallelism, configuration, clock)
    if executor is not None:
        env._executor = executor
    return env


def source(env: StreamExecutionEnvironment, *splits: Iterable[Any], bounded: bool = True, uid: str = "source") -> Any:
    """The records of a TestingSource."""
    testing = TestingSource.with_splits(*splits, bounded=bounded)
    return env.from_source(testing, WatermarkStrategy.no_watermarks(), uid).uid(uid)


class RunningJob:
    """A job and what it has given so far."""

    def __init__(self, client: Any, channel: str):
        self.client = client
        self.handle: Any = client._handle
        self.results: list[Any] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._collect, args=(channel,), daemon=True)
        self._thread.start()
        _started.append(self)

    def _collect(self, channel: str) -> None:
        try:
            for value in self.handle.collect_iterator(channel):
                self.results.append(value)
        except BaseException as error:
            self._error = error

    @property
    def status(self) -> JobStatus:
        """What the job is doing."""
        return self.handle.status()  # type: ignore[no-any-return]

    @property
    def attempt(self) -> int:
        """The number of the present attempt, from 0."""
        return self.handle.snapshot.attempt  # type: ignore[no-any-return]

    @property
    def statistics(self) -> Any:
        """What the coordinator tells of the checkpoints."""
        return self.handle.checkpoint_statistics()

    @property
    def completed(self) -> int:
        """How many checkpoints and savepoints have completed."""
        return self.statistics["counts"]["completed"]  # type: ignore[no-any-return]

    @property
    def tracker(self) -> Any:
        """The statistics of single checkpoints."""
        return self.handle.snapshot.checkpoints

    def runs(self, clock: FakeClock | None = None) -> RunningJob:
        """Waits until all tasks run and, if it goes by a fake clock, have done all they can for now.

        A job that has little left to do may be over before anybody has seen it run.
        """
        master = self.handle._master
        eventually(lambda: master.checkpoints.is_running or master.status.is_terminal_state(), timeout=DEADLINE_S)
        if clock is not None:
            clock.settle()
        return self

    def checkpoint(self) -> str:
        """Takes a checkpoint and waits until the tasks that waited for it are gone; its path."""
        self.runs()
        path: str = self.handle.trigger_checkpoint().result(DEADLINE_S)
        ended = {(state.operator_id, subtask) for state in metadata_of(path).operators for subtask in state.finished}
        eventually(lambda: self._are_gone(ended), timeout=DEADLINE_S)
        return path

    def _are_gone(self, tasks: set[tuple[str, int]]) -> bool:
        return all(
            subtask.current.state.is_terminal
            for vertex_id, subtasks in self.handle.snapshot.execution_graph.vertices.items()
            for index, subtask in enumerate(subtasks)
            if (vertex_id, index) in tasks
        )

    def savepoint(self, directory: Path | None = None, *, native: bool = False) -> str:
        """Takes a savepoint while the job goes on; its path."""
        self.runs()
        target = None if directory is None else str(directory)
        return self.handle.trigger_savepoint(target, native=native).result(DEADLINE_S)  # type: ignore[no-any-return]

    def stop(self, *, drain: bool = False, native: bool = False) -> str:
        """Stops the job with a savepoint; its path."""
        self.runs()
        path: str = self.handle.stop_with_savepoint(drain, None, native=native).result(DEADLINE_S)
        self.wait()
        return path

    def wait(self) -> list[Any]:
        """Waits for the end; all results. Raises what the job ended with."""
        self.client.get_job_execution_result().result(DEADLINE_S)
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the results do not end"
        if self._error is not None:
            raise self._error
        return self.results

    def fails(self) -> Any:
        """Waits for the end; the error the job ended with."""
        error = self.client.get_job_execution_result()._future.exception(DEADLINE_S)
        self._thread.join(DEADLINE_S)
        assert error is not None, "the job did not fail"
        return error

    def cancel(self) -> None:
        """Cancels the job and waits until it is over."""
        self.handle.cancel().result(DEADLINE_S)
        self._thread.join(DEADLINE_S)


def start(stream: DataStream, sink: Any = None, name: str = "job") -> RunningJob:
    """Starts a job whose results, those of the stream, are collected; or which ends in the sink."""
    channel = f"results-{uuid.uuid4().hex}"
    stream.sink_to(CollectSink(channel) if sink is None else sink).uid("sink")
    if isinstance(sink, CollectSink):
        channel = sink.channel
    return RunningJob(stream.get_execution_environment().execute_async(name), channel)


@contextmanager
def warning(match: str) -> Iterator[None]:
    """Waits for a warning of the job's own thread."""
    with pytest.warns(FiresteelWarning, match=match) as warned:  # noqa: PT031 - while it is being recorded
        yield
        eventually(lambda: any(re.search(match, str(each.message)) for each in list(warned)), timeout=DEADLINE_S)


def metadata_of(path: str) -> CheckpointMetadata:
    """What a checkpoint consists of."""
    return storage.load(path)


def files_in(directory: Path | str) -> set[str]:
    """All files beneath a directory."""
    return {f"{path}/{name}" for path, _, names in os.walk(directory) for name in names}
