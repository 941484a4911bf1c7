"""Redistributes operator state among the subtasks of a restored operator, as Flink's round-robin repartitioner does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from firesteel.runtime.model.assigned_state import AssignedOperatorState
from firesteel.runtime.model.state_handles import BROADCAST, SPLIT, UNION, OperatorStateHandle

__all__ = ["repartition"]


def repartition(
    handles: Mapping[int, Sequence[OperatorStateHandle]], old_parallelism: int, parallelism: int
) -> list[tuple[AssignedOperatorState, ...]]:
    """What each new subtask gets of the lists that the old subtasks, by number, have left.

    With the same parallelism every subtask gets its own split lists back. Else their items are dealt out evenly, name
    by name, and the remaining ones to the subtasks after the one that got the last such. Each subtask gets all union
    lists, and one copy of the broadcast lists.
    """
    assigned: list[list[AssignedOperatorState]] = [[] for _ in range(parallelism)]
    by_name: dict[tuple[str, str], list[tuple[int, OperatorStateHandle]]] = {}
    for subtask in sorted(handles):
        for handle in handles[subtask]:
            by_name.setdefault((handle.mode, handle.name), []).append((subtask, handle))
    first = 0
    for (mode, _), lists in sorted(by_name.items()):
        if mode == UNION:
            everything = [_whole(handle) for _, handle in lists]
            for each in assigned:
                each += everything
        elif mode == BROADCAST:
            copies = dict(lists)
            for subtask, each in enumerate(assigned):
                # a subtask that had finished has left no copy of its own
                own = copies.get(subtask) if parallelism == old_parallelism else None
                each.append(_whole(own or lists[subtask % len(lists)][1]))
        elif mode == SPLIT:
            if parallelism == old_parallelism:
                for subtask, handle in lists:
                    assigned[subtask].append(_whole(handle))
            else:
                first = _deal(lists, assigned, first)
        else:
            raise ValueError(f"unknown mode of operator state: {mode!r}")
    return [tuple(each for each in chain(subtask) if each.items or each.handle.mode != SPLIT) for subtask in assigned]


def _whole(handle: OperatorStateHandle) -> AssignedOperatorState:
    return AssignedOperatorState(handle, 0, handle.items)


def _deal(
    lists: Sequence[tuple[int, OperatorStateHandle]], assigned: list[list[AssignedOperatorState]], first: int
) -> int:
    """Deals consecutive items, beginning with subtask ``first``; returns where to begin with the next list."""
    parallelism = len(assigned)
    share, left_over = divmod(sum(handle.items for _, handle in lists), parallelism)
    remaining = [_whole(handle) for _, handle in lists if handle.items]
    for turn in range(parallelism):
        wanted = share + (turn < left_over)
        target = assigned[(first + turn) % parallelism]
        while wanted:
            head = remaining[0]
            taken = min(wanted, head.items)
            target.append(AssignedOperatorState(head.handle, head.start, head.start + taken))
            wanted -= taken
            if taken == head.items:
                del remaining[0]
            else:
                remaining[0] = AssignedOperatorState(head.handle, head.start + taken, head.stop)
    return (first + left_over) % parallelism
