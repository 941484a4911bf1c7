"""Standard library objects that product modules keep from import time: locks, and functions by name.

``from time import monotonic``, ``clock=time.monotonic`` as a default, or a lock of a module are not affected by code
that replaces the attributes of `time` and `threading`. They are found here, so that they can be replaced as well.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["LOCK_TYPES", "Captured", "find_captured"]

LOCK_TYPES = (type(threading.Lock()), type(threading.RLock()))
_PREFIXES = ("firesteel.", "concurrent.futures.", "kazoo.")
_found: tuple[int, tuple[Captured, ...]] | None = None


@dataclass(frozen=True)
class Captured:
    """A place where something is kept, and what."""

    owner: Any
    name: str
    """Of an attribute; empty for the defaults of a function."""
    value: Any

    def replace(self, new: Callable[[Any], Any]) -> Callable[[], None]:
        """Puts something else there; returns what puts it back."""
        if not self.name:
            before = self.owner.__defaults__, self.owner.__kwdefaults__
            if before[0] is not None:
                self.owner.__defaults__ = tuple(map(new, before[0]))
            if before[1] is not None:
                self.owner.__kwdefaults__ = {key: new(value) for key, value in before[1].items()}

            def restore() -> None:
                self.owner.__defaults__, self.owner.__kwdefaults__ = before

            return restore
        is_static = isinstance(self.value, staticmethod)
        made = new(self.value.__func__ if is_static else self.value)
        setattr(self.owner, self.name, staticmethod(made) if is_static else made)
        return lambda: setattr(self.owner, self.name, self.value)


def find_captured(wanted: Callable[[Any], bool]) -> tuple[Captured, ...]:
    """All references to a lock, or to a replaced function. Searched again when modules were loaded since."""
    global _found
    if _found is None or _found[0] != len(sys.modules):
        _found = len(sys.modules), tuple(_search(lambda value: isinstance(value, LOCK_TYPES) or wanted(value)))
    return _found[1]


def _search(wanted: Callable[[Any], bool]) -> Iterator[Captured]:
    for module_name, module in sorted(sys.modules.items()):
        if not module_name.startswith(_PREFIXES) or module_name.startswith("firesteel.testing.simulation"):
            continue
        for name, value in list(vars(module).items()):
            if wanted(value):
                yield Captured(module, name, value)
            elif isinstance(value, types.FunctionType):
                yield from _in_function(value, module_name, wanted)
            elif isinstance(value, type) and value.__module__ == module_name:
                yield from _in_class(value, module_name, wanted)


def _in_class(owner: type, module_name: str, wanted: Callable[[Any], bool]) -> Iterator[Captured]:
    for name, value in list(vars(owner).items()):
        if isinstance(value, (staticmethod, classmethod)):
            if isinstance(value, staticmethod) and wanted(value.__func__):
                yield Captured(owner, name, value)
            elif isinstance(value.__func__, types.FunctionType):
                yield from _in_function(value.__func__, module_name, wanted)
        elif isinstance(value, types.FunctionType):
            yield from _in_function(value, module_name, wanted)
        elif isinstance(value, type) and value.__module__ == module_name:
            yield from _in_class(value, module_name, wanted)
        elif wanted(value):
            yield Captured(owner, name, value)


def _in_function(function: types.FunctionType, module_name: str, wanted: Callable[[Any], bool]) -> Iterator[Captured]:
    if function.__module__ == module_name:
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        if any(map(wanted, defaults)):
            yield Captured(function, "", None)
