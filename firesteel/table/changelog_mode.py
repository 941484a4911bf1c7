"""ChangelogMode: the kinds of rows that a changelog contains."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from firesteel.common.types import RowKind

__all__ = ["ChangelogMode"]


@dataclass(frozen=True)
class ChangelogMode:
    """The kinds of rows that a changelog contains."""

    kinds: frozenset[RowKind]

    @staticmethod
    def insert_only() -> ChangelogMode:
        """Insertions alone."""
        return _INSERT_ONLY

    @staticmethod
    def upsert() -> ChangelogMode:
        """Insertions, updates without the row before, and deletions."""
        return _UPSERT

    @staticmethod
    def all() -> ChangelogMode:
        """All kinds of rows."""
        return _ALL

    @staticmethod
    def of(kinds: Iterable[RowKind]) -> ChangelogMode:
        """These kinds."""
        return ChangelogMode(frozenset(kinds))

    def contains(self, kind: RowKind) -> bool:
        """Whether rows of this kind occur."""
        return kind in self.kinds

    def contains_only(self, kind: RowKind) -> bool:
        """Whether only rows of this kind occur."""
        return self.kinds == {kind}

    @property
    def is_insert_only(self) -> bool:
        """Whether only insertions occur."""
        return self.kinds == {RowKind.INSERT}

    @property
    def has_updates(self) -> bool:
        """Whether rows are updated."""
        return RowKind.UPDATE_AFTER in self.kinds

    def with_updates(self) -> ChangelogMode:
        """The same and updates, with the row before and after."""
        return ChangelogMode(self.kinds | {RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER})

    def union(self, *others: ChangelogMode) -> ChangelogMode:
        """The kinds of all of them."""
        return ChangelogMode(self.kinds.union(*(other.kinds for other in others)))

    def __str__(self) -> str:
        letters = {RowKind.INSERT: "I", RowKind.UPDATE_BEFORE: "UB", RowKind.UPDATE_AFTER: "UA", RowKind.DELETE: "D"}
        return ",".join(letter for kind, letter in letters.items() if kind in self.kinds)


_INSERT_ONLY = ChangelogMode(frozenset({RowKind.INSERT}))
_ALL = ChangelogMode(frozenset(RowKind))
_UPSERT = ChangelogMode(frozenset(RowKind) - {RowKind.UPDATE_BEFORE})
