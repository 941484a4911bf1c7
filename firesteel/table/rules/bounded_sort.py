"""ORDER BY without LIMIT of a bounded query: rows are sorted when the input has ended. Aggregates have a row for none.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import SortKey, TableScan
>>> from firesteel.types.logical import RowType
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["a"], [DataTypes.INT()]))
>>> print(bounded_sorts(Sort(scan, (SortKey(0, descending=True),), 2)).describe())
FinalRows(select=[a], orderBy=[a DESC NULLS FIRST], offset=[2])
"""

from __future__ import annotations

from firesteel.table.plan.nodes import Aggregate, LogicalNode, Sort
from firesteel.table.plan.streaming import FinalRows
from firesteel.table.rules.bounded_aggregate import one_row

__all__ = ["bounded_sorts"]


def bounded_sorts(node: LogicalNode) -> LogicalNode:
    """The plan of a bounded query, with all that it reads."""
    inputs = [bounded_sorts(below) for below in node.inputs()]
    if any(new is not old for new, old in zip(inputs, node.inputs(), strict=True)):
        node = node.with_inputs(inputs)
    if isinstance(node, Aggregate):
        return one_row(node)
    if isinstance(node, Sort) and node.fetch is None:
        return FinalRows(node.input, node.keys, node.offset)
    return node
