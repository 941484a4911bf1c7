"""Models by name: those of catalogs, and temporary ones that hide them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.objects import CatalogModel

if TYPE_CHECKING:
    from firesteel.table.catalog.manager import CatalogManager

__all__ = ["FoundModel", "Models"]


class FoundModel(NamedTuple):
    """A model by its full name."""

    identifier: ObjectIdentifier
    model: CatalogModel
    is_temporary: bool


class Models:
    """The models of the catalogs of a session."""

    def __init__(self, manager: CatalogManager) -> None:
        self._manager = manager
        self.temporary: dict[ObjectIdentifier, CatalogModel] = {}

    def find(self, identifier: ObjectIdentifier) -> FoundModel | None:
        """A model, temporary ones first; None if there is none."""
        if identifier in self.temporary:
            return FoundModel(identifier, self.temporary[identifier], is_temporary=True)
        catalog = self._manager.find_catalog(identifier.catalog_name)
        path = identifier.to_object_path()
        if catalog is None or not catalog.model_exists(path):
            return None
        return FoundModel(identifier, catalog.get_model(path), is_temporary=False)

    def names(self, catalog: str, database: str) -> list[str]:
        """The names of all models of a database, temporary ones included."""
        return sorted(
            {*self._manager.get_catalog(catalog).list_models(database), *self.temporary_names(catalog, database)}
        )

    def temporary_names(self, catalog: str, database: str) -> list[str]:
        """The names of temporary models of a database."""
        return sorted(
            name.object_name
            for name in self.temporary
            if (name.catalog_name, name.database_name) == (catalog, database)
        )

    def nearest(self, identifier: ObjectIdentifier) -> str | None:
        """A hint that names the nearest model of a database."""
        catalog = self._manager.find_catalog(identifier.catalog_name)
        if catalog is None or not catalog.database_exists(identifier.database_name):
            return None
        known = self.names(identifier.catalog_name, identifier.database_name)
        near = difflib.get_close_matches(identifier.object_name, known, 1)
        return f"Did you mean '{near[0]}'?" if near else None

    def create(
        self, identifier: ObjectIdentifier, model: CatalogModel, *, ignore_if_exists: bool, temporary: bool
    ) -> None:
        """Adds a model to its catalog or, if it is temporary, to the session."""
        if not temporary:
            if self._manager.find_catalog(identifier.catalog_name) is None:
                raise CatalogException(f"Catalog {identifier.catalog_name} does not exist.")
            catalog = self._manager.get_catalog(identifier.catalog_name)
            try:
                catalog.create_model(identifier.to_object_path(), model, ignore_if_exists)
            except CatalogException as error:
                raise CatalogException(
                    f"Could not execute CreateModel in path {identifier}\n{error.message}", hint=error.hint
                ) from error
        elif identifier not in self.temporary:
            self.temporary[identifier] = model
        elif not ignore_if_exists:
            raise CatalogException(f"Temporary model '{identifier}' already exists")

    def drop(self, identifier: ObjectIdentifier, *, ignore_if_not_exists: bool, temporary: bool) -> bool:
        """Removes a model; whether there was one."""
        if temporary:
            if self.temporary.pop(identifier, None) is not None:
                return True
        else:
            catalog = self._manager.find_catalog(identifier.catalog_name)
            path = identifier.to_object_path()
            if catalog is not None and catalog.model_exists(path):
                catalog.drop_model(path, ignore_if_not_exists)
                return True
            if identifier in self.temporary:
                raise CatalogException(
                    f"Could not execute DropModel in path {identifier}\nModel '{identifier}' does not exist.",
                    hint="It is a temporary one: DROP TEMPORARY MODEL.",
                )
        if not ignore_if_not_exists:
            kind = "Temporary model" if temporary else "Model"
            raise CatalogException(
                f"{kind} with identifier '{identifier.as_summary_string()}' does not exist.",
                hint=self.nearest(identifier),
            )
        return False
