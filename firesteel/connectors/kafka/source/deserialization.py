"""Kafka record deserialization."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from firesteel.common.serialization import ByteArraySchema, DeserializationSchema
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.connectors.kafka.client_errors import kafka_client
from firesteel.formats.bad_records import BadRecords, RecordDecoder
from firesteel.moved_modules import stored_as
from firesteel.spi.source import ReaderContext, ReaderOutput

__all__ = ["ConsumerRecord", "KafkaRecordDeserializationSchema", "MessageDecoder", "create_decoder"]


@stored_as("firesteel.connectors.kafka.deserialization")
class ConsumerRecord:
    """A record as Kafka has it."""

    __slots__ = ("headers", "key", "offset", "partition", "timestamp", "topic", "value")

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
    ):
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __repr__(self) -> str:
        return f"ConsumerRecord({self.topic}-{self.partition}, offset {self.offset}, key {self.key!r})"


class RecordCollector:
    """Takes what a deserializer makes of a record."""

    __slots__ = ("collect", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.collect = self.values.append


class KafkaRecordDeserializationSchema(ABC):
    """Turns a whole Kafka record, with its key, headers and place, into any number of records; picklable."""

    def open(self) -> None:  # noqa: B027 - optional
        """Called once in the task, before the first record."""

    @abstractmethod
    def deserialize(self, record: ConsumerRecord, out: Any) -> None:
        """Calls ``out.collect(value)`` for each record to emit; all get the Kafka record's timestamp."""

    def get_produced_type(self) -> TypeInformation:
        """The type of the records."""
        return Types.PICKLED_BYTE_ARRAY()

    @staticmethod
    def value_only(schema: DeserializationSchema) -> KafkaRecordDeserializationSchema:
        """Only the value counts; records without a value are passed over."""
        return ValueOnlyDeserializationSchema(schema)


class ValueOnlyDeserializationSchema(KafkaRecordDeserializationSchema):
    """What ``value_only`` gives; a reader decodes its values in batches."""

    def __init__(self, schema: DeserializationSchema):
        self.schema = schema

    def open(self) -> None:
        """Opens the schema of the values."""
        self.schema.open()

    def deserialize(self, record: ConsumerRecord, out: Any) -> None:
        """Emits the value's record, if it has one."""
        value = None if record.value is None else self.schema.deserialize(record.value)
        if value is not None:
            out.collect(value)

    def get_produced_type(self) -> TypeInformation:
        """The type of the values."""
        return self.schema.get_produced_type()


class MessageDecoder(ABC):
    """Turns messages of one partition, in order, into values and timestamps, and deals with bad ones."""

    @abstractmethod
    def decode(
        self, messages: Sequence[Any], split_id: str, output: ReaderOutput
    ) -> tuple[list[Any], Sequence[int] | None]:
        """The values of confluent_kafka messages without error, and their timestamps."""


def create_decoder(
    deserializer: KafkaRecordDeserializationSchema, policy: BadRecords, context: ReaderContext
) -> MessageDecoder:
    """The decoder of a reader; opens the deserializer."""
    if isinstance(deserializer, ValueOnlyDeserializationSchema):
        return _ValueDecoder(deserializer.schema, policy, context)
    deserializer.open()
    return _RecordDecoder(deserializer, policy, context)


class _ValueDecoder(MessageDecoder):
    """Decodes whole batches of values."""

    def __init__(self, schema: DeserializationSchema, policy: BadRecords, context: ReaderContext):
        message = kafka_client().Message
        self._value, self._timestamp = message.value, message.timestamp
        schema.open()
        self._decoders = _Decoders(_Opened(schema), policy, context)

    def decode(
        self, messages: Sequence[Any], split_id: str, output: ReaderOutput
    ) -> tuple[list[Any], Sequence[int] | None]:
        values = list(map(self._value, messages))
        if not all(values):
            # an empty value is one, none at all (a tombstone) is not
            messages = [message for message, value in zip(messages, values, strict=True) if value is not None]
            values = [value for value in values if value is not None]
            if not messages:
                return [], None
        timestamps = [timestamp for _kind, timestamp in map(self._timestamp, messages)]
        decoder = self._decoders.of(messages[0].topic())
        return decoder.decode(values, timestamps, output, lambda i: (split_id, messages[i].offset()))


class _RecordDecoder(MessageDecoder):
    """Calls the deserializer for each record."""

    def __init__(self, deserializer: KafkaRecordDeserializationSchema, policy: BadRecords, context: ReaderContext):
        self._deserialize = deserializer.deserialize
        self._decoders = _Decoders(ByteArraySchema(), policy, context)

    def decode(
        self, messages: Sequence[Any], split_id: str, output: ReaderOutput
    ) -> tuple[list[Any], Sequence[int] | None]:
        topic, partition = messages[0].topic(), messages[0].partition()
        out = RecordCollector()
        values, timestamps = out.values, []
        for message in messages:
            before = len(values)
            record = ConsumerRecord(
                topic,
                partition,
                message.offset(),
                message.timestamp()[1],
                message.key(),
                message.value(),
                message.headers() or [],
            )
            try:
                self._deserialize(record, out)
            except Exception as error:  # noqa: BLE001 - it is the user's
                del values[before:]
                self._decoders.of(topic).reject(record.value, split_id, record.offset, error, output)
            timestamps += [record.timestamp] * (len(values) - before)
        return values, timestamps


class _Decoders:
    """What deals with bad records, for each topic: an error names it."""

    def __init__(self, schema: DeserializationSchema, policy: BadRecords, context: ReaderContext):
        self._schema = schema
        self._policy = policy
        self._context = context
        self._by_topic: dict[str, RecordDecoder] = {}

    def of(self, topic: str) -> RecordDecoder:
        decoder = self._by_topic.get(topic)
        if decoder is None:
            decoder = self._by_topic[topic] = RecordDecoder(self._schema, self._policy, self._context, topic)
        return decoder


class _Opened(DeserializationSchema):
    """A schema that is open already: several topics share it."""

    def __init__(self, schema: DeserializationSchema):
        self.deserialize = schema.deserialize  # type: ignore[method-assign]
        self.deserialize_batch = schema.deserialize_batch  # type: ignore[method-assign]

    def deserialize(self, message: bytes) -> Any:
        raise AssertionError("replaced by the schema's own")
