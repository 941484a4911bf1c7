"""The first rows of each partition are those of a window if the bounds of windows are part of the partition.

>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import SortKey, TableScan
>>> from firesteel.table.plan.window_kinds import TumblingWindow
>>> from firesteel.table.plan.windows import WindowTableFunction
>>> from firesteel.types.logical import IntType, RowType, TimestampKind, TimestampType
>>> time = TimestampType(3, TimestampKind.ROWTIME)
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["k", "ts"], [IntType(), time], nullable=False))
>>> rows = WindowTableFunction(scan, TumblingWindow(60_000), 1)
>>> window_ranks(Rank(rows, (2, 3), (SortKey(0),), 1, 2)).describe().partition(", rankType")[0]
'WindowRank(window=[TUMBLE(size=[1 min]), win_end=[window_end]]'
"""

from __future__ import annotations

from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.ranks import Rank
from firesteel.table.plan.windows import WindowColumn, WindowRank
from firesteel.table.rules.windows.properties import window_properties

__all__ = ["window_ranks"]


def window_ranks(node: LogicalNode) -> LogicalNode:
    """A node whose inputs are rewritten already."""
    if not isinstance(node, Rank) or node.end is None or node.is_limit:
        return node
    windows = window_properties(node.input)
    if windows is None:
        return node
    start, end = (
        next((column for column in node.partition if windows.columns.get(column) is kind), None)
        for kind in (WindowColumn.START, WindowColumn.END)
    )
    if start is None or end is None:
        return node
    deduplicates = node.is_first and node.time_column is not None
    return WindowRank(
        node.input,
        windows.window,
        windows.time_type,
        (start, end),
        tuple(column for column in node.partition if column not in windows.columns),
        node.order,
        node.start,
        node.end,
        node.number,
        deduplicates and node.order[0].descending,
    )
