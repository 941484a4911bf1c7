"""Time-to-live (TTL) of state: a layer over the states of any backend, as in Flink.

A state with time-to-live stores *cells*: values with the time of their last access. Elements of a list and entries of a
map are cells of their own and expire one by one; a reduced value and an accumulator expire as a whole. Times are those
of the wall clock and survive a restore: values go on ageing while a job is down.

The layer has the rules: what has expired, who may still see it, which accesses start a new life, and when cleanup runs.
A backend has the cells. It provides the functions of ``CellFormat`` and a *raw* state that stores cells:

- for a value, a reduced value and an accumulator a ``RawCell``,
- for a list a ``RawList``, for a map a ``RawMap``.

In snapshots, and wherever else backends have a common format, a cell is ``[value, last access]``.

Why cells are the backend's own, and what this costs, is in ``docs/design/state-ttl.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple, Protocol

from firesteel.api.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    StateDescriptor,
    ValueState,
)
from firesteel.api.state_ttl import StateTtlConfig
from firesteel.runtime.state.api.backend import Clock, check_not_none

__all__ = [
    "CellFormat",
    "RawCell",
    "RawList",
    "RawMap",
    "TtlState",
    "alive_after",
    "create_ttl_state",
    "snapshot_cleanup",
    "stored_remainder",
    "without_stamps",
]

Cell = Any
Slot = Any
"""Where a cell of a list or map is; the backend's own."""


# -- what a backend provides -------------------------------------------------------------------------------


class CellFormat(NamedTuple):
    """How a backend represents a value with the time of its last access."""

    stamp: Callable[[Any, int], Cell]
    """Makes the cell of a time and a value that is the state's own."""
    stamp_copy: Callable[[Any, int], Cell]
    """Makes the cell of a time and a value that the caller may change later."""
    content: Callable[[Cell], Any]
    """Returns the value of a cell, for a function whose result replaces it."""
    content_copy: Callable[[Cell], Any]
    """Returns the value of a cell, for a caller that may change it."""
    last_access: Callable[[Cell], int]
    touched: Callable[[Cell, int], Cell]
    """Returns the cell with another time."""
    argument: Callable[[Any], Any]
    """Copies an argument of the user's reduce or aggregate function, which may change it and keep it in its result."""
    result: Callable[[Any], Any]
    """Copies the result of an accumulator, which may share objects with it."""


class _RawState(Protocol):
    def set_current_namespace(self, namespace: Any) -> None: ...

    def clear(self) -> None: ...


class RawCell(_RawState, Protocol):
    """At most one cell per key and namespace."""

    def value(self) -> Cell | None:
        """Returns the current key's cell, or None."""

    def update(self, value: Cell) -> None:
        """Replaces the current key's cell."""

    def take(self, namespaces: Iterable[Any]) -> list[Cell]:
        """Removes and returns the current key's cells in the given namespaces."""

    def store_in(self, namespace: Any, value: Cell) -> None:
        """Sets the current key's cell in a namespace."""


class _RawCells(_RawState, Protocol):
    def slots(self) -> Iterable[tuple[Slot, Cell]]:
        """Returns the current key's cells with their slots."""

    def change(self, changes: Iterable[tuple[Slot, Cell | None]]) -> None:
        """Replaces the cells in some slots of the current key; removes those for which there is None."""


