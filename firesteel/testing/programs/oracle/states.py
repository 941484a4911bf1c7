"""Keyed state as the oracle has it: dictionaries that hold copies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.testing.programs.oracle.flow import copied
from firesteel.testing.programs.oracle.keyed import Timers

__all__ = ["OracleContext"]


_MAX_EXPIRING_MS = 1000


class OracleContext:
    """The runtime context of a function: its states, by name, for the current key and a namespace.

    A state with a time-to-live below a second has expired whenever it is read, as functions wait for that, but not in a
    batch: there no state expires, as in Flink. Other states never expire.
    """

    wait_s = 0.0
    """How long a function waits until its state has expired."""

    def __init__(self, timers: Timers, namespace: Any = None, *, in_batch: bool = False):
        self._timers = timers
        self._namespace = namespace
        self._in_batch = in_batch
        self._tables: dict[str, dict[Any, Any]] = {}

    def at(self, namespace: Any) -> OracleContext:
        """Returns the same states in another namespace."""
        context = OracleContext(self._timers, namespace, in_batch=self._in_batch)
        context._tables = self._tables
        return context

    def get_state(self, descriptor: Any) -> Value:
        """Returns a value state."""
        return Value(self._slot(descriptor))

    def get_list_state(self, descriptor: Any) -> List:
        """Returns a list state."""
        return List(self._slot(descriptor))

    def get_map_state(self, descriptor: Any) -> Map:
        """Returns a map state."""
        return Map(self._slot(descriptor))

    def get_reducing_state(self, descriptor: Any) -> Reducing:
        """Returns a reducing state."""
        return Reducing(self._slot(descriptor), descriptor.get_reduce_function())

    def get_aggregating_state(self, descriptor: Any) -> Aggregating:
        """Returns an aggregating state."""
        return Aggregating(self._slot(descriptor), descriptor.get_agg_function())

    def get_index_of_this_subtask(self) -> int:
        """There is one subtask."""
        return 0

    def _slot(self, descriptor: Any) -> Slot:
        table = self._tables.setdefault(descriptor.get_name(), {})
        ttl = None if self._in_batch else descriptor.ttl_config
        kind = Slot if ttl is None or ttl.ttl_millis >= _MAX_EXPIRING_MS else Expiring
        return kind(table, self._timers, self._namespace)


class Slot:
    """One state: reads and writes copies under the current key."""

    def __init__(self, table: dict[Any, Any], timers: Timers, namespace: Any):
        self._table = table
        self._timers = timers
        self._namespace = namespace

    def read(self) -> Any:
        """Returns a copy of the value, None if there is none."""
        return copied(self._table.get((self._timers.key, self._namespace)))

    def write(self, value: Any) -> None:
        """Keeps a copy of the value."""
        if value is None:
            self.clear()
        else:
            self._table[self._timers.key, self._namespace] = copied(value)

    def clear(self) -> None:
        """Removes the value."""
        self._table.pop((self._timers.key, self._namespace), None)


class Expiring(Slot):
    """A state whose value has expired before it is read again."""

    def read(self) -> Any:
        """Returns None."""
        return None


class _State:
    def __init__(self, slot: Slot):
        self._slot = slot

    def clear(self) -> None:
        """Removes what the key has."""
        self._slot.clear()


class Value(_State):
    """A value state."""

    def value(self) -> Any:
        """Returns the value."""
        return self._slot.read()

    def update(self, value: Any) -> None:
        """Replaces the value."""
        self._slot.write(value)


class List(_State):
    """A list state."""

    def get(self) -> list[Any]:
        """Returns the elements."""
        return self._slot.read() or []

    def __iter__(self) -> Any:
        return iter(self.get())

    def add(self, value: Any) -> None:
        """Appends an element."""
        self._slot.write([*self.get(), value])

    def add_all(self, values: Iterable[Any]) -> None:
        """Appends elements."""
        self._slot.write([*self.get(), *values])

    def update(self, values: Iterable[Any]) -> None:
        """Replaces the elements."""
        self._slot.write(list(values) or None)


class Map(_State):
    """A map state."""

    def _entries(self) -> dict[Any, Any]:
        return self._slot.read() or {}

    def get(self, key: Any) -> Any:
        """Returns the value of an entry."""
        return self._entries().get(key)

    def put(self, key: Any, value: Any) -> None:
        """Sets an entry."""
        self._slot.write({**self._entries(), key: value})

    def remove(self, key: Any) -> None:
        """Removes an entry."""
        entries = self._entries()
        entries.pop(key, None)
        self._slot.write(entries or None)

    def contains(self, key: Any) -> bool:
        """Whether there is an entry."""
        return key in self._entries()

    def items(self) -> list[tuple[Any, Any]]:
        """Returns the entries."""
        return list(self._entries().items())

    def keys(self) -> list[Any]:
        """Returns the keys of the entries."""
        return list(self._entries())

    def values(self) -> list[Any]:
        """Returns the values of the entries."""
        return list(self._entries().values())

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        return not self._entries()


class Reducing(_State):
    """A reducing state."""

    def __init__(self, slot: Slot, function: Any):
        super().__init__(slot)
        self._function = function

    def get(self) -> Any:
        """Returns the reduced value."""
        return self._slot.read()

    def add(self, value: Any) -> None:
        """Reduces a value into the state."""
        before = self._slot.read()
        self._slot.write(value if before is None else self._function.reduce(before, copied(value)))


class Aggregating(_State):
    """An aggregating state."""

    def __init__(self, slot: Slot, function: Any):
        super().__init__(slot)
        self._function = function

    def get(self) -> Any:
        """Returns the result of the accumulator."""
        accumulator = self._slot.read()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        """Adds a value to the accumulator."""
        accumulator = self._slot.read()
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._slot.write(self._function.add(copied(value), accumulator))
