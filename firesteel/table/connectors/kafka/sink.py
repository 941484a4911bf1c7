"""The sink of the connectors ``kafka`` and ``upsert-kafka``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firesteel.connectors.kafka.sink.serialization import (
    KafkaProducerRecord,
    KafkaRecordSerializationSchema,
    KafkaSinkContext,
)
from firesteel.connectors.kafka.sink.sink import KafkaSink
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.format import EncodingFormat
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connectors.sinks import add_sink
from firesteel.table.runtime.operators.to_records import RecordConverter
from firesteel.types.internal import from_column
from firesteel.types.logical import (
    LocalZonedTimestampType,
    LogicalType,
    MapType,
    RowField,
    RowType,
    VarBinaryType,
    VarCharType,
)

__all__ = ["METADATA", "KafkaTableSink"]

_DELETE, _UPDATE_BEFORE = 3, 1
_NANOS = 1_000_000
METADATA: dict[str, LogicalType] = {
    "headers": MapType(VarCharType(), VarBinaryType()),
    "timestamp": LocalZonedTimestampType(3),
}
"""The metadata that can be written."""


class _AsTheyAre(KafkaRecordSerializationSchema):
    """Records that are made already."""

    def serialize(self, element: Any, context: KafkaSinkContext, timestamp: int | None) -> KafkaProducerRecord:
        return element  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Records(RecordConverter):
    """Makes Kafka's records of rows."""

    topic: str
    row_type: RowType
    value_format: EncodingFormat
    key_format: EncodingFormat | None
    key_columns: tuple[tuple[str, str], ...]
    value_columns: tuple[str, ...]
    is_upsert: bool
    metadata: tuple[tuple[str, str], ...] = ()

    def open(self) -> Any:
        names = list(self.row_type.field_names)
        values = [names.index(name) for name in self.value_columns]
        keys = [names.index(name) for name, _ in self.key_columns]
        value_type = RowType([self.row_type.fields[index] for index in values], nullable=False)
        value_encoder = self.value_format.create_encoder(value_type)
        key_encoder = None
        if self.key_format is not None:
            fields = [RowField(inner, self.row_type.fields[names.index(name)].type) for name, inner in self.key_columns]
            key_encoder = self.key_format.create_encoder(RowType(fields, nullable=False))
        topic, is_upsert = self.topic, self.is_upsert
        places = {key: (names.index(name), METADATA[key]) for key, name in self.metadata}

        def convert(batch: ColumnBatch) -> list[KafkaProducerRecord]:
            kinds = batch.kinds
            if is_upsert and kinds is not None and (kinds == _UPDATE_BEFORE).any():
                batch = batch.take(np.flatnonzero(kinds != _UPDATE_BEFORE))
                kinds = batch.kinds
            messages = value_encoder.encode(ColumnBatch(batch.data.select(values), None if is_upsert else kinds))
            if is_upsert and kinds is not None:
                # a deletion is a record without a value
                messages = [
                    None if kind == _DELETE else message for kind, message in zip(kinds.tolist(), messages, strict=True)
                ]
            found: list[bytes | None] = [None] * len(messages)
            if key_encoder is not None:
                found = key_encoder.encode(ColumnBatch(batch.data.select(keys)))
            if not places:
                return [KafkaProducerRecord(topic, message, key) for message, key in zip(messages, found, strict=True)]
            none: list[Any] = [None] * len(messages)
            extra = {key: from_column(batch.data.column(place), type_) for key, (place, type_) in places.items()}
            rows = zip(messages, found, extra.get("headers", none), extra.get("timestamp", none), strict=True)
            return [
                KafkaProducerRecord(topic, message, key, _headers(headers), None if at is None else at // _NANOS)
                for message, key, headers, at in rows
            ]

        return convert


def _headers(values: dict[str, bytes | None] | None) -> list[tuple[str, bytes]] | None:
    """Headers of a map; those without a value are left out, as Flink does."""
    return None if values is None else [(name, value) for name, value in values.items() if value is not None]


@dataclass(frozen=True)
class KafkaTableSink(DynamicTableSink):
    """Writes rows to a topic."""

    topic: str
    properties: tuple[tuple[str, str], ...]
    value_format: EncodingFormat
    key_format: EncodingFormat | None
    key_columns: tuple[tuple[str, str], ...]
    value_columns: tuple[str, ...]
    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE
    prefix: str | None = None
    parallelism: int | None = None
    is_upsert: bool = False
    metadata: tuple[tuple[str, str], ...] = ()
    """The column of each key of metadata."""

    @property
    def writable_metadata(self) -> Mapping[str, LogicalType]:
        return METADATA

    def with_metadata(self, columns: Mapping[str, str]) -> KafkaTableSink:
        return replace(self, metadata=tuple(columns.items()))

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return ChangelogMode.upsert() if self.is_upsert else self.value_format.changelog_mode

    def consume(self, stream: Any, context: SinkContext) -> Any:
        builder = KafkaSink.builder().set_properties(dict(self.properties)).set_delivery_guarantee(self.guarantee)
        if self.prefix is not None:
            builder = builder.set_transactional_id_prefix(self.prefix)
        sink = builder.set_record_serializer(_AsTheyAre()).build()
        records = _Records(
            self.topic,
            context.row_type,
            self.value_format,
            self.key_format,
            self.key_columns,
            self.value_columns,
            self.is_upsert,
            self.metadata,
        )
        return add_sink(stream, records, sink, context, self.parallelism)

    def as_summary_string(self) -> str:
        return "Upsert-Kafka table sink" if self.is_upsert else "Kafka table sink"
