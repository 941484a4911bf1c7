"""Modules: sets of functions that are found by name alone, in the order in which modules are used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.table.catalog.exceptions import CatalogException

__all__ = ["CORE", "Module", "ModuleEntry", "ModuleManager", "register_module"]

CORE = "core"
CreateModule = Callable[[Mapping[str, str]], "Module"]
_registered: dict[str, CreateModule] = {}


class Module:
    """Functions of a program that are called by their names, as built-in ones are."""

    def list_functions(self) -> list[str]:
        """The names of all functions."""
        return []

    def get_function_definition(self, name: str) -> Any:
        """What ``udf``, ``udtf`` or the like has made, by a name in lower case; None if there is none."""
        del name
        return None


@dataclass(frozen=True)
class ModuleEntry:
    """A module, and whether its functions are found."""

    _name: str
    _used: bool

    def name(self) -> str:
        """The name of the module."""
        return self._name

    def used(self) -> bool:
        """Whether its functions are found."""
        return self._used

    def __repr__(self) -> str:
        return f"ModuleEntry{{name='{self._name}', used={str(self._used).lower()}}}"


def register_module(name: str, create: CreateModule) -> None:
    """Has LOAD MODULE find a module by its name; ``create`` makes it of the options of the statement."""
    _registered[name] = create


class ModuleManager:
    """The modules that a session has loaded, and those that it uses, in their order."""

    def __init__(self) -> None:
        self._loaded: dict[str, Module] = {CORE: Module()}
        self._used = [CORE]

    def load(self, name: str, module: Module) -> None:
        """Loads a module; it is used after all others."""
        if name in self._loaded:
            raise CatalogException(f"A module with name '{name}' already exists")
        self._loaded[name] = module
        self._used.append(name)

    def create(self, name: str, options: Mapping[str, str]) -> Module:
        """The module that LOAD MODULE names."""
        if "type" in options:
            raise CatalogException(
                f"Option 'type' = '{options['type']}' is not supported since module name is used to find module"
            )
        if name == CORE and not options:
            return Module()
        if name in _registered:
            return _registered[name](options)
        shown = "\n".join(f"'{key}'='{value}'" for key, value in options.items())
        known = "\n".join(sorted({CORE, *_registered}))
        raise CatalogException(
            f"Unable to create module '{name}'.\n\nModule options are:\n{shown}\n\nCould not find any factory for "
            f"identifier '{name}'.\n\nAvailable factory identifiers are:\n\n{known}",
            hint="firesteel.table.catalog.modules.register_module adds one.",
        )

    def unload(self, name: str) -> None:
        """Unloads a module."""
        self._check(name)
        del self._loaded[name]
        self._used = [used for used in self._used if used != name]

    def use(self, names: Sequence[str]) -> None:
        """Uses these modules, in this order, and no others."""
        for index, name in enumerate(names):
            if name in names[:index]:
                raise CatalogException(f"Module '{name}' appears more than once")
            self._check(name)
        self._used = list(names)

    def list_modules(self) -> list[str]:
        """The modules that are used, in their order."""
        return list(self._used)

    def list_full_modules(self) -> list[ModuleEntry]:
        """All modules: those that are used, then the others."""
        others = [name for name in self._loaded if name not in self._used]
        return [*(ModuleEntry(name, True) for name in self._used), *(ModuleEntry(name, False) for name in others)]

    def used(self) -> Iterator[tuple[str, Module]]:
        """The modules that are used, in their order."""
        for name in self._used:
            yield name, self._loaded[name]

    def _check(self, name: str) -> None:
        if name not in self._loaded:
            raise CatalogException(f"No module with name '{name}' exists")
