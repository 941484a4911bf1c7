"""Lists and maps of accumulators that may grow large: ListView and MapView."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Generic, TypeVar

__all__ = ["DataView", "ListView", "MapView"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class DataView(ABC):
    """A collection in an accumulator, which is part of the state of its key."""

    @abstractmethod
    def clear(self) -> None:
        """Removes everything."""


class ListView(DataView, Generic[T]):
    """A list in an accumulator.

    >>> view = ListView()
    >>> view.add_all(["a", "b"])
    >>> list(view)
    ['a', 'b']
    """

    def __init__(self) -> None:
        self._list: list[T] = []

    def get(self) -> Iterable[T]:
        """The elements in order."""
        return self._list

    def add(self, value: T) -> None:
        """Adds an element."""
        self._list.append(value)

    def add_all(self, values: Iterable[T]) -> None:
        """Adds elements."""
        self._list.extend(values)

    def clear(self) -> None:
        """Removes all elements."""
        self._list = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListView) and list(self.get()) == list(other.get())

    def __hash__(self) -> int:
        return hash(tuple(self._list))

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapView(DataView, Generic[K, V]):
    """A map in an accumulator.

    >>> view = MapView()
    >>> view["a"] = 1
    >>> "a" in view, view["a"], list(view.items())
    (True, 1, [('a', 1)])
    """

    def __init__(self) -> None:
        self._dict: dict[K, V] = {}

    def get(self, key: K) -> V:
        """The value of a key; KeyError if there is none."""
        return self._dict[key]

    def put(self, key: K, value: V) -> None:
        """Sets the value of a key."""
        self._dict[key] = value

    def put_all(self, dict_value: Any) -> None:
        """Sets the values of all keys of a dict."""
        self._dict.update(dict_value)

    def remove(self, key: K) -> None:
        """Removes a key; KeyError if it is not there."""
        del self._dict[key]

    def contains(self, key: K) -> bool:
        """Whether there is a value for a key."""
        return key in self._dict

    def items(self) -> Iterable[tuple[K, V]]:
        """Keys with their values."""
        return self._dict.items()

    def keys(self) -> Iterable[K]:
        """The keys."""
        return self._dict.keys()

    def values(self) -> Collection[V]:
        """The values."""
        return self._dict.values()

    def is_empty(self) -> bool:
        """Whether there is no key."""
        return not self._dict

    def clear(self) -> None:
        """Removes all keys."""
        self._dict.clear()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MapView) and self._dict == other._dict

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())

    __hash__ = None  # type: ignore[assignment]
