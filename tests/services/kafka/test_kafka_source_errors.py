"""What a Kafka source does where something is wrong with the cluster, the topic, the offsets or the records."""

from __future__ import annotations

import uuid

import pytest

from firesteel.common.errors import InvalidProgramError, JobExecutionError
from firesteel.datastream import OutputTag, RuntimeExecutionMode
from firesteel.datastream.connectors.kafka import (
    BadRecords,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaTopicPartition,
)
from firesteel.testing import collect, eventually, test_environment
from firesteel.testing.services.processes import free_ports
from tests.support.jobs.running_jobs import environment, no_job_goes_on, start  # noqa: F401 - a fixture
from tests.support.services.kafka_topics import (
    builder,
    commit,
    delete_records,
    deny,
    fresh_topic,
    produce,
    stream_of,
    values,
)

LATEST = KafkaOffsetsInitializer.latest()


def read(source):
    return collect(stream_of(test_environment(), source))


def failure_of(source, mode=RuntimeExecutionMode.STREAMING):
    """Why a job with this source fails."""
    env = test_environment()
    env.set_runtime_mode(mode)
    with pytest.raises(JobExecutionError) as caught:
        collect(stream_of(env, source))
    failure = caught.value.failure
    assert failure.operator == "Source: kafka"
    assert failure.hint
    return failure


# -- the cluster ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_no_broker(kafka, mode):
    servers = f"127.0.0.1:{free_ports(1)[0]}"
    source = builder(kafka, "orders").set_property("default.api.timeout.ms", 300).set_bootstrap_servers(servers)

    failure = failure_of(source.set_bounded(LATEST).build(), mode)

    assert failure.error_type == "BrokerUnavailableError"
    assert servers in failure.message
    assert "0.3 s" in failure.message


def test_no_such_topic(kafka):
    failure = failure_of(builder(kafka, fresh_topic(kafka), "ordres").build())

    assert failure.error_type == "UnknownTopicError"
    assert "'ordres' does not exist" in failure.message


def test_no_such_partition(kafka):
    topic = fresh_topic(kafka, 2)

    failure = failure_of(builder(kafka).set_partitions({KafkaTopicPartition(topic, 2)}).build())

    assert failure.error_type == "UnknownTopicError"
    assert f"Partition 2 of the topic '{topic}'" in failure.message


def test_no_such_property(kafka):
    with pytest.raises(InvalidProgramError, match=r"fetch\.min\.octets"):
        builder(kafka, fresh_topic(kafka)).set_property("fetch.min.octets", "1").build()


def test_a_topic_that_is_deleted_while_it_is_read(kafka):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(5))
    job = start(stream_of(test_environment(), builder(kafka, topic).build()))
    eventually(lambda: job.results == values(5))

    admin = kafka.admin()
    admin.delete_topics([topic])[topic].result(60)

    failure = job.fails().failure
    assert failure.error_type == "UnknownTopicError"
    assert f"'{topic}' does not exist" in failure.message


def test_a_topic_found_by_a_pattern_may_be_deleted(kafka, tmp_path):
    gone, kept = (fresh_topic(kafka, prefix="may.go") for _ in range(2))
    produce(kafka, gone, values(5))
    produce(kafka, kept, values(5, 5))
    source = builder(kafka).set_topic_pattern(r"may\.go-.*").set_property("partition.discovery.interval.ms", 50)
    job = start(stream_of(test_environment(), source.build()))
    eventually(lambda: sorted(job.results) == values(10))

    admin = kafka.admin()
    admin.delete_topics([gone])[gone].result(60)
    produce(kafka, kept, values(5, 10))

    eventually(lambda: len(job.results) == 15)