class RawList(_RawCells, Protocol):
    """A list of cells per key and namespace."""

    def add(self, value: Cell) -> None:
        """Appends a cell."""

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Appends the cells of the sources to those of the target, as they are."""


class RawMap(_RawCells, Protocol):
    """A map of cells per key and namespace."""

    def slot_of(self, key: Any) -> Slot:
        """Returns the slot of a map key for the current key."""

    def at(self, slot: Slot) -> Cell | None:
        """Returns the cell in a slot of the current key, or None."""

    def put_at(self, slot: Slot, value: Cell) -> None:
        """Replaces the cell in a slot of the current key."""

    def remove_at(self, slot: Slot) -> None:
        """Removes the cell in a slot of the current key."""

    def put(self, key: Any, value: Cell) -> None:
        """Sets the cell of a map key."""

    def remove(self, key: Any) -> None:
        """Removes the cell of a map key, if there is one."""

    def key_of(self, slot: Slot, cell: Cell) -> Any:
        """Returns the map key of a slot."""


class Cleanup(Protocol):
    """Removes some of what has expired."""

    def __call__(self, now: int, cells: int = 1, /) -> None:
        """Called with the time at every access, and the number of cells if it writes several."""


def create_ttl_state(
    descriptor: StateDescriptor, clock: Clock, raw: Any, cells: CellFormat, cleanup: Cleanup | None
) -> Any:
    """Returns the state that a descriptor with time-to-live describes, over a raw state for its kind.

    Without a cleanup, expired values stay until they are accessed.
    """
    return _STATES[descriptor.kind](descriptor, clock, raw, cells, cleanup or _no_cleanup)


def _no_cleanup(_now: int, _cells: int = 1, /) -> None:
    pass


# -- the states --------------------------------------------------------------------------------------------


class TtlState:
    """Rules of the expiring kinds. The methods of the kinds are the hot path."""

    _raw: Any

    def __init__(self, descriptor: Any, clock: Clock, raw: Any, cells: CellFormat, clean_up: Cleanup):
        config: StateTtlConfig = descriptor.ttl_config
        self._raw = raw
        self._clock = clock
        self._clean_up = clean_up
        self._ttl = config.ttl_millis
        self._touches_on_read = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        visibility = config.get_state_visibility()
        self._shows_expired = visibility is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        self._stamp, self._stamp_copy = cells.stamp, cells.stamp_copy
        self._content, self._content_copy = cells.content, cells.content_copy
        self._last_access, self._touched = cells.last_access, cells.touched
        self._argument, self._result = cells.argument, cells.result

    def set_current_namespace(self, namespace: Any) -> None:
        self._raw.set_current_namespace(namespace)

    def clear(self) -> None:
        """Removes what the state holds for the current key."""
        self._raw.clear()


class _TtlCell(TtlState):
    """One cell per key."""

    _raw: RawCell

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._get, self._put = self._raw.value, self._raw.update

    def _visible(self) -> Cell | None:
        """Reads the cell: removes it if it has expired, and starts a new life if reading does."""
        now = self._clock()
        self._clean_up(now)
        cell = self._get()
        if cell is None:
            return None
        if self._last_access(cell) <= now - self._ttl:
            self._raw.clear()
            return cell if self._shows_expired else None
        if self._touches_on_read:
            self._put(self._touched(cell, now))
        return cell

    def _alive(self, now: int) -> Any:
        """Returns the value to build upon, or None."""
        cell = self._get()
        return None if cell is None or self._last_access(cell) <= now - self._ttl else self._content(cell)

    def _merge(self, target: Any, sources: Iterable[Any], combine: Callable[[Any, Any], Any]) -> None:
        now = self._clock()
        deadline = now - self._ttl
        cells = self._raw.take([target, *sources])
        alive = [self._content(cell) for cell in cells if self._last_access(cell) > deadline]
        if alive:
            self._raw.store_in(target, self._stamp(reduce(combine, alive), now))


class TtlValueState(_TtlCell, ValueState[Any]):
    """One expiring value per key."""

    def value(self) -> Any:
        """The current key's value, or None."""
        cell = self._visible()
        return None if cell is None else self._content_copy(cell)

    def update(self, value: Any) -> None:
        """Replaces the value; None removes it."""
        now = self._clock()
        self._clean_up(now)
        if value is None:
            self._raw.clear()
        else:
            self._put(self._stamp_copy(value, now))


class TtlReducingState(_TtlCell, ReducingState[Any]):
    """An expiring reduced value per key."""

    def __init__(self, descriptor: Any, *arguments: Any):
        super().__init__(descriptor, *arguments)
        self._reduce: Callable[[Any, Any], Any] = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        """The reduced value, or None."""
        cell = self._visible()
        return None if cell is None else self._content_copy(cell)

    def add(self, value: Any) -> None:
        """Reduces the value into what has not expired."""
        now = self._clock()
        self._clean_up(now)
        current = self._alive(now)
        value = self._argument(value)
        self._put(self._stamp(value if current is None else self._reduce(current, value), now))

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Reduces the sources' values into the target's."""
        self._merge(target, sources, self._reduce)


class TtlAggregatingState(_TtlCell, AggregatingState[Any, Any]):
    """An expiring accumulator per key."""

    def __init__(self, descriptor: Any, *arguments: Any):
        super().__init__(descriptor, *arguments)
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        """The accumulator's result, or None."""
        cell = self._visible()
        return None if cell is None else self._result(self._function.get_result(self._content(cell)))

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator, or to a new one if that has expired."""
        now = self._clock()
        self._clean_up(now)
        accumulator = self._alive(now)
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._put(self._stamp(self._function.add(self._argument(value), accumulator), now))

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merges the sources' accumulators into the target's."""
        self._merge(target, sources, self._function.merge)


class _TtlCells(TtlState):
    """Any number of cells per key."""

    _raw: _RawCells

    def _visible(self) -> list[tuple[Slot, Cell]]:
        """Reads all cells: removes those that have expired, and starts new lives if reading does."""
        now = self._clock()
        self._clean_up(now)
        deadline, last_access = now - self._ttl, self._last_access
        found = list(self._raw.slots())
        alive = [item for item in found if last_access(item[1]) > deadline]
        changes: list[tuple[Slot, Cell | None]] = []
        if self._touches_on_read:
            changes = [(slot, self._touched(cell, now)) for slot, cell in alive]
        if len(alive) != len(found):
            changes += [(slot, None) for slot, cell in found if last_access(cell) <= deadline]
        if changes:
            self._raw.change(changes)
        return found if self._shows_expired else alive


