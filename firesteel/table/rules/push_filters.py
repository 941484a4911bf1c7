"""Conditions move as far down as they can: through projections, and into joins and their inputs.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.binder.calls import call
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.bound.nodes import InputRef, Literal
>>> from firesteel.table.plan.joins import TRUE
>>> from firesteel.table.plan.nodes import Join, JoinKind, TableScan
>>> from firesteel.types.logical import RowType
>>> row_type = RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()])
>>> one, other = (TableScan(ObjectIdentifier("c", "d", name), row_type) for name in "tu")
>>> a, b, a0 = (InputRef(DataTypes.INT(), index, name) for index, name in enumerate(("a", "b", "a0")))
>>> condition = call("AND", [call("EQUALS", [a, a0]), call("EQUALS", [b, Literal(DataTypes.INT(), 1)])])
>>> print(push_filters(Filter(Join(one, other, JoinKind.INNER, TRUE), condition)).explain())
Join(joinType=[INNER], condition=[EQUALS(a, a0)])
  Filter(condition=[EQUALS(b, 1)])
    TableScan(table=[c.d.t])
  TableScan(table=[c.d.u])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from firesteel.table.bound.nodes import Expression
from firesteel.table.plan.joins import TRUE
from firesteel.table.plan.nodes import Filter, Join, JoinKind, LogicalNode, Project
from firesteel.table.plan.rewriting import inlined, moved_inputs
from firesteel.table.rules.conjunctions import (
    columns_of,
    conjunction,
    conjuncts,
    has_subquery,
    is_deterministic,
    rejects_nulls,
)

__all__ = ["push_filters"]


def push_filters(node: LogicalNode) -> LogicalNode:
    """A node whose inputs have been rewritten."""
    if isinstance(node, Filter):
        return filtered(node.input, conjuncts(node.condition))
    if isinstance(node, Join):
        return _join(node, [])
    return node


def filtered(node: LogicalNode, conditions: Iterable[Expression]) -> LogicalNode:
    """The rows of a node for which conditions are true."""
    parts = list(conditions)
    if not parts:
        return node
    if isinstance(node, Filter):
        return filtered(node.input, [*conjuncts(node.condition), *parts])
    if isinstance(node, Join):
        return _join(node, parts)
    if isinstance(node, Project) and all(map(is_deterministic, node.expressions)) and _has_join(node.input):
        moved = [inlined(part, node.expressions) for part in parts]
        if not any(map(has_subquery, moved)):
            return replace(node, input=filtered(node.input, moved))
    condition = conjunction(parts)
    assert condition is not None
    return Filter(node, condition)


def _has_join(node: LogicalNode) -> bool:
    return isinstance(node, Join) or (isinstance(node, (Filter, Project)) and _has_join(node.input))


def _join(node: Join, above: list[Expression]) -> LogicalNode:
    width = len(node.left.row_type.fields)
    total = width + len(node.right.row_type.fields)
    kind = _simplified(node.kind, above, set(range(width)), set(range(width, total)))
    to_left: list[Expression] = []
    to_right: list[Expression] = []
    inside: list[Expression] = []
    remain: list[Expression] = []
    # what is true of results holds for a side whose rows are not padded
    for part in above:
        used = columns_of(part)
        can_move = is_deterministic(part) and not has_subquery(part) and bool(used)
        if can_move and max(used) < width and not kind.keeps_right:
            to_left.append(part)
        elif can_move and min(used) >= width and not kind.keeps_left:
            to_right.append(part)
        elif can_move and kind is JoinKind.INNER:
            inside.append(part)
        else:
            remain.append(part)
    # what is true of pairs can be asked of one side, unless its rows without a match are in the result
    for part in conjuncts(node.condition):
        used = columns_of(part)
        can_move = is_deterministic(part) and not has_subquery(part) and bool(used)
        if can_move and max(used) < width and kind in (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI):
            to_left.append(part)
        elif can_move and min(used) >= width and kind not in (JoinKind.RIGHT, JoinKind.FULL):
            to_right.append(part)
        else:
            inside.append(part)
    places = {index: index - width for index in range(width, total)}
    left = filtered(node.left, to_left)
    right = filtered(node.right, [moved_inputs(part, places) for part in to_right])
    joined = replace(node, left=left, right=right, kind=kind, condition=conjunction(inside) or TRUE)
    if joined == node and not above:
        return node
    rest = conjunction(remain)
    return joined if rest is None else Filter(joined, rest)


def _simplified(kind: JoinKind, above: list[Expression], left: set[int], right: set[int]) -> JoinKind:
    """The kind of join without the padded rows that conditions above it remove anyway."""
    if kind in (JoinKind.LEFT, JoinKind.FULL) and any(rejects_nulls(part, right) for part in above):
        kind = JoinKind.INNER if kind is JoinKind.LEFT else JoinKind.RIGHT
    if kind in (JoinKind.RIGHT, JoinKind.FULL) and any(rejects_nulls(part, left) for part in above):
        kind = JoinKind.INNER if kind is JoinKind.RIGHT else JoinKind.LEFT
    return kind
