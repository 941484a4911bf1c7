"""Kafka record serialization: topic, key, value, headers, timestamp and partition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from firesteel.common.errors import InvalidProgramError, RecordSerializationError
from firesteel.common.serialization import SerializationSchema
from firesteel.moved_modules import stored_as

__all__ = [
    "Headers",
    "KafkaHeaderProvider",
    "KafkaPartitioner",
    "KafkaProducerRecord",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSinkContext",
    "KafkaTopicSelector",
    "RecordBatch",
]

Headers = Sequence[tuple[str, "bytes | None"]]

ANY_PARTITION = -1
"""Kafka's partitioner chooses: by the key, or any partition if there is none."""


@stored_as("firesteel.connectors.kafka.serialization")
class KafkaProducerRecord(NamedTuple):
    """One record as Kafka takes it. Without a timestamp it gets the time at which it is sent."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None
    timestamp: int | None = None
    partition: int | None = None


class KafkaSinkContext(Protocol):
    """What a serializer can ask of the writer it works for."""

    @property
    def subtask_index(self) -> int:
        """Which of the parallel writers this is."""
        ...

    @property
    def parallelism(self) -> int:
        """How many writers there are."""
        ...

    def partitions_for_topic(self, topic: str) -> list[int]:
        """The partitions that a topic has."""
        ...


class KafkaTopicSelector(ABC):
    """Says to which topic a record goes; picklable."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The topic of one record."""


class KafkaPartitioner(ABC):
    """Says to which partition of its topic a record goes; picklable."""

    def open(self, parallel_instance_id: int, parallel_instances: int) -> None:  # noqa: B027 - optional
        """Called once in the task, before the first record."""

    @abstractmethod
    def partition(
        self, record: Any, key: bytes | None, value: bytes | None, target_topic: str, partitions: list[int]
    ) -> int:
        """One of the topic's partitions."""


class KafkaHeaderProvider(ABC):
    """Gives the headers of a record; picklable."""

    @abstractmethod
    def get_headers(self, record: Any) -> Headers:
        """Pairs of a name and a value."""


class RecordBatch(NamedTuple):
    """Records of one topic, by column; a column that is None has Kafka's default for each record."""

    topic: str
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    partitions: Sequence[int] | None = None
    timestamps: Sequence[int] | None = None
    headers: Sequence[Headers] | None = None

    def rest(self, start: int) -> RecordBatch:
        """The records from the given one on."""
        return RecordBatch(
            self.topic,
            self.values[start:],
            None if self.keys is None else self.keys[start:],
            None if self.partitions is None else self.partitions[start:],
            None if self.timestamps is None else self.timestamps[start:],
            None if self.headers is None else self.headers[start:],
        )


