"""The five kinds of keyed state whose values expire. Each stored value carries the time of its last access.

As in Flink, elements of a list and entries of a map live and expire one by one; a reduced value and an accumulator
expire as a whole. A ``Stamped`` value is ``[value, last access]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from firesteel.common.state import AggregatingState, ListState, MapState, ReducingState, ValueState
from firesteel.common.state_ttl import StateTtlConfig
from firesteel.runtime.state.backend import Clock, KeyedStateBackend
from firesteel.runtime.state.hashmap.states import HashMapState, check_not_none

__all__ = ["STATES", "TtlState"]

_DEFAULT_CLEANUP_SIZE = 5
"""Entries looked at with each access where the program does not say how to clean up: Flink's default on the heap."""


class TtlState(HashMapState):
    """What the expiring kinds share: judging, stamping and cleaning up."""

    def __init__(
        self, backend: KeyedStateBackend, namespaces: dict[Any, dict[Any, Any]], descriptor: Any, clock: Clock
    ):
        super().__init__(backend, namespaces, descriptor)
        config: StateTtlConfig = descriptor.ttl_config
        self._clock = clock
        self._ttl = config.ttl_millis
        self._touch_on_read = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self._show_expired = config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        self._cleanup_size = _cleanup_size(config)
        self._to_visit: Iterator[Any] = iter(())

    def _expired(self, stamped: list[Any], now: int) -> bool:
        return bool(stamped[1] + self._ttl <= now)

    def _read(self, holder: dict[Any, list[Any]], key: Any) -> Any:
        """The value under a key, if it may be seen; removes it if it has expired."""
        stamped = holder.get(key)
        if stamped is None:
            return None
        now = self._clock()
        if self._expired(stamped, now):
            del holder[key]
            return stamped[0] if self._show_expired else None
        if self._touch_on_read:
            stamped[1] = now
        return stamped[0]

    def _drop_expired(self, stored: Any, now: int) -> Any:
        """What is left of a stored value, None if nothing."""
        return None if self._expired(stored, now) else stored

    def _clean_up(self) -> None:
        """Looks at the next few keys of the table and removes what has expired."""
        table, now = self._table, self._clock()
        for _ in range(self._cleanup_size):
            key = next(self._to_visit, None)
            if key is None:
                self._to_visit = iter(list(table))
                return
            stored = table.get(key)
            if stored is not None:
                left = self._drop_expired(stored, now)
                if left is None:
                    del table[key]
                elif left is not stored:
                    table[key] = left


def _cleanup_size(config: StateTtlConfig) -> int:
    strategies = config.get_cleanup_strategies()
    incremental = strategies.get_incremental_cleanup_strategy()
    if incremental is not None:
        return incremental.get_cleanup_size()
    return _DEFAULT_CLEANUP_SIZE if strategies.is_cleanup_in_background() else 0


class TtlValueState(TtlState, ValueState[Any]):
    """One expiring value per key."""

    def value(self) -> Any:
        """The current key's value, or None."""
        self._clean_up()
        return self._read(self._table, self._backend.key)

    def update(self, value: Any) -> None:
        """Replaces the value; None removes it."""
        self._clean_up()
        if value is None:
            self.clear()
        else:
            self._table[self._backend.key] = [value, self._clock()]


