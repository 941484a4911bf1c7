"""The nodes between upserts and whole changelogs: behind sources of upserts, and before sinks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import Keys, SingleInput

__all__ = ["ChangelogNormalize", "CompactingMaterialize", "UpsertMaterialize"]


@dataclass(frozen=True)
class ChangelogNormalize(SingleInput):
    """Makes a whole changelog of upserts and deletions by key: rows before updates, and whole rows that are deleted."""

    key: tuple[int, ...]

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return ChangelogMode.all()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return before_wanted, (False,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return frozenset({frozenset(self.key)})

    def describe(self) -> str:
        return f"ChangelogNormalize(key=[{', '.join(self.row_type.field_names[index] for index in self.key)}])"


@dataclass(frozen=True)
class UpsertMaterialize(SingleInput):
    """Makes upserts by a key of a changelog whose rows have other keys, so that several may have the same."""

    key: tuple[int, ...]

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return ChangelogMode.upsert()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return False, (True,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return frozenset({frozenset(self.key)})

    def describe(self) -> str:
        return f"UpsertMaterialize(key=[{', '.join(self.row_type.field_names[index] for index in self.key)}])"


@dataclass(frozen=True)
class CompactingMaterialize(SingleInput):
    """Makes upserts by a key of the rows that are left when a watermark comes; several of a key are a conflict."""

    key: tuple[int, ...]
    upsert_key: tuple[int, ...]
    """The key of the input by which rows replace each other; empty if it has none."""
    fails: bool
    """Whether a conflict is an error; else the row that is there stays."""

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return ChangelogMode.upsert()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return False, (True,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return frozenset({frozenset(self.key)})

    def describe(self) -> str:
        names = self.row_type.field_names
        key = ", ".join(names[index] for index in self.key)
        return f"UpsertMaterialize(key=[{key}], conflictStrategy=[{'ERROR' if self.fails else 'NOTHING'}])"
