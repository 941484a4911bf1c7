"""Checkpoints and savepoints on real Spark: processes die, and state goes from Spark to a test's process and back."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.common.errors import CheckpointStorageError, CorruptStateError, JobExecutionError, StateIncompatibleError
from firesteel.datastream import KeyedProcessFunction, RuntimeContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.datastream.state import ListStateDescriptor
from firesteel.testing import eventually
from tests.support.jobs.endless import ended
from tests.support.jobs.running_jobs import (
    Numbered,
    RunningJob,
    Slow,
    metadata_of,
    no_job_goes_on,  # noqa: F401 - a fixture
    numbered,
    settings,
    start,
)
from tests.support.processes import is_alive

UNALIGNED = {"execution__checkpointing__unaligned__enabled": "true"}
DEADLINE_S = 120.0
MANY = 4000
"""So many that a job at a moderate rate does not end while a busy machine lets the test wait."""


def pair(index: int) -> tuple[str, int]:
    return f"k{index % 5}", index


def numbers(env: Any, count: int | None, per_second: float) -> Any:
    """Pairs as fast as that, on any host and from any position."""
    generator = DataGeneratorSource(pair, count, RateLimiterStrategy.per_second(per_second))
    return env.from_source(generator, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


def number_pairs(env: Any, count: int | None, per_second: float, slow: Slow | None = None) -> Any:
    """``slow`` comes right behind the source, where nothing piles up that a barrier would have to wait for."""
    pairs = numbers(env, count, per_second)
    if slow is not None:
        pairs = pairs.map(slow)
    return pairs.key_by(lambda each: each[0]).process(Numbered()).uid("numbered")


def tagged(value: Any) -> Any:
    return (*value, os.getpid())


def each_once(results: list[Any], count: int) -> bool:
    """Whether every pair is there once, and so is every number of each key."""
    assert Counter(value for _, value, *_ in results) == Counter(range(count))
    expected = numbered(pair(index) for index in range(count))
    keys = Counter((key, number) for key, _, number in expected)
    assert Counter((key, number) for key, _, number, *_ in results) == keys
    return True


@pytest.mark.parametrize(
    ("backend", "barriers"), [("hashmap", {}), ("rocksdb", UNALIGNED)], ids=["hashmap", "rocksdb, unaligned"]
)
def test_a_worker_is_killed(backend: str, barriers: dict[str, str], spark_env: Any, tmp_path: Path) -> None:
    config = settings(tmp_path, execution__checkpointing__interval="100 ms", state__backend__type=backend, **barriers)
    env = spark_env(2, config)
    # the first attempt does not end before it is killed
    numbered_pairs = number_pairs(env, 2000, 1000, Slow(0.01))
    builder = FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    sink = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    numbered_pairs.map(str, Types.STRING()).sink_to(sink).uid("files")
    job = start(numbered_pairs.map(tagged))
    eventually(lambda: len(job.results) > 100, timeout=DEADLINE_S)
    pid = job.results[-1][3]
    os.kill(pid, signal.SIGKILL)
    assert each_once(job.wait(), 2000)
    assert job.attempt == 1
    assert job.statistics["counts"]["restored"] == 1
    assert not is_alive(pid)
    lines = [line for path in (tmp_path / "out").rglob("*") if path.is_file() for line in path.read_text().splitlines()]
    assert Counter(lines) == Counter(str(tuple(each[:3])) for each in job.results)
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_from_a_test_to_spark_and_back(spark_env: Any, in_process_env: Any, tmp_path: Path) -> None:
    """The same program, the same savepoints: first here, then on Spark at another parallelism, then here again."""
    results: list[Any] = []
    path = ""
    for make, parallelism, backend in (
        (in_process_env, 2, "hashmap"),
        (spark_env, 3, "rocksdb"),
        (in_process_env, 1, "hashmap"),
    ):
        config = settings(tmp_path, state__backend__type=backend, execution__state_recovery__path=path)
        last = parallelism == 1
        env = make(parallelism, {key: value for key, value in config.items() if value})
        job = start(number_pairs(env, MANY, 100_000 if last else 200)).runs()
        if last:
            job.wait()
        else:
            awaits_records(job, 50)
            path = job.stop()
            assert job.results, "it had begun"
        results += job.results
    assert each_once(results, MANY)


def awaits_records(job: RunningJob, count: int) -> None:
    """Waits until some records more have been given out."""

    def enough() -> bool:
        job.checkpoint()
        return len(job.results) >= count

    eventually(enough, timeout=DEADLINE_S, interval=0.1)


def test_a_savepoint_while_the_job_goes_on(spark_env: Any, tmp_path: Path) -> None:
    env = spark_env(2, settings(tmp_path))
    job = start(number_pairs(env, 800, 400, Slow(0.02, until=tmp_path / "taken"))).runs()
    awaits_records(job, 20)
    path = job.savepoint(native=True)
    (tmp_path / "taken").touch()
    assert each_once(job.wait(), 800)
    restored = spark_env(1, settings(tmp_path, execution__state_recovery__path=path))
    rest = start(number_pairs(restored, 800, 100_000)).wait()
    assert 0 < len(rest) < 800
    assert len({value for _, value, _ in rest}) == len(rest)
    for key in range(5):
        own = sorted(number for name, _, number in rest if name == f"k{key}")
        assert own == list(range(160 - len(own), 160)), "it goes on counting"


def pids_of_slots(job: RunningJob) -> list[int]:
    return [slot.registration.pid for slot in job.handle._master._pool]


class Sleepy(KeyedProcessFunction):
    """Takes its time, in the first attempt: that does not end before it is killed."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.is_sleepy = runtime_context.get_attempt_number() == 0

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.is_sleepy:
            time.sleep(0.02)
        yield (*value, 0)


