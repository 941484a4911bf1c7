"""Joins of streams by key: which columns are equal, and what else has to be true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from firesteel.common.types import RowKind
from firesteel.table.bound.nodes import Expression, Literal
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import NO_KEYS, Join, JoinKind, Keys, LogicalNode, TwoInputs
from firesteel.table.plan.time_attributes import without_time_attributes
from firesteel.types.logical import BooleanType, RowType

__all__ = ["TRUE", "HintedJoin", "KeyedJoin", "StreamingJoin", "keys_of"]

TRUE = Literal(BooleanType(nullable=False), True)


@dataclass(frozen=True)
class HintedJoin(Join):
    """A join with a STATE_TTL hint."""

    left_ttl_ms: int | None = None
    """Time that rows of the left side are kept after they were written; None for that of the session."""
    right_ttl_ms: int | None = None


@dataclass(frozen=True)
class KeyedJoin(TwoInputs):
    """Pairs of rows with equal keys for which a condition over the columns of both is true."""

    kind: JoinKind
    left_keys: tuple[int, ...]
    right_keys: tuple[int, ...]
    null_safe: tuple[bool, ...]
    """For each key whether null is equal to null."""
    condition: Expression | None = None
    """What else has to be true."""

    @cached_property
    def _type(self) -> RowType:
        return _joined(self)

    @property
    def has_right(self) -> bool:
        """Whether the results have the columns of the right side."""
        return self.kind not in (JoinKind.SEMI, JoinKind.ANTI)

    @property
    def left_width(self) -> int:
        """The number of columns of the left side."""
        return len(self.left.row_type.fields)

    def describe(self) -> str:
        left, right = self.left.row_type.field_names, self.right.row_type.field_names
        parts = [
            f"{left[a]} {'IS NOT DISTINCT FROM' if safe else '='} {right[b]}"
            for a, b, safe in zip(self.left_keys, self.right_keys, self.null_safe, strict=True)
        ]
        parts += [] if self.condition is None else [str(self.condition)]
        return f"{type(self).__name__}(joinType=[{self.kind.value}], where=[{' AND '.join(parts) or 'true'}])"


@dataclass(frozen=True)
class StreamingJoin(KeyedJoin):
    """A regular join: all rows of both sides are kept, and changes of either side change the result."""

    left_ttl_ms: int | None = None
    """Time that rows of the left side are kept after they were written, from a hint; None for that of the session."""
    right_ttl_ms: int | None = None

    @cached_property
    def _type(self) -> RowType:
        # a row joins others long before and after its time: it is no longer ordered by it
        return without_time_attributes(_joined(self))

    def changelog(self, inputs: Sequence[ChangelogMode]) -> ChangelogMode:
        if self.kind in (JoinKind.INNER, JoinKind.SEMI):
            return inputs[0].union(*inputs[1:])
        return ChangelogMode.all()

    @cached_property
    def updating_inputs(self) -> tuple[bool, bool]:
        """For each side whether an update of a row may give it another key."""
        return self._may_move(self.left, self.left_keys), self._may_move(self.right, self.right_keys)

    def _may_move(self, side: LogicalNode, columns: tuple[int, ...]) -> bool:
        return not any(key >= set(columns) for key in keys_of(side))

    def wanted_updates(self, before_wanted: bool) -> tuple[bool, Sequence[bool]]:
        left, right = (
            RowKind.UPDATE_AFTER in mode_of(side).kinds and moves
            for side, moves in zip(self.inputs(), self.updating_inputs, strict=True)
        )
        wanted = before_wanted or left or right
        return wanted, (wanted, wanted)

    def unique_keys(self, side: int) -> Keys:
        """The keys of a side by which its rows can be kept: all rows of such a key have the same join key."""
        node, columns = ((self.left, self.left_keys), (self.right, self.right_keys))[side]
        return frozenset(key for key in keys_of(node) if key >= set(columns))

    def upsert_keys(self, inputs: Sequence[Keys]) -> Keys:
        left_columns, right_columns = set(self.left_keys), set(self.right_keys)
        left = {key for key in inputs[0] if key >= left_columns}
        if not self.has_right:
            return frozenset(left)
        right = {frozenset(self.left_width + column for column in key) for key in inputs[1] if key >= right_columns}
        found = {one | other for one in left for other in right}
        if any(key <= right_columns for key in inputs[1]) and not self.kind.keeps_right:
            found |= left
        if any(key <= left_columns for key in inputs[0]) and not self.kind.keeps_left:
            found |= right
        return frozenset(found) or NO_KEYS


def _joined(node: KeyedJoin) -> RowType:
    return Join(node.left, node.right, node.kind, TRUE).row_type


def keys_of(node: LogicalNode) -> Keys:
    """The sets of columns which identify a row of a plan."""
    return node.upsert_keys([keys_of(below) for below in node.inputs()])


def mode_of(node: LogicalNode) -> ChangelogMode:
    """The kinds of rows that a plan produces."""
    return node.changelog([mode_of(below) for below in node.inputs()])
