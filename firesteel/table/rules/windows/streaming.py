"""All rules of windows for one node after the other: groups of joined windows, joins of grouped ones."""

from __future__ import annotations

from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.rules.windows.aggregates import window_aggregates
from firesteel.table.rules.windows.joins import window_joins
from firesteel.table.rules.windows.ranks import window_ranks

__all__ = ["streaming_windows"]


def streaming_windows(node: LogicalNode) -> LogicalNode:
    """A node whose inputs are rewritten already."""
    for rule in (window_aggregates, window_joins, window_ranks):
        node = rule(node)
    return node
