"""The methods of a table environment for modules."""

from __future__ import annotations

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.modules import Module, ModuleEntry
from firesteel.table.environment.planning.session import TableSession

__all__ = ["ModuleMethods"]


class ModuleMethods:
    """Loads, unloads and lists modules."""

    _session: TableSession

    def load_module(self, module_name: str, module: Module) -> None:
        """Loads a module, after all others."""
        try:
            self._session.modules.load(module_name, module)
        except CatalogException as error:
            raise ValidationError(error.message) from error

    def unload_module(self, module_name: str) -> None:
        """Unloads a module."""
        try:
            self._session.modules.unload(module_name)
        except CatalogException as error:
            raise ValidationError(error.message) from error

    def use_modules(self, *module_names: str) -> None:
        """Uses these modules, in this order, and no others."""
        try:
            self._session.modules.use(module_names)
        except CatalogException as error:
            raise ValidationError(error.message) from error

    def list_modules(self) -> list[str]:
        """The modules that are used, in their order."""
        return self._session.modules.list_modules()

    def list_full_modules(self) -> list[ModuleEntry]:
        """All modules, and whether they are used."""
        return self._session.modules.list_full_modules()
