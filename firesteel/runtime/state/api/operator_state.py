"""Operator state (non-keyed): lists and maps of one operator in one subtask.

An item is what is dealt out when the job is restored with another parallelism; it is pickled on its own. Operators keep
lists of their own here as well (a source its splits, a sink what it has prepared); their names begin with ``_``.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from firesteel.api.state import (
    BroadcastState,
    ListState,
    ListStateDescriptor,
    MapStateDescriptor,
    OperatorStateStore,
    ReadOnlyBroadcastState,
    StateDescriptor,
)
from firesteel.common.errors import InvalidProgramError, RecordSerializationError, StateIncompatibleError
from firesteel.runtime.model.serialization import PROTOCOL, preview_record
from firesteel.runtime.model.state_handles import BROADCAST, SPLIT, UNION, InlineBytes, OperatorStateHandle
from firesteel.runtime.state.api.pickling import dumps_by_value
from firesteel.types.copying import IMMUTABLE, copy_value

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
    from firesteel.runtime.model.assigned_state import AssignedOperatorState

__all__ = [
    "HeapBroadcastState",
    "OperatorStateBackend",
    "PartitionableListState",
    "PendingOperatorState",
    "ReadOnlyHeapBroadcastState",
]

Own = Callable[[Any], Any]

_MODE_NAMES = {SPLIT: "list state", UNION: "union list state", BROADCAST: "broadcast state"}


class PartitionableListState(ListState[Any]):
    """A list of which every element can go to another subtask. ``own`` makes a value the state's, or the caller's."""

    def __init__(self, items: Iterable[Any] = (), own: Own = copy_value):
        self._items = list(items)
        self._own = own

    def get(self) -> list[Any]:
        """Copies of the elements."""
        return list(map(self._own, self._items))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def add(self, value: Any) -> None:
        self._items.append(self._own(_not_none(value)))

    def add_all(self, values: Sequence[Any]) -> None:
        self._items += [self._own(_not_none(value)) for value in values]

    def update(self, values: Sequence[Any]) -> None:
        self._items = [self._own(_not_none(value)) for value in values]

    def clear(self) -> None:
        self._items = []

    def snapshot_items(self) -> Iterable[Any]:
        """What a snapshot keeps, item by item."""
        return self._items


class _BroadcastEntries(ReadOnlyBroadcastState[Any, Any]):
    """Reads the entries of a broadcast state: gives copies, as a function may change what it has read."""

    def __init__(self, entries: dict[Any, Any], own: Own):
        self._entries = entries
        self._own = own

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        value = self._entries.get(key)
        return value if value.__class__ in IMMUTABLE else self._own(value)

    def contains(self, key: Any) -> bool:
        return key in self._entries

    def items(self) -> Iterable[tuple[Any, Any]]:
        """All entries, as they are now."""
        return [(key, self._own(value)) for key, value in self._entries.items()]

    def keys(self) -> Iterable[Any]:
        """All map keys, as they are now."""
        return list(self._entries)

    def values(self) -> Iterable[Any]:
        """All values, as they are now."""
        return list(map(self._own, self._entries.values()))

    def is_empty(self) -> bool:
        return not self._entries


class ReadOnlyHeapBroadcastState(_BroadcastEntries):
    """A broadcast state as the side that may not change it sees it: always up to date, and refusing every change."""

    def __init__(self, name: str, entries: dict[Any, Any], own: Own):
        super().__init__(entries, own)
        self._name = name

    def clear(self) -> None:
        """Refuses."""
        self._refuse()

    def _refuse(self, *_: Any) -> NoReturn:
        raise InvalidProgramError(
            f"The broadcast state '{self._name}' is read-only here: only the broadcast side may change it.",
            hint="Change it in process_broadcast_element, which sees the same records in every subtask.",
        )

    put = put_all = remove = __setitem__ = __delitem__ = _refuse


class HeapBroadcastState(_BroadcastEntries, BroadcastState[Any, Any]):
    """A map that every subtask fills alike."""

    def __init__(self, items: Iterable[tuple[Any, Any]] = (), own: Own = copy_value):
        super().__init__(dict(items), own)

    def read_only(self, name: str) -> ReadOnlyHeapBroadcastState:
        """A view of this state for the side that may not change it."""
        return ReadOnlyHeapBroadcastState(name, self._entries, self._own)

    def put(self, key: Any, value: Any) -> None:
        self._entries[key] = self._own(value)

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        self._entries.update({key: self._own(value) for key, value in dict(dict_value).items()})

    def remove(self, key: Any) -> None:
        """Removes an entry if it is there."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()

    def snapshot_items(self) -> Iterable[Any]:
        """What a snapshot keeps, item by item."""
        return self._entries.items()


@dataclass(frozen=True)
class PendingOperatorState:
    """Operator state at a barrier: pickled already, to be written while the job continues."""

    lists: tuple[tuple[str, str, list[bytes]], ...]
    """Name, mode and pickled items."""

    def write(self, files: SnapshotFiles) -> tuple[OperatorStateHandle, ...]:
        """Writes the lists; called once, in a thread of its own."""
        handles = []
        for name, mode, items in self.lists:
            data = files.write(pickle.dumps(items, PROTOCOL), shared=False) if items else InlineBytes(b"")
            handles.append(OperatorStateHandle(name, mode, len(items), data))
        return tuple(handles)


