"""Takes the conditions of a subquery that name columns of the query around it out of the subquery."""

from __future__ import annotations

from dataclasses import dataclass, replace

from firesteel.table.expressions.errors import ValidationError
from firesteel.table.expressions.nodes import Call, Expression, InputRef, walk
from firesteel.table.plan.joins import TRUE
from firesteel.table.plan.nodes import Aggregate, Filter, Join, JoinKind, LogicalNode, Project, unique_names
from firesteel.table.plan.nodes import walk as walk_plan
from firesteel.table.plan.rewriting import moved_inputs
from firesteel.table.plan.subqueries import OuterRef
from firesteel.table.rules.conjunctions import columns_of, conjunction, conjuncts
from firesteel.table.rules.references import references

__all__ = ["Pulled", "is_correlated", "pull_correlation", "unsupported"]


@dataclass(frozen=True)
class Pulled:
    """A subquery without conditions on outer columns; its own columns come first, then those that conditions need."""

    node: LogicalNode
    conditions: tuple[Expression, ...] = ()
    """Over the columns of the node, with references to outer columns."""


def unsupported(what: str) -> ValidationError:
    """The error for a subquery that cannot be rewritten as a join."""
    return ValidationError(
        f"Unexpected correlation or subquery: {what} is not supported.",
        hint="Write the subquery as a join.",
    )


def is_correlated(expression: Expression) -> bool:
    """Whether an expression names a column of the query around it."""
    return any(isinstance(part, OuterRef) for part in walk(expression))


def pull_correlation(node: LogicalNode) -> Pulled:
    """The subquery and the conditions that were in it."""
    match node:
        case Filter():
            below = pull_correlation(node.input)
            parts = list(conjuncts(node.condition))
            own = conjunction(part for part in parts if not is_correlated(part))
            kept = below.node if own is None else Filter(below.node, own)
            return Pulled(kept, (*below.conditions, *filter(is_correlated, parts)))
        case Project():
            return _project(node)
        case Aggregate():
            return _aggregate(node)
        case Join() if node.kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI, JoinKind.LEFT):
            return _join(node)
    if any(_has_outer(part) for part in walk_plan(node)):
        raise unsupported(f"a column of the outer query below {type(node).__name__}")
    return Pulled(node)


def _has_outer(node: LogicalNode) -> bool:
    match node:
        case Filter() | Join():
            return is_correlated(node.condition)
        case Project():
            return any(map(is_correlated, node.expressions))
    return False


def _project(node: Project) -> Pulled:
    if any(map(is_correlated, node.expressions)):
        raise unsupported("a column of the outer query in SELECT of a subquery")
    below = pull_correlation(node.input)
    expressions: list[Expression] = list(node.expressions)
    places: dict[int, int] = {}
    inner = references(below.node)
    for column in sorted({index for part in below.conditions for index in columns_of(part)}):
        if inner[column] not in expressions:
            expressions.append(inner[column])
        places[column] = expressions.index(inner[column])
    names = [*node.names, *(f"$outer{index}" for index in range(len(expressions) - len(node.names)))]
    project = Project(below.node, tuple(expressions), tuple(unique_names(names)))
    return Pulled(project, tuple(moved_inputs(part, places) for part in below.conditions))


def _aggregate(node: Aggregate) -> Pulled:
    below = pull_correlation(node.input)
    if not below.conditions:
        return Pulled(replace(node, input=below.node))
    if node.grouping_sets is not None:
        raise unsupported("a column of the outer query below GROUPING SETS")
    grouping = list(node.grouping)
    for condition in below.conditions:
        if not isinstance(condition, Call) or condition.function != "EQUALS" or not _is_split(condition):
            raise unsupported(f"the condition {condition} below an aggregation")
        grouping += [column for column in sorted(columns_of(condition)) if column not in grouping]
    # the new groups come after the columns that there were
    old, first = len(node.grouping), len(grouping)
    aggregate = replace(node, input=below.node, grouping=tuple(grouping))
    order = [*range(old), *range(first, first + len(node.calls)), *range(old, first)]
    chosen = [references(aggregate)[index] for index in order]
    project = Project(aggregate, tuple(chosen), tuple(column.name for column in chosen))
    places = {column: order.index(grouping.index(column)) for column in grouping}
    return Pulled(project, tuple(moved_inputs(part, places) for part in below.conditions))


def _is_split(condition: Call) -> bool:
    """Whether one side of an equality has outer columns only, and the other own ones only."""
    kinds = [
        {type(part) for part in walk(side) if isinstance(part, (OuterRef, InputRef))} for side in condition.arguments
    ]
    return kinds in ([{OuterRef}, {InputRef}], [{InputRef}, {OuterRef}])


def _join(node: Join) -> Pulled:
    left = pull_correlation(node.left)
    right = pull_correlation(node.right) if node.kind is JoinKind.INNER else Pulled(node.right)
    if node.kind is not JoinKind.INNER and any(_has_outer(part) for part in walk_plan(node.right)):
        raise unsupported(f"a column of the outer query on the right side of a {node.kind.value} join")
    parts = list(conjuncts(node.condition))
    if node.kind is not JoinKind.INNER and any(map(is_correlated, parts)):
        raise unsupported(f"a column of the outer query in the condition of a {node.kind.value} join")
    old, width = len(node.left.row_type.fields), len(left.node.row_type.fields)
    total = len(node.right.row_type.fields)
    places = {index: index if index < old else index - old + width for index in range(old + total)}
    own = conjunction(moved_inputs(part, places) for part in parts if not is_correlated(part))
    joined = Join(left.node, right.node, node.kind, own or TRUE)
    added = {index: index + width for index in range(len(right.node.row_type.fields))}
    conditions = [
        *left.conditions,
        *(moved_inputs(part, added) for part in right.conditions),
        *(moved_inputs(part, places) for part in parts if is_correlated(part)),
    ]
    if width == old:
        return Pulled(joined, tuple(conditions))
    # own columns first, then those that were added to the left side
    has_right = node.kind is JoinKind.INNER
    order = [*range(old), *(range(width, width + total) if has_right else ()), *range(old, width)]
    order += range(width + total, len(joined.row_type.fields)) if has_right else ()
    chosen = [references(joined)[index] for index in order]
    project = Project(joined, tuple(chosen), tuple(unique_names(column.name for column in chosen)))
    moved = {column: order.index(column) for column in order}
    return Pulled(project, tuple(moved_inputs(part, moved) for part in conditions))
