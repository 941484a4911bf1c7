"""Event time over real partitions: one that is silent, and one that is far ahead."""

from __future__ import annotations

import pytest

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import eventually
from tests.support.jobs.running_jobs import environment, no_job_goes_on, start  # noqa: F401 - a fixture
from tests.support.services.kafka_topics import builder, fresh_topic, produce

CHECKPOINTS = {"execution__checkpointing__interval": "20 ms", "pipeline__auto_watermark_interval": "10 ms"}


def seconds(kafka, topic, partition, *times):
    for second in times:
        produce(kafka, topic, [f"{partition}:{second}"], partition=partition, timestamp=1000 * (second + 1))


def windows(env, kafka, topic, strategy):
    stream = env.from_source(builder(kafka, topic).build(), strategy, "kafka")
    return stream.key_by(lambda _: 0).window(TumblingEventTimeWindows.of(Time.seconds(10))).reduce(lambda a, b: a + b)


def has(job, *expected):
    assert sorted(job.results) == sorted(expected)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_silent_partition_does_not_hold_back_the_others(kafka, tmp_path, parallelism):
    topic = fresh_topic(kafka, 2)
    seconds(kafka, topic, 0, 1, 2, 30)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(600))
    job = start(windows(environment(tmp_path, parallelism, **CHECKPOINTS), kafka, topic, strategy))

    def goes_on():
        seconds(kafka, topic, 0, 31)  # all partitions silent at once would say nothing about the time
        has(job, "0:10:2")

    eventually(goes_on)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_partition_that_is_far_ahead_waits_for_the_others(kafka, tmp_path, parallelism):
    topic = fresh_topic(kafka, 2)
    seconds(kafka, topic, 0, 1)
    seconds(kafka, topic, 1, 1, 60)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "group", Duration.of_seconds(10), Duration.of_millis(20)
    )
    env = environment(tmp_path, parallelism, **CHECKPOINTS)
    job = start(env.from_source(builder(kafka, topic).build(), strategy, "kafka"))
    eventually(lambda: has(job, "0:1", "1:1", "1:60"))  # the last one is how it is known to be ahead
    eventually(lambda: is_held_back(job))

    seconds(kafka, topic, 1, 61)
    seconds(kafka, topic, 0, 5)

    eventually(lambda: has(job, "0:1", "1:1", "1:60", "0:5"))
    seconds(kafka, topic, 0, 400)
    eventually(lambda: has(job, "0:1", "1:1", "1:60", "0:5", "0:400", "1:61"))


def is_held_back(job):
    assert any(metrics.get("pausedSplits") for metrics in job.handle.metrics().values())
