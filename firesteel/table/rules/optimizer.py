"""The order in which rules rewrite plans of streaming queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from firesteel.table.plan.nodes import LogicalNode, TableScan, walk
from firesteel.table.rules import prune_ranks
from firesteel.table.rules.filter_sources import filter_sources
from firesteel.table.rules.final_inputs import bounded_over, final_inputs
from firesteel.table.rules.joins import prune_joins
from firesteel.table.rules.joins.streaming_joins import streaming_joins
from firesteel.table.rules.joins.subqueries_to_joins import subqueries_to_joins
from firesteel.table.rules.joins.temporal_joins import temporal_joins
from firesteel.table.rules.merge_calcs import merge_calcs
from firesteel.table.rules.nested_fields import read_nested_fields
from firesteel.table.rules.options import OptimizerOptions
from firesteel.table.rules.prune_columns import prune_columns
from firesteel.table.rules.push_filters import push_filters
from firesteel.table.rules.rank import rank
from firesteel.table.rules.rank_strategy import rank_strategy
from firesteel.table.rules.set_operations import set_operations
from firesteel.table.rules.split_distinct import split_distinct
from firesteel.table.rules.times.materialize_times import materialize_times
from firesteel.table.rules.times.plain_times import plain_times
from firesteel.table.rules.times.temporal_sort import temporal_sort
from firesteel.table.rules.upserts import materialize_upserts, normalize_upserts
from firesteel.table.rules.windows import prune
from firesteel.table.rules.windows.streaming import streaming_windows

__all__ = ["optimize", "optimize_all", "prune", "prune_joins", "prune_ranks"]

Rule = Callable[[LogicalNode], LogicalNode]

_EACH_NODE: Sequence[Rule] = (
    materialize_times,
    normalize_upserts,
    set_operations,
    push_filters,
    temporal_sort,
    merge_calcs,
    rank,
    streaming_windows,
    streaming_joins,
    plain_times,
    merge_calcs,
    temporal_joins,
)
"""Rules that see a node after its inputs, one after the other."""
_DEFAULTS = OptimizerOptions()


def optimize_all(roots: Sequence[LogicalNode], options: OptimizerOptions = _DEFAULTS) -> list[LogicalNode]:
    """The plans of one job. A table that several of them read is read once, so all of its columns are read."""
    tables = [{(node.identifier, node.options) for node in walk(root) if isinstance(node, TableScan)} for root in roots]
    is_shared = sum(map(len, tables)) > len(set().union(*tables))
    return [optimize(root, options, prunes=not is_shared) for root in roots]


def optimize(root: LogicalNode, options: OptimizerOptions = _DEFAULTS, *, prunes: bool = True) -> LogicalNode:
    """The plan as it is translated; ``prunes`` is whether sources leave out what is not needed."""
    root = subqueries_to_joins(root)
    for rule in _EACH_NODE:
        root = _applied(partial(rank, is_bounded=True) if rule is rank and options.is_bounded else rule, root)
    if options.is_bounded:
        root = _applied(bounded_over, root)
    if options.distinct_buckets is not None:
        root = _applied(partial(split_distinct, buckets=options.distinct_buckets), root)
    if prunes:
        root = prune_columns(_applied(filter_sources, root))
    # projections that pruning leaves behind are merged again
    root = _applied(rank_strategy, _applied(merge_calcs, _applied(read_nested_fields, root)))
    if options.is_bounded:
        root = final_inputs(root)
    return materialize_upserts(root, options.upsert_materialize, require_on_conflict=options.require_on_conflict)


def _applied(rule: Rule, node: LogicalNode) -> LogicalNode:
    inputs = [_applied(rule, below) for below in node.inputs()]
    if any(new is not old for new, old in zip(inputs, node.inputs(), strict=True)):
        node = node.with_inputs(inputs)
    return rule(node)