def test_an_unaligned_checkpoint_does_not_wait_for_a_slow_consumer(spark_env: Any, tmp_path: Path) -> None:
    config = settings(tmp_path, taskmanager__memory__segment_size="1 kb", **UNALIGNED)
    env = spark_env(2, config)
    slow = numbers(env, 2000, 1_000_000).key_by(lambda each: each[0]).process(Sleepy()).uid("slow")
    job = start(slow).runs()

    def records_are_in_flight() -> bool:
        return bool(metadata_of(job.checkpoint()).channels)

    eventually(records_are_in_flight, timeout=DEADLINE_S)
    assert job.statistics["latest"]["completed"]["persisted_data"] > 0
    os.kill(min(pids_of_slots(job)), signal.SIGKILL)
    results = job.wait()
    assert Counter(value for _, value, _ in results) == Counter(range(2000))
    for key in range(5):
        for reader in range(2):
            own = [value for name, value, _ in results if name == f"k{key}" and value % 2 == reader]
            assert own == sorted(own), "in order"
    assert job.attempt == 1


# -- what bad input gets ------------------------------------------------------------------------------------


@pytest.fixture
def savepoint(in_process_env: Any, tmp_path: Path) -> str:
    config = settings(tmp_path / "first", execution__checkpointing__data_inline_threshold="0 b")
    job = start(number_pairs(in_process_env(2, config), MANY, 200)).runs()
    awaits_records(job, 20)
    return job.stop()


def test_a_state_file_is_cut_off(savepoint: str, spark_env: Any, tmp_path: Path) -> None:
    (state,) = (each for each in metadata_of(savepoint).operators if each.uid == "numbered")
    file = Path(next(iter(state.segments())).path)
    data = file.read_bytes()
    file.write_bytes(data[:-1])
    env = spark_env(2, settings(tmp_path, execution__state_recovery__path=savepoint))
    with pytest.raises(CorruptStateError) as raised:
        start(number_pairs(env, MANY, 200))
    assert raised.value.path == str(file)
    # of the right length, but changed: only reading it shows that
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    env = spark_env(2, settings(tmp_path, execution__state_recovery__path=savepoint))
    error = start(number_pairs(env, MANY, 200)).fails()
    assert isinstance(error, JobExecutionError)
    assert error.failure.error_type == "CorruptStateError"
    assert str(file) in error.failure.message
    assert error.failure.operator == "KeyedProcess"


class Listing(KeyedProcessFunction):
    """Wants a list where there was a value."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_list_state(ListStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


def test_state_that_does_not_fit(savepoint: str, spark_env: Any, tmp_path: Path) -> None:
    env = spark_env(2, settings(tmp_path, execution__state_recovery__path=savepoint))
    keyed = numbers(env, MANY, 200).key_by(lambda each: each[0])
    job = start(keyed.process(Listing()).uid("numbered").name("Lister"))
    error = ended(job.client)
    assert isinstance(error, JobExecutionError)
    assert error.failure.error_type == "StateIncompatibleError"
    assert (error.failure.operator, error.failure.uid) == ("Lister", "numbered")
    assert "'count'" in error.failure.message
    assert job.attempt == 0
    other = spark_env(2, settings(tmp_path, execution__state_recovery__path=savepoint, pipeline__max_parallelism="64"))
    with pytest.raises(StateIncompatibleError) as raised:
        start(number_pairs(other, MANY, 200))
    assert raised.value.operator == "KeyedProcess"


def test_storage_that_is_no_good(spark_env: Any, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    with pytest.raises(CheckpointStorageError) as raised:
        start(number_pairs(spark_env(2, settings(tmp_path)), 10, 10))
    assert str(tmp_path / "checkpoints") in raised.value.message
