"""Keys of types that have no canonical form of their own: None, lists, dicts, sets, NaN, objects of any class."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

__all__ = ["PickledKey", "plain_key"]


@dataclass(frozen=True, slots=True)
class PickledKey:
    """A key by its parts: keys with equal parts are one key, in every process.

    Dicts and sets may have their items in any order. Functions get the key itself, see `plain_key`.
    """

    form: bytes
    pickled: bytes = field(compare=False, repr=False)

    @staticmethod
    def of(key: Any) -> PickledKey:
        """Returns the form of a key, which must be picklable.

        >>> PickledKey.of([1, {"a": None, "b": 2}]) == PickledKey.of([1.0, {"b": 2, "a": None}])
        True
        >>> PickledKey.of([1]) == PickledKey.of((1,))
        False
        """
        return PickledKey(_form(key), cloudpickle.dumps(key))

    @property
    def key(self) -> Any:
        """A new copy of the key."""
        return pickle.loads(self.pickled)

    def __str__(self) -> str:
        return str(self.key)


def plain_key(key: Any) -> Any:
    """Returns a key as the key selector returned it."""
    return key.key if key.__class__ is PickledKey else key


def _form(value: Any) -> bytes:
    if value is None or value.__class__ in (str, bytes):
        return _part(value.__class__.__name__, repr(value).encode("utf-8", "surrogatepass"))
    if isinstance(value, (bool, int, float)):
        number = value if value != value or value in (float("inf"), float("-inf")) or value % 1 else int(value)
        return _part("number", repr(number).encode())
    if value.__class__ in (list, tuple):
        return _part(value.__class__.__name__, *map(_form, value))
    if value.__class__ in (set, frozenset):
        return _part("set", *sorted(map(_form, value)))
    if value.__class__ is dict:
        return _part("dict", *sorted(_part("item", _form(name), _form(item)) for name, item in value.items()))
    kind: Any = type(value)
    if isinstance(value, type) or not hasattr(value, "__dict__") or kind.__reduce__ is not object.__reduce__:
        return _part("pickle", _pickle(value))
    return _part(f"{type(value).__module__}.{type(value).__qualname__}", _form(vars(value)))


def _part(name: str, *parts: bytes) -> bytes:
    return b"".join([name.encode(), b"(", *(len(part).to_bytes(4, "big") + part for part in parts), b")"])


def _pickle(value: Any) -> bytes:
    """Pickles by value: an object that occurs twice is written twice, so that its identity is of no consequence."""
    written = io.BytesIO()
    pickler = cloudpickle.Pickler(written)
    pickler.fast = True
    try:
        pickler.dump(value)
    except (ValueError, RecursionError):  # it contains itself
        return cloudpickle.dumps(value)  # type: ignore[no-any-return]
    return written.getvalue()
