"""Joins read the columns that their keys, their condition and their results need; see ``prune_columns``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from firesteel.table.plan.correlates import Unnest
from firesteel.table.plan.joins import KeyedJoin, StreamingJoin
from firesteel.table.plan.lookup_joins import LookupJoin
from firesteel.table.plan.rewriting import moved_inputs
from firesteel.table.plan.streaming import inputs_of
from firesteel.table.plan.time_joins import IntervalJoin, TemporalJoin
from firesteel.table.rules.prune_columns import Places, Pruned, prune, prunes

__all__ = ["prune_keyed_join"]

J = TypeVar("J", bound=KeyedJoin)


@prunes(StreamingJoin)
def _streaming_join(node: StreamingJoin, needed: frozenset[int]) -> Pruned:
    pruned, _, _, places = prune_keyed_join(node, needed)
    return pruned, places


@prunes(IntervalJoin)
def _interval_join(node: IntervalJoin, needed: frozenset[int]) -> Pruned:
    pruned, left, right, places = prune_keyed_join(node, needed, [node.left_time], [node.right_time])
    return replace(pruned, left_time=left[node.left_time], right_time=right[node.right_time]), places


@prunes(TemporalJoin)
def _temporal_join(node: TemporalJoin, needed: frozenset[int]) -> Pruned:
    pruned, left, right, places = prune_keyed_join(node, needed, [node.left_time], [node.right_time])
    return replace(pruned, left_time=left[node.left_time], right_time=right[node.right_time]), places


@prunes(Unnest)
def _unnest(node: Unnest, needed: frozenset[int]) -> Pruned:
    width = len(node.input.row_type.fields)
    condition = [] if node.condition is None else [node.condition]
    own = {index for index in (*needed, *inputs_of(condition)) if index < width}
    below, places = prune(node.input, {*own, *inputs_of([node.collection])})
    added = {width + index: len(below.row_type.fields) + index for index in range(len(node.elements.fields))}
    both = {**places, **added}
    pruned = replace(
        node,
        input=below,
        collection=moved_inputs(node.collection, places),
        condition=moved_inputs(condition[0], both) if condition else None,
    )
    return pruned, both


@prunes(LookupJoin)
def _lookup_join(node: LookupJoin, needed: frozenset[int]) -> Pruned:
    width = len(node.input.row_type.fields)
    condition = [] if node.condition is None else [node.condition]
    wanted = {*needed, *inputs_of(condition)}
    own = {*(index for index in wanted if index < width), *inputs_of([value for _, value in node.keys])}
    below, places = prune(node.input, own)
    kept = sorted(index - width for index in wanted if index >= width)
    offset = len(below.row_type.fields)
    both = {**places, **{width + old: offset + new for new, old in enumerate(kept)}}
    pruned = replace(
        node,
        input=below,
        keys=tuple((column, moved_inputs(value, places)) for column, value in node.keys),
        projection=tuple(node.projection[index] for index in kept),
        names=tuple(node.names[index] for index in kept),
        condition=moved_inputs(condition[0], both) if condition else None,
    )
    return pruned, both


def prune_keyed_join(
    node: J, needed: Iterable[int], left_needed: Iterable[int] = (), right_needed: Iterable[int] = ()
) -> tuple[J, Places, Places, Places]:
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
