"""State table of one state: a dictionary per namespace, and the changes since the last snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, repeat
from operator import is_
from typing import Any

from firesteel.runtime.state.api.backend import VOID_NAMESPACE
from firesteel.runtime.state.api.chunks import CHUNK_ENTRIES, Chunk, encode_chunk, encode_chunks

__all__ = ["Cleanup", "StateTable"]

Cleanup = Callable[[Any, int], Any]
"""Takes a stored value and the time: what is left of the value, None if nothing."""

_COUNTED_NAMESPACES = 1_000
_ABSENT: Any = object()


class StateTable:
    """The entries of one state, or the timers of one queue.

    A change of an entry of a namespace adds its key to ``changed(namespace)``, if changes are tracked at all. A set
    returned there is valid until the next snapshot: the callbacks of ``on_snapshot`` signal when to get a new one.
    """

    __slots__ = ("_changes", "_dropped", "_known", "_listeners", "_new", "gone", "name", "namespaces", "tracked")

    def __init__(self, name: str, tracked: bool):
        self.name = name
        self.tracked = tracked
        self.namespaces: dict[Any, dict[Any, Any]] = {VOID_NAMESPACE: {}}
        self.gone: set[Any] = set()
        """More keys of the void namespace that may have changed."""
        self._changes: dict[Any, set[Any]] = {}
        self._dropped: set[Any] = set()
        self._known: set[Any] = set()
        self._new: set[Any] = set()
        self._listeners: list[Callable[[], None]] = []

    def changed(self, namespace: Any) -> set[Any]:
        """The keys of a namespace that changed since the last snapshot."""
        changed = self._changes.get(namespace)
        if changed is None:
            changed = self._changes[namespace] = set()
        return changed

    def add_new(self, namespace: Any, entries: dict[Any, Any]) -> None:
        """Adds a namespace, all of which is in the next snapshot: until then its changes need not be marked."""
        self.namespaces[namespace] = entries
        if self.tracked:
            self._new.add(namespace)

    def on_snapshot(self, listener: Callable[[], None]) -> None:
        """Calls back when the sets of changed keys are no longer good."""
        self._listeners.append(listener)

    def drop(self, namespace: Any) -> None:
        """Removes a namespace with all its entries."""
        self.namespaces.pop(namespace, None)
        if self.tracked:
            self._changes.pop(namespace, None)
            self._new.discard(namespace)
            # a namespace that came and went between two snapshots is in no file
            if namespace in self._known:
                self._known.discard(namespace)
                self._dropped.add(namespace)

    def apply(self, chunk: Chunk) -> None:
        """Adds a chunk of a snapshot."""
        if chunk.keys is None:
            for namespace in chunk.values or ():
                self.namespaces.pop(namespace, None)
            self.namespaces.setdefault(VOID_NAMESPACE, {})
            return
        table = self.namespaces.get(chunk.namespace)
        if table is None:
            table = self.namespaces[chunk.namespace] = {}
        if chunk.values is None:
            for key in chunk.keys:
                table.pop(key, None)
        else:
            table.update(zip(chunk.keys, chunk.values, strict=True))

    def end_restore(self) -> None:
        """The restore is complete: changes are tracked from now on."""
        for namespace in [name for name, table in self.namespaces.items() if not table and name is not VOID_NAMESPACE]:
            del self.namespaces[namespace]
        self.start_over()
        self._known.update(self.namespaces)

    def encode_all(self, cleanup: Cleanup | None, now: int) -> Iterator[bytes]:
        for namespace, table in self.namespaces.items():
            if cleanup is None:
                yield from encode_chunks(self.name, namespace, list(table), list(table.values()))
            else:
                left = {key: value for key, stored in table.items() if (value := cleanup(stored, now)) is not None}
                yield from encode_chunks(self.name, namespace, list(left), list(left.values()))

    def encode_changes(self) -> Iterator[bytes]:
        """What changed since ``start_over``; namespaces that were removed come first."""
        dropped, changes = list(self._dropped), self._changes
        if self.gone:
            changes = {**changes, VOID_NAMESPACE: changes.get(VOID_NAMESPACE, set()) | self.gone}
        for start in range(0, len(dropped), CHUNK_ENTRIES):
            yield encode_chunk(self.name, VOID_NAMESPACE, None, dropped[start : start + CHUNK_ENTRIES])
        for namespace in self._new:
            self._known.add(namespace)
            table = self.namespaces[namespace]
            yield from encode_chunks(self.name, namespace, list(table), list(table.values()))
        for namespace, keys in changes.items():
            if not keys or namespace in self._new:
                continue
            self._known.add(namespace)
            changed, table = list(keys), self.namespaces.get(namespace, {})
            values = list(map(table.get, changed, repeat(_ABSENT)))
            # compared by identity, and without a Python loop: this is what the job waits for
            if any(map(is_, values, repeat(_ABSENT))):
                yield from encode_chunks(self.name, namespace, [key for key in changed if key not in table], None)
                changed = [key for key in changed if key in table]
                values = [value for value in values if value is not _ABSENT]
            yield from encode_chunks(self.name, namespace, changed, values)

    def count(self) -> int:
        """How many entries there are; an estimate where there are very many namespaces."""
        namespaces = self.namespaces
        counted = sum(map(len, islice(namespaces.values(), _COUNTED_NAMESPACES)))
        return counted if len(namespaces) <= _COUNTED_NAMESPACES else counted * len(namespaces) // _COUNTED_NAMESPACES

    def start_over(self, *, known: bool = False) -> None:
        """Forgets what changed; with ``known`` all that there is has been written."""
        if known:
            self._known = set(self.namespaces)
        self._changes = {}
        self._dropped = set()
        self._new = set()
        self.gone = set()
        for listener in self._listeners:
            listener()
