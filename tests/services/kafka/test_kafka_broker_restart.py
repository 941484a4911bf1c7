"""A broker that is killed and comes back, under jobs that read from it and write to it: they wait, and lose nothing."""

from __future__ import annotations

import pytest

from firesteel.common import Types, WatermarkStrategy
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.testing import PAUSE, TestingSource, eventually
from firesteel.testing.services.kafka_broker import KafkaBroker
from tests.support.jobs.running_jobs import environment, no_job_goes_on, start  # noqa: F401 - a fixture
from tests.support.services.kafka_sink_jobs import is_unblocked, numbers, sink_builder
from tests.support.services.kafka_topics import builder, committed, fresh_topic, produce, stream_of, values

DEADLINE_S = 120.0


@pytest.fixture
def own_broker(kafka):
    """One that nobody else needs."""
    with KafkaBroker() as broker:
        yield broker


def start_reading(kafka, directory):
    topic = fresh_topic(kafka, 2)
    produce(kafka, topic, values(100), partitions=2)
    source = builder(kafka, topic).set_group_id(topic).set_property("partition.discovery.interval.ms", 100).build()
    env = environment(directory, 2, execution__checkpointing__interval="20 ms")
    return topic, start(stream_of(env, source))


def start_writing(kafka, directory):
    """Numbers with pauses, in which there are checkpoints, to a topic exactly once and to another at least once."""
    exactly_once, at_least_once = fresh_topic(kafka), fresh_topic(kafka)
    env = environment(
        directory,
        execution__checkpointing__interval="10 ms",
        execution__checkpointing__tolerable_failed_checkpoints="1000000",
        # however long the broker is away
        restart_strategy__fixed_delay__attempts="1000000",
        restart_strategy__fixed_delay__delay="50 ms",
    )
    items = [item for number in range(100) for item in (number, PAUSE(8))]
    stream = env.from_source(TestingSource(items), WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    texts = stream.map(str, Types.STRING())
    for topic, guarantee in (
        (exactly_once, DeliveryGuarantee.EXACTLY_ONCE),
        (at_least_once, DeliveryGuarantee.AT_LEAST_ONCE),
    ):
        texts.sink_to(sink_builder(kafka, topic, guarantee).set_transactional_id_prefix(topic).build()).uid(topic)
    return exactly_once, at_least_once, env.execute_async()


def test_a_broker_that_is_killed_is_waited_for(own_broker, tmp_path):
    """By a source and by sinks in one test: it takes a broker of its own."""
    kafka = own_broker
    topic, reading = start_reading(kafka, tmp_path / "reading")
    eventually(lambda: sorted(reading.results) == sorted(values(100)), DEADLINE_S)
    exactly_once, at_least_once, writing = start_writing(kafka, tmp_path / "writing")
    eventually(lambda: len(numbers(kafka, exactly_once)) > 10, DEADLINE_S)

    kafka.kill()
    # what was read does not depend on the broker
    assert reading.savepoint()
    kafka.start()
    produce(kafka, topic, values(100, 100), partitions=2)

    eventually(lambda: sorted(reading.results) == sorted(values(200)), DEADLINE_S)
    assert reading.attempt == 0
    eventually(lambda: committed(kafka, topic, topic) == 100, DEADLINE_S)
    reading.cancel()
    writing.get_job_execution_result().result(DEADLINE_S)
    eventually(lambda: is_unblocked(kafka, exactly_once), DEADLINE_S)
    eventually(lambda: numbers(kafka, exactly_once) == list(range(100)), DEADLINE_S)
    assert set(numbers(kafka, at_least_once)) == set(range(100))
