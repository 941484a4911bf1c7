"""Which records get their first match in a batch, and which lose their last."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["transitions"]


def transitions(records: Any, signs: Any, associations: Any, *, keeps_changes: bool) -> tuple[Any, Any, Any, Any]:
    """Counts matches of records, in order; ``signs`` are 1 and -1, None if all are 1.

    Returns the records, each once, with their numbers of matches afterwards, and the positions at which a record gets
    its first match and at which one loses its last. Unless ``keeps_changes``, there is one of these at most for each
    record: what is between the first and the last change of a batch is left out.

    >>> found = transitions(np.array([7, 8, 7]), np.array([1, -1, -1]), np.array([0] * 8 + [1]), keeps_changes=True)
    >>> [part.tolist() for part in found]
    [[7, 8], [0, 0], [0], [1, 2]]
    >>> found = transitions(np.array([7, 8, 7]), np.array([1, -1, -1]), np.array([0] * 8 + [1]), keeps_changes=False)
    >>> [part.tolist() for part in found]
    [[7, 8], [0, 0], [], [1]]
    """
    order = np.argsort(records, kind="stable")
    ordered = records[order]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(is_first)
    lengths = np.diff(np.append(starts, len(ordered)))
    touched = ordered[starts]
    steps = np.ones(len(order), np.int64) if signs is None else signs[order]
    sums = np.cumsum(steps)
    after = sums + np.repeat(associations[touched] - (sums[starts] - steps[starts]), lengths)
    ends = starts + lengths - 1
    ups = (steps > 0) & (after == 1)
    downs = (steps < 0) & (after == 0)
    if not keeps_changes and signs is not None:
        ups, downs = _net(ups, downs, starts, lengths)
    return touched, after[ends], np.sort(order[ups]), np.sort(order[downs])


def _net(ups: Any, downs: Any, starts: Any, lengths: Any) -> tuple[Any, Any]:
    """Leaves one change of each record, if what it has in the end is another than in the beginning.

    A row that is taken back is so at the first change, before there are rows in its place, and one that comes again at
    the last.
    """
    changes = ups | downs
    counts = np.add.reduceat(changes, starts)
    if counts.max(initial=0) <= 1:
        return ups, downs
    groups = np.repeat(np.arange(len(starts)), lengths)
    places = np.flatnonzero(changes)
    first = np.full(len(starts), -1)
    first[groups[places][::-1]] = places[::-1]
    last = np.full(len(starts), -1)
    last[groups[places]] = places
    is_odd = counts % 2 == 1
    begins_up = is_odd & ups[first]
    begins_down = is_odd & ~ups[first]
    net_ups, net_downs = np.zeros_like(ups), np.zeros_like(downs)
    net_ups[first[begins_up]] = True
    net_downs[last[begins_down]] = True
    return net_ups, net_downs
