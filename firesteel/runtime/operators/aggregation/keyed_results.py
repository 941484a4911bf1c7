"""Results of an aggregation in keyed state: one partial result per key, into which others are merged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from firesteel.api.state import ValueStateDescriptor
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, ObjectStateBackend

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.operators.aggregation.function import Aggregation
    from firesteel.runtime.state.api.backend import KeyedStateBackend

__all__ = ["KeyedResults"]


class KeyedResults:
    """The state of an aggregation. Of a backend that keeps objects it is the dictionary itself."""

    def __init__(self, aggregation: Aggregation, backend: KeyedStateBackend):
        self._aggregation = aggregation
        self._backend = backend
        name = aggregation.state_name
        self._state = backend.get_state(ValueStateDescriptor(name, None), internal=True)
        self._objects = backend.state_table(name) if isinstance(backend, ObjectStateBackend) else None

    def write_merge(self, writer: LoopWriter, key: str, pair: str) -> str:
        """Writes the merge of a pair in a variable into the result of its key, which is current; returns the result."""
        aggregation, objects = self._aggregation, self._objects
        merged, partial = writer.new_variable("a"), writer.new_variable("p")
        writer.line(f"{partial} = {pair}[1]")
        if objects is None:
            writer.line(f"{merged} = {writer.bind('read', self._state.value)}()")
        else:
            table = objects.namespaces[VOID_NAMESPACE]
            writer.line(f"{merged} = {writer.bind('find', table.get)}({key})")
        with writer.block(f"if {merged} is None:"):
            writer.line(f"{merged} = {partial}")
        with writer.block("else:"):
            call = writer.call_with_two(aggregation.merge, merged, partial)
            writer.line(f"{merged} = {call}", element=pair)
            with writer.block(f"if {merged} is None:"):
                refuse = writer.bind("refuse", aggregation.refuse_none)
                writer.line(f"{refuse}()", element=pair, function=aggregation.merge)
        if objects is None:
            writer.line(f"{writer.bind('store', self._state.update)}({merged})", element=pair)
            return merged
        writer.line(f"{writer.bind('table', table)}[{key}] = {merged}")
        if objects.tracked:
            changed = writer.new_variable("s")
            # valid until the next snapshot, which is not taken in the middle of a batch
            writer.prologue(f"{changed} = {writer.bind('objects', objects)}.changed({VOID_NAMESPACE!r})")
            writer.line(f"{changed}.add({key})")
        return merged

    def merge_all(self, pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Merges partial results into those of their keys; returns the results."""
        backend, merge_with = self._backend, self._aggregation.merge_with
        results: list[Any] = []
        if self._objects is None:
            read, store = self._state.value, self._state.update
            for key, partial in pairs:
                backend.key = key
                merged = read()
                merged = partial if merged is None else merge_with(merged, partial)
                store(merged)
                results.append(merged)
            return results
        table, merge = self._objects.namespaces[VOID_NAMESPACE], self._aggregation.merge
        find, add = table.get, results.append
        for key, partial in pairs:
            merged = find(key)
            if merged is not None:
                try:
                    partial = merge(merged, partial)
                except Exception:
                    backend.key = key  # the failure report names it
                    raise
                if partial is None:
                    backend.key = key
                    self._aggregation.refuse_none()
            table[key] = partial
            add(partial)
        if self._objects.tracked:
            self._objects.changed(VOID_NAMESPACE).update(key for key, _ in pairs)
        return results