class KafkaRecordSerializationSchema(ABC):
    """Turns records into Kafka records; picklable. Subclass it to say all of a Kafka record by hand."""

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Begins a schema out of a topic, and schemas for key and value."""
        return KafkaRecordSerializationSchemaBuilder()

    def open(self, context: KafkaSinkContext) -> None:  # noqa: B027 - optional
        """Called once in the task, before the first record."""

    @abstractmethod
    def serialize(self, element: Any, context: KafkaSinkContext, timestamp: int | None) -> KafkaProducerRecord | None:
        """The Kafka record of one record; None to write nothing."""

    def serialize_batch(
        self, elements: Sequence[Any], context: KafkaSinkContext, timestamps: Sequence[int] | None
    ) -> list[RecordBatch]:
        """The Kafka records of several records, in order for each topic."""
        topics: dict[str, list[KafkaProducerRecord]] = {}
        for index, element in enumerate(elements):
            record = self.serialize(element, context, None if timestamps is None else timestamps[index])
            if record is not None:
                topics.setdefault(record.topic, []).append(record)
        return [_columns(topic, records) for topic, records in topics.items()]


def _columns(topic: str, records: Sequence[KafkaProducerRecord]) -> RecordBatch:
    has_headers = any(record.headers for record in records)
    return RecordBatch(
        topic,
        [record.value for record in records],
        [record.key for record in records],
        [ANY_PARTITION if record.partition is None else record.partition for record in records],
        [-1 if record.timestamp is None else record.timestamp for record in records],
        [list(record.headers or ()) for record in records] if has_headers else None,
    )


class _ComposedSchema(KafkaRecordSerializationSchema):
    """What the builder builds."""

    def __init__(
        self,
        topic: str | Callable[[Any], str],
        value_schema: SerializationSchema,
        key_schema: SerializationSchema | None,
        partitioner: KafkaPartitioner | None,
        header_provider: Callable[[Any], Headers] | None,
    ):
        self.topic = topic
        self._value_schema = value_schema
        self._key_schema = key_schema
        self._partitioner = partitioner
        self._header_provider = header_provider

    def __repr__(self) -> str:
        return self.topic if isinstance(self.topic, str) else "topics by selector"

    def open(self, context: KafkaSinkContext) -> None:
        self._value_schema.open()
        if self._key_schema is not None:
            self._key_schema.open()
        if self._partitioner is not None:
            self._partitioner.open(context.subtask_index, context.parallelism)

    def serialize(self, element: Any, context: KafkaSinkContext, timestamp: int | None) -> KafkaProducerRecord | None:
        (batch,) = self.serialize_batch([element], context, None if timestamp is None else [timestamp])
        return KafkaProducerRecord(
            batch.topic,
            batch.values[0],
            None if batch.keys is None else batch.keys[0],
            None if batch.headers is None else batch.headers[0],
            timestamp,
            None if batch.partitions is None else batch.partitions[0],
        )

    def serialize_batch(
        self, elements: Sequence[Any], context: KafkaSinkContext, timestamps: Sequence[int] | None
    ) -> list[RecordBatch]:
        if not elements:
            return []
        if isinstance(self.topic, str):
            return [self._batch(self.topic, elements, context, timestamps)]
        indexes: dict[str, list[int]] = {}
        for index, element in enumerate(elements):
            indexes.setdefault(self.topic(element), []).append(index)
        return [
            self._batch(
                _checked_topic(topic, elements[own[0]]),
                [elements[index] for index in own],
                context,
                None if timestamps is None else [timestamps[index] for index in own],
            )
            for topic, own in indexes.items()
        ]

    def _batch(
        self, topic: str, elements: Sequence[Any], context: KafkaSinkContext, timestamps: Sequence[int] | None
    ) -> RecordBatch:
        values = self._value_schema.serialize_batch(elements)
        keys: Sequence[bytes | None] | None = None
        if self._key_schema is not None:
            keys = self._key_schema.serialize_batch(elements)
        partitions, partitioner = None, self._partitioner
        if partitioner is not None:
            there = context.partitions_for_topic(topic)
            partitions = [
                partitioner.partition(element, key, value, topic, there)
                for element, key, value in zip(elements, keys or [None] * len(elements), values, strict=True)
            ]
        provide = self._header_provider
        headers = None if provide is None else [list(provide(element)) for element in elements]
        return RecordBatch(topic, values, keys, partitions, timestamps, headers)


class KafkaRecordSerializationSchemaBuilder:
    """Configures how records become Kafka records. A topic and a schema for the value are necessary."""

    def __init__(self) -> None:
        self._topic: str | Callable[[Any], str] | None = None
        self._key_schema: SerializationSchema | None = None
        self._value_schema: SerializationSchema | None = None
        self._partitioner: KafkaPartitioner | None = None
        self._header_provider: Callable[[Any], Headers] | None = None

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Sets the topic of all records."""
        self._check_topic_is_not_set()
        if not isinstance(topic, str):
            raise TypeError(f"set_topic takes the name of a topic, not {topic!r}.")
        self._topic = _checked_topic(topic)
        return self

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Sets what says the topic of each record: a KafkaTopicSelector or a function."""
        self._check_topic_is_not_set()
        self._topic = _function(topic_selector, KafkaTopicSelector, "apply", "set_topic_selector")
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Sets what makes the key out of a record; without it records have no key."""
        _require(key_serialization_schema, SerializationSchema, "set_key_serialization_schema")
        if self._key_schema is not None:
            raise InvalidProgramError("The Kafka record serializer has a key serialization schema already.")
        self._key_schema = key_serialization_schema
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Sets what makes the value out of a record."""
        _require(value_serialization_schema, SerializationSchema, "set_value_serialization_schema")
        if self._value_schema is not None:
            raise InvalidProgramError("The Kafka record serializer has a value serialization schema already.")
        self._value_schema = value_serialization_schema
        return self

    def set_partitioner(self, partitioner: KafkaPartitioner) -> KafkaRecordSerializationSchemaBuilder:
        """Sets what says the partition of each record; otherwise Kafka's own partitioner does, by the key."""
        _require(partitioner, KafkaPartitioner, "set_partitioner")
        self._partitioner = partitioner
        return self

    def set_header_provider(
        self, header_provider: Callable[[Any], Headers] | KafkaHeaderProvider
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Sets what gives the headers of each record: a KafkaHeaderProvider or a function."""
        self._header_provider = _function(header_provider, KafkaHeaderProvider, "get_headers", "set_header_provider")
        return self

    def build(self) -> KafkaRecordSerializationSchema:
        """The schema."""
        if self._value_schema is None:
            raise InvalidProgramError(
                "The Kafka record serializer has no value serialization schema.",
                hint="Call set_value_serialization_schema, for instance with SimpleStringSchema().",
            )
        if self._topic is None:
            raise InvalidProgramError(
                "The Kafka record serializer has no topic.", hint="Call set_topic or set_topic_selector."
            )
        return _ComposedSchema(
            self._topic, self._value_schema, self._key_schema, self._partitioner, self._header_provider
        )

    def _check_topic_is_not_set(self) -> None:
        if self._topic is not None:
            raise InvalidProgramError("The Kafka record serializer has a topic or a topic selector already.")


def _checked_topic(topic: Any, record: Any = None) -> str:
    if not isinstance(topic, str) or not topic:
        raise RecordSerializationError(f"The topic selector gave {topic!r}, which is not a topic, for {record!r:.80}.")
    if len(topic) > 249 or topic in (".", "..") or not set(topic) <= _TOPIC_CHARACTERS:
        raise InvalidProgramError(
            f"'{topic}' is not a valid name of a Kafka topic.",
            hint="Topics have 1 to 249 ASCII letters, digits, '.', '_' and '-'.",
        )
    return topic


_TOPIC_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def _require(value: Any, cls: type, method: str) -> None:
    if not isinstance(value, cls):
        raise TypeError(f"{method} takes a {cls.__name__}, not {value!r}.")


def _function(value: Any, cls: type, name: str, method: str) -> Callable[[Any], Any]:
    if isinstance(value, cls):
        function: Callable[[Any], Any] = getattr(value, name)
        return function
    if callable(value):
        return value  # type: ignore[no-any-return]
    raise TypeError(f"{method} takes a {cls.__name__} or a function, not {value!r}.")
