"""How records become Kafka records."""

from __future__ import annotations

import pytest

from firesteel.common import SimpleStringSchema
from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.serialization import SerializationSchema
from firesteel.connectors.kafka.sink.serialization import RecordBatch
from firesteel.datastream.connectors.kafka import (
    KafkaHeaderProvider,
    KafkaPartitioner,
    KafkaProducerRecord,
    KafkaRecordSerializationSchema,
    KafkaTopicSelector,
)


class Writer:
    """A KafkaSinkContext with two partitions in every topic."""

    subtask_index = 1
    parallelism = 4

    def partitions_for_topic(self, topic):
        return [0, 1]


class FirstLetter(SerializationSchema):
    def open(self):
        self.is_open = True

    def serialize(self, element):
        assert self.is_open
        return element[:1].encode()


class ByInstance(KafkaPartitioner):
    def open(self, parallel_instance_id, parallel_instances):
        self.place = parallel_instance_id, parallel_instances

    def partition(self, record, key, value, target_topic, partitions):
        assert self.place == (1, 4)
        assert value == record.encode()
        return partitions[len(record) % len(partitions)]


def composed(**settings):
    builder = KafkaRecordSerializationSchema.builder().set_value_serialization_schema(SimpleStringSchema())
    for name, value in settings.items():
        getattr(builder, f"set_{name}")(value)
    schema = builder.build()
    schema.open(Writer())
    return schema


def test_value_only():
    schema = composed(topic="out")
    assert schema.serialize_batch(["a", "b"], Writer(), None) == [RecordBatch("out", [b"a", b"b"])]
    assert schema.serialize_batch([], Writer(), None) == []


def test_key_headers_timestamps_and_partition():
    schema = composed(
        topic="out",
        key_serialization_schema=FirstLetter(),
        partitioner=ByInstance(),
        header_provider=lambda record: [("length", b"%d" % len(record))],
    )
    assert schema.serialize_batch(["ab", "c"], Writer(), [7, 8]) == [
        RecordBatch("out", [b"ab", b"c"], [b"a", b"c"], [0, 1], [7, 8], [[("length", b"2")], [("length", b"1")]])
    ]
    assert schema.serialize("ab", Writer(), 7) == KafkaProducerRecord("out", b"ab", b"a", [("length", b"2")], 7, 0)


class Selector(KafkaTopicSelector):
    def apply(self, data):
        return f"topic-{data[0]}"


class Headers(KafkaHeaderProvider):
    def get_headers(self, record):
        return [("h", None)]


@pytest.mark.parametrize("selector", [Selector(), Selector().apply], ids=["object", "function"])
def test_topics_by_record_keep_their_order(selector):
    schema = composed(topic_selector=selector, header_provider=Headers())
    assert schema.serialize_batch(["a1", "b1", "a2"], Writer(), [1, 2, 3]) == [
        RecordBatch("topic-a", [b"a1", b"a2"], None, None, [1, 3], [[("h", None)]] * 2),
        RecordBatch("topic-b", [b"b1"], None, None, [2], [[("h", None)]]),
    ]


def test_by_hand():
    class ByHand(KafkaRecordSerializationSchema):
        def serialize(self, element, context, timestamp):
            if element == "skip":
                return None
            return KafkaProducerRecord(element, None, b"key", [("h", b"1")] if element == "b" else None, timestamp, 3)

    assert ByHand().serialize_batch(["a", "skip", "b", "a"], Writer(), None) == [
        RecordBatch("a", [None, None], [b"key"] * 2, [3, 3], [-1, -1], None),
        RecordBatch("b", [None], [b"key"], [3], [-1], [[("h", b"1")]]),
    ]


def test_the_rest_of_a_batch():
    batch = RecordBatch("t", [b"1", b"2", b"3"], [b"a", b"b", b"c"], None, [1, 2, 3], None)
    assert batch.rest(2) == RecordBatch("t", [b"3"], [b"c"], None, [3], None)


@pytest.mark.parametrize(
    ("settings", "what"),
    [({"topic": "out"}, "value serialization schema"), ({"value_serialization_schema": SimpleStringSchema()}, "topic")],
)
def test_what_is_missing_is_said(settings, what):
    builder = KafkaRecordSerializationSchema.builder()
    for name, value in settings.items():
        getattr(builder, f"set_{name}")(value)
    with pytest.raises(InvalidProgramError, match=what):
        builder.build()


def test_nothing_is_set_twice():
    builder = KafkaRecordSerializationSchema.builder().set_topic("out")
    with pytest.raises(InvalidProgramError, match="already"):
        builder.set_topic_selector(str)
    with pytest.raises(InvalidProgramError, match="already"):
        builder.set_value_serialization_schema(SimpleStringSchema()).set_value_serialization_schema(
            SimpleStringSchema()
        )


@pytest.mark.parametrize("topic", ["a b", "ä", "x" * 250, ".."])
def test_names_that_no_topic_can_have(topic):
    with pytest.raises(InvalidProgramError, match="is not a valid name"):
        KafkaRecordSerializationSchema.builder().set_topic(topic)


def test_a_selector_that_gives_no_topic():
    with pytest.raises(RecordSerializationError, match=r"None.*not a topic.*'record'"):
        composed(topic_selector=lambda _: None).serialize_batch(["record"], Writer(), None)


@pytest.mark.parametrize(
    "method", ["topic", "topic_selector", "key_serialization_schema", "value_serialization_schema", "partitioner"]
)
def test_wrong_types_are_refused_at_once(method):
    with pytest.raises(TypeError, match=f"set_{method}"):
        getattr(KafkaRecordSerializationSchema.builder(), f"set_{method}")(7)
