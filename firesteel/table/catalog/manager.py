"""CatalogManager: the catalogs of a session, its current catalog and database, and its temporary objects."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from firesteel.table.catalog.catalog import Catalog
from firesteel.table.catalog.exceptions import (
    CatalogException,
    DatabaseNotExistException,
    TableNotExistException,
)
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.in_memory import GenericInMemoryCatalog
from firesteel.table.catalog.models import Models
from firesteel.table.catalog.objects import CatalogBaseTable, CatalogDescriptor, CatalogFunction, TableKind
from firesteel.table.catalog.store import CatalogStore, GenericInMemoryCatalogStore

__all__ = ["CatalogManager", "FoundTable"]

BUILTIN_CATALOG = "default_catalog"
BUILTIN_DATABASE = "default_database"

T = TypeVar("T")
MakeCatalog = Callable[[CatalogDescriptor], Catalog]


class FoundTable(NamedTuple):
    """A table or view by its full name."""

    identifier: ObjectIdentifier
    table: CatalogBaseTable
    is_temporary: bool


class _Temporary(Generic[T]):
    """Objects of a session, which hide those of the same name in a catalog."""

    def __init__(self) -> None:
        self.by_name: dict[ObjectIdentifier, T] = {}

    def names(self, catalog: str, database: str) -> list[str]:
        return [
            name.object_name for name in self.by_name if (name.catalog_name, name.database_name) == (catalog, database)
        ]


class CatalogManager:
    """Finds objects by names of one to three parts. The first catalog is in memory."""

    def __init__(
        self, catalog: str = BUILTIN_CATALOG, database: str = BUILTIN_DATABASE, store: CatalogStore | None = None
    ) -> None:
        self.builtin_catalog = catalog
        self._catalogs: dict[str, Catalog] = {catalog: GenericInMemoryCatalog(catalog, database)}
        self._current_catalog: str | None = catalog
        self._current_database: str | None = database
        self.temporary_tables = _Temporary[CatalogBaseTable]()
        self.temporary_functions = _Temporary[CatalogFunction]()
        self.models = Models(self)
        self.store = store or GenericInMemoryCatalogStore()
        self.make_catalog: MakeCatalog = _no_catalog
        """Makes the catalogs of the store."""

    # -- catalogs ----------------------------------------------------------------------------------------------

    def list_catalogs(self) -> list[str]:
        """The names of all catalogs, those of the store included."""
        return sorted({*self._catalogs, *self.store.list_catalogs()})

    def find_catalog(self, name: str) -> Catalog | None:
        """A catalog; None if there is none of this name. One of the store is opened when it is first asked for."""
        if name not in self._catalogs:
            descriptor = self.store.get_catalog(name)
            if descriptor is None:
                return None
            self._open(name, self.make_catalog(descriptor))
        return self._catalogs[name]

    def get_catalog(self, name: str) -> Catalog:
        """A catalog, or an error that names the nearest one."""
        found = self.find_catalog(name)
        if found is None:
            raise CatalogException(
                f"A catalog with name [{name}] does not exist.", hint=_nearest(name, self.list_catalogs(), "catalog")
            )
        return found

    def has_catalog(self, name: str) -> bool:
        """Whether there is a catalog of this name; it is not opened."""
        return name in self._catalogs or self.store.contains(name)

    def register_catalog(self, name: str, catalog: Catalog) -> None:
        """Adds a catalog, and opens it."""
        self._check_new(name)
        self._open(name, catalog)

    def create_catalog(self, descriptor: CatalogDescriptor) -> None:
        """Makes a catalog of its options, opens it, and adds it to the store."""
        self._check_new(descriptor.catalog_name)
        self._open(descriptor.catalog_name, self.make_catalog(descriptor))
        self.store.store_catalog(descriptor)

    def alter_catalog(self, descriptor: CatalogDescriptor) -> None:
        """Replaces the options of a catalog of the store; if they are others, the catalog is opened anew."""
        name = descriptor.catalog_name
        old = self.store.get_catalog(name)
        if old is None:
            raise CatalogException(f"Catalog {name} does not exist in the catalog store.")
        if old.options != descriptor.options:
            catalog = self.make_catalog(descriptor)
            catalog.open()
            replaced = self._catalogs.get(name)
            self._catalogs[name] = catalog
            if replaced is not None:
                replaced.close()
        self.store.store_catalog(descriptor)

    def unregister_catalog(self, name: str, ignore_if_not_exists: bool) -> None:
        """Removes a catalog, and closes it."""
        if not self.has_catalog(name):
            if not ignore_if_not_exists:
                raise CatalogException(
                    f"Catalog {name} does not exist.", hint=_nearest(name, self.list_catalogs(), "catalog")
                )
            return
        if name == self._current_catalog:
            raise CatalogException("Cannot drop a catalog which is currently in use.")
        if name in self._catalogs:
            self._catalogs.pop(name).close()
        self.store.remove_catalog(name)

    def _check_new(self, name: str) -> None:
        if not name or not name.strip():
            raise CatalogException("Catalog name cannot be null or empty.")
        if self.has_catalog(name):
            raise CatalogException(f"Catalog {name} already exists.")

    def _open(self, name: str, catalog: Catalog) -> None:
        catalog.open()
        self._catalogs[name] = catalog

    @property
    def current_catalog(self) -> str | None:
        """The catalog of names without one; None after ``set_current_catalog(None)``."""
        return self._current_catalog

    @property
    def current_database(self) -> str | None:
        """The database of names without one."""
        return self._current_database

    def set_current_catalog(self, name: str | None) -> None:
        """Changes the current catalog; its default database becomes the current one."""
        if name is None:
            self._current_catalog = self._current_database = None
            return
        catalog = self.get_catalog(name)
        self._current_catalog = name
        self._current_database = catalog.get_default_database()

    def set_current_database(self, name: str | None) -> None:
        """Changes the current database."""
        if name is None:
            self._current_database = None
            return
        catalog = self.require_catalog()
        if not self.get_catalog(catalog).database_exists(name):
            raise CatalogException(
                f"A database with name [{name}] does not exist in the catalog: [{catalog}].",
                hint=_nearest(name, self.get_catalog(catalog).list_databases(), "database"),
            )
        self._current_database = name

    def require_catalog(self) -> str:
        """The current catalog, or an error if there is none."""
        if self._current_catalog is None:
            raise CatalogException("A current catalog has not been set.", hint="USE CATALOG sets it.")
        return self._current_catalog

    # -- databases ---------------------------------------------------------------------------------------------

    def drop_database(self, catalog: str, name: str, ignore_if_not_exists: bool, cascade: bool) -> None:
        """Removes a database that is not the current one."""
        if (catalog, name) == (self._current_catalog, self._current_database):
            raise CatalogException("Cannot drop a database which is currently in use.")
        self.get_catalog(catalog).drop_database(name, ignore_if_not_exists, cascade)

    # -- names -------------------------------------------------------------------------------------------------

    def qualify(self, names: Sequence[str]) -> ObjectIdentifier:
        """The full name of an object: catalog and database are the current ones where they are not given."""
        if not 1 <= len(names) <= 3:
            raise CatalogException(f"A name has one to three parts, got {'.'.join(names)!r}.")
        *qualifiers, name = names
        if len(qualifiers) == 2:
            return ObjectIdentifier(qualifiers[0], qualifiers[1], name)
        catalog = self.require_catalog()
        if qualifiers:
            return ObjectIdentifier(catalog, qualifiers[0], name)
        if self._current_database is None:
            raise CatalogException("A current database has not been set.", hint="USE sets it.")
        return ObjectIdentifier(catalog, self._current_database, name)

    # -- tables and views --------------------------------------------------------------------------------------

    def find_table(self, identifier: ObjectIdentifier) -> FoundTable | None:
        """A table or view, temporary ones first; None if there is none."""
        temporary = self.temporary_tables.by_name.get(identifier)
        if temporary is not None:
            return FoundTable(identifier, temporary, is_temporary=True)
        catalog = self.find_catalog(identifier.catalog_name)
        path = identifier.to_object_path()
        if catalog is None or not catalog.table_exists(path):
            return None
        return FoundTable(identifier, catalog.get_table(path), is_temporary=False)

    def get_table(self, identifier: ObjectIdentifier) -> FoundTable:
        """A table or view, or an error that names the nearest one."""
        found = self.find_table(identifier)
        if found is not None:
            return found
        catalog = self.get_catalog(identifier.catalog_name)
        database = identifier.database_name
        if not catalog.database_exists(database) and not self.temporary_tables.names(catalog.name, database):
            hint = _nearest(database, catalog.list_databases(), "database")
            raise DatabaseNotExistException(identifier.catalog_name, database, hint=hint)
        hint = _nearest(identifier.object_name, self.list_tables(identifier.catalog_name, database), "table")
        raise TableNotExistException(identifier.catalog_name, identifier.to_object_path(), hint=hint)

    def list_tables(self, catalog: str, database: str, kind: TableKind | None = None) -> list[str]:
        """The names of all tables and views, temporary ones included, or of those of a kind."""
        known = self.get_catalog(catalog)
        kept = self.temporary_tables
        temporary = (ObjectIdentifier(catalog, database, name) for name in kept.names(catalog, database))
        kinds = {found.object_name: kept.by_name[found].kind for found in temporary}
        names = {name for name, found in kinds.items() if kind in (None, found)}
        if known.database_exists(database):
            # by their names alone: a table of a catalog may have columns that cannot be read
            stored = {
                None: known.list_tables,
                TableKind.VIEW: known.list_views,
                TableKind.MATERIALIZED_TABLE: known.list_materialized_tables,
            }[kind]
            names.update(name for name in stored(database) if name not in kinds)
        return sorted(names)

    def create_table(
        self,
        identifier: ObjectIdentifier,
        table: CatalogBaseTable,
        *,
        ignore_if_exists: bool = False,
        temporary: bool = False,
    ) -> None:
        """Adds a table or view to its catalog or, if it is temporary, to the session."""
        if not temporary:
            self.get_catalog(identifier.catalog_name).create_table(identifier.to_object_path(), table, ignore_if_exists)
        elif identifier not in self.temporary_tables.by_name:
            self.temporary_tables.by_name[identifier] = table
        elif not ignore_if_exists:
            raise CatalogException(f"Temporary table '{identifier.as_serializable_string()}' already exists")

    def drop_table(
        self,
        identifier: ObjectIdentifier,
        kind: TableKind,
        *,
        ignore_if_not_exists: bool = False,
        temporary: bool = False,
    ) -> None:
        """Removes a table, or a view.

        A temporary table has to be dropped as such: it hides the other one.
        """
        noun = "view" if kind is TableKind.VIEW else "table"
        hidden = self.temporary_tables.by_name.get(identifier)
        if temporary:
            if hidden is not None and hidden.kind is kind:
                del self.temporary_tables.by_name[identifier]
            elif not ignore_if_not_exists:
                raise CatalogException(
                    f"Temporary table or view with identifier '{identifier.as_summary_string()}' does not exist."
                )
            return
        if hidden is not None and hidden.kind is kind:
            raise CatalogException(
                f"Temporary {noun} with identifier '{identifier.as_serializable_string()}' exists. "
                f"Drop it first before removing the permanent {noun}."
            )
        catalog = self.find_catalog(identifier.catalog_name)
        path = identifier.to_object_path()
        if catalog is not None and catalog.table_exists(path) and catalog.get_table(path).kind is kind:
            catalog.drop_table(path, ignore_if_not_exists)
        elif not ignore_if_not_exists:
            title = noun.capitalize()
            raise CatalogException(f"{title} with identifier '{identifier.as_summary_string()}' does not exist.")


def _no_catalog(descriptor: CatalogDescriptor) -> Catalog:
    raise CatalogException(f"Nothing makes the catalog {descriptor.catalog_name}.")


def _nearest(name: str, known: Iterable[str], kind: str) -> str | None:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"The nearest {kind} is {near[0]!r}." if near else None
