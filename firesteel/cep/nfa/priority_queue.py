"""A binary heap of partial matches by their first event, with the order of Java's PriorityQueue among equals.

Flink processes partial matches in the order of the heap's array. ``heapq`` gives the same order when elements are
added, and another one when they are removed.
"""

from __future__ import annotations

from collections.abc import Callable

from firesteel.cep.nfa.shared_buffer import Computation

__all__ = ["discard", "pop", "push"]


def push(heap: list[Computation], added: Computation) -> None:
    """Adds an element."""
    heap.append(added)
    position = len(heap) - 1
    start = added[0]
    while position > 0:
        parent = (position - 1) >> 1
        if start >= heap[parent][0]:
            break
        heap[position] = heap[parent]
        position = parent
    heap[position] = added


def pop(heap: list[Computation]) -> Computation:
    """Removes and returns the first element."""
    first = heap[0]
    last = heap.pop()
    if heap:
        _sift_down(heap, 0, last)
    return first


def discard(heap: list[Computation], is_discarded: Callable[[Computation], bool]) -> None:
    """Removes some elements."""
    kept = [each for each in heap if not is_discarded(each)]
    if len(kept) != len(heap):
        heap[:] = kept
        for position in range((len(heap) >> 1) - 1, -1, -1):
            _sift_down(heap, position, heap[position])


def _sift_down(heap: list[Computation], position: int, moved: Computation) -> None:
    half, size, start = len(heap) >> 1, len(heap), moved[0]
    while position < half:
        child = 2 * position + 1
        right = child + 1
        if right < size and heap[child][0] > heap[right][0]:
            child = right
        if start <= heap[child][0]:
            break
        heap[position] = heap[child]
        position = child
    heap[position] = moved
