"""Members of groups: for each group a list of numbers, all groups in one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from firesteel.runtime.state.columnar.slots import grown

__all__ = ["Groups", "ranges"]

_MIN_CAPACITY = 1024


class Groups:
    """Each group has a part of the array, with room to grow; one that needs more moves to its end.

    >>> groups = Groups()
    >>> groups.add(np.array([3, 5, 3]), np.array([10, 11, 12]))
    >>> [found.tolist() for found in groups.members(np.array([3, 4, 5]))]
    [[0, 0, 2], [10, 12, 11]]
    """

    def __init__(self) -> None:
        self._starts = np.zeros(_MIN_CAPACITY, np.int64)
        self.lengths = np.zeros(_MIN_CAPACITY, np.int64)
        """The number of members of each group."""
        self._capacities = np.zeros(_MIN_CAPACITY, np.int64)
        self._members = np.zeros(_MIN_CAPACITY, np.int64)
        self._end = 0
        self._unused = 0
        """Places before the end that belong to no group."""

    def reserve(self, capacity: int) -> None:
        """Makes room for groups with numbers below the capacity."""
        if len(self._starts) < capacity:
            self._starts = grown(self._starts, capacity)
            self.lengths = grown(self.lengths, capacity)
            self._capacities = grown(self._capacities, capacity)

    def members(self, groups: Any) -> tuple[Any, Any]:
        """The members of some groups, and for each the position of its group among these."""
        lengths = self.lengths[groups]
        return np.repeat(np.arange(len(groups)), lengths), self._members[ranges(self._starts[groups], lengths)]

    def first(self, groups: Any) -> Any:
        """The first member of each group, -1 if it has none."""
        return np.where(self.lengths[groups] > 0, self._members[self._starts[groups]], -1)

    def add(self, groups: Any, members: Any) -> None:
        """Adds a member to each of some groups, which may occur several times."""
        if not len(groups):
            return
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        touched = ordered[begins]
        added = np.diff(np.append(begins, len(ordered)))
        lengths = self.lengths[touched] + added
        overflows = lengths > self._capacities[touched]
        if overflows.any():
            self._move(touched[overflows], lengths[overflows])
        self._members[ranges(self._starts[touched] + self.lengths[touched], added)] = members[order]
        self.lengths[touched] = lengths

    def retain(self, groups: Any, is_kept: Any) -> None:
        """Removes members from groups, each given once; ``is_kept`` is indexed by member."""
        positions, members = self.members(groups)
        kept = is_kept[members]
        lengths = np.bincount(positions[kept], minlength=len(groups))
        self._members[ranges(self._starts[groups], lengths)] = members[kept]
        self.lengths[groups] = lengths

    def release(self, groups: Any) -> None:
        """Gives back the room of groups without members."""
        self._unused += int(self._capacities[groups].sum())
        self._capacities[groups] = 0

    def _move(self, groups: Any, lengths: Any) -> None:
        """Gives groups room for more members than they have."""
        capacities = np.where(lengths <= 1, 1, 1 << np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64))
        self._unused += int(self._capacities[groups].sum())
        needed = int(capacities.sum())
        if self._end + needed > len(self._members):
            if self._unused > self._end // 2:
                self._compact()
            size = len(self._members)
            while self._end + needed > size:
                size *= 2
            self._members = grown(self._members, size)
        starts = self._end + np.cumsum(capacities) - capacities
        old = self.lengths[groups]
        self._members[ranges(starts, old)] = self._members[ranges(self._starts[groups], old)]
        self._starts[groups] = starts
        self._capacities[groups] = capacities
        self._end += needed

    def _compact(self) -> None:
        used = np.flatnonzero(self._capacities)
        capacities, lengths = self._capacities[used], self.lengths[used]
        starts = np.cumsum(capacities) - capacities
        members = np.zeros(len(self._members), np.int64)
        members[ranges(starts, lengths)] = self._members[ranges(self._starts[used], lengths)]
        self._members = members
        self._starts[used] = starts
        self._end = int(capacities.sum())
        self._unused = 0


def ranges(starts: Any, lengths: Any) -> Any:
    """The numbers of ranges, one after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
