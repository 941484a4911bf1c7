"""The options of the connector ``delta``, with the names of Delta's own connector for Flink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.config.option import ConfigOptions
from firesteel.connectors.delta.scan import DeltaScan, ReadOptions
from firesteel.connectors.delta.source import DEFAULT_CHECK_INTERVAL_MS
from firesteel.connectors.delta.table import DeltaTable
from firesteel.connectors.delta.types import fits
from firesteel.connectors.lakes.sink import check_columns
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext
from firesteel.table.connector.options import option_of, required_option
from firesteel.table.connectors.delta.spark_tables import spark_read
from firesteel.table.connectors.lakes.columns import check_source_columns
from firesteel.table.connectors.lakes.sink import SCHEMA_EVOLUTION, UPSERT, LakeTableSink
from firesteel.table.connectors.lakes.source import LakeTableSource
from firesteel.table.connectors.lakes.spark_tables import SparkLakeTable
from firesteel.table.connectors.sinks import PARALLELISM

__all__ = ["FACTORY", "DeltaTableSource"]

_key = ConfigOptions.key
PATH = _key("table-path").string_type().no_default_value()
MODE = _key("mode").choice_type("batch", "streaming").default_value("batch")
VERSION = _key("versionAsOf").long_type().no_default_value()
TIMESTAMP = _key("timestampAsOf").string_type().no_default_value()
STARTING_VERSION = _key("startingVersion").string_type().no_default_value()
STARTING_TIMESTAMP = _key("startingTimestamp").string_type().no_default_value()
INTERVAL = _key("updateCheckIntervalMillis").long_type().default_value(DEFAULT_CHECK_INTERVAL_MS)
IGNORE_DELETES = _key("ignoreDeletes").boolean_type().default_value(False)
IGNORE_CHANGES = _key("ignoreChanges").boolean_type().default_value(False)
READ_CHANGES = _key("readChangeFeed").boolean_type().default_value(False)
TARGET_SIZE = _key("targetFileSize").long_type().no_default_value()
_OPTIONS = (
    MODE,
    VERSION,
    TIMESTAMP,
    STARTING_VERSION,
    STARTING_TIMESTAMP,
    INTERVAL,
    IGNORE_DELETES,
    IGNORE_CHANGES,
    READ_CHANGES,
    TARGET_SIZE,
    UPSERT,
    SCHEMA_EVOLUTION,
    PARALLELISM,
)
_STORAGE = "storage."
"""Options that begin so are those of deltalake's store, such as ``storage.AWS_ENDPOINT_URL``."""
_PROPERTIES = "delta."
"""And these the properties of a new table."""


@dataclass(frozen=True)
class DeltaTableSource(LakeTableSource):
    """Rows of a table of Delta Lake."""

    table: DeltaTable | None = None
    options: ReadOptions = ReadOptions()  # noqa: RUF009 - immutable

    def scan(self) -> DeltaScan:
        assert self.table is not None
        return DeltaScan(self.table, self.type, self.options, self.conditions)

    @property
    def changelog_mode(self) -> ChangelogMode:
        return ChangelogMode.all() if self.options.reads_changes else ChangelogMode.insert_only()

    def spark_read(self, session: Any) -> SparkLakeTable | str:
        return spark_read(self, session)

    def as_summary_string(self) -> str:
        return "Delta"


class _Factory(DynamicTableFactory):
    identifier = "delta"
    required_options = (PATH.key,)
    optional_options = (*(option.key for option in _OPTIONS), _STORAGE, _PROPERTIES)

    def create_source(self, context: FactoryContext) -> DeltaTableSource:
        table = _table(context)
        check_source_columns(context.physical_type, table, fits)
        table.close()
        return DeltaTableSource(context.physical_type, (), table, _read_options(context))

    def create_sink(self, context: FactoryContext) -> LakeTableSink:
        options, key = context.options, context.schema.primary_key
        table = _table(context)
        if not table.exists():
            properties = {name: value for name, value in options.items() if name.startswith(_PROPERTIES)}
            try:
                table.create(context.physical_type, context.partition_keys, properties)
            except InvalidProgramError as error:
                raise ValidationError(error.message, hint=error.hint) from error
        check_columns(table, context.physical_type, option_of(options, SCHEMA_EVOLUTION) or "refuse", fits=fits)
        partitions = table.partition_columns()
        table.close()
        if context.partition_keys and list(context.partition_keys) != partitions:
            raise ValidationError(
                f"{table.describe()} is partitioned by {', '.join(partitions) or 'nothing'}, and not by "
                f"{', '.join(context.partition_keys)}."
            )
        return LakeTableSink(
            table,
            () if key is None else tuple(key.columns),
            option_of(options, UPSERT),
            option_of(options, PARALLELISM),
            context.is_streaming,
            bool(partitions),
        )


def _table(context: FactoryContext) -> DeltaTable:
    options = context.options
    storage = {name.removeprefix(_STORAGE): value for name, value in options.items() if name.startswith(_STORAGE)}
    return DeltaTable(required_option(options, PATH), storage, option_of(options, TARGET_SIZE))


def _read_options(context: FactoryContext) -> ReadOptions:
    options = context.options
    streaming = option_of(options, MODE) == "streaming"
    if streaming and not context.is_streaming:
        raise ValidationError("'mode' = 'streaming' cannot be read in batch mode.", hint="Use streaming mode.")
    pairs = ((VERSION, TIMESTAMP), (STARTING_VERSION, STARTING_TIMESTAMP))
    for one, other in pairs:
        if one.key in options and other.key in options:
            raise ValidationError(f"Only one of the options {one.key} and {other.key} can be set.")
    wrong = pairs[0] if streaming else pairs[1]
    changes = option_of(options, READ_CHANGES)
    for option in wrong:
        if option.key in options and not (changes and option is STARTING_VERSION):
            raise ValidationError(
                f"The option '{option.key}' is not one of 'mode' = '{'streaming' if streaming else 'batch'}'."
            )
    start = option_of(options, STARTING_VERSION)
    if start is not None and start != "latest" and not start.isdigit():
        raise ValidationError(
            f"Invalid value for option 'startingVersion'.\n\n'{start}' is no version.", hint="A number, or 'latest'."
        )
    if not context.is_streaming and changes:
        raise ValidationError("Changes cannot be read in batch mode.", hint="Use streaming mode.")
    return ReadOptions(
        option_of(options, INTERVAL) if streaming else None,
        option_of(options, VERSION),
        option_of(options, TIMESTAMP),
        start if start is None or start == "latest" else int(start),
        option_of(options, STARTING_TIMESTAMP),
        option_of(options, IGNORE_DELETES),
        option_of(options, IGNORE_CHANGES),
        changes,
        option_of(options, SCHEMA_EVOLUTION) == "refuse",
    )


FACTORY = _Factory()
