"""Projections and filters that follow each other become one Calc.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.bound.nodes import InputRef, Literal
>>> from firesteel.table.plan.nodes import Filter, Project, TableScan
>>> from firesteel.types.logical import RowType
>>> scan = TableScan(ObjectIdentifier("c", "d", "t"), RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.BOOLEAN()]))
>>> b = InputRef(DataTypes.BOOLEAN(), 1, "b")
>>> a = InputRef(DataTypes.INT(), 0, "a")
>>> print(merge_calcs(Project(Filter(scan, b), (a,), ("x",))).explain())
Calc(select=[a AS x], where=[b])
  TableScan(table=[c.d.t])
"""

from __future__ import annotations

from firesteel.table.binder.calls import call
from firesteel.table.bound.nodes import Call, Expression, walk
from firesteel.table.functions.registry import definition_of
from firesteel.table.plan.nodes import Filter, LogicalNode, Project
from firesteel.table.plan.rewriting import inlined
from firesteel.table.plan.streaming import Calc
from firesteel.table.rules.references import references

__all__ = ["merge_calcs"]


def merge_calcs(node: LogicalNode) -> LogicalNode:
    """A node whose inputs are merged already."""
    match node:
        case Project():
            return _merged(Calc(node.input, node.expressions, node.names))
        case Filter():
            columns = references(node)
            return _merged(Calc(node.input, tuple(columns), tuple(column.name for column in columns), node.condition))
        case Calc():
            return _merged(node)
    return node


def _merged(calc: Calc) -> LogicalNode:
    below = calc.input
    if isinstance(below, (Project, Filter)):
        below = merge_calcs(below)
    if not isinstance(below, Calc) or not all(map(_is_deterministic, below.expressions)):
        return Calc(below, calc.expressions, calc.names, calc.condition)
    condition = below.condition
    if calc.condition is not None:
        own = inlined(calc.condition, below.expressions)
        condition = own if condition is None else call("AND", [condition, own])
    expressions = tuple(inlined(expression, below.expressions) for expression in calc.expressions)
    return Calc(below.input, expressions, calc.names, condition)


def _is_deterministic(expression: Expression) -> bool:
    return all(definition_of(part).is_deterministic for part in walk(expression) if isinstance(part, Call))
