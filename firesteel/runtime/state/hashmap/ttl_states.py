"""The five kinds of keyed state whose values expire. Each stored value carries the time of its last access.

As in Flink, elements of a list and entries of a map live and expire one by one; a reduced value and an accumulator
expire as a whole. A ``Stamped`` value is ``[value, last access]``. Stamps are times of the wall clock and survive a
restore: values go on ageing while a job is down.

Where changes are tracked, each also adds its key to a set; here one class does both, since a clock is read anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from firesteel.api.state import AggregatingState, ListState, MapState, ReducingState, ValueState
from firesteel.api.state_ttl import StateTtlConfig
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, Clock, KeyedStateBackend
from firesteel.runtime.state.hashmap.states import HashMapState, check_not_none
from firesteel.runtime.state.hashmap.tables import StateTable
from firesteel.types.copying import copy_value

__all__ = ["STATES", "TtlState"]

_END = object()
"""Ends a round of the cleanup; a key may be anything."""


class TtlState(HashMapState):
    """What the expiring kinds share: judging, stamping, cleaning up, and marking what changed."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        state_table: StateTable,
        descriptor: Any,
        clock: Clock,
        reuses_objects: bool = False,
    ):
        super().__init__(backend, state_table, descriptor)
        self._own: Callable[[Any], Any] = _same if reuses_objects else copy_value
        """Makes a value the state's own, or the caller's; see ``owning_states``."""
        config: StateTtlConfig = descriptor.ttl_config
        self._clock = clock
        self._ttl = config.ttl_millis
        self._touch_on_read = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        self._show_expired = config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        strategies = config.get_cleanup_strategies()
        incremental = strategies.get_incremental_cleanup_strategy()
        self._cleanup_size = 0 if incremental is None else incremental.get_cleanup_size()
        self.cleans_every_record = incremental is not None and incremental.run_cleanup_for_every_record()
        self.cleans_snapshots = strategies.in_full_snapshot()
        self._to_visit: Iterator[tuple[Any, Any]] = iter(())
        self._changed: set[Any] | None = None
        if state_table.tracked:
            state_table.on_snapshot(self._start_over)
            self._start_over()

    def left_of(self, stored: Any, now: int) -> Any:
        """What of a stored value has not expired at a time, None if nothing."""
        return None if self._expired(stored, now) else stored

    def clean_up(self) -> None:
        """Looks at the next few entries of all namespaces and removes what has expired."""
        namespaces, now = self._namespaces, self._clock()
        for _ in range(self._cleanup_size):
            namespace, key = next(self._to_visit, (None, _END))
            if key is _END:
                self._to_visit = _entries_of(namespaces)
                return
            table = namespaces.get(namespace)
            stored = None if table is None else table.get(key)
            if table is not None and stored is not None:
                left = self.left_of(stored, now)
                if left is not stored:
                    if left is None:
                        del table[key]
                    else:
                        table[key] = left
                    if self._changed is not None:
                        self._state_table.changed(namespace).add(key)
                    if not table and table is not self._table and namespace is not VOID_NAMESPACE:
                        self._state_table.drop(namespace)

    def set_current_namespace(self, namespace: Any) -> None:
        """Turns to the table of a namespace; an empty one is dropped when left."""
        current = self._namespace
        if namespace == current:
            return
        if not self._table and current is not VOID_NAMESPACE:
            self._state_table.drop(current)
        self._namespace = namespace
        self._table = self._namespaces.setdefault(namespace, {})
        if self._changed is not None:
            self._start_over()

    def clear(self) -> None:
        """Removes the current key's value."""
        if self._table.pop(self._backend.key, None) is not None:
            self._mark()

    def _start_over(self) -> None:
        self._changed = self._state_table.changed(self._namespace)

    def _mark(self) -> None:
        if self._changed is not None:
            self._changed.add(self._backend.key)

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
            self._mark()
            return stamped[0] if self._show_expired else None
        if self._touch_on_read:
            stamped[1] = now
            self._mark()
        return stamped[0]

    def _take(self, namespaces: Iterable[Any]) -> list[Any]:
        key = self._backend.key
        values = []
        for namespace in namespaces:
            table = self._namespaces.get(namespace)
            if table is not None and key in table:
                values.append(table.pop(key))
                if self._changed is not None:
                    self._state_table.changed(namespace).add(key)
                if not table and table is not self._table:
                    self._state_table.drop(namespace)
        return values

    def _store_in(self, namespace: Any, value: Any) -> None:
        super()._store_in(namespace, value)
        if self._changed is not None:
            self._state_table.changed(namespace).add(self._backend.key)


def _same(value: Any) -> Any:
    return value


