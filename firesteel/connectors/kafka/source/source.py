"""A source of the records of Kafka topics."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.kafka.metadata import ClusterMetadata
from firesteel.connectors.kafka.source.deserialization import KafkaRecordDeserializationSchema
from firesteel.connectors.kafka.source.enumerator import (
    KafkaEnumeratorState,
    KafkaSourceEnumerator,
    OffsetLookup,
    PartitionDiscovery,
)
from firesteel.connectors.kafka.source.offsets import KafkaOffsetsInitializer
from firesteel.connectors.kafka.source.properties import SourceProperties
from firesteel.connectors.kafka.source.reader import KafkaSourceReader
from firesteel.connectors.kafka.source.split import KafkaPartitionSplit
from firesteel.connectors.kafka.topics import Subscriber
from firesteel.formats.bad_records import BadRecords
from firesteel.spi.source import Boundedness, ReaderContext, Source, SplitEnumeratorContext

if TYPE_CHECKING:
    from firesteel.connectors.kafka.source.builder import KafkaSourceBuilder

__all__ = ["KafkaSource"]


class KafkaSource(Source[KafkaPartitionSplit]):
    """Reads topics of a Kafka cluster: each partition is a split, read by one subtask. Start with ``builder``.

    Positions are in the checkpoints, so that each record is read once, also after failures. What is committed to the
    consumer group after a checkpoint is for others to see, and is read by ``committed_offsets`` only.
    """

    name: ClassVar[str] = "Kafka Source"
    emits_own_records = True

    def __init__(
        self,
        subscriber: Subscriber,
        starting_offsets: KafkaOffsetsInitializer,
        stopping_offsets: KafkaOffsetsInitializer | None,
        boundedness: Boundedness,
        deserializer: KafkaRecordDeserializationSchema,
        properties: Mapping[str, Any],
        bad_records: BadRecords,
    ) -> None:
        self._subscriber = subscriber
        self._starting_offsets = starting_offsets
        self._stopping_offsets = stopping_offsets
        self._boundedness = boundedness
        self._deserializer = deserializer
        self._properties = SourceProperties(
            properties, starting_offsets.get_auto_offset_reset_strategy(), stops=stopping_offsets is not None
        )
        self._bad_records = bad_records

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Begins a source."""
        from firesteel.connectors.kafka.source.builder import KafkaSourceBuilder

        return KafkaSourceBuilder()

    def __repr__(self) -> str:
        until = "" if self._stopping_offsets is None else f" to {self._stopping_offsets!r}"
        servers = self._properties.servers
        return f"KafkaSource({self._subscriber!r} at {servers}; from {self._starting_offsets!r}{until})"

    def get_boundedness(self) -> Boundedness:
        """Bounded after ``set_bounded``."""
        return self._boundedness

    def get_produced_type(self) -> TypeInformation:
        """The type of the deserializer's records."""
        return self._deserializer.get_produced_type()

    def create_enumerator(self, context: SplitEnumeratorContext) -> KafkaSourceEnumerator:
        """An enumerator that discovers all partitions."""
        return self._enumerator(context, None)

    def restore_enumerator(self, context: SplitEnumeratorContext, state: KafkaEnumeratorState) -> KafkaSourceEnumerator:
        """An enumerator that knows what was found before."""
        return self._enumerator(context, state)

    def create_reader(self, context: ReaderContext) -> KafkaSourceReader:
        """A reader of any number of partitions."""
        return KafkaSourceReader(
            context,
            self._properties,
            self._deserializer,
            self._bad_records,
            allows_missing_topics=self._subscriber.allows_missing_topics,
        )

    def _enumerator(self, context: SplitEnumeratorContext, state: KafkaEnumeratorState | None) -> KafkaSourceEnumerator:
        abandoned = threading.Event()
        is_bounded = self._boundedness is Boundedness.BOUNDED
        initial = OffsetLookup(self._metadata, self._starting_offsets, self._stopping_offsets, abandoned)
        later = OffsetLookup(self._metadata, KafkaOffsetsInitializer.earliest(), self._stopping_offsets, abandoned)
        return KafkaSourceEnumerator(
            context,
            PartitionDiscovery(self._metadata, self._subscriber, abandoned),
            initial,
            later,
            interval_ms=None if is_bounded else self._properties.discovery_interval_ms,
            ends=self._stopping_offsets is not None,
            is_bounded=is_bounded,
            abandoned=abandoned,
            restored=state,
        )

    def _metadata(self, abandoned: threading.Event) -> ClusterMetadata:
        properties = self._properties
        return ClusterMetadata(properties.for_enumerator(), properties.group_id, properties.api_timeout_ms, abandoned)
