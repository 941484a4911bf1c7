"""Columns that Top-N, OVER and sorts by time do not need are not read."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.plan.changelogs import ChangelogNormalize, FromChangelog
from firesteel.table.plan.nodes import LogicalNode, SortKey
from firesteel.table.plan.over import Over, OverCall, OverGroup
from firesteel.table.plan.ranks import Rank, TemporalSort
from firesteel.table.plan.streaming import Calc
from firesteel.table.rules.prune_columns import Places, Pruned, prune, prunes
from firesteel.table.rules.references import references

__all__: list[str] = []


def _moved(order: tuple[SortKey, ...], places: Places) -> tuple[SortKey, ...]:
    return tuple(replace(key, index=places[key.index]) for key in order)


def _narrowed(node: LogicalNode, wanted: set[int]) -> Pruned:
    """The columns that are wanted alone: rows are kept as state."""
    below, places = prune(node, wanted)
    kept = sorted(wanted)
    if not kept or len(below.row_type.fields) == len(kept):
        return below, places
    columns = [references(below)[places[column]] for column in kept]
    calc = Calc(below, tuple(columns), tuple(column.name for column in columns))
    return calc, {old: new for new, old in enumerate(kept)}


@prunes(Rank)
def _rank(node: Rank, needed: frozenset[int]) -> Pruned:
    number = len(node.input.row_type.fields)
    own = {*node.partition, *(key.index for key in node.order)}
    own |= set() if node.end_column is None else {node.end_column}
    below, places = _narrowed(node.input, {*needed - {number}, *own})
    pruned = replace(
        node,
        input=below,
        partition=tuple(places[index] for index in node.partition),
        order=_moved(node.order, places),
        end_column=None if node.end_column is None else places[node.end_column],
    )
    if node.number is not None:
        places = {**places, number: len(below.row_type.fields)}
    return pruned, places


@prunes(Over)
def _over(node: Over, needed: frozenset[int]) -> Pruned:
    width = len(node.input.row_type.fields)
    numbered = [(group, call) for group in node.groups for call in group.calls]
    kept = [index for index in range(len(numbered)) if width + index in needed]
    calls = [numbered[index] for index in kept] or numbered[:1]
    kept = kept or [0]
    own = {index for group, call in calls for index in (*call.arguments, *group.partition)}
    own |= {key.index for group, _ in calls for key in group.order}
    below, places = _narrowed(node.input, {index for index in needed if index < width} | own)
    groups = [_group(group, [call for of, call in calls if of is group], places) for group in node.groups]
    pruned = Over(below, tuple(group for group in groups if group.calls))
    offset = len(below.row_type.fields)
    return pruned, {**places, **{width + old: offset + new for new, old in enumerate(kept)}}


def _group(group: OverGroup, calls: list[OverCall], places: Places) -> OverGroup:
    moved = [replace(call, arguments=tuple(places[index] for index in call.arguments)) for call in calls]
    if not moved:
        return replace(group, calls=())
    partition = tuple(places[index] for index in group.partition)
    return OverGroup(partition, _moved(group.order, places), group.frame, tuple(moved), group.position)


@prunes(TemporalSort)
def _temporal_sort(node: TemporalSort, needed: frozenset[int]) -> Pruned:
    below, places = _narrowed(node.input, {*needed, *(key.index for key in node.order)})
    return replace(node, input=below, order=_moved(node.order, places)), places


@prunes(ChangelogNormalize)
def _normalize(node: ChangelogNormalize, needed: frozenset[int]) -> Pruned:
    below, places = _narrowed(node.input, {*needed, *node.key})
    return ChangelogNormalize(below, tuple(places[column] for column in node.key)), places


@prunes(FromChangelog)
def _from_changelog(node: FromChangelog, needed: frozenset[int]) -> Pruned:
    columns = [index for index in range(len(node.input.row_type.fields)) if index != node.column]
    below, places = prune(node.input, {node.column, *(columns[index] for index in needed)})
    column = places[node.column]
    moved = {index: places[old] - (places[old] > column) for index, old in enumerate(columns) if old in places}
    return replace(node, input=below, column=column), moved
