"""Records in flight in a checkpoint: they are called again after a restore."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.runtime.operators.async_wait.queue import Border, Call

__all__ = ["IN_FLIGHT", "Element", "PendingRecord", "PendingResults", "QueueSnapshot", "own_elements", "snapshot_of"]

IN_FLIGHT = "_in_flight"
"""The operator state (union) that they are in: one QueueSnapshot per subtask."""


@dataclass(frozen=True, slots=True)
class PendingRecord:
    """A record none of whose results has been emitted."""

    value: Any
    timestamp: int | None


@dataclass(frozen=True, slots=True)
class PendingResults:
    """The results of a record that are left, if the first ones have been emitted."""

    value: Any
    results: list[Any]
    timestamp: int | None


Element = PendingRecord | PendingResults | Border


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """What a subtask had in flight, in the order of its arrival."""

    subtask: int
    parallelism: int
    elements: tuple[Element, ...]


def snapshot_of(items: Iterable[Call | Border], subtask: int, parallelism: int) -> list[QueueSnapshot]:
    """Returns what the checkpoint of a subtask keeps."""
    elements = tuple(_element_of(item) if isinstance(item, Call) else item for item in items)
    return [QueueSnapshot(subtask, parallelism, elements)] if elements else []


def _element_of(call: Call) -> PendingRecord | PendingResults:
    if call.emitted:
        return PendingResults(call.value, call.results[call.emitted :], call.timestamp)
    return PendingRecord(call.value, call.timestamp)


def own_elements(
    snapshots: Iterable[QueueSnapshot],
    subtask: int,
    parallelism: int,
    owner_of: Callable[[Any], int] | None,
) -> Iterator[Element]:
    """Yields what one subtask of the restored job takes over.

    With the same parallelism that is what it had itself. Otherwise records go to the subtask of their key
    (``owner_of``), so that they stay before later ones of the key. If the stream is not keyed, those of a subtask stay
    together, in their order. Borders are then omitted: they are true of the records of the old subtask only, and the
    task's own watermark follows anyway.
    """
    for snapshot in sorted(snapshots, key=lambda each: each.subtask):
        if snapshot.parallelism == parallelism:
            if snapshot.subtask == subtask:
                yield from snapshot.elements
            continue
        for element in snapshot.elements:
            if isinstance(element, PendingRecord | PendingResults):
                owner = snapshot.subtask % parallelism if owner_of is None else owner_of(element.value)
                if owner == subtask:
                    yield element