class TtlListState(TtlState, ListState[Any]):
    """A list per key whose elements expire one by one."""

    def get(self) -> list[Any]:
        """The elements that may be seen."""
        self._clean_up()
        elements = self._table.get(self._backend.key)
        if not elements:
            return []
        now = self._clock()
        alive = [stamped for stamped in elements if not self._expired(stamped, now)]
        seen = [stamped[0] for stamped in (elements if self._show_expired else alive)]
        if len(alive) != len(elements):
            if alive:
                self._table[self._backend.key] = alive
            else:
                self.clear()
        if self._touch_on_read:
            for stamped in alive:
                stamped[1] = now
        return seen

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def add(self, value: Any) -> None:
        """Appends one element."""
        self.add_all([value])

    def add_all(self, values: Sequence[Any]) -> None:
        """Appends elements."""
        self._clean_up()
        if values:
            for value in values:
                check_not_none(value)
            now = self._clock()
            self._table.setdefault(self._backend.key, []).extend([value, now] for value in values)

    def update(self, values: Sequence[Any]) -> None:
        """Replaces the elements."""
        self.clear()
        self.add_all(values)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Appends the elements of the sources to those of the target."""
        for part in self._take(sources):
            self._namespaces.setdefault(target, {}).setdefault(self._backend.key, []).extend(part)

    def _drop_expired(self, stored: Any, now: int) -> Any:
        alive = [stamped for stamped in stored if not self._expired(stamped, now)]
        return (alive if len(alive) != len(stored) else stored) or None


class TtlMapState(TtlState, MapState[Any, Any]):
    """A map per key whose entries expire one by one."""

    def _entries(self) -> dict[Any, list[Any]]:
        entries: dict[Any, list[Any]] = self._table.get(self._backend.key) or {}
        return entries

    def _drop_if_empty(self) -> None:
        if not self._table.get(self._backend.key, True):
            self.clear()

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        self._clean_up()
        value = self._read(self._entries(), key)
        self._drop_if_empty()
        return value

    def put(self, key: Any, value: Any) -> None:
        """Sets one entry."""
        self._clean_up()
        self._table.setdefault(self._backend.key, {})[key] = [value, self._clock()]

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Sets many entries."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Removes one entry."""
        self._entries().pop(key, None)
        self._drop_if_empty()

    def contains(self, key: Any) -> bool:
        """Whether there is an entry that may be seen; counts as a read, as in Flink."""
        self._clean_up()
        entries = self._entries()
        known = key in entries
        self._read(entries, key)
        alive = key in entries
        self._drop_if_empty()
        return alive or (known and self._show_expired)

    def items(self) -> list[tuple[Any, Any]]:
        """The entries that may be seen."""
        self._clean_up()
        entries, now, seen = self._entries(), self._clock(), []
        for key, stamped in list(entries.items()):
            expired = self._expired(stamped, now)
            if expired:
                del entries[key]
            elif self._touch_on_read:
                stamped[1] = now
            if not expired or self._show_expired:
                seen.append((key, stamped[0]))
        self._drop_if_empty()
        return seen

    def keys(self) -> list[Any]:
        """The map keys that may be seen."""
        return [key for key, _value in self.items()]

    def values(self) -> list[Any]:
        """The values that may be seen."""
        return [value for _key, value in self.items()]

    def is_empty(self) -> bool:
        """Whether no entry may be seen."""
        return not self.items()

    def _drop_expired(self, stored: Any, now: int) -> Any:
        alive = {key: stamped for key, stamped in stored.items() if not self._expired(stamped, now)}
        return (alive if len(alive) != len(stored) else stored) or None


class TtlReducingState(TtlState, ReducingState[Any]):
    """An expiring reduced value per key."""

    def __init__(
        self, backend: KeyedStateBackend, namespaces: dict[Any, dict[Any, Any]], descriptor: Any, clock: Clock
    ):
        super().__init__(backend, namespaces, descriptor, clock)
        self._reduce: Callable[[Any, Any], Any] = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        """The reduced value, or None."""
        self._clean_up()
        return self._read(self._table, self._backend.key)

    def add(self, value: Any) -> None:
        """Reduces the value into what has not expired."""
        self._clean_up()
        key, now = self._backend.key, self._clock()
        stamped = self._table.get(key)
        if stamped is not None and not self._expired(stamped, now):
            value = self._reduce(stamped[0], value)
        self._table[key] = [value, now]

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Reduces the sources' values into the target's."""
        now = self._clock()
        taken = [stamped for stamped in self._take([target, *sources]) if not self._expired(stamped, now)]
        if taken:
            result = taken[0][0]
            for stamped in taken[1:]:
                result = self._reduce(result, stamped[0])
            self._namespaces.setdefault(target, {})[self._backend.key] = [result, now]


class TtlAggregatingState(TtlState, AggregatingState[Any, Any]):
    """An expiring accumulator per key."""

    def __init__(
        self, backend: KeyedStateBackend, namespaces: dict[Any, dict[Any, Any]], descriptor: Any, clock: Clock
    ):
        super().__init__(backend, namespaces, descriptor, clock)
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        """The accumulator's result, or None."""
        self._clean_up()
        accumulator = self._read(self._table, self._backend.key)
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator, or to a new one if that has expired."""
        self._clean_up()
        key, now = self._backend.key, self._clock()
        stamped = self._table.get(key)
        if stamped is None or self._expired(stamped, now):
            accumulator = self._function.create_accumulator()
        else:
            accumulator = stamped[0]
        self._table[key] = [self._function.add(value, accumulator), now]

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merges the sources' accumulators into the target's."""
        now = self._clock()
        taken = [stamped for stamped in self._take([target, *sources]) if not self._expired(stamped, now)]
        if taken:
            result = taken[0][0]
            for stamped in taken[1:]:
                result = self._function.merge(result, stamped[0])
            self._namespaces.setdefault(target, {})[self._backend.key] = [result, now]


STATES: dict[str, Any] = {
    "value": TtlValueState,
    "list": TtlListState,
    "map": TtlMapState,
    "reducing": TtlReducingState,
    "aggregating": TtlAggregatingState,
}
