"""Columns that nobody reads, below the nodes of windows."""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.plan.windows import WindowAggregate, WindowJoin, WindowRank, WindowTableFunction
from firesteel.table.rules.joins.prune_joins import prune_keyed_join
from firesteel.table.rules.prune_columns import Pruned, prune, prunes
from firesteel.table.rules.windows.aggregates import moved_calls

__all__: list[str] = []


@prunes(WindowTableFunction)
def _table_function(node: WindowTableFunction, needed: frozenset[int]) -> Pruned:
    width = len(node.input.row_type.fields)
    below, places = prune(node.input, {*(index for index in needed if index < width), node.time, *node.partition})
    new_width = len(below.row_type.fields)
    partition = tuple(places[index] for index in node.partition)
    pruned = replace(node, input=below, time=places[node.time], partition=partition)
    return pruned, {**places, **{width + index: new_width + index for index in range(3)}}


@prunes(WindowAggregate)
def _aggregate(node: WindowAggregate, needed: frozenset[int]) -> Pruned:
    first = len(node.grouping)
    kept = [index for index in range(len(node.calls)) if first + index in needed]
    calls = [node.calls[index] for index in kept]
    read = {column for call in calls for column in call.arguments}
    read |= {call.filter for call in calls if call.filter is not None}
    read |= {column for column in (*node.keys, node.time, node.start, node.end) if column is not None}
    below, places = prune(node.input, read)
    pruned = replace(
        node,
        input=below,
        grouping=tuple(places[column] if isinstance(column, int) else column for column in node.grouping),
        calls=moved_calls(calls, places),
        time=None if node.time is None else places[node.time],
        start=None if node.start is None else places[node.start],
        end=None if node.end is None else places[node.end],
    )
    moved = {index: index for index in range(first)}
    return pruned, {**moved, **{first + old: first + new for new, old in enumerate(kept)}}


@prunes(WindowJoin)
def _join(node: WindowJoin, needed: frozenset[int]) -> Pruned:
    pruned, left, right, places = prune_keyed_join(node, needed, node.left_bounds, node.right_bounds)
    assert isinstance(pruned, WindowJoin)
    joined = replace(
        pruned,
        left_bounds=(left[node.left_bounds[0]], left[node.left_bounds[1]]),
        right_bounds=(right[node.right_bounds[0]], right[node.right_bounds[1]]),
    )
    return joined, places


@prunes(WindowRank)
def _rank(node: WindowRank, needed: frozenset[int]) -> Pruned:
    width = len(node.input.row_type.fields)
    columns = {index for index in needed if index < width}
    below, places = prune(node.input, {*columns, *node.bounds, *node.partition, *(key.index for key in node.order)})
    has_number = node.number is not None and width in needed
    pruned = replace(
        node,
        input=below,
        bounds=(places[node.bounds[0]], places[node.bounds[1]]),
        partition=tuple(places[index] for index in node.partition),
        order=tuple(replace(key, index=places[key.index]) for key in node.order),
        number=node.number if has_number else None,
    )
    return pruned, {**places, width: len(below.row_type.fields)} if has_number else places
