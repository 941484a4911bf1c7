"""Functions of the user in a session: how they are registered, and found by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.identifiers import ObjectIdentifier, ObjectPath
from firesteel.table.catalog.modules import CORE
from firesteel.table.catalog.objects import CatalogFunction, FunctionLanguage
from firesteel.table.functions.registry import OPERATORS, find_function
from firesteel.table.user_functions.base import AggregateFunction, TableAggregateFunction, UserDefinedFunction
from firesteel.table.user_functions.definition import UserFunction, definition_of_wrapper
from firesteel.table.user_functions.wrappers import UserDefinedFunctionWrapper, udaf, udtaf

if TYPE_CHECKING:
    from firesteel.table.environment.planning.session import TableSession

__all__ = ["FunctionLookup", "ProgramFunction", "as_wrapper", "function_names"]


@dataclass(frozen=True)
class ProgramFunction(CatalogFunction):
    """A function that a program has registered as an object."""

    wrapper: Any = field(default=None, compare=False)


class FunctionLookup:
    """Finds the functions of a session by name, in Flink's order: temporary system functions, those of modules,
    temporary functions and those of catalogs."""

    def __init__(self, session: TableSession) -> None:
        self._session = session
        self._definitions: dict[tuple[str, Any], UserFunction] = {}

    def __call__(self, path: Sequence[str]) -> UserFunction | None:
        """The definition of a function of the user; None if the name is that of no function, or of a built-in one."""
        found = self._catalog_function(path)
        if found is None:
            return None
        key = (path[-1], found.wrapper if isinstance(found, ProgramFunction) else found.class_name)
        if key not in self._definitions:
            self._definitions[key] = definition_of_wrapper(self._wrapper(found), path[-1])
        return self._definitions[key]

    def names(self) -> list[str]:
        """The functions that can be called by their last name."""
        return function_names(self._session)

    def _catalog_function(self, path: Sequence[str]) -> CatalogFunction | None:
        session = self._session
        if len(path) == 1:
            if path[0].lower() in session.system_functions:
                return session.system_functions[path[0].lower()]
            is_built_in = find_function(path[0]) is not None and path[0].upper() not in OPERATORS
            for name, module in session.modules.used():
                if name == CORE and is_built_in:
                    return None
                definition = module.get_function_definition(path[0].lower())
                if definition is not None:
                    return ProgramFunction(path[0], wrapper=as_wrapper(definition, path[0]))
            if is_built_in:
                return None  # without the module core, too
        try:
            identifier = session.manager.qualify(path)
        except CatalogException:
            return None
        for known, function in session.manager.temporary_functions.by_name.items():
            if _lower(known) == _lower(identifier):
                return function
        catalog = session.manager.find_catalog(identifier.catalog_name)
        if catalog is None or not catalog.database_exists(identifier.database_name):
            return None
        for name in catalog.list_functions(identifier.database_name):
            if name.lower() == identifier.object_name.lower():
                return catalog.get_function(ObjectPath(identifier.database_name, name))
        return None

    def _wrapper(self, function: CatalogFunction) -> UserDefinedFunctionWrapper:
        if isinstance(function, ProgramFunction):
            return function.wrapper  # type: ignore[no-any-return]
        if function.language is not FunctionLanguage.PYTHON:
            raise ValidationError(
                f"The function '{function.class_name}' is in {function.language}, which is not supported.",
                hint="Register a function of Python.",
            )
        return as_wrapper(_imported(function.class_name), function.class_name)


def function_names(session: TableSession) -> list[str]:
    """The functions of the user in the current database, and temporary ones."""
    catalog, database = session.manager.current_catalog, session.manager.current_database
    names = set(session.system_functions)
    if catalog and database:
        names.update(session.manager.temporary_functions.names(catalog, database))
        names.update(session.manager.get_catalog(catalog).list_functions(database))
    return sorted(names)


def as_wrapper(function: Any, name: str = "") -> UserDefinedFunctionWrapper:
    """What ``udf`` and the like return, or an object or class of an aggregate function that knows its types."""
    if isinstance(function, type) and issubclass(function, UserDefinedFunction):
        function = function()
    if isinstance(function, UserDefinedFunctionWrapper):
        return function
    if isinstance(function, AggregateFunction):
        return udaf(function)  # type: ignore[no-any-return]
    if isinstance(function, TableAggregateFunction):
        return udtaf(function)  # type: ignore[no-any-return]
    raise TypeError(
        f"The parameter 'function' ({name or function!r}) should be a user-defined function: what udf, udtf, udaf or "
        "udtaf returns, or an AggregateFunction or TableAggregateFunction that knows its types."
    )


def _imported(path: str) -> Any:
    module_name, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module_name), name)
    except (ImportError, ValueError, AttributeError) as error:
        raise ValidationError(
            f"The function '{path}' cannot be imported: {error}.",
            hint="AS names a module and what udf or the like has made in it: 'module.function'.",
        ) from error


def _lower(identifier: ObjectIdentifier) -> Iterator[str] | tuple[str, ...]:
    return (identifier.catalog_name, identifier.database_name, identifier.object_name.lower())
