"""The catalog ``spark`` and the connector ``spark``: tables of the catalogs of the program's Spark session."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import FiresteelError
from firesteel.config.configuration import Configuration
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.catalog import Catalog
from firesteel.table.catalog.exceptions import CatalogException, DatabaseNotExistException, TableNotExistException
from firesteel.table.catalog.identifiers import ObjectPath
from firesteel.table.catalog.objects import CatalogBaseTable, CatalogDatabase
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext, check_options, find_factory
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.environment.planning.streams import DataStreamSource
from firesteel.table.names import quoted
from firesteel.table.schema import Schema
from firesteel.types.arrow_decoding import record_type
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.datastream import DataStream

__all__ = ["FACTORY", "SparkCatalog", "SparkTableSource", "create"]

_SPARK_SQL = "firesteel.spark.sql"
_DATAFRAMES = "firesteel.spark.dataframes.source"
_SESSION_CATALOG = "spark_catalog"
_MONITOR_INTERVAL = "source.monitor-interval"
_FILE_FORMATS = ("parquet", "orc")
"""Providers whose files hold the same values for Spark and for the connector ``filesystem``; texts do not."""


def create(name: str, options: Mapping[str, str], configuration: Configuration) -> Catalog:
    """The catalog of the options of CREATE CATALOG."""
    own = {key: value for key, value in options.items() if key != "type"}
    check_options("spark", own, (), ("catalog", "default-database"))
    database = own.get("default-database", "default")
    return SparkCatalog(name, database, own.get("catalog", _SESSION_CATALOG), configuration)


class SparkCatalog(Catalog):
    """The tables of one catalog of Spark. They are read by Spark, and not created or changed with this catalog."""

    def __init__(self, name: str, default_database: str, catalog: str, configuration: Configuration) -> None:
        super().__init__(name, default_database)
        self._catalog = catalog
        self._configuration = configuration

    def open(self) -> None:
        """Checks that Spark has the catalog."""
        self._rows(f"SHOW NAMESPACES IN {quoted(self._catalog)}")

    def list_databases(self) -> list[str]:
        return [row[0].strip("`") for row in self._rows(f"SHOW NAMESPACES IN {quoted(self._catalog)}")]

    def get_database(self, database_name: str) -> CatalogDatabase:
        if database_name not in self.list_databases():
            raise DatabaseNotExistException(self.name, database_name)
        return CatalogDatabase.create_instance({}, None)

    def list_tables(self, database_name: str) -> list[str]:
        self.get_database(database_name)
        rows = self._rows(f"SHOW TABLES IN {quoted(self._catalog)}.{quoted(database_name)}")
        return sorted(row["tableName"] for row in rows if not row["isTemporary"])

    def list_views(self, database_name: str) -> list[str]:
        self.get_database(database_name)
        return []

    def table_exists(self, table_path: ObjectPath) -> bool:
        database = table_path.database_name
        return database in self.list_databases() and table_path.object_name in self.list_tables(database)

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        if not self.table_exists(table_path):
            raise TableNotExistException(self.name, table_path)
        table = ".".join(map(quoted, (self._catalog, table_path.database_name, table_path.object_name)))
        row_type = _row_type(self._session().table(table))
        builder = Schema.new_builder().from_fields(row_type.field_names, row_type.children())
        return CatalogBaseTable.create_table(builder.build(), properties={"connector": "spark", "table": table})

    def _session(self) -> Any:
        return importlib.import_module(_SPARK_SQL).get_session(self._configuration)

    def _rows(self, text: str) -> list[Any]:
        spark: Any = importlib.import_module(_SPARK_SQL)
        try:
            return list(spark.query(self._session(), text, {}, {}).collect())
        except FiresteelError as error:
            raise CatalogException(
                f"The catalog '{self.name}' cannot read the catalog '{self._catalog}' of Spark: {error.message}"
            ) from error


def _row_type(dataframe: Any) -> RowType:
    schema = importlib.import_module(_DATAFRAMES).arrow_schema_of(dataframe)
    type_: Any = record_type(schema, False).to_logical()
    return RowType(type_.fields, nullable=False)


@dataclass(frozen=True)
class SparkTableSource(ScanTableSource):
    """All rows of a table, as Spark reads them."""

    table: str
    """The name in Spark SQL."""
    type: RowType
    configuration: Configuration

    def __hash__(self) -> int:
        return hash((self.table, self.type))

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        return True

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        session = importlib.import_module(_SPARK_SQL).get_session(self.configuration)
        stream = context.environment.from_dataframe(self.to_dataframe(session))
        source = DataStreamSource(stream, self.type, ChangelogMode.insert_only())
        return source.create_stream(context)

    def to_dataframe(self, session: Any) -> Any:
        return session.table(self.table).select(*map(quoted, self.type.field_names))

    def spark_reader(self, session: Any) -> str:
        return f"Spark, as the table {self.table}"

    def with_projection(self, columns: Sequence[int]) -> SparkTableSource | None:
        if not columns:
            return None
        return replace(self, type=RowType([self.type.fields[column] for column in columns], nullable=False))

    def as_summary_string(self) -> str:
        return "Spark"


class _Factory(DynamicTableFactory):
    identifier = "spark"
    required_options = ("table",)
    optional_options = (_MONITOR_INTERVAL,)

    def create_source(self, context: FactoryContext) -> ScanTableSource:
        if _MONITOR_INTERVAL in context.options:
            return _unbounded(context)
        return SparkTableSource(context.options["table"], context.physical_type, context.configuration)


def _unbounded(context: FactoryContext) -> ScanTableSource:
    """The files of a table of Spark, with those that are added to it later."""
    table = context.options["table"]
    if not context.is_streaming:
        raise ValidationError(f"'{_MONITOR_INTERVAL}' of the table {table} is for streaming mode.")
    session = importlib.import_module(_SPARK_SQL).get_session(context.configuration)
    rows = [(row[0], row[1]) for row in session.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()]
    described = dict(rows)
    provider, location = described.get("Provider", "").lower(), described.get("Location")
    if provider not in _FILE_FORMATS or not location:
        raise ValidationError(
            f"The table {table} of Spark cannot be read as it grows: its provider is '{provider or 'unknown'}', and "
            f"only files of {' and '.join(_FILE_FORMATS)} can.",
            hint="Declare it with CREATE TABLE and a connector of its own (iceberg, delta, kafka, jdbc, filesystem), "
            f"or leave '{_MONITOR_INTERVAL}' out: then its rows of now are read.",
        )
    names = [name for name, _ in rows]
    partitions = names[names.index("# Partition Information") + 2 :] if "# Partition Information" in names else []
    keys = tuple(itertools.takewhile(lambda name: name and not name.startswith("#"), partitions))
    options = {"path": location, "format": provider, _MONITOR_INTERVAL: context.options[_MONITOR_INTERVAL]}
    files = find_factory(replace(context, options=options, partition_keys=keys), "filesystem")
    source = files.create_source(replace(context, options=options, partition_keys=keys))
    assert isinstance(source, ScanTableSource)
    return source


FACTORY = _Factory()
