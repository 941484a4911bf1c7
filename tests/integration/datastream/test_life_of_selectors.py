"""Key selectors and partitioners live as other functions do; counters can be read while a job runs."""

from __future__ import annotations

from typing import Any

from firesteel.common import Duration, WatermarkStrategy
from firesteel.datastream import MapFunction
from firesteel.datastream.functions import KeySelector, Partitioner
from firesteel.testing import collect, eventually, test_environment
from firesteel.testing.source import TestingSource


class Modulo(KeySelector):
    def open(self, runtime_context: Any) -> None:
        self.divisor = 2
        self.opened = runtime_context.get_metrics_group().counter("opened")
        self.opened.inc()

    def close(self) -> None:
        self.opened.inc(100)

    def get_key(self, value: int) -> int:
        return value % self.divisor


class ToFirst(Partitioner):
    def open(self, runtime_context: Any) -> None:
        self.target = 0

    def close(self) -> None:
        pass

    def partition(self, key: Any, num_partitions: int) -> int:
        return self.target


def test_a_key_selector_is_opened_and_closed_at_both_ends() -> None:
    env = test_environment()
    env.from_sequence(1, 4).key_by(Modulo()).sum().print()
    result = env.execute()
    assert result.get_accumulator_result("opened") == 202


def test_a_partitioner_is_opened() -> None:
    env = test_environment(parallelism=2)
    stream = env.from_sequence(1, 4).partition_custom(ToFirst(), lambda x: x)
    assert sorted(collect(stream.map(lambda x: x))) == [1, 2, 3, 4]


class Counting(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_metrics_group().counter("seen")

    def map(self, value: int) -> int:
        self.seen.inc()
        return value


def test_accumulators_can_be_read_while_the_job_runs() -> None:
    env = test_environment()
    source = TestingSource([1, 2, 3], bounded=False)
    env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").map(Counting()).print()
    client = env.execute_async()

    def three_are_counted() -> None:
        assert client.get_accumulators().result().get("seen") == 3

    try:
        eventually(three_are_counted, timeout=120)
    finally:
        client.cancel().result(120)


def test_a_group_of_sources_ends_although_one_is_far_ahead() -> None:
    env = test_environment()
    strategy = (
        WatermarkStrategy.for_monotonous_timestamps()
        .with_timestamp_assigner(lambda value: value)
        .with_watermark_alignment("group", Duration.of_millis(5), Duration.of_millis(10))
    )
    ahead = env.from_source(TestingSource([1, 10_000, 20_000]), strategy, "ahead")
    behind = env.from_source(TestingSource([1, 2, 3]), strategy, "behind")
    assert sorted(collect(ahead.union(behind))) == [1, 1, 2, 3, 10_000, 20_000]
