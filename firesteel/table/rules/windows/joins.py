"""A join of rows with windows by equal bounds of the same windows becomes a window join.

>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import JoinKind, TableScan
>>> from firesteel.table.plan.window_kinds import TumblingWindow
>>> from firesteel.table.plan.windows import WindowTableFunction
>>> from firesteel.table.rules.references import references
>>> from firesteel.types.logical import RowType, TimestampKind, TimestampType
>>> time = TimestampType(3, TimestampKind.ROWTIME)
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["ts"], [time], nullable=False))
>>> side = WindowTableFunction(scan, TumblingWindow(60_000), 0)
>>> columns = references(Join(side, side, JoinKind.INNER, call("EQUALS", [references(scan)[0]] * 2)))
>>> bounds = [call("EQUALS", [columns[index], columns[index + 4]]) for index in (1, 2)]
>>> window_joins(Join(side, side, JoinKind.LEFT, call("AND", bounds))).describe()
'WindowJoin(window=[TUMBLE(size=[1 min])], joinType=[LEFT], where=[true])'
"""

from __future__ import annotations

from firesteel.table.plan.nodes import Join, LogicalNode
from firesteel.table.plan.windows import WindowColumn, WindowJoin
from firesteel.table.rules.conjunctions import conjunction
from firesteel.table.rules.joins.streaming_joins import EquiCondition, equi_condition
from firesteel.table.rules.windows.properties import WindowProperties, window_properties

__all__ = ["window_joins"]


def window_joins(node: LogicalNode) -> LogicalNode:
    """A node whose inputs are rewritten already."""
    if not isinstance(node, Join):
        return node
    windows = (window_properties(node.left), window_properties(node.right))
    left, right = windows
    if left is None or right is None or left.window != right.window or left.time_type.copy() != right.time_type.copy():
        return node
    found = equi_condition(node)
    bounds = [_bounds(kind, found, left, right) for kind in (WindowColumn.START, WindowColumn.END)]
    if None in bounds:
        return node
    start, end = bounds
    assert start is not None
    assert end is not None
    of_windows = {
        pair
        for pair in zip(found.left_keys, found.right_keys, strict=True)
        if left.columns.get(pair[0]) is not None and left.columns.get(pair[0]) is right.columns.get(pair[1])
    }
    keys = [
        (mine, theirs, safe)
        for mine, theirs, safe in zip(found.left_keys, found.right_keys, found.null_safe, strict=True)
        if (mine, theirs) not in of_windows
    ]
    joined = WindowJoin(
        found.left,
        found.right,
        node.kind,
        tuple(key[0] for key in keys),
        tuple(key[1] for key in keys),
        tuple(key[2] for key in keys),
        conjunction(found.rest),
        left.window,
        left.time_type,
        (start[0], end[0]),
        (start[1], end[1]),
    )
    return found.restored(joined, node)


def _bounds(
    kind: WindowColumn, found: EquiCondition, left: WindowProperties, right: WindowProperties
) -> tuple[int, int] | None:
    """The columns of both sides that are equal bounds of windows."""
    pairs = zip(found.left_keys, found.right_keys, strict=True)
    return next((pair for pair in pairs if left.columns.get(pair[0]) is right.columns.get(pair[1]) is kind), None)