class OperatorStateBackend(OperatorStateStore):
    """The operator state of one operator in one subtask.

    It is restored first, if at all. A state of the user's function that was restored but not accessed
    stays in all later snapshots, as in Flink: it may be accessed after the next restart.
    """

    def __init__(self, reuses_objects: bool = False) -> None:
        self._copy: Own = _same if reuses_objects else copy_value
        self._states: dict[str, tuple[str, PartitionableListState | HeapBroadcastState]] = {}
        self._restored: dict[str, tuple[str, list[Any]]] = {}
        self._own: dict[str, tuple[str, list[Any]]] = {}

    # -- what user functions call -------------------------------------------------------------------

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are dealt out one by one when the job is restored with another parallelism."""
        state: ListState[Any] = self._user_state(state_descriptor, SPLIT)
        return state

    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list that every subtask gets whole when the job is restored: the elements of all subtasks."""
        state: ListState[Any] = self._user_state(state_descriptor, UNION)
        return state

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> HeapBroadcastState:
        """A map that every subtask is to fill alike."""
        state: HeapBroadcastState = self._user_state(state_descriptor, BROADCAST)
        return state

    # -- what operators call ------------------------------------------------------------------------

    def put(self, name: str, mode: str, items: Iterable[Any]) -> None:
        """Sets a list of the operator's own for the snapshot that is being taken, and for that one only."""
        assert name.startswith("_")
        self._own[name] = (mode, list(items))

    def restored(self, name: str) -> list[Any]:
        """What was restored of a list of the operator's own; gives it once."""
        return self._restored.pop(name, ("", []))[1]

    # -- what the task calls ------------------------------------------------------------------------

    def snapshot(self) -> PendingOperatorState:
        """The synchronous part of a snapshot: pickles all items."""
        lists = {name: (mode, state.snapshot_items()) for name, (mode, state) in self._states.items()}
        for name, (mode, items) in self._restored.items():
            if not name.startswith("_"):
                lists.setdefault(name, (mode, items))
        own, self._own = self._own, {}
        lists.update({name: entry for name, entry in own.items() if entry[1]})
        return PendingOperatorState(
            tuple((name, mode, [_dumps(name, item) for item in items]) for name, (mode, items) in lists.items())
        )

    def restore(self, assigned: Sequence[AssignedOperatorState], files: StateFileReader) -> None:
        """Restores this subtask's part of the lists of a checkpoint."""
        for part in assigned:
            handle = part.handle
            mode, items = self._restored.setdefault(handle.name, (handle.mode, []))
            if mode != handle.mode:
                raise StateIncompatibleError(
                    f"The operator state '{handle.name}' is both {_MODE_NAMES[mode]} and {_MODE_NAMES[handle.mode]}.",
                    state=handle.name,
                )
            if part.stop > part.start:
                stored = pickle.loads(files.read(handle.data))
                items += [_loads(handle.name, item) for item in stored[part.start : part.stop]]

    def _user_state(self, descriptor: StateDescriptor, mode: str) -> Any:
        name = descriptor.get_name()
        _check_descriptor(descriptor, mode)
        known = (self._states.get(name) or self._restored.get(name) or (mode,))[0]
        if known != mode:
            raise StateIncompatibleError(
                f"The operator state '{name}' is declared as {_MODE_NAMES[mode]}, but it is {_MODE_NAMES[known]}.",
                state=name,
                hint="Give a state of another kind another name.",
            )
        if name not in self._states:
            items = self._restored.pop(name, (mode, []))[1]
            state = (HeapBroadcastState if mode == BROADCAST else PartitionableListState)(items, self._copy)
            self._states[name] = (mode, state)
        return self._states[name][1]


def _check_descriptor(descriptor: StateDescriptor, mode: str) -> None:
    name = descriptor.get_name()
    wanted = MapStateDescriptor if mode == BROADCAST else ListStateDescriptor
    if not isinstance(descriptor, wanted):
        raise InvalidProgramError(
            f"The operator state '{name}' needs a {wanted.__name__}, not a {type(descriptor).__name__}."
        )
    if name.startswith("_"):
        raise InvalidProgramError(
            f"The name '{name}' is reserved: operators keep their own state under names that begin with '_'."
        )
    if descriptor.ttl_config is not None:
        raise InvalidProgramError(f"The operator state '{name}' cannot have a time-to-live: only keyed state can.")


def _same(value: Any) -> Any:
    return value


def _not_none(value: Any) -> Any:
    if value is None:
        raise ValueError("A list state cannot hold None.")
    return value


def _dumps(name: str, item: Any) -> bytes:
    try:
        return pickle.dumps(item, PROTOCOL)
    except Exception:  # noqa: BLE001 - user classes may raise anything
        try:
            return dumps_by_value(item)
        except Exception as error:
            raise RecordSerializationError(
                f"An item of the operator state '{name}' cannot be stored: {type(error).__name__}: {error}",
                record=preview_record(item),
                hint="State must be picklable: keep plain data in it.",
            ) from error


def _loads(name: str, item: bytes) -> Any:
    try:
        return pickle.loads(item)
    except Exception as error:
        raise StateIncompatibleError(
            f"An item of the operator state '{name}' cannot be read: {type(error).__name__}: {error}",
            state=name,
            hint="Its class must be importable under the name, and take the state, that it had when it was stored.",
        ) from error
