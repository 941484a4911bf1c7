"""A dict that cannot be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

__all__ = ["FrozenDict"]

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """An immutable dict, read as fast as a dict. Unlike a ``MappingProxyType`` it can be pickled.

    >>> ages = FrozenDict({"ada": 36})
    >>> ages["ada"], ages.merge({"alan": 41})
    (36, {'ada': 36, 'alan': 41})
    >>> ages["ada"] = 37
    Traceback (most recent call last):
        ...
    TypeError: a FrozenDict cannot be changed
    """

    __slots__ = ()

    def merge(self, other: Mapping[K, V]) -> FrozenDict[K, V]:
        """A copy with the entries of another mapping, which take the place of those with the same keys."""
        merged = FrozenDict(self)
        dict.update(merged, other)  # it is not yet shared
        return merged

    def _refuse(self, *_arguments: Any, **_named: Any) -> NoReturn:
        raise TypeError("a FrozenDict cannot be changed")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> tuple[type, tuple[dict[K, V]]]:
        return type(self), (dict(self),)
