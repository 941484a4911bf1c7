"""The catalog ``iceberg``: databases and tables of a catalog of Iceberg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.config.configuration import Configuration
from firesteel.connectors.iceberg.catalog import catalog_properties, load_catalog
from firesteel.connectors.iceberg.types import row_type_of
from firesteel.connectors.lakes.errors import nearest
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.catalog import Catalog
from firesteel.table.catalog.exceptions import (
    CatalogException,
    DatabaseAlreadyExistException,
    DatabaseNotEmptyException,
    DatabaseNotExistException,
    TableAlreadyExistException,
    TableNotExistException,
)
from firesteel.table.catalog.identifiers import ObjectPath
from firesteel.table.catalog.objects import CatalogBaseTable, CatalogDatabase
from firesteel.table.connector.factory import check_options
from firesteel.table.connectors.iceberg.creation import create_table
from firesteel.table.connectors.iceberg.factory import CATALOG_OPTIONS
from firesteel.table.parser.dialect import parse_type
from firesteel.table.parser.types import to_logical_type
from firesteel.table.schema import Schema, UnresolvedPhysicalColumn
from firesteel.types.logical import RowType

__all__ = ["IcebergCatalog", "create"]

_OWN = ("default-database", "base-namespace", "cache-enabled", "property-version")


def create(name: str, options: Mapping[str, str], configuration: Configuration) -> Catalog:  # noqa: ARG001
    """The catalog of the options of CREATE CATALOG."""
    own = {key: value for key, value in options.items() if key != "type"}
    check_options("iceberg", own, (), (*_OWN, *CATALOG_OPTIONS))
    try:
        catalog_properties(own)
    except InvalidProgramError as error:
        raise ValidationError(error.message, hint=error.hint) from error
    return IcebergCatalog(name, own)


class IcebergCatalog(Catalog):
    """Reads which tables there are whenever it is asked, and creates, renames and drops them."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options.get("default-database", "default"))
        self._options = {key: value for key, value in options.items() if key not in _OWN}
        self._base = tuple(part for part in options.get("base-namespace", "").split(".") if part)

    @cached_property
    def _catalog(self) -> Any:
        return load_catalog(self.name, catalog_properties(self._options))

    def open(self) -> None:
        """Checks that the catalog can be reached; the default database is created, as in Flink."""
        with self._translating():
            namespace = self._namespace(self.get_default_database())
            if not self._catalog.namespace_exists(namespace):
                self._catalog.create_namespace_if_not_exists(namespace)

    def close(self) -> None:
        if "_catalog" in self.__dict__:
            self._catalog.close()

    # -- databases ---------------------------------------------------------------------------------

    def list_databases(self) -> list[str]:
        with self._translating():
            found = self._catalog.list_namespaces(self._base)
        return sorted(".".join(one[len(self._base) :]) for one in found)

    def get_database(self, database_name: str) -> CatalogDatabase:
        if not self.database_exists(database_name):
            raise DatabaseNotExistException(self.name, database_name)
        with self._translating():
            properties = dict(self._catalog.load_namespace_properties(self._namespace(database_name)))
        return CatalogDatabase.create_instance(properties, properties.get("comment"))

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        if self.database_exists(name):
            if not ignore_if_exists:
                raise DatabaseAlreadyExistException(self.name, name)
            return
        with self._translating():
            self._catalog.create_namespace(self._namespace(name), database.get_properties())

    def drop_database(self, name: str, ignore_if_exists: bool, cascade: bool = False) -> None:
        if not self.database_exists(name):
            if not ignore_if_exists:
                raise DatabaseNotExistException(self.name, name)
            return
        tables = self.list_tables(name)
        if tables and not cascade:
            raise DatabaseNotEmptyException(self.name, name)
        for table in tables:
            self.drop_table(ObjectPath(name, table), True)
        with self._translating():
            self._catalog.drop_namespace(self._namespace(name))

    # -- tables ------------------------------------------------------------------------------------

    def list_tables(self, database_name: str) -> list[str]:
        if not self.database_exists(database_name):
            raise DatabaseNotExistException(self.name, database_name)
        with self._translating():
            return sorted(one[-1] for one in self._catalog.list_tables(self._namespace(database_name)))

    def table_exists(self, table_path: ObjectPath) -> bool:
        with self._translating():
            return bool(self._catalog.table_exists(self._identifier(table_path)))

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        if not self.table_exists(table_path):
            known = self.list_tables(table_path.database_name) if self.database_exists(table_path.database_name) else []
            raise TableNotExistException(self.name, table_path, hint=nearest(table_path.object_name, known))
        with self._translating():
            table = self._catalog.load_table(self._identifier(table_path))
        schema = table.schema()
        builder = Schema.new_builder()
        for part in row_type_of(schema).fields:
            builder.column(part.name, part.type)
        key = [field.name for field in schema.fields if field.field_id in schema.identifier_field_ids]
        if key:
            builder.primary_key(*key)
        partitions = [
            schema.find_column_name(field.source_id)
            for field in table.spec().fields
            if str(field.transform) == "identity"
        ]
        options = {
            "connector": "iceberg",
            "catalog-name": self.name,
            "catalog-database": ".".join(self._namespace(table_path.database_name)),
            "catalog-table": table_path.object_name,
            **self._options,
            **({"write.upsert.enabled": "true"} if table.properties.get("write.upsert.enabled") == "true" else {}),
        }
        return CatalogBaseTable.create_table(
            builder.build(), partition_keys=partitions, properties=options, comment=table.properties.get("comment")
        )

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        if not self.database_exists(table_path.database_name):
            raise DatabaseNotExistException(self.name, table_path.database_name)
        if self.table_exists(table_path):
            if not ignore_if_exists:
                raise TableAlreadyExistException(self.name, table_path)
            return
        options = dict(table.get_options())
        connector = options.pop("connector", "iceberg")
        if connector != "iceberg":
            raise CatalogException(
                f"Can't create the table {table_path} with the connector '{connector}' in an Iceberg catalog.",
                hint="Leave out 'connector', or create the table in another catalog, or as TEMPORARY.",
            )
        row_type, key = _physical(table, table_path)
        with self._translating():
            create_table(
                self._catalog, self._identifier(table_path), row_type, key, tuple(table.partition_keys), options
            )

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        if not self.table_exists(table_path):
            if not ignore_if_not_exists:
                raise TableNotExistException(self.name, table_path)
            return
        with self._translating():
            self._catalog.drop_table(self._identifier(table_path))

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        if not self.table_exists(table_path):
            if not ignore_if_not_exists:
                raise TableNotExistException(self.name, table_path)
            return
        new = ObjectPath(table_path.database_name, new_table_name)
        if self.table_exists(new):
            raise TableAlreadyExistException(self.name, new)
        with self._translating():
            self._catalog.rename_table(self._identifier(table_path), self._identifier(new))

    def _namespace(self, database: str) -> tuple[str, ...]:
        return (*self._base, *database.split("."))

    def _identifier(self, path: ObjectPath) -> tuple[str, ...]:
        return (*self._namespace(path.database_name), path.object_name)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except CatalogException:
            raise
        except InvalidProgramError as error:
            raise CatalogException(error.message, hint=error.hint) from error
        except Exception as error:
            raise CatalogException(f"The Iceberg catalog '{self.name}' failed: {error}") from error


def _physical(table: CatalogBaseTable, path: ObjectPath) -> tuple[RowType, tuple[str, ...]]:
    """The columns and the primary key of a table that is to be created."""
    schema = table.get_unresolved_schema()
    others = [column.name for column in schema.columns if not isinstance(column, UnresolvedPhysicalColumn)]
    if others or schema.watermarks:
        what = f"column '{others[0]}'" if others else "watermark"
        raise CatalogException(
            f"Creating the table {path} with the {what}, which is no physical column, is not supported yet.",
            hint="Declare a TEMPORARY TABLE with 'connector' = 'iceberg' for computed columns and watermarks.",
        )
    key = () if schema.key is None else schema.key.column_names
    names, types = [], []
    for column in schema.columns:
        assert isinstance(column, UnresolvedPhysicalColumn)
        found = column.data_type
        type_ = to_logical_type(parse_type(found), found) if isinstance(found, str) else found
        names.append(column.name)
        types.append(type_.copy(nullable=False) if column.name in key else type_)
    return RowType.of(names, types), tuple(key)
