"""A Rank over changes finds rows by their key, if rows that change never move down in its order.

So it is for the greatest counts of groups, as a count only grows:

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import AggregateCall, SortKey, TableScan
>>> from firesteel.types.logical import RowType
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["a"], [DataTypes.INT()]))
>>> counts = Aggregate(scan, (0,), (AggregateCall("COUNT", (), DataTypes.BIGINT(nullable=False), "c"),))
>>> monotonicity(counts, 1)
<Monotonicity.INCREASING: 'increasing'>
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from firesteel.common.types import RowKind
from firesteel.table.bound.nodes import InputRef
from firesteel.table.plan.nodes import Aggregate, LogicalNode
from firesteel.table.plan.ranks import Rank
from firesteel.table.plan.streaming import Calc
from firesteel.table.plan.traits import infer_traits

__all__ = ["Monotonicity", "monotonicity", "rank_strategy"]


class Monotonicity(Enum):
    """How updates of a row change a column."""

    CONSTANT = "constant"
    INCREASING = "increasing"
    DECREASING = "decreasing"


_GROWING = {"COUNT": Monotonicity.INCREASING, "MAX": Monotonicity.INCREASING, "MIN": Monotonicity.DECREASING}


def rank_strategy(node: LogicalNode) -> LogicalNode:
    """A Rank whose input has updates, with the key of the input if that is enough to find rows."""
    if not isinstance(node, Rank) or not node.order:
        return node
    traits = infer_traits([node.input])[node.input]
    if traits.mode.is_insert_only or RowKind.DELETE in traits.mode.kinds:
        return node  # a row that is deleted makes room for one that was behind the last
    keys = sorted((sorted(key) for key in traits.keys if key >= set(node.partition)), key=lambda key: (len(key), key))
    if not keys:
        return node
    for key in node.order:
        found = monotonicity(node.input, key.index)
        wanted = Monotonicity.INCREASING if key.descending else Monotonicity.DECREASING
        if found not in (wanted, Monotonicity.CONSTANT):
            return node
    return replace(node, update_key=tuple(keys[0]))


def monotonicity(node: LogicalNode, column: int) -> Monotonicity | None:
    """How updates change a column of a node; None if in any way."""
    if isinstance(node, Calc) and node.condition is None:
        expression = node.expressions[column]
        return monotonicity(node.input, expression.index) if isinstance(expression, InputRef) else None
    if isinstance(node, Aggregate) and node.grouping_sets is None:
        if column < len(node.grouping):
            return Monotonicity.CONSTANT
        if infer_traits([node.input])[node.input].mode.is_insert_only:
            return _GROWING.get(node.calls[column - len(node.grouping)].function)
    return None
