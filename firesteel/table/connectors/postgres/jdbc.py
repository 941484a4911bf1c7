"""The connector ``jdbc``: tables of PostgreSQL, read, looked up and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.time import Duration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.option import ConfigOptions
from firesteel.connectors.postgres.connection import PostgresConnectionOptions
from firesteel.connectors.postgres.sink.sink import PostgresSink
from firesteel.connectors.postgres.source.source import PostgresSource
from firesteel.spi.sink import DeliveryGuarantee
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext
from firesteel.table.connector.lookups import FULL_CACHE_OPTIONS, FullCacheOptions
from firesteel.table.connector.options import option_of, required_option
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connector.source import LookupTableSource, ScanContext, ScanTableSource
from firesteel.table.connectors.postgres.conditions import condition_text
from firesteel.table.connectors.postgres.lookup import Cache, PostgresLookup
from firesteel.table.connectors.postgres.row_changes import PostgresRowChanges
from firesteel.table.connectors.postgres.rows import RowColumns, RowRecords
from firesteel.table.connectors.postgres.spark_tables import DRIVER, SparkTable, has_driver, spark_table
from firesteel.table.connectors.sinks import PARALLELISM, add_sink
from firesteel.table.runtime.decoding_source import DecodingSource
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.datastream import DataStream

__all__ = ["FACTORY", "JdbcTableSink", "JdbcTableSource"]

_key = ConfigOptions.key
URL = _key("url").string_type().no_default_value()
TABLE = _key("table-name").string_type().no_default_value()
USERNAME = _key("username").string_type().no_default_value()
PASSWORD = _key("password").string_type().no_default_value()
PARTITION_COLUMN = _key("scan.partition.column").string_type().no_default_value()
PARTITIONS = _key("scan.partition.num").int_type().no_default_value()
LOWER = _key("scan.partition.lower-bound").long_type().no_default_value()
UPPER = _key("scan.partition.upper-bound").long_type().no_default_value()
FETCH_SIZE = _key("scan.fetch-size").int_type().no_default_value()
CACHE = _key("lookup.cache").string_type().default_value("NONE")
CACHE_ROWS = _key("lookup.partial-cache.max-rows").long_type().no_default_value()
CACHE_WRITE = _key("lookup.partial-cache.expire-after-write").duration_type().no_default_value()
CACHE_ACCESS = _key("lookup.partial-cache.expire-after-access").duration_type().no_default_value()
CACHE_MISSING = _key("lookup.partial-cache.cache-missing-key").boolean_type().default_value(True)
MAX_ROWS = _key("sink.buffer-flush.max-rows").int_type().default_value(100)
INTERVAL = _key("sink.buffer-flush.interval").duration_type().default_value(Duration.of_seconds(1))
RETRIES = _key("sink.max-retries").int_type().default_value(3)
GUARANTEE = _key("sink.delivery-guarantee").choice_type("at-least-once", "exactly-once").default_value("at-least-once")
_OPTIONS = (
    USERNAME,
    PASSWORD,
    PARTITION_COLUMN,
    PARTITIONS,
    LOWER,
    UPPER,
    FETCH_SIZE,
    CACHE,
    CACHE_ROWS,
    CACHE_WRITE,
    CACHE_ACCESS,
    CACHE_MISSING,
    MAX_ROWS,
    INTERVAL,
    RETRIES,
    GUARANTEE,
    PARALLELISM,
)


@dataclass(frozen=True)
class Partitions:
    """How a scan is cut."""

    column: str
    count: int
    lower: int
    upper: int


@dataclass(frozen=True)
class JdbcTableSource(ScanTableSource, LookupTableSource):
    """The rows of a table, once."""

    url: str
    username: str | None
    password: str | None
    table: str
    type: RowType
    partitions: Partitions | None = None
    fetch_size: int | None = None
    cache: Cache | None = None
    full_cache: FullCacheOptions | None = None
    conditions: tuple[str, ...] = ()
    """In PostgreSQL's SQL; Spark's reader leaves out rows that do not meet them."""
    limit: int | None = None
    """So many rows are enough for Spark's reader."""

    @property
    def lookup_cache(self) -> FullCacheOptions | None:
        return self.full_cache

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return True

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        builder = PostgresSource.builder().set_url(self.url).set_table(self.table)
        builder = builder.set_columns(*self.type.field_names)
        if self.username is not None:
            builder = builder.set_username(self.username)
        if self.password is not None:
            builder = builder.set_password(self.password)
        if self.fetch_size:
            builder = builder.set_fetch_size(self.fetch_size)
        cut = self.partitions
        if cut is not None:
            builder = builder.set_partition_column(
                cut.column, lower_bound=cut.lower, upper_bound=cut.upper, partitions=cut.count
            )
        source = DecodingSource(builder.build(), RowColumns(self.type))
        strategy = context.watermark_strategy or WatermarkStrategy.no_watermarks()
        stream = context.environment.from_source(source, strategy, context.name)
        return stream if cut is not None else stream.force_non_parallel()

    def with_projection(self, columns: Sequence[int]) -> JdbcTableSource | None:
        if not columns:
            return None
        return replace(self, type=RowType([self.type.fields[column] for column in columns], nullable=False))

    def narrowed(self, conditions: Sequence[Expression], limit: int | None) -> JdbcTableSource:
        texts = tuple(text for text in map(condition_text, conditions) if text is not None)
        return replace(self, conditions=texts, limit=limit)

    def to_dataframe(self, session: Any) -> Any:
        found = self._spark_table(session)
        return None if isinstance(found, str) else found.dataframe(session)

    def spark_reader(self, session: Any) -> str:
        found = self._spark_table(session)
        return f"a job of Firesteel: {found}" if isinstance(found, str) else found.describe()

    def _spark_table(self, session: Any) -> SparkTable | str:
        if session is not None and not has_driver(session):
            return f"the session of Spark has no {DRIVER}"
        return spark_table(self)

    def create_lookup(self, key_columns: Sequence[int]) -> PostgresLookup:
        connection = PostgresConnectionOptions(self.url, self.username, self.password)
        return PostgresLookup(connection, self.table, self.type, key_columns, self.cache)

    def as_summary_string(self) -> str:
        return "JDBC:PostgreSQL"


