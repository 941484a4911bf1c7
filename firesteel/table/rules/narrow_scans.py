"""Sources of bounded queries learn of conditions and limits directly over them, which stay in the plan.

>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.connectors.postgres.jdbc import JdbcTableSource
>>> from firesteel.table.bound.nodes import InputRef, Literal
>>> from firesteel.types.logical import BigIntType, RowType
>>> row_type = RowType.of(["a"], [BigIntType()], nullable=False)
>>> source = JdbcTableSource("postgresql://localhost/db", None, None, "t", row_type)
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), row_type, source=source)
>>> condition = call("EQUALS", [InputRef(BigIntType(), 0, "a"), Literal(BigIntType(), 5)])
>>> narrow_scans(Filter(scan, condition)).input.source.conditions
('"a" = 5',)
>>> narrow_scans(Sort(scan, (), 2, 10)).input.source.limit
12
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firesteel.table.bound.nodes import Expression
from firesteel.table.plan.nodes import Filter, LogicalNode, Project, Sort, TableScan
from firesteel.table.plan.rewriting import named_inputs
from firesteel.table.plan.streaming import WatermarkAssigner
from firesteel.table.rules.conjunctions import conjuncts

__all__ = ["narrow_scans"]


def narrow_scans(node: LogicalNode) -> LogicalNode:
    """The plan, in which sources have what they need not read."""
    conditions: list[Expression] = []
    limit = None
    path: list[LogicalNode] = []
    below = node
    if isinstance(below, Sort) and not below.keys and below.fetch is not None:
        limit = below.fetch + (below.offset or 0)
        path.append(below)
        below = below.input
        while isinstance(below, Project):
            path.append(below)
            below = below.input
    while isinstance(below, Filter | WatermarkAssigner):
        if isinstance(below, Filter):
            conditions += conjuncts(below.condition)
        path.append(below)
        below = below.input
    if isinstance(below, TableScan) and below.source is not None and (conditions or limit is not None):
        return _above(path, _narrowed(below, conditions, limit))
    inputs = [narrow_scans(part) for part in node.inputs()]
    if all(new is old for new, old in zip(inputs, node.inputs(), strict=True)):
        return node
    return node.with_inputs(inputs)


def _narrowed(scan: TableScan, conditions: Sequence[Expression], limit: int | None) -> TableScan:
    assert scan.source is not None
    named = [named_inputs(condition, scan.row_type.field_names) for condition in conditions]
    # which rows the limit keeps is known only when the conditions are evaluated
    source = scan.source.narrowed(named, None if conditions else limit)
    return scan if source is scan.source else replace(scan, source=source)


def _above(path: Sequence[LogicalNode], node: LogicalNode) -> LogicalNode:
    for part in reversed(path):
        node = part.with_inputs([node])
    return node
