"""Keyed state backend of batch execution: the state of one key at a time, in attributes of the state objects.

In a batch all records of a key come one after the other. So there is nothing to look up: a state holds the value of the
current key, and forgets it when the key ends. There are no snapshots, and as in Flink no time-to-live, since time does
not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from firesteel.api.state import (
    AggregatingState,
    ListState,
    MapState,
    ReducingState,
    StateDescriptor,
    ValueState,
)
from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.state_handles import KeyedStateHandle
from firesteel.runtime.state.api.backend import NO_KEY, VOID_NAMESPACE, KeyedSnapshot, KeyedStateBackend
from firesteel.runtime.state.api.compatibility import check_kind
from firesteel.runtime.time.timers import TimerQueue
from firesteel.types.copying import IMMUTABLE, copy_all, copy_value

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import StateFileReader

__all__ = ["SingleKeyState", "SingleKeyStateBackend"]


class SingleKeyState:
    """What all kinds share: the value in the current namespace, and those in others."""

    __slots__ = ("_backend", "_held", "_namespace", "_value")

    def __init__(self, backend: SingleKeyStateBackend, descriptor: Any):
        self._backend = backend
        self._value: Any = None
        self._namespace: Any = VOID_NAMESPACE
        self._held: dict[Any, Any] = {}

    def set_current_namespace(self, namespace: Any) -> None:
        current = self._namespace
        if namespace == current:
            return
        if self._value is not None:
            self._held[current] = self._value
        self._value = self._held.pop(namespace, None)
        self._namespace = namespace

    def clear(self) -> None:
        self._value = None

    def end_key(self) -> None:
        """Forgets the key's values in all namespaces."""
        self._value = None
        if self._held:
            self._held.clear()
        self._namespace = VOID_NAMESPACE

    def _take(self, namespaces: Iterable[Any]) -> list[Any]:
        """Removes and returns the values in the given namespaces."""
        taken = []
        for namespace in namespaces:
            if namespace == self._namespace:
                value, self._value = self._value, None
            else:
                value = self._held.pop(namespace, None)
            if value is not None:
                taken.append(value)
        return taken

    def _store_in(self, namespace: Any, value: Any) -> None:
        if namespace == self._namespace:
            self._value = value
        else:
            self._held[namespace] = value


class SingleKeyValueState(SingleKeyState, ValueState[Any]):
    """One value."""

    def value(self) -> Any:
        """The value, or None."""
        return self._value

    def update(self, value: Any) -> None:
        self._value = value


class SingleKeyListState(SingleKeyState, ListState[Any]):
    """A list."""

    def get(self) -> list[Any]:
        """The elements: a copy, so that the state may be updated while they are read."""
        return list(self._value or ())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.get())

    def add(self, value: Any) -> None:
        if value is None:
            raise ValueError("None cannot be added to a list state")
        if self._value is None:
            self._value = [value]
        else:
            self._value.append(value)

    def add_all(self, values: Sequence[Any]) -> None:
        for value in values:
            self.add(value)

    def update(self, values: Sequence[Any]) -> None:
        values = list(values)
        self._value = None
        self.add_all(values)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Appends the elements of the sources to those of the target."""
        elements = [element for part in self._take([target, *sources]) for element in part]
        if elements:
            self._store_in(target, elements)


class SingleKeyMapState(SingleKeyState, MapState[Any, Any]):
    """A map."""

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        return None if self._value is None else self._value.get(key)

    def put(self, key: Any, value: Any) -> None:
        if self._value is None:
            self._value = {key: value}
        else:
            self._value[key] = value

    def put_all(self, dict_value: dict[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        for key, value in dict(dict_value).items():
            self.put(key, value)

    def remove(self, key: Any) -> None:
        if self._value is not None:
            self._value.pop(key, None)

    def contains(self, key: Any) -> bool:
        return self._value is not None and key in self._value

    def items(self) -> list[tuple[Any, Any]]:
        """All entries: a copy, so that the map may be changed while it is read."""
        return list((self._value or {}).items())

    def keys(self) -> list[Any]:
        return list(self._value or ())

    def values(self) -> list[Any]:
        return list((self._value or {}).values())

    def is_empty(self) -> bool:
        return not self._value


class SingleKeyReducingState(SingleKeyState, ReducingState[Any]):
    """One value, reduced with each addition."""

    __slots__ = ("_reduce",)

    def __init__(self, backend: SingleKeyStateBackend, descriptor: Any):
        super().__init__(backend, descriptor)
        self._reduce: Callable[[Any, Any], Any] = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        """The reduced value, or None."""
        return self._value

    def add(self, value: Any) -> None:
        """Reduces the value into the state."""
        self._value = value if self._value is None else self._reduce(self._value, value)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Reduces the sources' values into the target's."""
        taken = self._take([target, *sources])
        if taken:
            result = taken[0]
            for value in taken[1:]:
                result = self._reduce(result, value)
            self._store_in(target, result)