@dataclass(frozen=True)
class JdbcTableSink(DynamicTableSink):
    """Appends rows; with a primary key rows are replaced and deleted by it."""

    url: str
    username: str | None
    password: str | None
    table: str
    key: tuple[str, ...] = ()
    max_rows: int = 100
    interval_ms: int = 1000
    max_retries: int = 3
    parallelism: int | None = None
    guarantee: DeliveryGuarantee = DeliveryGuarantee.AT_LEAST_ONCE

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return ChangelogMode.upsert() if self.key else ChangelogMode.insert_only()

    def consume(self, stream: Any, context: SinkContext) -> Any:
        builder = PostgresSink.builder().set_url(self.url).set_table(self.table)
        builder = builder.set_columns(*context.row_type.field_names).set_max_retries(self.max_retries)
        builder = builder.set_delivery_guarantee(self.guarantee)
        if self.username is not None:
            builder = builder.set_username(self.username)
        if self.password is not None:
            builder = builder.set_password(self.password)
        if self.max_rows:
            builder = builder.set_batch_size(self.max_rows)
        if self.interval_ms:
            builder = builder.set_batch_interval_ms(self.interval_ms)
        if self.key:
            builder = builder.set_upsert_key(*self.key)
        return add_sink(stream, RowRecords(context.row_type), builder.build(), context, self.parallelism)

    def row_changes(self) -> PostgresRowChanges:
        if not self.key:
            raise ValidationError(
                f"Rows of the table '{self.table}' can be changed only by its primary key.",
                hint="Declare PRIMARY KEY (…) NOT ENFORCED.",
            )
        return self._changes()

    def truncate(self) -> bool:
        self._changes().truncate()
        return True

    def _changes(self) -> PostgresRowChanges:
        connection = PostgresConnectionOptions(self.url, self.username, self.password)
        return PostgresRowChanges(connection, self.table, self.key)

    def as_summary_string(self) -> str:
        return "JDBC:PostgreSQL"


class _Factory(DynamicTableFactory):
    identifier = "jdbc"
    required_options = (URL.key, TABLE.key)
    optional_options = (*(option.key for option in _OPTIONS), *FULL_CACHE_OPTIONS)

    def create_source(self, context: FactoryContext) -> JdbcTableSource:
        options = context.options
        return JdbcTableSource(
            _url(options),
            option_of(options, USERNAME),
            option_of(options, PASSWORD),
            required_option(options, TABLE),
            context.physical_type,
            _partitions(options),
            option_of(options, FETCH_SIZE),
            _cache(options),
            FullCacheOptions.of(options) if option_of(options, CACHE).upper() == "FULL" else None,
        )

    def create_sink(self, context: FactoryContext) -> JdbcTableSink:
        options, key = context.options, context.schema.primary_key
        return JdbcTableSink(
            _url(options),
            option_of(options, USERNAME),
            option_of(options, PASSWORD),
            required_option(options, TABLE),
            () if key is None else tuple(key.columns),
            option_of(options, MAX_ROWS),
            option_of(options, INTERVAL).to_millis(),
            option_of(options, RETRIES),
            option_of(options, PARALLELISM),
            DeliveryGuarantee(option_of(options, GUARANTEE)),
        )


def _url(options: Mapping[str, str]) -> str:
    url = required_option(options, URL)
    if not url.startswith(("jdbc:postgresql:", "postgresql:", "postgres:")):
        raise ValidationError(
            f"Could not find any jdbc dialect factory that can handle url '{url}'.",
            hint="There is PostgreSQL: 'jdbc:postgresql://host:5432/database'.",
        )
    try:
        PostgresConnectionOptions(url, options.get("username"), options.get("password"))
    except InvalidProgramError as error:
        raise ValidationError(f"Invalid value for option 'url'.\n\n{error}") from None
    return url


def _partitions(options: Mapping[str, str]) -> Partitions | None:
    keys = [option.key for option in (PARTITION_COLUMN, PARTITIONS, LOWER, UPPER)]
    given = [key for key in keys if key in options]
    if not given:
        return None
    if len(given) < len(keys):
        raise ValidationError(f"Either all or none of the following options should be provided:\n{chr(10).join(keys)}")
    lower, upper = required_option(options, LOWER), required_option(options, UPPER)
    if lower > upper:
        raise ValidationError(
            f"'scan.partition.lower-bound'='{lower}' must not be larger than 'scan.partition.upper-bound'='{upper}'."
        )
    return Partitions(required_option(options, PARTITION_COLUMN), required_option(options, PARTITIONS), lower, upper)


def _cache(options: Mapping[str, str]) -> Cache | None:
    kind = option_of(options, CACHE).upper()
    if kind in ("NONE", "FULL"):
        return None
    if kind != "PARTIAL":
        raise ValidationError(f"The lookup cache '{kind}' is not supported.", hint="Known: NONE, PARTIAL, FULL.")
    written, used = option_of(options, CACHE_WRITE), option_of(options, CACHE_ACCESS)
    return Cache(
        option_of(options, CACHE_ROWS),
        None if written is None else written.to_millis(),
        None if used is None else used.to_millis(),
        option_of(options, CACHE_MISSING),
    )


FACTORY = _Factory()
