"""The methods of a table environment that register functions."""

from __future__ import annotations

from typing import Any, NoReturn

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.planning.user_functions import ProgramFunction, as_wrapper
from firesteel.table.environment.statements.catalogs import failing_with
from firesteel.table.environment.statements.show import list_functions, list_user_functions
from firesteel.table.parser import parse_path

__all__ = ["FunctionMethods"]


class FunctionMethods:
    """Registers functions of Python under names, by which SQL and ``call`` call them."""

    _session: TableSession

    def create_temporary_system_function(self, name: str, function: Any) -> None:
        """Registers a function for the session, under a name that no catalog is part of."""
        known = self._session.system_functions
        if name.lower() in known:
            raise ValidationError(
                f"Could not register temporary system function. A function named '{name}' does already exist."
            )
        known[name.lower()] = _program_function(function)

    def drop_temporary_system_function(self, name: str) -> bool:
        """Drops a temporary system function; False if there is none."""
        return self._session.system_functions.pop(name.lower(), None) is not None

    def create_temporary_function(self, path: str, function: Any) -> None:
        """Registers a function for the session, in a database of a catalog."""
        identifier = self._session.manager.qualify(parse_path(path))
        known = self._session.manager.temporary_functions.by_name
        if identifier in known:
            raise ValidationError(
                f"Could not register temporary catalog function. A function '{identifier}' does already exist."
            )
        known[identifier] = _program_function(function)

    def drop_temporary_function(self, path: str) -> bool:
        """Drops a temporary function; False if there is none."""
        identifier = self._session.manager.qualify(parse_path(path))
        return self._session.manager.temporary_functions.by_name.pop(identifier, None) is not None

    def create_function(self, path: str, function: Any, ignore_if_exists: bool | None = None) -> None:
        """Registers a function in its catalog. Flink has this for functions of Java."""
        manager = self._session.manager
        identifier = manager.qualify(parse_path(path))
        with failing_with(f"Could not register function '{identifier}'."):
            catalog = manager.get_catalog(identifier.catalog_name)
            catalog.create_function(identifier.to_object_path(), _program_function(function), bool(ignore_if_exists))

    def drop_function(self, path: str) -> bool:
        """Drops a function of a catalog; False if there is none."""
        manager = self._session.manager
        identifier = manager.qualify(parse_path(path))
        if identifier in manager.temporary_functions.by_name:
            raise ValidationError(
                f"Could not drop catalog function. A temporary function '{identifier}' does already exist. Please drop "
                "the temporary function first."
            )
        try:
            manager.get_catalog(identifier.catalog_name).drop_function(identifier.to_object_path(), False)
        except CatalogException:
            return False
        return True

    def create_java_temporary_system_function(self, name: str, function_class_name: str) -> None:
        """Not supported: functions are in Python."""
        _refuse(function_class_name)

    def create_java_temporary_function(self, path: str, function_class_name: str) -> None:
        """Not supported: functions are in Python."""
        _refuse(function_class_name)

    def create_java_function(self, path: str, function_class_name: str, ignore_if_exists: bool | None = None) -> None:
        """Not supported: functions are in Python."""
        _refuse(function_class_name)

    def list_functions(self) -> list[str]:
        """All functions."""
        return list_functions(self._session)

    def list_user_defined_functions(self) -> list[str]:
        """The functions of the program."""
        return list_user_functions(self._session)


def _program_function(function: Any) -> ProgramFunction:
    wrapper = as_wrapper(function)
    return ProgramFunction(wrapper._name, wrapper=wrapper)


def _refuse(class_name: str) -> NoReturn:
    raise ValidationError(
        f"The function '{class_name}' is in Java, and there is no JVM that could call it.",
        hint="Write it in Python, and register it with create_temporary_function.",
    )
