"""What a Kafka sink writes to a real broker, and what it says when it cannot."""

from __future__ import annotations

import time
import weakref

import pytest
from confluent_kafka import Producer

from firesteel.common import Configuration, Duration, SimpleStringSchema, Types, WatermarkStrategy
from firesteel.common.errors import JobExecutionError, RecordSerializationError
from firesteel.common.serialization import ByteArraySchema, SerializationSchema
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.connectors.kafka.client_errors import BrokerUnavailableError, KafkaClientError, UnknownTopicError
from firesteel.connectors.kafka.sink.producer import KafkaWriteError
from firesteel.connectors.kafka.sink.producer_pool import TransactionalProducer, TransactionState
from firesteel.datastream.connectors.kafka import (
    KafkaPartitioner,
    KafkaProducerRecord,
    KafkaRecordSerializationSchema,
    KafkaSink,
)
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.testing import SinkHarness, eventually, test_environment
from firesteel.testing.services.processes import free_ports
from tests.support.services.kafka_sink_jobs import messages, numbers, sink_builder
from tests.support.services.kafka_topics import fresh_topic

NONE, AT_LEAST_ONCE, EXACTLY_ONCE = (
    DeliveryGuarantee.NONE,
    DeliveryGuarantee.AT_LEAST_ONCE,
    DeliveryGuarantee.EXACTLY_ONCE,
)
IMPATIENT = {"topic.metadata.propagation.max.ms": "100"}
"""For how long a topic that a broker does not know may just have been created."""
STREAM = {"execution.runtime-mode": "STREAMING"}
BATCH = {"execution.runtime-mode": "BATCH"}
EPOCHS = {**STREAM, "execution.exchange": "spark", "execution.epoch.max-records": "700"}


def environment(tmp_path, settings, parallelism=2):
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.interval": "20 ms",
        "execution.checkpointing.dir": str(tmp_path),
        "restart-strategy.type": "none",
        **settings,
    }.items():
        configuration.set_string(key, value)
    return test_environment(parallelism, configuration)


@pytest.mark.parametrize(
    ("guarantee", "mode"),
    [(NONE, BATCH), (AT_LEAST_ONCE, STREAM), (AT_LEAST_ONCE, EPOCHS), (EXACTLY_ONCE, STREAM)],
    ids=["none, batch", "at least once, pipelined", "at least once, epochs", "exactly once, pipelined"],
)
def test_every_record_comes_once_where_nothing_fails(kafka, tmp_path, guarantee, mode):
    topic = fresh_topic(kafka, 2)
    sink = sink_builder(kafka, topic, guarantee).set_transactional_id_prefix(topic).build()
    env = environment(tmp_path, mode)
    env.from_sequence(1, 2000).map(str, Types.STRING()).sink_to(sink)
    env.execute()
    # a commit is visible a moment after it is known
    eventually(lambda: numbers(kafka, topic) == list(range(1, 2001)))


class Second(SerializationSchema):
    """One place of a tuple."""

    def __init__(self, place):
        self.place = place

    def serialize(self, element):
        return element[self.place]


class Backwards(KafkaPartitioner):
    def partition(self, record, key, value, target_topic, partitions):
        return partitions[-1]


def write(sink, records, timestamps=None):
    with SinkHarness(sink) as harness:
        for index, record in enumerate(records):
            harness.process_element(record, None if timestamps is None else timestamps[index])
        harness.finish()


def parts(message):
    return message.key(), message.value(), message.headers(), message.partition(), message.timestamp()[1]


def built(kafka, serializer, guarantee=AT_LEAST_ONCE, **settings):
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers).set_record_serializer(serializer)
    for name, value in settings.items():
        builder.set_property(name.replace("_", "."), value)
    return builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix("unused").build()


def test_key_value_headers_timestamp_and_partition(kafka):
    topic = fresh_topic(kafka, 3)
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_key_serialization_schema(Second(0))
        .set_value_serialization_schema(Second(1))
        .set_header_provider(lambda record: [("a", record[1]), ("b", None)] if record[1] else [])
        .set_partitioner(Backwards())
        .build()
    )
    write(built(kafka, serializer), [(b"k", b"v"), (b"gone", None)], [1234, 5678])
    assert [parts(message) for message in messages(kafka, topic)] == [
        (b"k", b"v", [("a", b"v"), ("b", None)], 2, 1234),
        (b"gone", None, None, 2, 5678),
    ]


