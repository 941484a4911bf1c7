"""A Kafka source that fails, is rescaled, finds new partitions: nothing is lost or repeated."""

from __future__ import annotations

from collections import Counter

import pytest

from firesteel.common import Types
from firesteel.datastream import ProcessFunction
from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer
from firesteel.testing import eventually
from firesteel.testing.in_process import InProcessExecutor
from firesteel.testing.stages import FaultKind, InProcessStageRunner, TaskFault
from tests.support.jobs.running_jobs import Numbered, Probe, environment, no_job_goes_on, start  # noqa: F401 - a fixture
from tests.support.services.kafka_topics import (
    add_partitions,
    builder,
    commit,
    committed,
    fresh_topic,
    produce,
    stream_of,
    values,
)

LATEST = KafkaOffsetsInitializer.latest()


def checkpointed(directory, parallelism=1, **settings):
    """With checkpoints all the time: only they make results visible."""
    return environment(directory, parallelism, **{"execution__checkpointing__interval": "20 ms", **settings})


class FailsOnce(ProcessFunction):
    """Fails at a certain record, in the first attempt."""

    def __init__(self, at):
        self.at = at

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def process_element(self, value, ctx):
        if self.attempt == 0 and value == self.at:
            raise RuntimeError("as planned")
        yield value


def counted(stream):
    """Each value with how often it came before: a value that is read twice shows, whatever is emitted twice."""
    pairs = stream.map(lambda value: (value, 0), Types.TUPLE([Types.STRING(), Types.INT()]))
    return pairs.key_by(lambda pair: pair[0], Types.STRING()).process(Numbered())


def once(*expected):
    return {(value, 0, 0) for part in expected for value in part}


def has(job, expected):
    assert set(job.results) == expected, f"{len(set(job.results))} of {len(expected)}"


def is_assigned(job, topic):
    """Waits until partition 0 is being read."""
    metric = f"KafkaSourceReader.topic.{topic}.partition.0.currentOffset"
    eventually(lambda: metric in str(job.handle.metrics()))


@pytest.mark.parametrize("parallelism", [1, 2])
def test_after_a_failure_reading_goes_on_from_the_checkpoint(kafka, tmp_path, parallelism):
    topic = fresh_topic(kafka, 3)
    produce(kafka, topic, values(300), partitions=3)
    env = checkpointed(tmp_path, parallelism)
    job = start(counted(stream_of(env, builder(kafka, topic).build()).process(FailsOnce("v450"))))
    eventually(lambda: has(job, once(values(300))))

    produce(kafka, topic, values(300, 300), partitions=3)

    eventually(lambda: has(job, once(values(600))))
    assert job.attempt == 1


def test_rescaling(kafka, tmp_path):
    """From two readers to five, more than there are partitions, and then to one."""
    topic = fresh_topic(kafka, 4)
    seen = set()
    path = None
    for number, parallelism in enumerate([2, 5, 1]):
        produce(kafka, topic, values(200, number * 200), partitions=4)
        settings = {} if path is None else {"execution__state_recovery__path": path}
        env = checkpointed(tmp_path, parallelism, **settings)
        job = start(counted(stream_of(env, builder(kafka, topic).build())))
        eventually(lambda: has(job, once(values(200, number * 200))))
        path = job.stop()
        assert Counter(job.results) == Counter(once(values(200, number * 200)))
        seen |= set(job.results)
    assert seen == once(values(600))


def test_a_bounded_source_that_is_restored_stops_where_it_was_to_stop(kafka, tmp_path):
    topic = fresh_topic(kafka, 2)
    produce(kafka, topic, values(200), partitions=2)
    env = checkpointed(tmp_path, 2)
    stream = stream_of(env, builder(kafka, topic).set_bounded(LATEST).build()).process(FailsOnce("v150"))
    job = start(counted(stream))

    produce(kafka, topic, values(200, 200), partitions=2)

    assert set(job.wait()) <= once(values(400))
    assert set(job.results) >= once(values(150))


def test_the_first_discovery_counts_not_the_first_checkpoint(kafka, tmp_path):
    """Where the latest offset was is known from the start on: a failure before the first record does not move it."""
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(5))
    source = builder(kafka, topic).set_starting_offsets(LATEST).build()
    job = start(stream_of(checkpointed(tmp_path), source))
    is_assigned(job, topic)
    path = job.stop()

    produce(kafka, topic, values(5, 5))
    restored = checkpointed(tmp_path, execution__state_recovery__path=path)
    job = start(stream_of(restored, builder(kafka, topic).set_starting_offsets(LATEST).build()))

    eventually(lambda: job.results == values(5, 5))


