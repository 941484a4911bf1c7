"""How many rows the relations of a plan have, where that is known before it runs."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.table.connectors.in_memory import InMemorySource
from firesteel.table.plan.nodes import (
    Aggregate,
    Join,
    JoinKind,
    LogicalNode,
    Projection,
    SetKind,
    SetOperation,
    Sort,
    TableScan,
    Values,
)
from firesteel.table.plan.streaming import Calc, WatermarkAssigner

__all__ = ["KnownRows", "row_count"]

KnownRows = Callable[[TableScan], int | None]
"""The number of rows of a table; None if it is not known."""


def row_count(node: LogicalNode, known: KnownRows = lambda _: None) -> int | None:
    """The number of rows; None if it is not known. ``known`` has that of tables, from their statistics.

    >>> from firesteel.table import DataTypes
    >>> from firesteel.types.logical import RowType
    >>> rows = Values(RowType.of(["a"], [DataTypes.INT()]), ((), ()))
    >>> row_count(SetOperation(SetKind.UNION, (rows, rows), all=True)), row_count(Aggregate(rows, (0,)))
    (4, None)
    """
    counts = [row_count(below, known) for below in node.inputs()]
    match node:
        case Values():
            return len(node.rows)
        case TableScan() if isinstance(node.source, InMemorySource):
            return len(node.source.batch)
        case TableScan():
            return known(node)
        case Calc() if node.condition is not None:
            return None
        case Projection() | WatermarkAssigner():
            return counts[0]
        case Aggregate() if not node.grouping and node.grouping_sets is None:
            return 1
        case SetOperation() if node.kind is SetKind.UNION and node.all and None not in counts:
            return sum(count for count in counts if count is not None)
        case Join() if node.kind is JoinKind.INNER and not node.condition.children() and None not in counts:
            return (counts[0] or 0) * (counts[1] or 0)
        case Sort() if counts[0] is not None:
            left = max(0, counts[0] - node.offset)
            return left if node.fetch is None else min(left, node.fetch)
    return None
