"""Aggregates of all rows of a bounded query have one row also if there are no rows, as in Flink's batch mode.

In streaming mode Flink emits nothing before the first row, and so do the operators. Here their result is joined to one
row that is always there. Where the result for no rows is not NULL or 0, as that of COLLECT, the operator emits it.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.plan.nodes import AggregateCall, TableScan
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["a"], [DataTypes.INT()]))
>>> count = AggregateCall("COUNT", (), DataTypes.BIGINT(nullable=False), "n")
>>> print(one_row(Aggregate(scan, (), (count,))).explain())
Project(n=[CASE WHEN IS_NULL(n) THEN 0 ELSE n END])
  Join(joinType=[LEFT], condition=[True])
    Values(rows=[(True)])
    Aggregate(n=[COUNT(*)])
      TableScan(table=[c.d.t])
"""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.binder.calls import call
from firesteel.table.bound.nodes import Case, Expression, InputRef, Literal
from firesteel.table.plan.nodes import Aggregate, AggregateCall, Join, JoinKind, LogicalNode, Project, Values
from firesteel.types.logical import BooleanType, RowType

__all__ = ["one_row"]

_COUNTS = ("COUNT", "APPROX_COUNT_DISTINCT")
_TRUE = Literal(BooleanType(nullable=False), True)


def one_row(node: Aggregate) -> LogicalNode:
    """The aggregate with a row for no rows, if it has no groups."""
    if node.grouping or node.grouping_sets is not None or not node.calls:
        return node
    if not all(map(_is_known, node.calls)):
        return replace(node, has_row_for_none=True)
    always = Values(RowType.of(["$always"], [_TRUE.type], nullable=False), ((_TRUE,),))
    joined = Join(always, node, JoinKind.LEFT, _TRUE)
    names = node.row_type.field_names
    values: list[Expression] = []
    for index, one in enumerate(node.calls):
        value = InputRef(one.type.copy(nullable=True), index + 1, names[index])
        is_count = one.function in _COUNTS
        none = call("IS_NULL", [value])
        values.append(Case(one.type, (none,), (Literal(one.type, 0),), value) if is_count else value)
    return Project(joined, tuple(values), tuple(names))


def _is_known(call: AggregateCall) -> bool:
    """Whether the result for no rows is NULL, or 0 of a count; a function of the user may have any."""
    return call.definition is None and (call.type.nullable or call.function in _COUNTS)