def test_a_record_without_a_timestamp_gets_the_present_time_as_in_flink(kafka):
    topic = fresh_topic(kafka)
    before = int(time.time() * 1000)
    write(sink_builder(kafka, topic, AT_LEAST_ONCE).build(), ["1", "2", "3"], [-(2**63), -1, 9])
    stamps = [message.timestamp()[1] for message in messages(kafka, topic)]
    assert stamps[2] == 9
    assert all(before - 60_000 < stamp < before + 600_000 for stamp in stamps[:2])


@pytest.mark.parametrize("stamps", [[0, 1, 2], [0, 0, 0], [5, 0, -1]], ids=str)
def test_the_beginning_of_1970_is_not_today(kafka, stamps):
    topic = fresh_topic(kafka)
    write(sink_builder(kafka, topic, AT_LEAST_ONCE).build(), list("abc"), stamps)
    found = {message.value().decode(): message.timestamp()[1] for message in messages(kafka, topic)}
    for letter, stamp in zip("abc", stamps, strict=True):
        # a millisecond later, which is what librdkafka can write; before 1970, as without a timestamp
        assert (found[letter] == max(stamp, 1)) if stamp >= 0 else (found[letter] > 1_600_000_000_000)


def test_event_time_is_written(kafka, tmp_path):
    topic = fresh_topic(kafka)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1)).with_timestamp_assigner(Tens())
    env = environment(tmp_path, {}, 1)
    stream = env.from_collection(["1", "2", "3"], Types.STRING()).assign_timestamps_and_watermarks(strategy)
    stream.sink_to(sink_builder(kafka, topic, AT_LEAST_ONCE).build())
    env.execute()
    assert [(m.value(), m.timestamp()[1]) for m in messages(kafka, topic)] == [(b"1", 10), (b"2", 20), (b"3", 30)]


def test_keys_go_where_javas_producers_send_them(kafka):
    topic = fresh_topic(kafka, 8)
    # Java's murmur2: "21" -> -973932308, "foobar" -> -790332482, "a-little-bit-long-string" -> -985981536
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(topic)
        .set_key_serialization_schema(ByteArraySchema())
        .set_value_serialization_schema(ByteArraySchema())
        .build()
    )
    write(built(kafka, serializer), list(hashes))
    found = {message.key(): message.partition() for message in messages(kafka, topic)}
    assert found == {key: (value & 0x7FFFFFFF) % 8 for key, value in hashes.items()}


def test_records_by_hand_to_several_topics(kafka):
    one, two = fresh_topic(kafka), fresh_topic(kafka, 2)

    class ByHand(KafkaRecordSerializationSchema):
        def serialize(self, element, context, timestamp):
            if element % 3 == 0:
                return None
            record = b"%d of %d" % (element, context.parallelism)
            return KafkaProducerRecord(one if element % 3 == 1 else two, record, timestamp=element + 1, partition=0)

    write(built(kafka, ByHand()), range(7))
    assert [(m.value(), m.timestamp()[1]) for m in messages(kafka, one)] == [(b"1 of 1", 2), (b"4 of 1", 5)]
    assert [(m.value(), m.partition()) for m in messages(kafka, two)] == [(b"2 of 1", 0), (b"5 of 1", 0)]


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_full_queue_neither_loses_nor_repeats_nor_reorders(kafka, guarantee):
    topic = fresh_topic(kafka)
    sink = (
        sink_builder(kafka, topic, guarantee)
        .set_transactional_id_prefix(topic)
        .set_property("queue.buffering.max.messages", "10")
        .build()
    )
    harness = SinkHarness(sink)
    with harness:
        operator = harness._chained.operator
        held_back = 0
        for first in range(0, 200, 25):
            eventually(operator.has_room)
            operator.process_batch([str(number) for number in range(first, first + 25)], None)
            held_back += not operator.has_room()
        harness.finish()
        harness.snapshot()
        harness.notify_checkpoint_complete(1)
    assert held_back > 0
    eventually(lambda: len(messages(kafka, topic)) == 200)
    assert [int(message.value()) for message in messages(kafka, topic)] == list(range(200))


def test_none_does_not_wait_at_a_checkpoint_but_at_the_end():
    sink = unreachable(NONE)
    harness = SinkHarness(sink)
    with harness:
        harness.process_element("1")
        harness.snapshot()
        with pytest.raises(KafkaWriteError):
            harness.finish()


def unreachable(guarantee, **settings):
    class Nowhere:
        bootstrap_servers = f"127.0.0.1:{free_ports(1)[0]}"

    builder = sink_builder(Nowhere, "out", guarantee).set_transactional_id_prefix("p").set_property("log_level", "0")
    return builder.set_properties({"delivery.timeout.ms": "300", **settings}).build()


