"""UNION, INTERSECT and EXCEPT of streams: aggregates over UNION ALL, or over joins.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import TableScan
>>> from firesteel.types.logical import RowType
>>> t, u = (TableScan(ObjectIdentifier("c", "d", name), RowType.of(["a"], [DataTypes.INT()])) for name in "tu")
>>> print(set_operations(SetOperation(SetKind.UNION, (t, u), False)).explain())
Aggregate(groupBy=[a])
  Union(all=[true])
    TableScan(table=[c.d.t])
    TableScan(table=[c.d.u])
>>> print(set_operations(SetOperation(SetKind.EXCEPT, (t, u), False)).explain())
Aggregate(groupBy=[a])
  Join(joinType=[ANTI], condition=[IS_NOT_DISTINCT_FROM(a, a)])
    TableScan(table=[c.d.t])
    TableScan(table=[c.d.u])
>>> print(set_operations(SetOperation(SetKind.EXCEPT, (t, u), True)).explain())
ReplicateRows(count=[$count], select=[a])
  Project($count=[$sum], a=[a])
    Filter(condition=[GREATER_THAN($sum, 0)])
      Aggregate(groupBy=[a], $sum=[SUM($marker)])
        Union(all=[true])
          Project(a=[a], $marker=[1])
            TableScan(table=[c.d.t])
          Project(a=[a], $marker=[-1])
            TableScan(table=[c.d.u])
"""

from __future__ import annotations

from firesteel.table.binder.calls import call
from firesteel.table.bound.nodes import Case, Expression, InputRef, Literal
from firesteel.table.plan.nodes import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    JoinKind,
    LogicalNode,
    Project,
    SetKind,
    SetOperation,
)
from firesteel.table.plan.replicate import ReplicateRows
from firesteel.table.rules.conjunctions import conjunction
from firesteel.table.rules.references import references
from firesteel.types.logical import BigIntType, BooleanType

__all__ = ["set_operations"]

_BIGINT = BigIntType(nullable=False)


def set_operations(node: LogicalNode) -> LogicalNode:
    """A set operation as what streams have."""
    if not isinstance(node, SetOperation) or (node.kind is SetKind.UNION and node.all):
        return node
    if node.kind is SetKind.UNION:
        return _distinct(SetOperation(SetKind.UNION, node.relations, True))
    first, second = node.relations
    if node.all:
        return _intersect_all(first, second) if node.kind is SetKind.INTERSECT else _except_all(first, second)
    kind = JoinKind.SEMI if node.kind is SetKind.INTERSECT else JoinKind.ANTI
    width = len(first.row_type.fields)
    same = [
        call("IS_NOT_DISTINCT_FROM", [left, InputRef(right.type, width + right.index, right.name)])
        for left, right in zip(references(first), references(second), strict=True)
    ]
    condition = conjunction(same)
    assert condition is not None
    return _distinct(Join(first, second, kind, condition))


def _distinct(node: LogicalNode) -> LogicalNode:
    return Aggregate(node, tuple(range(len(node.row_type.fields))))


def _marked(node: LogicalNode, names: tuple[str, ...], markers: list[tuple[str, Expression]]) -> LogicalNode:
    made = (*references(node), *(expression for _, expression in markers))
    return Project(node, made, (*names, *(name for name, _ in markers)))


def _except_all(first: LogicalNode, second: LogicalNode) -> LogicalNode:
    names = first.row_type.field_names
    sides = [
        _marked(node, names, [("$marker", Literal(_BIGINT, marker))]) for node, marker in ((first, 1), (second, -1))
    ]
    width = len(names)
    total = AggregateCall("SUM", (width,), _BIGINT, "$sum")
    sums = Aggregate(SetOperation(SetKind.UNION, tuple(sides), True), tuple(range(width)), (total,))
    reference = references(sums)[width]
    kept = Filter(sums, call("GREATER_THAN", [reference, Literal(_BIGINT, 0)]))
    return _replicated(kept, reference, width)


def _intersect_all(first: LogicalNode, second: LogicalNode) -> LogicalNode:
    names = first.row_type.field_names
    there, absent = Literal(BooleanType(), True), Literal(BooleanType(), None)
    left = _marked(first, names, [("$left", there), ("$right", absent)])
    right = _marked(second, names, [("$left", absent), ("$right", there)])
    width = len(names)
    counts = tuple(
        AggregateCall("COUNT", (width + side,), _BIGINT, name) for side, name in enumerate(("$lefts", "$rights"))
    )
    counted = Aggregate(SetOperation(SetKind.UNION, (left, right), True), tuple(range(width)), counts)
    lefts, rights = references(counted)[width:]
    one = Literal(_BIGINT, 1)
    both = conjunction([call("GREATER_THAN_OR_EQUAL", [count, one]) for count in (lefts, rights)])
    assert both is not None
    fewer = Case(_BIGINT, (call("GREATER_THAN", [lefts, rights]),), (rights,), lefts)
    return _replicated(Filter(counted, both), fewer, width)


def _replicated(node: LogicalNode, count: Expression, width: int) -> LogicalNode:
    columns = references(node)[:width]
    return ReplicateRows(Project(node, (count, *columns), ("$count", *(column.name for column in columns))))