def test_no_permission(kafka):
    topic, secret, group = fresh_topic(kafka), fresh_topic(kafka), f"group-{uuid.uuid4().hex}"
    produce(kafka, topic, values(5))
    deny(kafka, topic=secret, group=group)

    def is_refused(source):
        # an ACL counts a moment after it was made
        failure = None
        try:
            collect(stream_of(test_environment(), source))
        except JobExecutionError as error:
            failure = error.failure
        return failure if failure is not None and failure.error_type == "KafkaAuthorizationError" else False

    assert secret in eventually(lambda: is_refused(builder(kafka, secret).set_bounded(LATEST).build())).message
    source = builder(kafka, topic).set_group_id(group).set_bounded(LATEST)
    assert read(source.build()) == values(5), "only commits need the group"
    source.set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    assert "READ on the group" in eventually(lambda: is_refused(source.build())).hint


# -- offsets ----------------------------------------------------------------------------------------


def starting_at(topic, offset, strategy):
    return KafkaOffsetsInitializer.offsets({KafkaTopicPartition(topic, 0): offset}, strategy)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [(KafkaOffsetResetStrategy.EARLIEST, values(5, 5)), (KafkaOffsetResetStrategy.LATEST, [])],
)
def test_offsets_out_of_range(kafka, strategy, expected):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(10))
    delete_records(kafka, topic, 5)
    source = builder(kafka, topic).set_starting_offsets(starting_at(topic, 2, strategy)).set_bounded(LATEST)

    assert read(source.build()) == expected


@pytest.mark.parametrize("offset", [2, 20])
def test_offsets_out_of_range_and_none_may_be_taken_instead(kafka, offset):
    topic = fresh_topic(kafka)
    produce(kafka, topic, values(10))
    delete_records(kafka, topic, 5)
    starting = starting_at(topic, offset, KafkaOffsetResetStrategy.NONE)

    failure = failure_of(builder(kafka, topic).set_starting_offsets(starting).build())

    assert failure.error_type == "OffsetOutOfRangeError"
    assert f"'{topic}', partition 0" in failure.message
    assert "KafkaOffsetResetStrategy" in failure.hint


def test_no_offset_was_committed(kafka):
    topic = fresh_topic(kafka, 2)
    commit(kafka, topic, topic, 0)
    starting = KafkaOffsetsInitializer.committed_offsets()

    failure = failure_of(builder(kafka, topic).set_group_id(topic).set_starting_offsets(starting).build())

    assert failure.error_type == "OffsetOutOfRangeError"
    assert f"partition 1 of the topic '{topic}'" in failure.message


# -- records ----------------------------------------------------------------------------------------


class Numbers(KafkaRecordDeserializationSchema):
    """Emits something before it finds that it cannot go on."""

    def deserialize(self, record, out):
        out.collect("begun")
        out.collect(str(int(record.value)))


def poisoned(kafka):
    topic = fresh_topic(kafka)
    produce(kafka, topic, ["1", b"\xff\xfe", "2"])
    return topic


def test_poison_fails_the_job(kafka):
    topic = poisoned(kafka)

    failure = failure_of(builder(kafka, topic).set_bounded(LATEST).build())

    assert failure.error_type == "BadRecordError"
    assert f"'{topic}', split '{topic}-0', offset 1" in failure.message
    assert "set_bad_records" in failure.hint


@pytest.mark.parametrize(("deserializer", "expected"), [(None, ["1", "2"]), (Numbers(), ["begun", "1", "begun", "2"])])
def test_poison_is_dropped(kafka, deserializer, expected):
    source = builder(kafka, poisoned(kafka)).set_bad_records(BadRecords.drop()).set_bounded(LATEST)
    if deserializer is not None:
        source.set_deserializer(deserializer)

    assert read(source.build()) == expected


@pytest.mark.parametrize("deserializer", [None, Numbers()])
def test_poison_goes_to_a_side_output(kafka, deserializer):
    topic = poisoned(kafka)
    tag = OutputTag("bad")
    source = builder(kafka, topic).set_bad_records(BadRecords.side_output(tag)).set_bounded(LATEST)
    if deserializer is not None:
        source.set_deserializer(deserializer)

    [bad] = collect(stream_of(test_environment(), source.build()).get_side_output(tag))

    assert (bad.raw, bad.source, bad.split, bad.offset) == (b"\xff\xfe", topic, f"{topic}-0", 1)
    assert bad.reason
