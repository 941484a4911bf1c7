"""Pickles objects of classes that only the job's script defines, by class name.

Such a class cannot be imported, so pickle alone refuses its objects; with its definition in each of millions of values
they would be slow and large. Here a value only names the class. Definitions are kept once, in the database, and what
a process has once written or restored it knows by name.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Mapping
from typing import Any

from firesteel.runtime.state.api.pickling import dumps_by_value

__all__ = ["definition_of", "dumps_by_name", "known_classes", "learn_class", "stored_class"]

_PROTOCOL = 5
_known: dict[tuple[str, str], type] = {}
_names: dict[type, tuple[str, str] | None] = {}
"""Of classes that were met: how they are called, or None if they can be imported."""


def dumps_by_name(value: Any, *, fast: bool = False) -> bytes:
    """Like pickle.dumps. With ``fast``, equal values have equal bytes whether or not they share parts."""
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, _PROTOCOL)
    pickler.fast = fast
    try:
        pickler.dump(value)
    except Exception:  # noqa: BLE001 - functions, and other objects that cloudpickle can pickle
        return dumps_by_value(value)
    return buffer.getvalue()


def stored_class(module: str, qualified_name: str) -> type:
    """What a value has in place of its class."""
    found = _known.get((module, qualified_name))
    if found is None:
        raise AttributeError(f"there is no class '{qualified_name}' of module '{module}' in this process")
    return found


def known_classes() -> Mapping[tuple[str, str], type]:
    """The classes that values may name, by module and name."""
    return _known


def definition_of(cls: type) -> bytes:
    """What :func:`learn_class` takes, in this or another process."""
    return dumps_by_value(cls)


def learn_class(definition: bytes) -> tuple[str, str] | None:
    """Lets values name a class: the one of that name that the job brought, or else the definition's."""
    try:
        cls = pickle.loads(definition)
    except Exception:  # noqa: BLE001 - if a value needs it, the error is raised then
        return None
    name = (cls.__module__, cls.__qualname__)
    _known[name] = cls
    _names[cls] = name
    return name


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, type):
            return NotImplemented
        name = _names[obj] if obj in _names else _meet(obj)
        if name is None:
            return NotImplemented
        # the newest class of a name is the one that values are read as
        _known[name] = obj
        return stored_class, name


def _meet(cls: type) -> tuple[str, str] | None:
    found: Any = sys.modules.get(cls.__module__)
    for part in cls.__qualname__.split("."):
        found = getattr(found, part, None)
    name = None if found is cls else (cls.__module__, cls.__qualname__)
    _names[cls] = name
    return name
