"""Joins read the columns that their keys, their condition and their results need; see ``prune_columns``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from firesteel.table.plan.joins import KeyedJoin, StreamingJoin
from firesteel.table.plan.rewriting import moved_inputs
from firesteel.table.plan.streaming import inputs_of
from firesteel.table.rules.prune_columns import Places, Pruned, prune, prunes

__all__ = ["prune_keyed_join"]


@prunes(StreamingJoin)
def _streaming_join(node: StreamingJoin, needed: frozenset[int]) -> Pruned:
    pruned, _, _, places = prune_keyed_join(node, needed)
    return pruned, places


def prune_keyed_join(
    node: KeyedJoin, needed: Iterable[int], left_needed: Iterable[int] = (), right_needed: Iterable[int] = ()
) -> tuple[KeyedJoin, Places, Places, Places]:
    """The join, where the columns of its inputs are, and where those of its results are."""
    width = node.left_width
    wanted = {*needed, *(() if node.condition is None else inputs_of([node.condition]))}
    left, left_places = prune(node.left, {*node.left_keys, *left_needed, *(index for index in wanted if index < width)})
    right, right_places = prune(
        node.right, {*node.right_keys, *right_needed, *(index - width for index in wanted if index >= width)}
    )
    offset = len(left.row_type.fields)
    both = {**left_places, **{width + old: offset + new for old, new in right_places.items()}}
    joined = replace(
        node,
        left=left,
        right=right,
        left_keys=tuple(left_places[key] for key in node.left_keys),
        right_keys=tuple(right_places[key] for key in node.right_keys),
        condition=None if node.condition is None else moved_inputs(node.condition, both),
    )
    return joined, left_places, right_places, both if node.has_right else left_places