# -- what the group sees ----------------------------------------------------------------------------


def test_offsets_are_committed_when_a_checkpoint_is_complete(kafka, tmp_path):
    topic = fresh_topic(kafka, 2)
    produce(kafka, topic, values(20), partitions=2)
    source = builder(kafka, topic).set_group_id(topic).build()
    probe = Probe()
    job = start(stream_of(environment(tmp_path), source).map(probe.pass_on))
    probe.awaits(20)
    assert committed(kafka, topic, topic) is None

    job.checkpoint()

    eventually(lambda: [committed(kafka, topic, topic, number) for number in range(2)] == [10, 10])
    eventually(lambda: "'KafkaSourceReader.commitsSucceeded': 1" in str(job.handle.metrics()))


@pytest.mark.parametrize("property_", [{"commit.offsets.on.checkpoint": "false"}, {}])
def test_offsets_are_not_committed_where_nobody_wants_it(kafka, tmp_path, property_):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(20))
    source = builder(kafka, topic).set_properties(property_)
    if property_:
        source.set_group_id(topic)
    job = start(stream_of(checkpointed(tmp_path), source.build()))
    eventually(lambda: len(job.results) == 20)

    job.stop()

    assert committed(kafka, topic, topic) is None


def test_offsets_of_partitions_that_have_ended_are_committed(kafka, tmp_path):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(20))
    env = checkpointed(tmp_path)

    start(stream_of(env, builder(kafka, topic).set_group_id(topic).set_bounded(LATEST).build())).wait()

    eventually(lambda: committed(kafka, topic, topic) == 20)


def test_a_new_job_goes_on_where_the_group_was(kafka, tmp_path):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(20))
    commit(kafka, topic, topic, 8)
    starting = KafkaOffsetsInitializer.committed_offsets()
    source = builder(kafka, topic).set_group_id(topic).set_starting_offsets(starting).build()
    job = start(stream_of(checkpointed(tmp_path), source))

    eventually(lambda: job.results == values(12, 8))


# -- the cluster changes ----------------------------------------------------------------------------


def test_new_partitions_are_found_and_read_from_their_beginning(kafka, tmp_path):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(5))
    source = builder(kafka, topic).set_starting_offsets(LATEST).set_property("partition.discovery.interval.ms", 50)
    job = start(stream_of(checkpointed(tmp_path, 2), source.build()))
    is_assigned(job, topic)

    add_partitions(kafka, topic, 3)
    produce(kafka, topic, values(10, 5), partition=1)
    produce(kafka, topic, values(10, 15), partition=2)

    eventually(lambda: sorted(job.results) == sorted(values(20, 5)))


def test_new_topics_are_found_by_a_pattern_and_known_after_a_restart(kafka, tmp_path):
    first = fresh_topic(kafka, prefix="found")
    produce(kafka, first, values(5))
    source = builder(kafka).set_topic_pattern("found-.*").set_property("partition.discovery.interval.ms", 50).build()
    job = start(stream_of(checkpointed(tmp_path), source))
    eventually(lambda: job.results == values(5))

    second = fresh_topic(kafka, prefix="found")
    produce(kafka, second, values(5, 5))
    eventually(lambda: sorted(job.results) == values(10))
    path = job.stop()
    produce(kafka, second, values(1, 10))
    job = start(stream_of(checkpointed(tmp_path, execution__state_recovery__path=path), source))

    eventually(lambda: job.results == values(1, 10))


def test_readers_that_are_loaded_anew_in_each_epoch(kafka, tmp_path):
    """More readers than partitions: one that never gets any must learn again that it has all of them."""
    topic = fresh_topic(kafka, 2)
    produce(kafka, topic, values(1000), partitions=2)
    env = environment(
        tmp_path,
        3,
        execution__exchange="spark",
        execution__epoch__trigger="available-now",
        execution__epoch__max_records="200",
        execution__checkpointing__interval="",
    )
    faults = [TaskFault(FaultKind.KILL, epoch=epoch) for epoch in (2, 3)]
    env._executor = InProcessExecutor(create_stages=lambda: InProcessStageRunner(faults=faults))

    assert sorted(start(stream_of(env, builder(kafka, topic).build())).wait()) == sorted(values(1000))
