"""Operators of bounded queries that take insertions only get the rows that are left at the end.

So do aggregates: what rows come and go before is of no use to them, and some functions cannot take a row back.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import AggregateCall, TableScan
>>> from firesteel.types.logical import RowType
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()]))
>>> count = AggregateCall("COUNT", (), DataTypes.BIGINT(nullable=False), "n")
>>> largest = AggregateCall("MAX", (1,), DataTypes.BIGINT(), "m")
>>> print(final_inputs(Aggregate(Aggregate(scan, (0,), (count,)), (), (largest,))).explain())
Aggregate(m=[MAX(n)])
  FinalRows(select=[a, n])
    Aggregate(groupBy=[a], n=[COUNT(*)])
      TableScan(table=[c.d.t])
"""

from __future__ import annotations

from firesteel.table.bound.errors import ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.plan.nodes import Aggregate, LogicalNode
from firesteel.table.plan.over import BoundedOver, Over
from firesteel.table.plan.streaming import FinalRows
from firesteel.table.plan.windows import WindowAggregate

__all__ = ["bounded_over", "final_inputs"]


def bounded_over(node: LogicalNode) -> LogicalNode:
    """OVER with a node for each window, in any order and with any frame."""
    if not isinstance(node, Over):
        return node
    below = node.input
    for group in node.groups:
        below = BoundedOver(below, group)
    return below


def final_inputs(root: LogicalNode) -> LogicalNode:
    """The optimized plan of a bounded query, with all that it reads."""
    return _final(root, {})[0]


_Done = dict[LogicalNode, tuple[LogicalNode, ChangelogMode]]


def _final(node: LogicalNode, done: _Done) -> tuple[LogicalNode, ChangelogMode]:
    known = done.get(node)
    if known is not None:
        return known
    inputs = [_final(below, done) for below in node.inputs()]
    below = [new for new, _ in inputs]
    modes = [mode for _, mode in inputs]
    changed = node.with_inputs(below) if below != list(node.inputs()) else node
    if not all(mode.is_insert_only for mode in modes) and not _takes(changed, modes):
        changed = changed.with_inputs(
            [new if mode.is_insert_only else FinalRows(new) for new, mode in zip(below, modes, strict=True)]
        )
        modes = [ChangelogMode.insert_only()] * len(modes)
    done[node] = changed, changed.changelog(modes)
    return done[node]


def _takes(node: LogicalNode, modes: list[ChangelogMode]) -> bool:
    """Whether a node works on such changelogs."""
    if isinstance(node, (Aggregate, WindowAggregate)):
        return False
    try:
        node.changelog(modes)
    except ValidationError:
        return False
    return True
