"""The columns of a query that the subqueries in its expressions name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from firesteel.table.bound.nodes import Expression, walk
from firesteel.table.plan.correlates import Unnest
from firesteel.table.plan.nodes import Filter, Join, LogicalNode, Project, Values
from firesteel.table.plan.rewriting import transform
from firesteel.table.plan.subqueries import LateralJoin, OuterRef, Subquery

__all__ = ["moved_outer_columns", "named_outer_columns"]

Change = Callable[[Expression], Expression]


def named_outer_columns(expression: Expression) -> set[int]:
    """The columns of the input that queries in an expression name."""
    return {
        part.index
        for subquery in walk(expression)
        if isinstance(subquery, Subquery)
        for part in _outer_columns(subquery.query, 1)
    }


def moved_outer_columns(expression: Expression, places: Mapping[int, int]) -> Expression:
    """The expression with queries that name columns at other places of the input."""

    def moved(part: Expression) -> Expression:
        return replace(part, query=_moved(part.query, places, 1)) if isinstance(part, Subquery) else part

    return transform(expression, moved)


def _outer_columns(node: LogicalNode, depth: int) -> Iterator[OuterRef]:
    for expression in _expressions(node):
        for part in walk(expression):
            if isinstance(part, OuterRef) and part.depth == depth:
                yield part
            elif isinstance(part, Subquery):
                yield from _outer_columns(part.query, depth + 1)
    for place, below in enumerate(node.inputs()):
        yield from _outer_columns(below, depth + _added(node, place))


def _moved(node: LogicalNode, places: Mapping[int, int], depth: int) -> LogicalNode:
    inputs = [_moved(below, places, depth + _added(node, place)) for place, below in enumerate(node.inputs())]
    node = node.with_inputs(inputs) if inputs else node

    def change(part: Expression) -> Expression:
        if isinstance(part, OuterRef) and part.depth == depth:
            return replace(part, index=places[part.index])
        if isinstance(part, Subquery):
            return replace(part, query=_moved(part.query, places, depth + 1))
        return part

    return _changed(node, change)


def _added(node: LogicalNode, place: int) -> int:
    """The right side of LATERAL is a query within the left one."""
    return 1 if isinstance(node, LateralJoin) and place == 1 else 0


def _expressions(node: LogicalNode) -> tuple[Expression, ...]:
    match node:
        case Filter() | Join() | LateralJoin():
            return (node.condition,)
        case Project():
            return node.expressions
        case Values():
            return tuple(value for row in node.rows for value in row)
        case Unnest():
            return (node.collection,) if node.condition is None else (node.collection, node.condition)
    return ()


def _changed(node: LogicalNode, change: Change) -> LogicalNode:
    match node:
        case Filter() | Join() | LateralJoin():
            return replace(node, condition=transform(node.condition, change))
        case Project():
            return replace(node, expressions=tuple(transform(part, change) for part in node.expressions))
        case Values():
            rows = tuple(tuple(transform(value, change) for value in row) for row in node.rows)
            return replace(node, rows=rows)
        case Unnest():
            condition = None if node.condition is None else transform(node.condition, change)
            return replace(node, collection=transform(node.collection, change), condition=condition)
    return node