class TtlListState(_TtlCells, ListState[Any]):
    """A list per key whose elements expire one by one."""

    _raw: RawList

    def get(self) -> list[Any]:
        """The elements that may be seen."""
        content = self._content_copy
        return [content(cell) for _slot, cell in self._visible()]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def add(self, value: Any) -> None:
        check_not_none(value)
        now = self._clock()
        self._clean_up(now)
        self._raw.add(self._stamp_copy(value, now))

    def add_all(self, values: Sequence[Any]) -> None:
        self._add_all(_checked(values))

    def update(self, values: Sequence[Any]) -> None:
        values = _checked(values)
        self._raw.clear()
        self._add_all(values)

    def _add_all(self, values: list[Any]) -> None:
        now = self._clock()
        self._clean_up(now, len(values))
        for value in values:
            self._raw.add(self._stamp_copy(value, now))

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Appends the elements of the sources to those of the target; they keep their ages."""
        self._raw.merge_namespaces(target, sources)


def _checked(values: Iterable[Any]) -> list[Any]:
    values = list(values)
    for value in values:
        check_not_none(value)
    return values


class TtlMapState(_TtlCells, MapState[Any, Any]):
    """A map per key whose entries expire one by one."""

    _raw: RawMap

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._slot_of, self._at, self._put = self._raw.slot_of, self._raw.at, self._raw.put

    def _visible_entry(self, key: Any) -> Cell | None:
        """Reads one cell, as ``_visible`` does."""
        now = self._clock()
        self._clean_up(now)
        slot = self._slot_of(key)
        cell = self._at(slot)
        if cell is None:
            return None
        if self._last_access(cell) <= now - self._ttl:
            self._raw.remove_at(slot)
            return cell if self._shows_expired else None
        if self._touches_on_read:
            self._raw.put_at(slot, self._touched(cell, now))
        return cell

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        cell = self._visible_entry(key)
        return None if cell is None else self._content_copy(cell)

    def put(self, key: Any, value: Any) -> None:
        now = self._clock()
        self._clean_up(now)
        self._put(key, self._stamp_copy(value, now))

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        self._raw.remove(key)

    def contains(self, key: Any) -> bool:
        """Whether there is an entry that may be seen; counts as a read, as in Flink."""
        return self._visible_entry(key) is not None

    def items(self) -> list[tuple[Any, Any]]:
        """The entries that may be seen."""
        key_of, content = self._raw.key_of, self._content_copy
        return [(key_of(slot, cell), content(cell)) for slot, cell in self._visible()]

    def keys(self) -> list[Any]:
        """The map keys that may be seen."""
        key_of = self._raw.key_of
        return [key_of(slot, cell) for slot, cell in self._visible()]

    def values(self) -> list[Any]:
        """The values that may be seen."""
        content = self._content_copy
        return [content(cell) for _slot, cell in self._visible()]

    def is_empty(self) -> bool:
        """Whether no entry may be seen."""
        return not self._visible()


_STATES: dict[str, Any] = {
    "value": TtlValueState,
    "list": TtlListState,
    "map": TtlMapState,
    "reducing": TtlReducingState,
    "aggregating": TtlAggregatingState,
}


# -- stored values -----------------------------------------------------------------------------------------


def alive_after(config: StateTtlConfig, now: int) -> int:
    """Returns the time after which a value must have been accessed not to have expired."""
    return now - config.ttl_millis


def stored_remainder(kind: str) -> Callable[[Any, int], Any]:
    """Returns what takes a stored value of a kind of state and ``alive_after``, and returns what has not expired.

    That is the stored value itself if nothing has expired, and None if everything has.
    """
    return {"list": _remaining_elements, "map": _remaining_entries}.get(kind, _remaining_value)


def _remaining_value(stored: Any, after: int) -> Any:
    return stored if stored[1] > after else None


def _remaining_elements(stored: Any, after: int) -> Any:
    for cell in stored:
        if cell[1] <= after:
            return [cell for cell in stored if cell[1] > after] or None
    return stored or None


def _remaining_entries(stored: Any, after: int) -> Any:
    for cell in stored.values():
        if cell[1] <= after:
            return {key: cell for key, cell in stored.items() if cell[1] > after} or None
    return stored or None


def snapshot_cleanup(descriptor: StateDescriptor) -> Callable[[Any, int], Any] | None:
    """Returns what takes a stored value and the time, and returns what of it belongs into a full snapshot.

    None if full snapshots contain expired values.
    """
    config = descriptor.ttl_config
    if config is None or not config.get_cleanup_strategies().in_full_snapshot():
        return None
    remainder = stored_remainder(descriptor.kind)
    return lambda stored, now: remainder(stored, alive_after(config, now))


def without_stamps(kind: str, stored: Any) -> Any:
    """Returns a stored value without the times of access."""
    if kind == "list":
        return [value for value, _last_access in stored]
    if kind == "map":
        return {key: value for key, (value, _last_access) in stored.items()}
    return stored[0]