def test_a_broker_that_is_away_for_longer_than_the_delivery_timeout():
    with SinkHarness(unreachable(AT_LEAST_ONCE)) as harness:
        harness.process_element("1")
        with pytest.raises(KafkaWriteError, match=r"topic 'out' at 127.*delivery\.timeout\.ms \(300 ms\)") as caught:
            harness.snapshot()
    assert caught.value.topic == "out"


def test_no_coordinator_can_be_reached(monkeypatch):
    monkeypatch.setattr("firesteel.connectors.kafka.sink.producer_pool.DEADLINE_S", 0.5)
    monkeypatch.setattr("firesteel.connectors.kafka.sink.transactions.DEADLINE_S", 0.5)
    monkeypatch.setattr("firesteel.connectors.kafka.sink.transactions.REQUEST_TIMEOUT_S", 0.5)
    with SinkHarness(unreachable(EXACTLY_ONCE)) as harness:
        harness.process_element("1")
        with pytest.raises(BrokerUnavailableError, match="no Kafka broker responds at 127"):
            harness.snapshot()


class Watched(Producer):
    """Can be referred to weakly."""


def test_an_error_that_is_kept_does_not_keep_the_producer_it_is_of():
    """A job remembers why it failed; the threads and sockets of the producer must go all the same."""
    settings = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    producer = TransactionalProducer("id", settings)
    producer.client.close()
    producer.client = Watched({**settings, "transactional.id": "id"})
    client = weakref.ref(producer.client)
    producer.state = TransactionState.PREPARED
    with pytest.raises(KafkaClientError) as caught:
        producer.commit()
    assert client() is not None
    producer.close()
    assert client() is None
    assert caught.value.__traceback__ is not None


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_topic_that_is_not_there(kafka, guarantee):
    builder = sink_builder(kafka, "never-created", guarantee).set_transactional_id_prefix("never-created")
    with SinkHarness(builder.set_properties(IMPATIENT).build()) as harness:
        harness.process_element("1")
        with pytest.raises(UnknownTopicError, match="never-created") as caught:
            harness.snapshot()
    assert caught.value.topic == "never-created"


@pytest.mark.parametrize("limit", ["client", "topic"])
def test_a_record_that_is_too_large(kafka, limit):
    topic = fresh_topic(kafka, max_message_bytes="1000" if limit == "topic" else "1000000")
    sink = sink_builder(kafka, topic, AT_LEAST_ONCE).set_property("max.request.size", "100000").build()
    with pytest.raises(KafkaWriteError, match="too large") as caught:
        write(sink, ["x" * (200_000 if limit == "client" else 50_000)])
    assert (caught.value.topic, caught.value.code) == (topic, "MSG_SIZE_TOO_LARGE")
    assert "max.message.bytes" in caught.value.hint


def test_an_error_of_the_broker_fails_the_job_and_names_the_sink(kafka, tmp_path):
    env = environment(tmp_path, {}, 1)
    env.from_collection(["1"], Types.STRING()).sink_to(
        sink_builder(kafka, "missing", AT_LEAST_ONCE).set_properties(IMPATIENT).build()
    )
    with pytest.raises(JobExecutionError, match="'missing' does not exist"):
        env.execute()


def test_properties_that_librdkafka_does_not_know(kafka):
    from firesteel.common.errors import InvalidProgramError

    builder = sink_builder(kafka, "out").set_property("no.such.property", "1")
    with pytest.raises(InvalidProgramError, match=r"no\.such\.property"):
        builder.build()


def test_a_schema_that_gives_no_bytes(kafka):
    class Wrong(SerializationSchema):
        def serialize(self, element):
            return element

    serializer = (
        KafkaRecordSerializationSchema.builder().set_topic("out").set_value_serialization_schema(Wrong()).build()
    )
    with (
        SinkHarness(built(kafka, serializer)) as harness,
        pytest.raises(RecordSerializationError, match="its key None"),
    ):
        harness.process_element(7)


def test_a_schema_that_loses_records(kafka):
    class Wrong(SimpleStringSchema):
        def serialize_batch(self, elements):
            return []

    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic("out")
        .set_value_serialization_schema(SimpleStringSchema())
        .set_key_serialization_schema(Wrong())
        .build()
    )
    with SinkHarness(built(kafka, serializer)) as harness, pytest.raises(RecordSerializationError, match="0 keys"):
        harness.process_element("7")


class Tens(TimestampAssigner):
    """Assigns ten times the number as a timestamp."""

    def extract_timestamp(self, value, record_timestamp):
        return int(value) * 10
