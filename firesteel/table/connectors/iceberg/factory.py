"""The options of the connector ``iceberg``, with the names of Iceberg's own connector for Flink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions
from firesteel.connectors.iceberg.catalog import catalog_properties
from firesteel.connectors.iceberg.scan import IcebergScan, ReadOptions, StartingStrategy
from firesteel.connectors.iceberg.table import IcebergTable
from firesteel.connectors.iceberg.types import fits
from firesteel.connectors.lakes.sink import check_columns
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext
from firesteel.table.connector.options import option_of
from firesteel.table.connectors.iceberg.creation import create_table
from firesteel.table.connectors.iceberg.spark_tables import spark_read
from firesteel.table.connectors.lakes.columns import check_source_columns
from firesteel.table.connectors.lakes.sink import SCHEMA_EVOLUTION, UPSERT, LakeTableSink
from firesteel.table.connectors.lakes.source import LakeTableSource
from firesteel.table.connectors.lakes.spark_tables import SparkLakeTable
from firesteel.table.connectors.sinks import PARALLELISM

__all__ = ["FACTORY", "IcebergTableSource"]

_key = ConfigOptions.key
CATALOG_NAME = _key("catalog-name").string_type().no_default_value()
DATABASE = _key("catalog-database").string_type().default_value("default")
TABLE = _key("catalog-table").string_type().no_default_value()
STREAMING = _key("streaming").boolean_type().no_default_value()
MONITOR_INTERVAL = _key("monitor-interval").duration_type().default_value(Duration.of_seconds(60))
STRATEGY = _key("starting-strategy").choice_type(*(one.value for one in StartingStrategy)).no_default_value()
SNAPSHOT_ID = _key("snapshot-id").long_type().no_default_value()
AS_OF_TIMESTAMP = _key("as-of-timestamp").long_type().no_default_value()
BRANCH = _key("branch").string_type().no_default_value()
TAG = _key("tag").string_type().no_default_value()
START_ID = _key("start-snapshot-id").long_type().no_default_value()
START_TIMESTAMP = _key("start-snapshot-timestamp").long_type().no_default_value()
END_ID = _key("end-snapshot-id").long_type().no_default_value()
SKIP_OVERWRITES = _key("streaming-skip-overwrite-snapshots").boolean_type().default_value(False)
SKIP_DELETES = _key("streaming-skip-delete-snapshots").boolean_type().default_value(False)
TARGET_SIZE = _key("target-file-size-bytes").long_type().no_default_value()
_OPTIONS = (
    DATABASE,
    TABLE,
    STREAMING,
    MONITOR_INTERVAL,
    STRATEGY,
    SNAPSHOT_ID,
    AS_OF_TIMESTAMP,
    BRANCH,
    TAG,
    START_ID,
    START_TIMESTAMP,
    END_ID,
    SKIP_OVERWRITES,
    SKIP_DELETES,
    TARGET_SIZE,
    UPSERT,
    SCHEMA_EVOLUTION,
    PARALLELISM,
)
CATALOG_OPTIONS = (
    "catalog-type",
    "catalog-impl",
    "uri",
    "warehouse",
    "token",
    "credential",
    "scope",
    "clients",
    "py-io-impl",
    "catalog.",
    "s3.",
    "gcs.",
    "adls.",
    "hdfs.",
    "io.",
    "rest.",
    "header.",
)
"""The options that are those of the catalog; a dot stands for all that begin so."""
TABLE_PROPERTIES = ("write.", "format-version", "commit.", "read.", "history.", "location")


@dataclass(frozen=True)
class IcebergTableSource(LakeTableSource):
    """Rows of a table of Iceberg."""

    table: IcebergTable | None = None
    options: ReadOptions = ReadOptions()  # noqa: RUF009 - immutable

    def scan(self) -> IcebergScan:
        assert self.table is not None
        return IcebergScan(self.table, self.type, self.options, self.conditions)

    def spark_read(self, session: Any) -> SparkLakeTable | str:
        return spark_read(self, session)

    def as_summary_string(self) -> str:
        return "Iceberg"


class _Factory(DynamicTableFactory):
    identifier = "iceberg"
    required_options = (CATALOG_NAME.key,)
    optional_options = (*(option.key for option in _OPTIONS), *CATALOG_OPTIONS, *TABLE_PROPERTIES)

    def create_source(self, context: FactoryContext) -> IcebergTableSource:
        table = table_of(context)
        check_source_columns(context.physical_type, table, fits)
        table.close()
        return IcebergTableSource(context.physical_type, (), table, _read_options(context))

    def create_sink(self, context: FactoryContext) -> LakeTableSink:
        options, key = context.options, context.schema.primary_key
        table = table_of(context)
        if not table.catalog.table_exists(table.identifier):
            create_table(
                table.catalog,
                table.identifier,
                context.physical_type,
                () if key is None else tuple(key.columns),
                context.partition_keys,
                {name: value for name, value in options.items() if name.startswith(TABLE_PROPERTIES)},
            )
        evolution = option_of(options, SCHEMA_EVOLUTION) or "refuse"
        check_columns(table, context.physical_type, evolution, fits=fits)
        upserts = option_of(options, UPSERT) or table.loaded.properties.get(UPSERT.key) == "true"
        is_partitioned = not table.loaded.spec().is_unpartitioned()
        table.close()
        return LakeTableSink(
            table,
            () if key is None else tuple(key.columns),
            upserts,
            option_of(options, PARALLELISM),
            context.is_streaming,
            is_partitioned,
        )


def table_of(context: FactoryContext) -> IcebergTable:
    """The table that options name: by default it has the name of the table of SQL."""
    options = context.options
    name = option_of(options, CATALOG_NAME)
    assert name is not None
    database = option_of(options, DATABASE)
    table = option_of(options, TABLE) or context.identifier.object_name
    try:
        properties = catalog_properties(options)
    except InvalidProgramError as error:
        raise ValidationError(error.message, hint=error.hint) from error
    return IcebergTable(name, properties, (*database.split("."), table), option_of(options, TARGET_SIZE))


def _read_options(context: FactoryContext) -> ReadOptions:
    options = context.options
    streaming = option_of(options, STREAMING)
    start_id, start_time = option_of(options, START_ID), option_of(options, START_TIMESTAMP)
    if not context.is_streaming and streaming:
        raise ValidationError("'streaming' = 'true' cannot be read in batch mode.", hint="Use streaming mode.")
    _check_exclusive(options, (SNAPSHOT_ID.key, AS_OF_TIMESTAMP.key, BRANCH.key, TAG.key, START_ID.key))
    strategy = option_of(options, STRATEGY)
    if strategy is None:
        strategy = StartingStrategy.INCREMENTAL_FROM_LATEST_SNAPSHOT.value
        if start_id is not None:
            strategy = StartingStrategy.INCREMENTAL_FROM_SNAPSHOT_ID.value
        elif start_time is not None:
            strategy = StartingStrategy.INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP.value
    found = StartingStrategy(strategy)
    for needed, value in (
        (StartingStrategy.INCREMENTAL_FROM_SNAPSHOT_ID, start_id),
        (StartingStrategy.INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP, start_time),
    ):
        if found is needed and value is None:
            option = START_ID.key if needed is StartingStrategy.INCREMENTAL_FROM_SNAPSHOT_ID else START_TIMESTAMP.key
            raise ValidationError(f"'starting-strategy' = '{found.value}' needs the option '{option}'.")
    if streaming and any(name in options for name in (SNAPSHOT_ID.key, AS_OF_TIMESTAMP.key, TAG.key)):
        raise ValidationError("A snapshot, a time or a tag cannot be read with 'streaming' = 'true'.")
    return ReadOptions(
        option_of(options, MONITOR_INTERVAL).to_millis() if streaming else None,
        found,
        option_of(options, SNAPSHOT_ID),
        option_of(options, AS_OF_TIMESTAMP),
        option_of(options, BRANCH),
        option_of(options, TAG),
        start_id,
        start_time,
        option_of(options, END_ID),
        option_of(options, SKIP_OVERWRITES),
        option_of(options, SKIP_DELETES),
        option_of(options, SCHEMA_EVOLUTION) == "refuse",
    )


def _check_exclusive(options: Mapping[str, str], names: tuple[str, ...]) -> None:
    given = [name for name in names if name in options]
    if len(given) > 1:
        raise ValidationError(f"Only one of the options {', '.join(given)} can be set.")


FACTORY = _Factory()
