"""Catalog: the interface through which tables, views, functions and models are found and kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.identifiers import ObjectPath
from firesteel.table.catalog.objects import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogFunction,
    CatalogModel,
    CatalogPartition,
    CatalogPartitionSpec,
)
from firesteel.table.catalog.statistics import CatalogColumnStatistics, CatalogTableStatistics

__all__ = ["Catalog"]


class Catalog(ABC):
    """Databases and what is in them.

    A subclass has databases and tables at least. What it does not override raises a `CatalogException`; lists of
    functions, procedures and models are empty, and statistics unknown.
    """

    def __init__(self, name: str, default_database: str) -> None:
        self.name = name
        self._default_database = default_database

    def open(self) -> None:  # noqa: B027 - most have nothing to open
        """Called when the catalog is registered."""

    def close(self) -> None:  # noqa: B027
        """Called when the catalog is removed."""

    def get_default_database(self) -> str:
        """The database of names without one."""
        return self._default_database

    # -- databases ---------------------------------------------------------------------------------------------

    @abstractmethod
    def list_databases(self) -> list[str]:
        """The names of all databases."""

    @abstractmethod
    def get_database(self, database_name: str) -> CatalogDatabase:
        """A database by name."""

    def database_exists(self, database_name: str) -> bool:
        """Whether there is a database of this name."""
        return database_name in self.list_databases()

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        """Adds a database."""
        raise self._unsupported("create databases")

    def drop_database(self, name: str, ignore_if_exists: bool, cascade: bool = False) -> None:
        """Removes a database; with ``cascade`` one that is not empty, too. PyFlink has this name for the flag."""
        raise self._unsupported("drop databases")

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        """Replaces the properties and the comment of a database."""
        raise self._unsupported("change databases")

    # -- tables and views --------------------------------------------------------------------------------------

    @abstractmethod
    def list_tables(self, database_name: str) -> list[str]:
        """The names of all tables and views."""

    @abstractmethod
    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        """A table or view."""

    def list_views(self, database_name: str) -> list[str]:
        """The names of all views."""
        return []

    def list_materialized_tables(self, database_name: str) -> list[str]:
        """The names of all materialized tables."""
        return []

    def table_exists(self, table_path: ObjectPath) -> bool:
        """Whether there is such a table or view."""
        name = table_path.get_database_name()
        return self.database_exists(name) and table_path.get_object_name() in self.list_tables(name)

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        """Adds a table or view."""
        raise self._unsupported("create tables")

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Removes a table or view."""
        raise self._unsupported("drop tables")

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        """Gives a table or view another name."""
        raise self._unsupported("rename tables")

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        """Replaces a table or view by one of the same kind."""
        raise self._unsupported("change tables")

    # -- partitions --------------------------------------------------------------------------------------------

    def list_partitions(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec | None = None
    ) -> list[CatalogPartitionSpec]:
        """The partitions of a table, or those that have all values of a specification."""
        raise self._unsupported("list partitions")

    def get_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        """A partition."""
        raise self._unsupported("read partitions")

    def partition_exists(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> bool:
        """Whether there is such a partition."""
        return partition_spec in self.list_partitions(table_path)

    def create_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition: CatalogPartition,
        ignore_if_exists: bool,
    ) -> None:
        """Adds a partition."""
        raise self._unsupported("create partitions")

    def drop_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool
    ) -> None:
        """Removes a partition."""
        raise self._unsupported("drop partitions")

    def alter_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        new_partition: CatalogPartition,
        ignore_if_not_exists: bool,
    ) -> None:
        """Replaces a partition."""
        raise self._unsupported("change partitions")

    # -- functions and procedures ------------------------------------------------------------------------------

    def list_functions(self, database_name: str) -> list[str]:
        """The names of all functions of a database."""
        return []

    def list_procedures(self, database_name: str) -> list[str]:
        """The names of all procedures of a database."""
        raise self._unsupported("list procedures")

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        """A function."""
        raise self._unsupported("read functions")

    def get_procedure(self, procedure_path: ObjectPath) -> object:
        """A procedure."""
        raise self._unsupported("read procedures")

    def function_exists(self, function_path: ObjectPath) -> bool:
        """Whether there is such a function."""
        return False

    def create_function(self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool) -> None:
        """Adds a function."""
        raise self._unsupported("create functions")

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        """Replaces a function."""
        raise self._unsupported("change functions")

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Removes a function."""
        raise self._unsupported("drop functions")

    # -- models ------------------------------------------------------------------------------------------------

    def list_models(self, database_name: str) -> list[str]:
        """The names of all models of a database."""
        return []

    def get_model(self, model_path: ObjectPath) -> CatalogModel:
        """A model."""
        raise self._unsupported("read models")

    def model_exists(self, model_path: ObjectPath) -> bool:
        """Whether there is such a model."""
        return False

    def create_model(self, model_path: ObjectPath, model: CatalogModel, ignore_if_exists: bool) -> None:
        """Adds a model."""
        raise self._unsupported("create models")

    def drop_model(self, model_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        """Removes a model."""
        raise self._unsupported("drop models")

    def rename_model(self, model_path: ObjectPath, new_model_name: str, ignore_if_not_exists: bool) -> None:
        """Gives a model another name."""
        raise self._unsupported("rename models")

    def alter_model(self, model_path: ObjectPath, new_model: CatalogModel, ignore_if_not_exists: bool) -> None:
        """Replaces a model."""
        raise self._unsupported("change models")

    # -- statistics --------------------------------------------------------------------------------------------

    def get_table_statistics(self, table_path: ObjectPath) -> CatalogTableStatistics:
        """The size of a table."""
        return CatalogTableStatistics()

    def get_table_column_statistics(self, table_path: ObjectPath) -> CatalogColumnStatistics:
        """Statistics of a table's columns."""
        return CatalogColumnStatistics()

    def get_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogTableStatistics:
        """The size of a partition."""
        return CatalogTableStatistics()

    def get_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogColumnStatistics:
        """Statistics of a partition's columns."""
        return CatalogColumnStatistics()

    def bulk_get_partition_statistics(
        self, table_path: ObjectPath, partition_specs: Sequence[CatalogPartitionSpec]
    ) -> list[CatalogTableStatistics]:
        """The sizes of partitions."""
        return [self.get_partition_statistics(table_path, spec) for spec in partition_specs]

    def bulk_get_partition_column_statistics(
        self, table_path: ObjectPath, partition_specs: Sequence[CatalogPartitionSpec]
    ) -> list[CatalogColumnStatistics]:
        """Statistics of the columns of partitions."""
        return [self.get_partition_column_statistics(table_path, spec) for spec in partition_specs]

    def alter_table_statistics(
        self, table_path: ObjectPath, table_statistics: CatalogTableStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Replaces what is known of a table's size."""
        raise self._unsupported("keep statistics")

    def alter_table_column_statistics(
        self, table_path: ObjectPath, column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Replaces the statistics of a table's columns."""
        raise self._unsupported("keep statistics")

    def alter_partition_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition_statistics: CatalogTableStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Replaces what is known of a partition's size."""
        raise self._unsupported("keep statistics")

    def alter_partition_column_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        column_statistics: CatalogColumnStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Replaces the statistics of a partition's columns."""
        raise self._unsupported("keep statistics")

    def _unsupported(self, what: str) -> CatalogException:
        return CatalogException(f"The catalog {self.name} ({type(self).__name__}) cannot {what}.")
