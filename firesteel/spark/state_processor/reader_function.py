"""Keyed state reader function: reads several states of a key together, with the calls of a job's function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, KeyedStateBackend
from firesteel.runtime.state.api.chunks import timer_table
from firesteel.savepoint.keyed_state import TIMERS, KeyedSlice, restored_backend, table_of

__all__ = ["KeyedStateReaderFunction", "ReaderContext", "read_with_function"]


class KeyedStateReaderFunction(ABC):
    """Reads the state of each key, like Flink's class of the same name.

    ``open`` asks for states with their descriptors, like the function that wrote them; then ``read_key`` is called for
    every key that has a value in one of them.
    """

    def open(self, runtime_context: StateReaderContext) -> None:  # noqa: B027 - optional
        """Registers the states to read."""

    @abstractmethod
    def read_key(self, key: Any, ctx: ReaderContext) -> Iterable[Any]:
        """Returns the rows of one key: tuples, Rows or dicts that fit the schema."""

    def close(self) -> None:  # noqa: B027 - optional
        """Releases what the function holds."""


class StateReaderContext:
    """The context of ``open``: access to keyed state."""

    def __init__(self, backend: KeyedStateBackend):
        self._backend = backend

    def get_state(self, state_descriptor: Any) -> Any:
        """Returns the state of a descriptor."""
        return self._backend.get_state(state_descriptor)

    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state


class ReaderContext:
    """The context of ``read_key``: the current key and its timers."""

    def __init__(self, key: Any, timers: dict[str, dict[Any, set[int]]]):
        self._key = key
        self._timers = timers

    def get_current_key(self) -> Any:
        """The key."""
        return self._key

    def registered_event_time_timers(self) -> set[int]:
        """The timestamps of the key's event-time timers."""
        return set(self._timers["event"].get(self._key, ()))

    def registered_processing_time_timers(self) -> set[int]:
        """The timestamps of the key's processing-time timers."""
        return set(self._timers["processing"].get(self._key, ()))


def read_with_function(piece: KeyedSlice, files: StateFileReader, function: KeyedStateReaderFunction) -> Iterator[Any]:
    """What a function gives for all keys of a slice."""
    with restored_backend(piece, files) as backend:
        timers = _timers(piece, backend)
        function.open(StateReaderContext(backend))
        try:
            for key in _keys(backend):
                backend.key = key
                yield from function.read_key(key, ReaderContext(key, timers)) or ()
        finally:
            function.close()


def _keys(backend: KeyedStateBackend) -> Iterable[Any]:
    found: dict[Any, None] = {}
    for name in backend.descriptors():
        found.update(dict.fromkeys(backend.keys(name, VOID_NAMESPACE)))
    return found


def _timers(piece: KeyedSlice, backend: KeyedStateBackend) -> dict[str, dict[Any, set[int]]]:
    timers: dict[str, dict[Any, set[int]]] = {"event": {}, "processing": {}}
    for state in piece.handle.states:
        if state.kind == TIMERS:
            queue = table_of(state).removeprefix(timer_table(""))
            by_key = timers.get(queue.rpartition("/")[2])
            if by_key is not None:
                for timestamp, key, _ in backend.timer_queue(queue).timers():
                    by_key.setdefault(key, set()).add(timestamp)
    return timers
