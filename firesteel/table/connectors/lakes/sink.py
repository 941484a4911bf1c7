"""Sinks of tables in lakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from firesteel.config.option import ConfigOptions
from firesteel.connectors.lakes.columns import ColumnRows
from firesteel.connectors.lakes.sink import LakeSink
from firesteel.connectors.lakes.table import LakeTable
from firesteel.datastream.data_stream import parallelism_of
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connectors.sinks import add_sink
from firesteel.table.runtime.operators.to_records import RecordConverter

__all__ = ["SCHEMA_EVOLUTION", "UPSERT", "LakeTableSink"]

UPSERT = ConfigOptions.key("write.upsert.enabled").boolean_type().default_value(False)
SCHEMA_EVOLUTION = ConfigOptions.key("schema-evolution").choice_type("refuse", "apply").no_default_value()


@dataclass(frozen=True)
class _Columns(RecordConverter):
    """Hands over columns as one record."""

    def open(self) -> Any:
        def convert(batch: ColumnBatch) -> Sequence[ColumnRows]:
            return [ColumnRows(batch.data, batch.kinds)] if len(batch) else []

        return convert


@dataclass(frozen=True)
class LakeTableSink(DynamicTableSink):
    """Appends rows; changes of rows, and with ``upserts`` all rows, replace and delete rows by the primary key."""

    table: LakeTable
    key: tuple[str, ...] = ()
    upserts: bool = False
    parallelism: int | None = None
    is_streaming: bool = True
    is_partitioned: bool = False
    overwrites: bool = False

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        if self.upserts and not self.key:
            raise ValidationError(
                "Upserts need a primary key.", hint="Declare PRIMARY KEY (…) NOT ENFORCED in the table."
            )
        is_append = not self.key or (requested.is_insert_only and not self.upserts)
        return ChangelogMode.insert_only() if is_append else ChangelogMode.upsert()

    def consume(self, stream: Any, context: SinkContext) -> Any:
        key = self.key if self.upserts or not context.is_insert_only else ()
        if key:
            # one writer has all changes of a row, in their order
            names = context.row_type.field_names
            selector = ColumnKeySelector(tuple(names.index(name) for name in key))
            parallelism = self.parallelism or parallelism_of(stream._transformation)
            stream = type(stream)(stream._environment, stream._partition(KeyGroupPartitioner(selector)))
        else:
            parallelism = self.parallelism
        sink = LakeSink(self.table, key=key, overwrites=self.overwrites, by_partition=self.is_partitioned)
        return add_sink(stream, _Columns(), sink, replace(context, primary_key=()), parallelism)

    def with_partition(self, values: dict[str, str]) -> LakeTableSink:
        return self  # the values are columns of the rows

    def with_overwrite(self) -> LakeTableSink:
        if self.is_streaming:
            raise ValidationError("Unbounded data stream doesn't support overwrite operation.", hint="Use batch mode.")
        if self.upserts:
            raise ValidationError("INSERT OVERWRITE of a table with 'write.upsert.enabled' is not supported.")
        return replace(self, overwrites=True)

    def replacing_all(self) -> LakeTableSink:
        return replace(self.with_overwrite(), is_partitioned=False)

    def as_summary_string(self) -> str:
        return self.table.format_name
