"""Sources of bounded queries leave out columns that the projection over them does not read.

Spark leaves columns out that it reads itself. Other sources are told before they become a DataFrame.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.connectors.in_memory import InMemorySource, batch_of
>>> from firesteel.table.bound.nodes import InputRef
>>> from firesteel.types.logical import RowType
>>> row_type = RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()], nullable=False)
>>> source = InMemorySource(row_type, batch_of([(1, 2)], row_type))
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), row_type, source=source)
>>> pruned = prune_scans(Project(scan, (InputRef(DataTypes.INT(), 1, "b"),), ("x",)))
>>> print(pruned.input.row_type, pruned.expressions[0].index)
ROW<`b` INT> NOT NULL 0
"""

from __future__ import annotations

from dataclasses import replace

from firesteel.table.bound.nodes import walk
from firesteel.table.plan.nodes import Filter, LogicalNode, Project, TableScan
from firesteel.table.plan.rewriting import moved_inputs
from firesteel.table.plan.streaming import inputs_of
from firesteel.table.plan.subqueries import Subquery
from firesteel.table.rules.prune_columns import prune

__all__ = ["prune_scans"]


def prune_scans(node: LogicalNode) -> LogicalNode:
    """The plan, in which projections read only what they need of the tables below them."""
    if isinstance(node, Project):
        pruned = _pruned(node)
        if pruned is not None:
            return pruned
    inputs = [prune_scans(below) for below in node.inputs()]
    if all(new is old for new, old in zip(inputs, node.inputs(), strict=True)):
        return node
    return node.with_inputs(inputs)


def _pruned(node: Project) -> Project | None:
    """The projection over fewer columns; None if it is not one of a table, or has subqueries, which refer to rows."""
    filters: list[Filter] = []
    below = node.input
    while isinstance(below, Filter):
        filters.append(below)
        below = below.input
    expressions = [*node.expressions, *(part.condition for part in filters)]
    if not isinstance(below, TableScan) or any(
        isinstance(part, Subquery) for expression in expressions for part in walk(expression)
    ):
        return None
    scan, places = prune(below, inputs_of(expressions))
    if scan is below:
        return None
    for part in reversed(filters):
        scan = replace(part, input=scan, condition=moved_inputs(part.condition, places))
    return replace(node, input=scan, expressions=tuple(moved_inputs(part, places) for part in node.expressions))
