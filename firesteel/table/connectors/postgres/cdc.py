"""The connector ``postgres-cdc``: the rows of a table and the changes to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.option import ConfigOptions
from firesteel.connectors.postgres.cdc.change_record import RowDebeziumDeserializationSchema
from firesteel.connectors.postgres.cdc.options import StartupOptions
from firesteel.connectors.postgres.cdc.source import PostgresCdcSource
from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext
from firesteel.table.connector.options import option_of, required_option
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.connectors.postgres.rows import RowColumns
from firesteel.table.runtime.decoding_source import DecodingSource
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.datastream import DataStream

__all__ = ["FACTORY", "PostgresCdcTableSource"]

_key = ConfigOptions.key
HOSTNAME = _key("hostname").string_type().no_default_value()
PORT = _key("port").int_type().default_value(5432)
DATABASE = _key("database-name").string_type().no_default_value()
SCHEMA = _key("schema-name").string_type().no_default_value()
TABLE = _key("table-name").string_type().no_default_value()
USERNAME = _key("username").string_type().no_default_value()
PASSWORD = _key("password").string_type().no_default_value()
SLOT = _key("slot.name").string_type().no_default_value()
STARTUP = _key("scan.startup.mode").string_type().default_value("initial")
MODE = _key("changelog-mode").string_type().default_value("all")
_STARTUPS = {"initial": StartupOptions.initial, "latest-offset": StartupOptions.latest}


@dataclass(frozen=True)
class PostgresCdcTableSource(ScanTableSource):
    """Rows of all kinds, exactly once."""

    hostname: str
    port: int
    database: str
    table: str
    """With its schema."""
    username: str
    password: str
    slot: str
    type: RowType
    startup: str = "initial"

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return False

    @property
    def changelog_mode(self) -> ChangelogMode:
        return ChangelogMode.all()

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        builder = (
            PostgresCdcSource.builder()
            .hostname(self.hostname)
            .port(self.port)
            .database(self.database)
            .username(self.username)
            .password(self.password)
            .table_list(self.table)
            .slot_name(self.slot)
            .startup_options(_STARTUPS[self.startup]())
            .deserializer(RowDebeziumDeserializationSchema())
        )
        source = DecodingSource(builder.build(), RowColumns(self.type, has_kinds=True))
        strategy = context.watermark_strategy or WatermarkStrategy.no_watermarks()
        return context.environment.from_source(source, strategy, context.name)

    def with_projection(self, columns: Sequence[int]) -> PostgresCdcTableSource | None:
        if not columns:
            return None
        return replace(self, type=RowType([self.type.fields[column] for column in columns], nullable=False))

    def as_summary_string(self) -> str:
        return "PostgreSQL-CDC"


class _Factory(DynamicTableFactory):
    identifier = "postgres-cdc"
    required_options = tuple(option.key for option in (HOSTNAME, DATABASE, SCHEMA, TABLE, USERNAME, PASSWORD, SLOT))
    optional_options = (PORT.key, STARTUP.key, MODE.key)

    def create_source(self, context: FactoryContext) -> PostgresCdcTableSource:
        options = context.options
        startup = option_of(options, STARTUP)
        if startup not in _STARTUPS:
            raise ValidationError(
                f"Invalid value for option 'scan.startup.mode'. Supported values are "
                f"[{', '.join(_STARTUPS)}], but was: {startup}"
            )
        if option_of(options, MODE) != "all":
            raise ValidationError(
                "Connector 'postgres-cdc': only 'changelog-mode' = 'all' is supported.",
                hint="Set REPLICA IDENTITY FULL for the table.",
            )
        return PostgresCdcTableSource(
            required_option(options, HOSTNAME),
            option_of(options, PORT),
            required_option(options, DATABASE),
            f"{required_option(options, SCHEMA)}.{required_option(options, TABLE)}",
            required_option(options, USERNAME),
            required_option(options, PASSWORD),
            required_option(options, SLOT),
            context.physical_type,
            startup,
        )


FACTORY = _Factory()