class SingleKeyAggregatingState(SingleKeyState, AggregatingState[Any, Any]):
    """One accumulator."""

    __slots__ = ("_function",)

    def __init__(self, backend: SingleKeyStateBackend, descriptor: Any):
        super().__init__(backend, descriptor)
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        """The result of the accumulator, or None."""
        return None if self._value is None else self._function.get_result(self._value)

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator."""
        accumulator = self._function.create_accumulator() if self._value is None else self._value
        self._value = self._function.add(value, accumulator)

    def merge_namespaces(self, target: Any, sources: Iterable[Any]) -> None:
        """Merges the sources' accumulators into the target's."""
        taken = self._take([target, *sources])
        if taken:
            result = taken[0]
            for accumulator in taken[1:]:
                result = self._function.merge(result, accumulator)
            self._store_in(target, result)


_STATES: dict[str, type[SingleKeyState]] = {
    "value": SingleKeyValueState,
    "list": SingleKeyListState,
    "map": SingleKeyMapState,
    "reducing": SingleKeyReducingState,
    "aggregating": SingleKeyAggregatingState,
}


# -- states that share no object with the functions that use them, see ``hashmap.owning_states`` ----


class OwningValueState(SingleKeyValueState):
    """One value."""

    __slots__ = ()

    def value(self) -> Any:
        """The value, or None."""
        value = self._value
        return value if value.__class__ in IMMUTABLE else copy_value(value)

    def update(self, value: Any) -> None:
        self._value = value if value.__class__ in IMMUTABLE else copy_value(value)


class OwningListState(SingleKeyListState):
    """A list."""

    __slots__ = ()

    def get(self) -> list[Any]:
        """Copies of the elements."""
        return list(copy_all(self._value or ()))

    def add(self, value: Any) -> None:
        SingleKeyListState.add(self, value if value.__class__ in IMMUTABLE else copy_value(value))


class OwningMapState(SingleKeyMapState):
    """A map."""

    __slots__ = ()

    def get(self, key: Any) -> Any:
        """The value of a map key, or None."""
        value = None if self._value is None else self._value.get(key)
        return value if value.__class__ in IMMUTABLE else copy_value(value)

    def put(self, key: Any, value: Any) -> None:
        SingleKeyMapState.put(self, key, value if value.__class__ in IMMUTABLE else copy_value(value))

    def items(self) -> list[tuple[Any, Any]]:
        """All entries: copies, so that the map may be changed while they are read."""
        return list(zip(self.keys(), self.values(), strict=True))

    def values(self) -> list[Any]:
        """All values: copies."""
        return list(copy_all((self._value or {}).values()))


class OwningReducingState(SingleKeyReducingState):
    """One value, reduced with each addition."""

    __slots__ = ()

    def get(self) -> Any:
        """The reduced value, or None."""
        return copy_value(self._value)

    def add(self, value: Any) -> None:
        """Reduces the value into the state."""
        value = copy_value(value)
        self._value = value if self._value is None else self._reduce(self._value, value)


class OwningAggregatingState(SingleKeyAggregatingState):
    """One accumulator."""

    __slots__ = ()

    def get(self) -> Any:
        """The result of the accumulator, or None."""
        return None if self._value is None else copy_value(self._function.get_result(self._value))

    def add(self, value: Any) -> None:
        """Adds the value to the accumulator."""
        SingleKeyAggregatingState.add(self, copy_value(value))


_OWNING_STATES: dict[str, type[SingleKeyState]] = {
    "value": OwningValueState,
    "list": OwningListState,
    "map": OwningMapState,
    "reducing": OwningReducingState,
    "aggregating": OwningAggregatingState,
}


@cache
def _without_key(state_class: type[SingleKeyState]) -> type[SingleKeyState]:
    """A state that cannot be used."""

    def refuse(*_arguments: Any) -> Any:
        return hash(NO_KEY)

    names = [name for name in dir(state_class) if not name.startswith("_")]
    return type(
        state_class.__name__, (state_class,), {"__slots__": (), "__iter__": refuse, **dict.fromkeys(names, refuse)}
    )


class SingleKeyStateBackend(KeyedStateBackend):
    """The keyed state of one operator in a batch."""

    __slots__ = ("_classes", "_descriptors", "_queues", "_reuses_objects", "_states")

    name: ClassVar[str] = "single-key"  # type: ignore[misc]

    def __init__(self, key_groups: Any, max_parallelism: int, *, reuses_objects: bool = False):
        super().__init__(key_groups, max_parallelism)
        self._reuses_objects = reuses_objects
        self._states: dict[str, Any] = {}
        self._classes: dict[str, Any] = {}
        self._descriptors: dict[str, StateDescriptor] = {}
        self._queues: dict[str, TimerQueue] = {}

    def end_key(self) -> None:
        """Forgets all state of the current key."""
        for state in self._states.values():
            state.end_key()

    def refuse_access(self, refused: bool) -> None:
        """Has every use of a state raise an error, where there is no key; or no longer."""
        for name, state in self._states.items():
            state.__class__ = _without_key(self._classes[name]) if refused else self._classes[name]

    def get_state(self, descriptor: StateDescriptor, namespace_aware: bool = False, *, internal: bool = False) -> Any:
        """The state of a descriptor; every state supports namespaces."""
        name = descriptor.get_name()
        state = self._states.get(name)
        if state is None:
            classes = _STATES if internal or self._reuses_objects else _OWNING_STATES
            self._classes[name] = classes[descriptor.kind]
            state = self._states[name] = self._classes[name](self, descriptor)
            self._descriptors[name] = descriptor
        else:
            check_kind(self._descriptors[name], descriptor)
        return state

    def timer_queue(self, name: str) -> TimerQueue:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = TimerQueue()
        return queue

    def descriptors(self) -> Mapping[str, StateDescriptor]:
        """The descriptor each state was first asked for with, by name."""
        return self._descriptors

    def keys(self, state_name: str, namespace: Any = VOID_NAMESPACE) -> Iterator[Any]:
        """None: the broadcast side, which may call this, has been read before the first key. As in Flink."""
        return iter(())

    def entries(self, state_name: str) -> Iterator[tuple[Any, Any, Any]]:
        """None, as of ``keys``."""
        return iter(())

    def snapshot(self, checkpoint_id: int, kind: SnapshotKind) -> KeyedSnapshot:
        """There are no checkpoints in a batch."""
        raise AssertionError("no snapshots in a batch")

    def restore(self, handles: Sequence[KeyedStateHandle], files: StateFileReader, *, reusable: bool) -> None:
        """A batch starts with no state."""
        raise InvalidProgramError(
            "A batch job cannot start from a savepoint: it keeps the state of one key at a time.",
            hint="Set execution.runtime-mode to STREAMING to restore a savepoint.",
        )
