"""Jobs with the adaptive scheduler, in this process, while slots go and come: nothing lost, nothing counted twice."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Configuration, JobStatus, Types, WatermarkStrategy
from firesteel.common.errors import FiresteelWarning, NotEnoughSlotsError
from firesteel.connectors.base.rate_limiter import RateLimiterStrategy
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.connectors.generators.datagen import DataGeneratorSource, DataGeneratorSplit
from firesteel.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import eventually
from firesteel.testing.in_process import InProcessExecutor
from tests.support.jobs.endless import collecting, ended, status

KEYS = 20
ADAPTIVE = {
    "jobmanager.scheduler": "adaptive",
    "jobmanager.adaptive-scheduler.submission.resource-wait-timeout": "300 ms",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout": "30 ms",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "30 ms",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "100 ms",
}
CHECKPOINTS = {
    "execution.checkpointing.interval": "50 ms",
    "jobmanager.adaptive-scheduler.rescale-trigger.max-delay": "20 s",
}
ONE_RESTART = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1",
    "restart-strategy.fixed-delay.delay": "5 ms",
}


class TwelveSplits(DataGeneratorSource):
    """An endless source with work for every reader, however many there were at first."""

    def create_enumerator(self, context: Any) -> Any:
        return OwnedSplitEnumerator(context, [DataGeneratorSplit(str(i), i, 12, None) for i in range(12)])


class Count(KeyedProcessFunction):
    """The how-manieth record of its key each is, and the parallelism at which it was counted."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.parallelism = runtime_context.get_number_of_parallel_subtasks()

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % KEYS, count, self.parallelism


class Job:
    """An endless job that counts, on a number of slots that can be changed."""

    def __init__(self, settings: dict[str, str], *, slots: int, parallelism: int = 4, sink_group: str | None = None):
        config = Configuration()
        for key, value in settings.items():
            config.set_string(key, value)
        env = StreamExecutionEnvironment.get_execution_environment(config).set_parallelism(parallelism)
        self.executor = env._executor = InProcessExecutor(slots=slots)
        source = TwelveSplits(lambda index: index, None, RateLimiterStrategy.per_second(3000))
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        stream: DataStream = numbers.key_by(lambda number: number % KEYS).process(Count())
        if sink_group is not None:
            stream = stream.map(lambda record: record).slot_sharing_group(sink_group)
        self.client, self.results = collecting(stream)
        self.collected: list[tuple[int, int, int]] = []

    def until_parallelism(self, parallelism: int) -> None:
        """Takes results until some were counted at that parallelism."""
        for record in self.results:
            self.collected.append(record)
            if record[2] == parallelism:
                return
        raise AssertionError(f"the job ended: {ended(self.client)}")

    def stop(self, directory: Path) -> None:
        """Ends the job with all that its sources had read, once every key has come up."""
        missing = set(range(KEYS)) - {record[0] for record in self.collected}
        while missing:
            record = next(self.results)
            self.collected.append(record)
            missing.discard(record[0])
        self.client.stop_with_savepoint(True, str(directory)).result(120)
        self.collected += self.results
        assert ended(self.client) is None

    @property
    def parallelisms(self) -> list[int]:
        """The parallelism of the results, as it changed."""
        return [parallelism for parallelism, _ in itertools.groupby(record[2] for record in self.collected)]

    def assert_exact(self) -> None:
        """For each key every count from 1 on, once each and in order."""
        counts: dict[int, list[int]] = defaultdict(list)
        for key, count, _ in self.collected:
            counts[key].append(count)
        assert set(counts) == set(range(KEYS))
        for key, of_key in counts.items():
            assert of_key == list(range(1, len(of_key) + 1)), f"key {key}"


def test_a_job_goes_on_with_fewer_slots_and_uses_more_when_they_return(tmp_path: Path) -> None:
    job = Job({**ADAPTIVE, **CHECKPOINTS, **ONE_RESTART}, slots=4)
    job.until_parallelism(4)
    job.executor.set_slots(2)
    job.until_parallelism(2)
    job.executor.set_slots(4)
    job.until_parallelism(4)
    # the one restart that the strategy allows was for the loss: to be rescaled is no failure
    job.stop(tmp_path)
    job.assert_exact()
    assert job.parallelisms == [4, 2, 4]


def test_a_job_starts_with_the_slots_there_are_and_grows_with_them(tmp_path: Path) -> None:
    job = Job({**ADAPTIVE, **CHECKPOINTS, "restart-strategy.type": "none"}, slots=1)
    job.until_parallelism(1)
    job.executor.set_slots(3)
    job.until_parallelism(3)
    job.executor.set_slots(9)
    job.until_parallelism(4)
    job.stop(tmp_path)
    job.assert_exact()
    assert job.parallelisms == [1, 3, 4]


def test_every_slot_sharing_group_gets_its_share(tmp_path: Path) -> None:
    job = Job({**ADAPTIVE, **CHECKPOINTS, "restart-strategy.type": "none"}, slots=5, sink_group="sinks")
    job.until_parallelism(2)
    job.executor.set_slots(8)
    job.until_parallelism(4)
    job.stop(tmp_path)
    job.assert_exact()


def test_without_checkpoints_a_job_does_not_grow_and_says_why(recwarn: pytest.WarningsRecorder) -> None:
    job = Job({**ADAPTIVE}, slots=2)
    job.until_parallelism(2)
    job.executor.set_slots(3)
    said = eventually(lambda: _said(recwarn), timeout=60)
    assert "2 of 4 requested slots" in said
    assert "execution.checkpointing.interval" in said
    job.executor.set_slots(4)
    for _ in range(500):
        job.collected.append(next(job.results))
    assert set(job.parallelisms) == {2}
    assert len(_told(recwarn)) == 1
    job.client.cancel().result(120)


def _said(warnings: pytest.WarningsRecorder) -> str:
    assert _told(warnings)
    return _told(warnings)[0]


def _told(warnings: pytest.WarningsRecorder) -> list[str]:
    return [str(warning.message) for warning in warnings if issubclass(warning.category, FiresteelWarning)]


def test_a_job_that_never_gets_enough_slots_says_how_many_it_needs() -> None:
    job = Job({**ADAPTIVE}, slots=1, sink_group="sinks")
    error = ended(job.client)
    assert error is not None
    cause = error.__cause__
    assert isinstance(cause, NotEnoughSlotsError)
    assert (cause.needed, cause.available) == (2, 1)
    assert "resource-wait-timeout" in (cause.hint or "")


def test_a_job_that_waits_can_be_cancelled() -> None:
    patient = {"jobmanager.adaptive-scheduler.submission.resource-wait-timeout": "1 h"}
    job = Job({**ADAPTIVE, **patient}, slots=0)
    eventually(lambda: status(job.client) is JobStatus.CREATED, timeout=60)
    job.client.cancel().result(120)
    assert status(job.client) is JobStatus.CANCELED


def test_a_job_that_is_stopped_is_not_rescaled(tmp_path: Path) -> None:
    slow = {"jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "1 h"}
    job = Job({**ADAPTIVE, **CHECKPOINTS, **slow}, slots=2)
    job.until_parallelism(2)
    job.executor.set_slots(4)
    job.stop(tmp_path)
    job.assert_exact()
    assert set(job.parallelisms) == {2}
