"""GenericInMemoryCatalog: a catalog that lives as long as the process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from firesteel.table.catalog.catalog import Catalog
from firesteel.table.catalog.exceptions import (
    CatalogException,
    DatabaseAlreadyExistException,
    DatabaseNotEmptyException,
    DatabaseNotExistException,
    FunctionAlreadyExistException,
    FunctionNotExistException,
    ModelAlreadyExistException,
    ModelNotExistException,
    PartitionAlreadyExistsException,
    PartitionNotExistException,
    PartitionSpecInvalidException,
    TableAlreadyExistException,
    TableNotExistException,
    TableNotPartitionedException,
)
from firesteel.table.catalog.identifiers import ObjectPath
from firesteel.table.catalog.objects import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogFunction,
    CatalogModel,
    CatalogPartition,
    CatalogPartitionSpec,
    TableKind,
)
from firesteel.table.catalog.statistics import CatalogColumnStatistics, CatalogTableStatistics

__all__ = ["GenericInMemoryCatalog"]

T = TypeVar("T")
Missing = Callable[[str, ObjectPath], CatalogException]


class _Objects(Generic[T]):
    """Objects of one kind, by database and name."""

    def __init__(self, catalog: GenericInMemoryCatalog, missing: Missing, present: Missing) -> None:
        self._catalog = catalog
        self._missing = missing
        self._present = present
        self.by_path: dict[ObjectPath, T] = {}

    def names(self, database: str) -> list[str]:
        self._catalog.get_database(database)
        return [path.object_name for path in self.by_path if path.database_name == database]

    def get(self, path: ObjectPath) -> T:
        try:
            return self.by_path[path]
        except KeyError:
            raise self._missing(self._catalog.name, path) from None

    def create(self, path: ObjectPath, value: T, ignore_if_exists: bool) -> None:
        self._catalog.get_database(path.database_name)
        if path not in self.by_path:
            self.by_path[path] = value
        elif not ignore_if_exists:
            raise self._present(self._catalog.name, path)

    def replace(self, path: ObjectPath, value: T, ignore_if_not_exists: bool) -> None:
        if self.has(path, ignore_if_not_exists):
            self.by_path[path] = value

    def drop(self, path: ObjectPath, ignore_if_not_exists: bool) -> T | None:
        return self.by_path.pop(path) if self.has(path, ignore_if_not_exists) else None

    def rename(self, path: ObjectPath, new_name: str, ignore_if_not_exists: bool) -> ObjectPath | None:
        """Returns the new path, or None if there was nothing to rename."""
        if not self.has(path, ignore_if_not_exists):
            return None
        new_path = ObjectPath(path.database_name, new_name)
        if new_path in self.by_path:
            raise self._present(self._catalog.name, new_path)
        self.by_path[new_path] = self.by_path.pop(path)
        return new_path

    def has(self, path: ObjectPath, ignore_if_not_exists: bool) -> bool:
        if path not in self.by_path and not ignore_if_not_exists:
            raise self._missing(self._catalog.name, path)
        return path in self.by_path


@dataclass
class _Statistics:
    table: CatalogTableStatistics = field(default_factory=CatalogTableStatistics)
    columns: CatalogColumnStatistics = field(default_factory=CatalogColumnStatistics)


class GenericInMemoryCatalog(Catalog):
    """Keeps everything in memory. Names are case-sensitive, but for those of functions."""

    def __init__(self, name: str, default_database: str = "default") -> None:
        super().__init__(name, default_database)
        self._databases = {default_database: CatalogDatabase()}
        self._tables = _Objects[CatalogBaseTable](self, TableNotExistException, TableAlreadyExistException)
        self._functions = _Objects[CatalogFunction](self, FunctionNotExistException, FunctionAlreadyExistException)
        self._models = _Objects[CatalogModel](self, ModelNotExistException, ModelAlreadyExistException)
        self._partitions: dict[ObjectPath, dict[CatalogPartitionSpec, CatalogPartition]] = {}
        self._statistics: dict[tuple[ObjectPath, CatalogPartitionSpec | None], _Statistics] = {}

    # -- databases ---------------------------------------------------------------------------------------------

    def list_databases(self) -> list[str]:
        return list(self._databases)

    def get_database(self, database_name: str) -> CatalogDatabase:
        try:
            return self._databases[database_name]
        except KeyError:
            raise DatabaseNotExistException(self.name, database_name) from None

    def create_database(self, name: str, database: CatalogDatabase, ignore_if_exists: bool) -> None:
        if name not in self._databases:
            self._databases[name] = database
        elif not ignore_if_exists:
            raise DatabaseAlreadyExistException(self.name, name)

    def drop_database(self, name: str, ignore_if_exists: bool, cascade: bool = False) -> None:
        if name not in self._databases:
            if not ignore_if_exists:
                raise DatabaseNotExistException(self.name, name)
            return
        kinds: tuple[_Objects[CatalogBaseTable] | _Objects[CatalogFunction] | _Objects[CatalogModel], ...] = (
            self._tables,
            self._functions,
            self._models,
        )
        if not cascade and any(kind.names(name) for kind in kinds):
            raise DatabaseNotEmptyException(self.name, name)
        for table in self._tables.names(name):
            self.drop_table(ObjectPath(name, table), ignore_if_not_exists=True)
        for kind in kinds[1:]:
            for object_name in kind.names(name):
                kind.drop(ObjectPath(name, object_name), ignore_if_not_exists=True)
        del self._databases[name]

    def alter_database(self, name: str, new_database: CatalogDatabase, ignore_if_not_exists: bool) -> None:
        if name in self._databases:
            self._databases[name] = new_database
        elif not ignore_if_not_exists:
            raise DatabaseNotExistException(self.name, name)

    # -- tables and views --------------------------------------------------------------------------------------

    def list_tables(self, database_name: str) -> list[str]:
        return self._tables.names(database_name)

    def list_views(self, database_name: str) -> list[str]:
        return self._names_of_kind(database_name, TableKind.VIEW)

    def list_materialized_tables(self, database_name: str) -> list[str]:
        return self._names_of_kind(database_name, TableKind.MATERIALIZED_TABLE)

    def _names_of_kind(self, database_name: str, kind: TableKind) -> list[str]:
        names = self._tables.names(database_name)
        return [name for name in names if self._tables.by_path[ObjectPath(database_name, name)].kind is kind]

    def get_table(self, table_path: ObjectPath) -> CatalogBaseTable:
        return self._tables.get(table_path)

    def table_exists(self, table_path: ObjectPath) -> bool:
        return table_path in self._tables.by_path

    def create_table(self, table_path: ObjectPath, table: CatalogBaseTable, ignore_if_exists: bool) -> None:
        self._tables.create(table_path, table, ignore_if_exists)

    def drop_table(self, table_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        self._tables.drop(table_path, ignore_if_not_exists)
        self._partitions.pop(table_path, None)
        for key in [key for key in self._statistics if key[0] == table_path]:
            del self._statistics[key]

    def rename_table(self, table_path: ObjectPath, new_table_name: str, ignore_if_not_exists: bool) -> None:
        new_path = self._tables.rename(table_path, new_table_name, ignore_if_not_exists)
        if new_path is None:
            return
        if table_path in self._partitions:
            self._partitions[new_path] = self._partitions.pop(table_path)
        for key in [key for key in self._statistics if key[0] == table_path]:
            self._statistics[(new_path, key[1])] = self._statistics.pop(key)

    def alter_table(self, table_path: ObjectPath, new_table: CatalogBaseTable, ignore_if_not_exists: bool) -> None:
        if not self._tables.has(table_path, ignore_if_not_exists):
            return
        old = self._tables.get(table_path)
        if old.kind is not new_table.kind:
            raise CatalogException(
                f"Table types don't match. Existing table is '{old.kind.value}' and new table is "
                f"'{new_table.kind.value}'."
            )
        self._tables.replace(table_path, new_table, ignore_if_not_exists)

    # -- partitions --------------------------------------------------------------------------------------------

    def list_partitions(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec | None = None
    ) -> list[CatalogPartitionSpec]:
        keys = self._partition_keys(table_path)
        wanted = partition_spec.partition_spec.items() if partition_spec else ()
        if partition_spec is not None and not set(partition_spec.partition_spec) <= set(keys):
            raise PartitionSpecInvalidException(self.name, keys, table_path, partition_spec)
        present = self._partitions.get(table_path, {})
        return [spec for spec in present if all(spec.partition_spec.get(key) == value for key, value in wanted)]

    def get_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        self._check_partition(table_path, partition_spec)
        return self._partitions[table_path][partition_spec]

    def partition_exists(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> bool:
        return partition_spec in self._partitions.get(table_path, {})

    def create_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition: CatalogPartition,
        ignore_if_exists: bool,
    ) -> None:
        keys = self._partition_keys(table_path)
        if set(partition_spec.partition_spec) != set(keys):
            raise PartitionSpecInvalidException(self.name, keys, table_path, partition_spec)
        present = self._partitions.setdefault(table_path, {})
        if partition_spec not in present:
            present[partition_spec] = partition
        elif not ignore_if_exists:
            raise PartitionAlreadyExistsException(self.name, table_path, partition_spec)

    def drop_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool
    ) -> None:
        if not (ignore_if_not_exists and not self.partition_exists(table_path, partition_spec)):
            self._check_partition(table_path, partition_spec)
            del self._partitions[table_path][partition_spec]
            self._statistics.pop((table_path, partition_spec), None)

    def alter_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        new_partition: CatalogPartition,
        ignore_if_not_exists: bool,
    ) -> None:
        if not (ignore_if_not_exists and not self.partition_exists(table_path, partition_spec)):
            self._check_partition(table_path, partition_spec)
            self._partitions[table_path][partition_spec] = new_partition

    def _partition_keys(self, table_path: ObjectPath) -> list[str]:
        table = self._tables.get(table_path)
        if not table.is_partitioned:
            raise TableNotPartitionedException(self.name, table_path)
        return list(table.partition_keys)

    def _check_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> None:
        if not self.partition_exists(table_path, partition_spec):
            raise PartitionNotExistException(self.name, table_path, partition_spec)

    # -- functions ---------------------------------------------------------------------------------------------

    def list_functions(self, database_name: str) -> list[str]:
        return self._functions.names(database_name)

    def get_function(self, function_path: ObjectPath) -> CatalogFunction:
        return self._functions.get(_lower_case(function_path))

    def function_exists(self, function_path: ObjectPath) -> bool:
        return _lower_case(function_path) in self._functions.by_path

    def create_function(self, function_path: ObjectPath, function: CatalogFunction, ignore_if_exists: bool) -> None:
        self._functions.create(_lower_case(function_path), function, ignore_if_exists)

    def alter_function(
        self, function_path: ObjectPath, new_function: CatalogFunction, ignore_if_not_exists: bool
    ) -> None:
        self._functions.replace(_lower_case(function_path), new_function, ignore_if_not_exists)

    def drop_function(self, function_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        self._functions.drop(_lower_case(function_path), ignore_if_not_exists)

    # -- models ------------------------------------------------------------------------------------------------

    def list_models(self, database_name: str) -> list[str]:
        return self._models.names(database_name)

    def get_model(self, model_path: ObjectPath) -> CatalogModel:
        return self._models.get(model_path)

    def model_exists(self, model_path: ObjectPath) -> bool:
        return model_path in self._models.by_path

    def create_model(self, model_path: ObjectPath, model: CatalogModel, ignore_if_exists: bool) -> None:
        self._models.create(model_path, model, ignore_if_exists)

    def drop_model(self, model_path: ObjectPath, ignore_if_not_exists: bool) -> None:
        self._models.drop(model_path, ignore_if_not_exists)

    def rename_model(self, model_path: ObjectPath, new_model_name: str, ignore_if_not_exists: bool) -> None:
        self._models.rename(model_path, new_model_name, ignore_if_not_exists)

    def alter_model(self, model_path: ObjectPath, new_model: CatalogModel, ignore_if_not_exists: bool) -> None:
        self._models.replace(model_path, new_model, ignore_if_not_exists)

    # -- statistics --------------------------------------------------------------------------------------------

    def get_table_statistics(self, table_path: ObjectPath) -> CatalogTableStatistics:
        return self._statistics_of(table_path).table

    def get_table_column_statistics(self, table_path: ObjectPath) -> CatalogColumnStatistics:
        return self._statistics_of(table_path).columns

    def get_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogTableStatistics:
        return self._statistics_of(table_path, partition_spec).table

    def get_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogColumnStatistics:
        return self._statistics_of(table_path, partition_spec).columns

    def alter_table_statistics(
        self, table_path: ObjectPath, table_statistics: CatalogTableStatistics, ignore_if_not_exists: bool
    ) -> None:
        if self._tables.has(table_path, ignore_if_not_exists):
            self._kept(table_path).table = table_statistics

    def alter_table_column_statistics(
        self, table_path: ObjectPath, column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool
    ) -> None:
        if self._tables.has(table_path, ignore_if_not_exists):
            self._kept(table_path).columns = column_statistics

    def alter_partition_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition_statistics: CatalogTableStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        if not (ignore_if_not_exists and not self.partition_exists(table_path, partition_spec)):
            self._check_partition(table_path, partition_spec)
            self._kept(table_path, partition_spec).table = partition_statistics

    def alter_partition_column_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        column_statistics: CatalogColumnStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        if not (ignore_if_not_exists and not self.partition_exists(table_path, partition_spec)):
            self._check_partition(table_path, partition_spec)
            self._kept(table_path, partition_spec).columns = column_statistics

    def _statistics_of(self, path: ObjectPath, spec: CatalogPartitionSpec | None = None) -> _Statistics:
        if spec is None:
            self._tables.get(path)
        else:
            self._check_partition(path, spec)
        return self._statistics.get((path, spec), _Statistics())

    def _kept(self, path: ObjectPath, spec: CatalogPartitionSpec | None = None) -> _Statistics:
        return self._statistics.setdefault((path, spec), _Statistics())


def _lower_case(path: ObjectPath) -> ObjectPath:
    """Names of functions are the same in upper and lower case."""
    return ObjectPath(path.database_name, path.object_name.lower())
