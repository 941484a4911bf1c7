"""The catalog ``jdbc``: the tables of a PostgreSQL server, by database and by ``schema.table``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.config.configuration import Configuration
from firesteel.connectors.postgres.connection import PostgresConnectionOptions, connect, translating
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.catalog import Catalog
from firesteel.table.catalog.exceptions import CatalogException, DatabaseNotExistException, TableNotExistException
from firesteel.table.catalog.identifiers import ObjectPath
from firesteel.table.catalog.objects import CatalogBaseTable, CatalogDatabase
from firesteel.table.connector.factory import check_options
from firesteel.table.schema import Schema
from firesteel.types import logical as t

__all__ = ["PostgresCatalog", "create"]

_REQUIRED = ("default-database", "username", "password", "base-url")
_PREFIX = "jdbc:postgresql://"
_BUILT_IN_DATABASES = ("template0", "template1", "rdsadmin")
_BUILT_IN_SCHEMAS = ("pg_toast", "pg_temp_1", "pg_toast_temp_1", "pg_catalog", "information_schema")
_DEFAULT_SCHEMA = "public"
_PLAIN = re.compile("[a-z_][a-z0-9_]*")
_NUMERIC = (38, 18)
"""Precision and scale of numbers that are declared with neither."""
_SIMPLE: dict[str, Callable[[], t.LogicalType]] = {
    "bool": t.BooleanType,
    "bytea": lambda: t.VarBinaryType(t.MAX_LENGTH),
    "int2": t.SmallIntType,
    "int4": t.IntType,
    "int8": t.BigIntType,
    "float4": t.FloatType,
    "float8": t.DoubleType,
    "text": lambda: t.VarCharType(t.MAX_LENGTH),
    "date": t.DateType,
}
_TEMPORAL: dict[str, Callable[[int], t.LogicalType]] = {
    "timestamp": t.TimestampType,
    "timestamptz": t.LocalZonedTimestampType,
    "time": t.TimeType,
}
_COLUMNS = """
    SELECT a.attname, y.typname, e.typname, a.atttypmod, a.attnotnull
    FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid LEFT JOIN pg_type AS e ON e.oid = y.typelem
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEY = """
    SELECT c.conname, ARRAY(SELECT a.attname FROM unnest(c.conkey) WITH ORDINALITY AS k (num, place)
        JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = k.num ORDER BY k.place)
    FROM pg_constraint AS c WHERE c.conrelid = %s AND c.contype = 'p'
"""


def create(name: str, options: Mapping[str, str], configuration: Configuration) -> Catalog:  # noqa: ARG001
    """The catalog of the options of CREATE CATALOG."""
    own = {key: value for key, value in options.items() if key != "type"}
    check_options("jdbc", own, _REQUIRED, ())
    url = own["base-url"].rstrip("/")
    if not url.startswith(_PREFIX) or "/" in url.removeprefix(_PREFIX):
        raise ValidationError(
            f"Invalid value for option 'base-url': '{own['base-url']}'.",
            hint="It is the address of a PostgreSQL server without a database: 'jdbc:postgresql://host:5432'.",
        )
    return PostgresCatalog(name, own["default-database"], url, own["username"], own["password"])


