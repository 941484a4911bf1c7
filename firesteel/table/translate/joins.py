"""Streams of joins by key."""

from __future__ import annotations

from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.joins import StreamingJoin
from firesteel.table.runtime.operators.joins.regular import RegularJoinSpec
from firesteel.table.runtime.operators.joins.sides import JoinSide
from firesteel.table.translate.translator import Columns, Translator, translates

__all__ = ["streaming_join"]


@translates(StreamingJoin)
def streaming_join(node: StreamingJoin, translator: Translator) -> Columns:
    """A regular join."""
    sides = [_side(node, index, translator) for index in (0, 1)]
    spec = RegularJoinSpec(
        sides[0], sides[1], node.kind, node.null_safe, node.condition, node.row_type, translator.session
    )
    left = translator.keyed(translator.translate(node.left), node.left_keys)
    right = translator.keyed(translator.translate(node.right), node.right_keys)
    return translator.connect(left, right, "Join", spec)


def _side(node: StreamingJoin, index: int, translator: Translator) -> JoinSide:
    below, keys = ((node.left, node.left_keys), (node.right, node.right_keys))[index]
    mode: ChangelogMode = translator.traits(below).mode
    return JoinSide(below.row_type, keys, _unique_key(node, index), 0, mode.is_insert_only)


def _unique_key(node: StreamingJoin, index: int) -> tuple[int, ...] | None:
    """The columns of the smallest key which are not keys of the join; None if there is no key."""
    keys = node.unique_keys(index)
    if not keys:
        return None
    smallest = min(keys, key=lambda key: (len(key), sorted(key)))
    return tuple(sorted(smallest - set((node.left_keys, node.right_keys)[index])))
