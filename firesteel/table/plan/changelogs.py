"""The nodes that make another changelog of one: of upserts a whole one and back, and of changes rows and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from firesteel.common.types import RowKind
from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import Keys, SingleInput
from firesteel.types.logical import RowField, RowType, VarCharType

__all__ = ["ChangelogNormalize", "CompactingMaterialize", "FromChangelog", "ToChangelog", "UpsertMaterialize"]


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
class _Materialize(SingleInput):
    """Makes upserts by a key of a whole changelog."""

    key: tuple[int, ...]

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return ChangelogMode.upsert()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return False, (True,)

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        return frozenset({frozenset(self.key)})

    def _key_names(self) -> str:
        return ", ".join(self.row_type.field_names[index] for index in self.key)


@dataclass(frozen=True)
class UpsertMaterialize(_Materialize):
    """Makes upserts by a key of a changelog whose rows have other keys, so that several may have the same."""

    def describe(self) -> str:
        return f"UpsertMaterialize(key=[{self._key_names()}])"


@dataclass(frozen=True)
class CompactingMaterialize(_Materialize):
    """Makes upserts by a key of the rows that are left when a watermark comes; several of a key are a conflict."""

    upsert_key: tuple[int, ...]
    """The key of the input by which rows replace each other; empty if it has none."""
    fails: bool
    """Whether a conflict is an error; else the row that is there stays."""

    def describe(self) -> str:
        strategy = "ERROR" if self.fails else "NOTHING"
        return f"UpsertMaterialize(key=[{self._key_names()}], conflictStrategy=[{strategy}])"


@dataclass(frozen=True)
class ToChangelog(SingleInput):
    """TO_CHANGELOG: each change as a row that is inserted, with the code of its kind in a first column."""

    column: str
    codes: tuple[tuple[RowKind, str], ...]
    """The code of each kind; changes of other kinds are left out."""

    @cached_property
    def _type(self) -> RowType:
        return RowType([RowField(self.column, VarCharType()), *self.input.row_type.fields], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        return ChangelogMode.insert_only()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return False, (True,)

    def describe(self) -> str:
        codes = ", ".join(f"{kind.name}={code}" for kind, code in self.codes)
        return f"ToChangelog(op=[{self.column}], codes=[{codes}])"


@dataclass(frozen=True)
class FromChangelog(SingleInput):
    """FROM_CHANGELOG: rows as the changes whose codes they have in a column, which is left out."""

    column: int
    codes: tuple[tuple[str, RowKind], ...]
    place: Position | None = field(default=None, compare=False, repr=False, kw_only=True)
    """Where the text calls the function."""

    @cached_property
    def _type(self) -> RowType:
        fields = self.input.row_type.fields
        return RowType([*fields[: self.column], *fields[self.column + 1 :]], nullable=False)

    @property
    def row_type(self) -> RowType:
        return self._type

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if not inputs[0].is_insert_only:
            raise ValidationError(
                "FROM_CHANGELOG doesn't support consuming update and delete changes which is produced by node "
                f"{self.input.describe()}",
                position=self.place,
                hint="Its input has rows that are inserted only, as TO_CHANGELOG makes them.",
            )
        return ChangelogMode.all()

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        return True, (False,)

    def describe(self) -> str:
        codes = ", ".join(f"{code}={kind.name}" for code, kind in self.codes)
        return f"FromChangelog(op=[{self.input.row_type.field_names[self.column]}], codes=[{codes}])"
