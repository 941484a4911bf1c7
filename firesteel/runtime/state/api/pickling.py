"""Pickling of state values, also of classes that only the job's script defines, with an error that names the value.

Such classes reach a process by value, with the functions of the job, and plain pickle cannot name them. Written by
value into state they would come back, in a later run of the same script, as classes of their own: not equal to the
new run's, so that a key would not be found again. So each is written with its name beside its definition, and read
as the class of that name that the process has already, if it has one. That also holds for what was pickled by name
where the script itself ran, and is read where its classes came by value.
"""

from __future__ import annotations

import io
import pickle
import reprlib
import sys
from collections.abc import Sequence
from typing import Any

from firesteel.common.errors import CheckpointError

__all__ = ["can_be_pickled", "dumps_by_value", "load_class", "loads_by_name", "not_picklable"]

_PROTOCOL = 5


def can_be_pickled(value: Any) -> bool:
    """Whether a value can be part of a checkpoint."""
    try:
        dumps_by_value(value)
    except Exception:  # noqa: BLE001 - a class of the user's may raise anything
        return False
    return True


def dumps_by_value(value: Any) -> bytes:
    """Like pickle.dumps, for values whose classes and functions may not be importable."""
    import cloudpickle

    class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, type) and _loaded(obj.__module__, obj.__qualname__) is not obj:
                definition = cloudpickle.dumps(obj, _PROTOCOL)
                return load_class, (obj.__module__, obj.__qualname__, definition)
            return super().reducer_override(obj)

    buffer = io.BytesIO()
    _Pickler(buffer, protocol=_PROTOCOL).dump(value)
    return buffer.getvalue()


def loads_by_name(data: bytes) -> Any:
    """Like pickle.loads, for values whose classes may only be found among those the job brought with it."""
    return _Unpickler(io.BytesIO(data)).load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (AttributeError, ImportError):
            known = _brought_by_value().get((module, name))
            if known is None:
                raise
            return known


def load_class(module: str, qualified_name: str, definition: bytes) -> Any:
    """The class of that name which this process has, of its own or from the job; else the definition's."""
    found = _loaded(module, qualified_name)
    if not isinstance(found, type):
        found = _brought_by_value().get((module, qualified_name))
    return pickle.loads(definition) if found is None else found


def not_picklable(
    table: str, keys: Sequence[Any] | None, values: Sequence[Any] | None, error: Exception
) -> CheckpointError:
    """The error that names the first key, or the key of the first value, that cannot be pickled."""
    where = ""
    for what, parts in (("key", keys or ()), ("value", values or ())):
        for number, part in enumerate(parts):
            try:
                dumps_by_value(part)
            except Exception as cause:  # noqa: BLE001 - user classes may raise anything
                error = cause
                key = keys[number] if keys else part
                where = f": its {what} of type {type(part).__qualname__} for key {reprlib.repr(key)}"
                break
        if where:
            break
    return CheckpointError(
        f"State '{table}' cannot be written{where}: {type(error).__name__}: {error}",
        hint="Keep plain data in state (tuples, dicts, dataclasses, Row); make locks, files and connections in open().",
    )


def _loaded(module: str, qualified_name: str) -> Any:
    found: Any = sys.modules.get(module)
    for name in qualified_name.split("."):
        found = getattr(found, name, None)
    return found


def _brought_by_value() -> dict[tuple[str, str], type]:
    from cloudpickle import cloudpickle

    tracked = list(cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.values())
    return {(cls.__module__, cls.__qualname__): cls for cls in tracked}
