"""The names of nodes and values in compiled plans.

Names stay when classes are renamed or move. A node whose meaning changes gets a new name with the next number; the old
name then stands for what makes the new node of the old fields.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from firesteel.common.types import RowKind
from firesteel.table.bound import nodes as expressions
from firesteel.table.bound.errors import Position
from firesteel.table.connector import push_downs
from firesteel.table.connector.lookups import LookupOptions
from firesteel.table.connector.watermark_options import WatermarkParams
from firesteel.table.plan import (
    changelogs,
    constraints,
    correlates,
    joins,
    lookup_joins,
    nodes,
    over,
    ranks,
    replicate,
    streaming,
    time_joins,
    window_kinds,
    windows,
)

__all__ = ["ENUMS", "NODES", "VALUES"]

NODES: dict[str, type[nodes.LogicalNode]] = {
    "aggregate_1": nodes.Aggregate,
    "calc_1": streaming.Calc,
    "changelog-normalize_1": changelogs.ChangelogNormalize,
    "compacting-materialize_1": changelogs.CompactingMaterialize,
    "constraint-enforcer_1": constraints.ConstraintEnforcer,
    "expand_1": replicate.Expand,
    "from-changelog_1": changelogs.FromChangelog,
    "interval-join_1": time_joins.IntervalJoin,
    "join_1": joins.StreamingJoin,
    "lookup-join_1": lookup_joins.LookupJoin,
    "named-query_1": streaming.NamedQuery,
    "over_1": over.Over,
    "rank_1": ranks.Rank,
    "replicate-rows_1": replicate.ReplicateRows,
    "set-operation_1": nodes.SetOperation,
    "sink_1": streaming.Sink,
    "table-scan_1": nodes.TableScan,
    "temporal-join_1": time_joins.TemporalJoin,
    "temporal-sort_1": ranks.TemporalSort,
    "to-changelog_1": changelogs.ToChangelog,
    "unnest_1": correlates.Unnest,
    "upsert-materialize_1": changelogs.UpsertMaterialize,
    "values_1": nodes.Values,
    "watermark-assigner_1": streaming.WatermarkAssigner,
    "window-aggregate_1": windows.WindowAggregate,
    "window-join_1": windows.WindowJoin,
    "window-rank_1": windows.WindowRank,
    "window-table-function_1": windows.WindowTableFunction,
}
VALUES: dict[str, type[Any]] = {
    "aggregate-call": nodes.AggregateCall,
    "bound": over.Bound,
    "call": expressions.Call,
    "case": expressions.Case,
    "cast": expressions.Cast,
    "cumulative-window": window_kinds.CumulativeWindow,
    "distinct-split": nodes.DistinctSplit,
    "emit": windows.EmitStrategy,
    "field": expressions.FieldAccess,
    "frame": over.Frame,
    "hopping-window": window_kinds.HoppingWindow,
    "input": expressions.InputRef,
    "literal": expressions.Literal,
    "lookup-options": LookupOptions,
    "over-call": over.OverCall,
    "over-group": over.OverGroup,
    "position": Position,
    "pushed-filters": push_downs.PushedFilters,
    "pushed-nested-projection": push_downs.PushedNestedProjection,
    "pushed-projection": push_downs.PushedProjection,
    "session-window": window_kinds.SessionWindow,
    "sink-abilities": streaming.SinkAbilities,
    "sort-key": nodes.SortKey,
    "tumbling-window": window_kinds.TumblingWindow,
    "watermark-params": WatermarkParams,
}
"""Dataclasses in nodes, with all of their fields."""
ENUMS: dict[str, type[Enum]] = {
    "bound-kind": over.BoundKind,
    "join-kind": nodes.JoinKind,
    "row-kind": RowKind,
    "set-kind": nodes.SetKind,
    "window-column": windows.WindowColumn,
}