def _entries_of(namespaces: dict[Any, dict[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    for namespace in list(namespaces):
        for key in list(namespaces.get(namespace, ())):
            yield namespace, key


class TtlValueState(TtlState, ValueState[Any]):
    """One expiring value per key."""

    def value(self) -> Any:
        """The current key's value, or None."""
        self.clean_up()
        return self._own(self._read(self._table, self._backend.key))

    def update(self, value: Any) -> None:
        """Replaces the value; None removes it."""
        self.clean_up()
        if value is None:
            self.clear()
        else:
            self._table[self._backend.key] = [self._own(value), self._clock()]
            self._mark()


class TtlListState(TtlState, ListState[Any]):
    """A list per key whose elements expire one by one."""

    def get(self) -> list[Any]:
        """The elements that may be seen."""
        self.clean_up()
        elements = self._table.get(self._backend.key)
        if not elements:
            return []
        now = self._clock()
        alive = [stamped for stamped in elements if not self._expired(stamped, now)]
        seen = [self._own(stamped[0]) for stamped in (elements if self._show_expired else alive)]
        if len(alive) != len(elements):
            if alive:
                self._table[self._backend.key] = alive
                self._mark()
            else:
                self.clear()
        if self._touch_on_read and alive:
            for stamped in alive:
                stamped[1] = now
            self._mark()
        return seen

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def add(self, value: Any) -> None:
        """Appends one element."""
        self.add_all([value])

    def add_all(self, values: Sequence[Any]) -> None:
        """Appends elements."""
        self.clean_up()
        if values:
            for value in values:
                check_not_none(value)
            now = self._clock()
            self._table.setdefault(self._backend.key, []).extend([self._own(value), now] for value in values)
            self._mark()

    def update(self, values: Sequence[Any]) -> None:
        """Replaces the elements."""
        self.clear()
        self.add_all(values)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Appends the elements of the sources to those of the target."""
        taken = self._take(sources)
        if taken:
            elements = self._namespaces.get(target, {}).get(self._backend.key, [])
            for part in taken:
                elements.extend(part)
            self._store_in(target, elements)

    def left_of(self, stored: Any, now: int) -> Any:
        """What of the stored elements or entries has not expired, None if nothing."""
        alive = [stamped for stamped in stored if not self._expired(stamped, now)]
        return (alive if len(alive) != len(stored) else stored) or None


class TtlMapState(TtlState, MapState[Any, Any]):
    """A map per key whose entries expire one by one."""

    def _entries(self) -> dict[Any, list[Any]]:
        entries: dict[Any, list[Any]] = self._table.get(self._backend.key) or {}
        return entries

    def _drop_if_empty(self) -> None:
        if not self._table.get(self._backend.key, True):
            del self._table[self._backend.key]
            self._mark()

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        self.clean_up()
        value = self._read(self._entries(), key)
        self._drop_if_empty()
        return self._own(value)

    def put(self, key: Any, value: Any) -> None:
        """Sets one entry."""
        self.clean_up()
        self._table.setdefault(self._backend.key, {})[key] = [self._own(value), self._clock()]
        self._mark()

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        """Sets many entries."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        """Removes one entry."""
        if self._entries().pop(key, None) is not None:
            self._mark()
        self._drop_if_empty()

    def contains(self, key: Any) -> bool:
        """Whether there is an entry that may be seen; counts as a read, as in Flink."""
        self.clean_up()
        entries = self._entries()
        known = key in entries
        self._read(entries, key)
        alive = key in entries
        self._drop_if_empty()
        return alive or (known and self._show_expired)

    def items(self) -> list[tuple[Any, Any]]:
        """The entries that may be seen."""
        self.clean_up()
        entries, now, seen = self._entries(), self._clock(), []
        before = len(entries)
        for key, stamped in list(entries.items()):
            expired = self._expired(stamped, now)
            if expired:
                del entries[key]
            elif self._touch_on_read:
                stamped[1] = now
            if not expired or self._show_expired:
                seen.append((key, self._own(stamped[0])))
        if len(entries) != before or (entries and self._touch_on_read):
            self._mark()
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

    def left_of(self, stored: Any, now: int) -> Any:
        """What of the stored elements or entries has not expired, None if nothing."""
        alive = {key: stamped for key, stamped in stored.items() if not self._expired(stamped, now)}
        return (alive if len(alive) != len(stored) else stored) or None


class TtlReducingState(TtlState, ReducingState[Any]):
    """An expiring reduced value per key."""

    def __init__(self, backend: KeyedStateBackend, state_table: StateTable, descriptor: Any, *arguments: Any):
        super().__init__(backend, state_table, descriptor, *arguments)
        self._reduce: Callable[[Any, Any], Any] = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        """The reduced value, or None."""
        self.clean_up()
        return self._own(self._read(self._table, self._backend.key))

    def add(self, value: Any) -> None:
        """Reduces the value into what has not expired."""
        self.clean_up()
        key, now = self._backend.key, self._clock()
        stamped = self._table.get(key)
        value = self._own(value)
        if stamped is not None and not self._expired(stamped, now):
            value = self._reduce(stamped[0], value)
        self._table[key] = [value, now]
        self._mark()

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Reduces the sources' values into the target's."""
        now = self._clock()
        taken = [stamped for stamped in self._take([target, *sources]) if not self._expired(stamped, now)]
        if taken:
            result = taken[0][0]
            for stamped in taken[1:]:
                result = self._reduce(result, stamped[0])
            self._store_in(target, [result, now])


class TtlAggregatingState(TtlState, AggregatingState[Any, Any]):
    """An expiring accumulator per key."""

    def __init__(self, backend: KeyedStateBackend, state_table: StateTable, descriptor: Any, *arguments: Any):
        super().__init__(backend, state_table, descriptor, *arguments)
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        """The accumulator's result, or None."""
        self.clean_up()
        accumulator = self._read(self._table, self._backend.key)
        return None if accumulator is None else self._own(self._function.get_result(accumulator))

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator, or to a new one if that has expired."""
        self.clean_up()
        key, now = self._backend.key, self._clock()
        stamped = self._table.get(key)
        if stamped is None or self._expired(stamped, now):
            accumulator = self._function.create_accumulator()
        else:
            accumulator = stamped[0]
        self._table[key] = [self._function.add(self._own(value), accumulator), now]
        self._mark()

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merges the sources' accumulators into the target's."""
        now = self._clock()
        taken = [stamped for stamped in self._take([target, *sources]) if not self._expired(stamped, now)]
        if taken:
            result = taken[0][0]
            for stamped in taken[1:]:
                result = self._function.merge(result, stamped[0])
            self._store_in(target, [result, now])


STATES: dict[str, Any] = {
    "value": TtlValueState,
    "list": TtlListState,
    "map": TtlMapState,
    "reducing": TtlReducingState,
    "aggregating": TtlAggregatingState,
}
