"""The source of the connectors ``kafka`` and ``upsert-kafka``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from firesteel.common.serialization import ByteArraySchema
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.kafka.source.deserialization import ConsumerRecord, KafkaRecordDeserializationSchema
from firesteel.connectors.kafka.source.offsets import KafkaOffsetsInitializer
from firesteel.connectors.kafka.source.source import KafkaSource
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.format import DecodingFormat
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.runtime.decoding_source import BatchDecoder, DecodingSource
from firesteel.table.runtime.operators.ranks.normalize import NormalizeSpec
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema, to_column
from firesteel.types.logical import LogicalType, RowField, RowType

if TYPE_CHECKING:
    from firesteel.datastream import DataStream

__all__ = ["METADATA", "KafkaTableSource", "Subscription"]

METADATA = ("topic", "partition", "headers", "offset", "timestamp")
"""The keys of metadata that can be read."""
_DELETE, _UPDATE_AFTER = 3, 2


@dataclass(frozen=True)
class Subscription:
    """What is read: topics or a pattern, from where to where."""

    topics: tuple[str, ...]
    pattern: str | None
    properties: tuple[tuple[str, str], ...]
    start: KafkaOffsetsInitializer = field(compare=False)
    stop: KafkaOffsetsInitializer | None = field(default=None, compare=False)
    described: str = ""
    """The offsets as options have them, by which subscriptions are compared."""

    def source(self, deserializer: KafkaRecordDeserializationSchema) -> KafkaSource:
        """The source of whole records or of values."""
        builder = KafkaSource.builder().set_properties(dict(self.properties)).set_starting_offsets(self.start)
        builder = builder.set_topics(*self.topics) if self.pattern is None else builder.set_topic_pattern(self.pattern)
        if self.stop is not None:
            builder = builder.set_bounded(self.stop)
        return builder.set_deserializer(deserializer).build()


class _WholeRecords(KafkaRecordDeserializationSchema):
    """Records as Kafka has them."""

    def deserialize(self, record: ConsumerRecord, out: Any) -> None:
        out.collect(record)


@dataclass(frozen=True)
class KafkaTableSource(ScanTableSource):
    """The records of topics: columns of their values, of their keys, and metadata."""

    subscription: Subscription
    type: RowType
    value_format: DecodingFormat
    key_format: DecodingFormat | None = None
    key_columns: tuple[tuple[str, str], ...] = ()
    """Columns that are read from the key, each with the name that it has there."""
    metadata_columns: tuple[tuple[str, str], ...] = ()
    is_upsert: bool = False
    supports_watermark_push_down = True
    emits_watermarks_periodically = True

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return self.subscription.stop is not None

    @property
    def changelog_mode(self) -> ChangelogMode:
        return ChangelogMode.all() if self.is_upsert else self.value_format.changelog_mode

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        whole = self.is_upsert or self.metadata_columns or self.reads_keys
        deserializer = _WholeRecords() if whole else KafkaRecordDeserializationSchema.value_only(ByteArraySchema())
        source = DecodingSource(self.subscription.source(deserializer), KafkaDecoder(self, bool(whole)))
        strategy = context.watermark_strategy or WatermarkStrategy.no_watermarks()
        stream = context.environment.from_source(source, strategy, context.name)
        return self._normalized(stream) if self.is_upsert else stream

    def _normalized(self, stream: DataStream[Any]) -> DataStream[Any]:
        """Upserts as a changelog: the rows before updates, and whole rows for deletions."""
        from firesteel.datastream.streams.keyed_stream import KeyedStream

        places = tuple(self.type.field_names.index(name) for name, _ in self.key_columns)
        selector = ColumnKeySelector(places)
        partition = stream._partition(KeyGroupPartitioner(selector))
        keyed = KeyedStream(stream._environment, partition, selector, None, stream)  # type: ignore[arg-type]
        return keyed._transform("ChangelogNormalize", NormalizeSpec(places, self.type), None)

    @property
    def reads_keys(self) -> bool:
        """Whether a column is read from keys."""
        keys = dict(self.key_columns)
        return any(part.name in keys for part in self.type.fields)

    def with_projection(self, columns: Sequence[int]) -> KafkaTableSource | None:
        kept = {self.type.fields[column].name for column in columns}
        if not columns or (self.is_upsert and not all(name in kept for name, _ in self.key_columns)):
            return None
        return replace(self, type=RowType([self.type.fields[column] for column in columns], nullable=False))

    def with_metadata(self, keys: Sequence[str], produced_type: RowType) -> KafkaTableSource:
        for key in keys:
            if key not in METADATA:
                raise ValidationError(
                    f"Invalid metadata key '{key}' of connector 'kafka'.", hint=f"Known: {', '.join(METADATA)}."
                )
        names = produced_type.field_names[len(produced_type.fields) - len(keys) :]
        return replace(self, type=produced_type, metadata_columns=tuple(zip(names, keys, strict=True)))

    def as_summary_string(self) -> str:
        return "Upsert-Kafka table source" if self.is_upsert else "Kafka table source"


class KafkaDecoder(BatchDecoder):
    """Makes columns of records, or of values alone."""

    def __init__(self, source: KafkaTableSource, gets_records: bool) -> None:
        self._source = source
        self._gets_records = gets_records

    def open(self) -> None:
        source = self._source
        keys, metadata = dict(source.key_columns), dict(source.metadata_columns)
        fields = source.type.fields
        self._key_type = RowType(
            [RowField(keys[part.name], part.type) for part in fields if part.name in keys], nullable=False
        )
        self._value_type = RowType(
            [part for part in fields if part.name not in keys and part.name not in metadata], nullable=False
        )
        self._places: list[tuple[str, Any]] = [
            ("key", self._key_type.field_names.index(keys[part.name]))
            if part.name in keys
            else ("metadata", metadata[part.name])
            if part.name in metadata
            else ("value", self._value_type.field_names.index(part.name))
            for part in fields
        ]
        self._values = source.value_format.create_decoder(self._value_type)
        self._keys = None
        if self._key_type.fields:
            assert source.key_format is not None
            self._keys = source.key_format.create_decoder(self._key_type)
        self._schema = columns_schema(source.type)

    def to_columns(self, values: Sequence[Any], split_id: str) -> ColumnBatch | None:
        messages = [record.value for record in values] if self._gets_records else values
        decoded = self._values.decode(messages)
        if not self._gets_records:
            return ColumnBatch(decoded.data, decoded.kinds)
        if self._source.is_upsert:
            return self._upserts(values, decoded)
        places = np.arange(len(values)) if decoded.messages is None else decoded.messages
        return ColumnBatch(self._batch(values, places, decoded.data.columns), decoded.kinds)

    def _upserts(self, records: Sequence[ConsumerRecord], decoded: Any) -> ColumnBatch:
        """Rows of values are updates; those of records without one are deletions, which have the key alone."""
        pa = require_pyarrow("SQL")
        places = np.arange(len(records)) if decoded.messages is None else decoded.messages
        gone = np.array([place for place, record in enumerate(records) if record.value is None], np.int64)
        kinds = np.concatenate([np.full(len(places), _UPDATE_AFTER), np.full(len(gone), _DELETE)]).astype(np.int8)
        together = np.concatenate([places, gone]).astype(np.int64)
        order = np.argsort(together, kind="stable")
        columns = [
            pa.concat_arrays([column, pa.nulls(len(gone), column.type)]).take(pa.array(order))
            for column in decoded.data.columns
        ]
        return ColumnBatch(self._batch(records, together[order], columns), kinds[order])

    def _batch(self, records: Sequence[ConsumerRecord], places: Any, value_columns: Sequence[Any]) -> Any:
        pa = require_pyarrow("SQL")
        chosen = [records[place] for place in places.tolist()]
        keys: Any = None
        if self._keys is not None:
            decoded = self._keys.decode([record.key for record in chosen])
            keys = decoded.data.columns
            if decoded.messages is not None:
                # records without a key have null in its columns
                back = np.full(len(chosen), -1)
                back[decoded.messages] = np.arange(len(decoded.messages))
                indexes = pa.array(np.maximum(back, 0), mask=back < 0)
                keys = [column.take(indexes) for column in keys]
        columns = []
        for (kind, place), part in zip(self._places, self._source.type.fields, strict=True):
            if kind == "metadata":
                columns.append(_metadata(chosen, str(place), part.type))
            else:
                columns.append((keys if kind == "key" else value_columns)[place])
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _metadata(records: Sequence[ConsumerRecord], key: str, type_: LogicalType) -> Any:
    if key == "timestamp":
        return to_column([record.timestamp * 1_000_000 for record in records], type_)
    if key == "headers":
        return to_column([dict(record.headers) for record in records], type_)
    return to_column([getattr(record, key) for record in records], type_)