class PostgresCatalog(Catalog):
    """Reads which tables there are whenever it is asked. Tables are not created or changed with it, as in Flink."""

    def __init__(self, name: str, default_database: str, base_url: str, username: str, password: str) -> None:
        super().__init__(name, default_database)
        self._base_url = base_url
        self._username = username
        self._password = password

    def open(self) -> None:
        """Checks that the server can be reached."""
        self._query(self.get_default_database(), "SELECT 1", ())

    def list_databases(self) -> list[str]:
        found = self._query(self.get_default_database(), "SELECT datname FROM pg_database ORDER BY datname", ())
        return [name for (name,) in found if name not in _BUILT_IN_DATABASES]

    def get_database(self, database_name: str) -> CatalogDatabase:
        if database_name not in self.list_databases():
            raise DatabaseNotExistException(self.name, database_name)
        return CatalogDatabase.create_instance({}, None)

    def list_tables(self, database_name: str) -> list[str]:
        self.get_database(database_name)
        found = self._query(
            database_name,
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
            "AND NOT table_schema = ANY(%s) ORDER BY table_schema, table_name",
            (list(_BUILT_IN_SCHEMAS),),
        )
        return [f"{schema}.{table}" for schema, table in found]

    def list_views(self, database_name: str) -> list[str]:
        self.get_database(database_name)
        return []

    def table_exists(self, table_path: ObjectPath) -> bool:
        if table_path.database_name not in self.list_databases():
            return False
        return self._identify(table_path) is not None

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        number = self._identify(table_path) if table_path.database_name in self.list_databases() else None
        if number is None:
            raise TableNotExistException(self.name, table_path)
        database = table_path.database_name
        builder = Schema.new_builder()
        for column, type_, element, modifier, is_required in self._query(database, _COLUMNS, (number,)):
            builder.column(column, self._type(table_path, column, type_, element, modifier, is_required))
        for constraint, columns in self._query(database, _KEY, (number,)):
            builder.primary_key_named(constraint, *columns)
        schema, table = _split(table_path.object_name)
        options = {
            "connector": "jdbc",
            "url": f"{self._base_url}/{database}",
            "table-name": f"{_written(schema)}.{_written(table)}",
            "username": self._username,
            "password": self._password,
        }
        return CatalogBaseTable.create_table(builder.build(), properties=options)

    def _type(
        self, path: ObjectPath, column: str, name: str, element: str | None, modifier: int, is_required: bool
    ) -> t.LogicalType:
        is_array = name.startswith("_") and element is not None
        found = _type_of(element if is_array and element is not None else name, modifier)
        if found is None:
            raise CatalogException(
                f"Doesn't support Postgres type '{name}' yet.",
                hint=f"It is that of the column '{column}' of {path} in catalog {self.name}. Declare the table with "
                "CREATE TABLE and other columns.",
            )
        type_ = t.ArrayType(found) if is_array else found
        return type_.copy(nullable=False) if is_required else type_

    def _identify(self, path: ObjectPath) -> int | None:
        """The number that the server has for a table."""
        schema, table = _split(path.object_name)
        found = self._query(
            path.database_name,
            "SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')",
            (schema, table),
        )
        return int(found[0][0]) if found else None

    def _query(self, database: str, text: str, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        url = f"{self._base_url}/{database}"
        try:
            options = PostgresConnectionOptions(url, self._username, self._password)
            with (
                connect(options, name=f"firesteel catalog {self.name}") as connection,
                translating("The tables of the catalog cannot be read", options.describe()),
            ):
                return connection.execute(text, arguments).fetchall()
        except (FiresteelError, InvalidProgramError) as error:
            raise CatalogException(
                f"The catalog '{self.name}' failed connecting to {url} via JDBC: {error.message}", hint=error.hint
            ) from error


def _type_of(name: str, modifier: int) -> t.LogicalType | None:
    """The type of Flink for one of PostgreSQL; None if there is none.

    >>> str(_type_of("numeric", (10 << 16 | 2) + 4)), str(_type_of("varchar", 24)), str(_type_of("timestamp", -1))
    ('DECIMAL(10, 2)', 'VARCHAR(20)', 'TIMESTAMP(6)')
    """
    if name in _SIMPLE:
        return _SIMPLE[name]()
    if name in _TEMPORAL:
        return _TEMPORAL[name](6 if modifier < 0 else modifier)
    match name:
        case "numeric":
            precision, scale = _NUMERIC if modifier < 0 else ((modifier - 4) >> 16, (modifier - 4) & 0xFFFF)
            return t.DecimalType(precision, scale)
        case "bpchar":
            return t.CharType(max(1, modifier - 4))
        case "varchar":
            return t.VarCharType(t.MAX_LENGTH if modifier < 0 else modifier - 4)
    return None


def _split(name: str) -> tuple[str, str]:
    """The schema and the name of a table."""
    schema, separator, table = name.partition(".")
    return (schema, table) if separator else (_DEFAULT_SCHEMA, name)


def _written(name: str) -> str:
    """The name as the connector takes it: in quotes unless it is plain.

    >>> print(_written("orders"), _written("My.Orders"))
    orders "My.Orders"
    """
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'
