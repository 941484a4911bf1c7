"""Takes the conditions of a subquery that name columns of the query around it out of the subquery."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from firesteel.table.binder.calls import call
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Case, Expression, InputRef, Literal, walk
from firesteel.table.plan.correlates import Unnest
from firesteel.table.plan.joins import TRUE
from firesteel.table.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    LogicalNode,
    Project,
    Sort,
    SortKey,
    Values,
    unique_names,
)
from firesteel.table.plan.nodes import walk as walk_plan
from firesteel.table.plan.over import Bound, BoundKind, Frame, Over, OverCall, OverGroup
from firesteel.table.plan.rewriting import moved_inputs, transform
from firesteel.table.plan.subqueries import OuterRef
from firesteel.table.rules.conjunctions import columns_of, conjunction, conjuncts
from firesteel.table.rules.references import references
from firesteel.types.logical import BigIntType

__all__ = ["Pulled", "Puller", "domain_of", "is_correlated", "or_zero", "outer_columns", "split", "unsupported"]

_BIGINT = BigIntType(nullable=False)
_UP_TO_ROW = Frame(True, Bound(BoundKind.UNBOUNDED_PRECEDING), Bound(BoundKind.CURRENT_ROW))


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


def split(condition: Expression) -> tuple[Expression, Expression] | None:
    """The sides of an equality of which one has outer columns only, and the other own ones only: outer side first."""
    if not isinstance(condition, Call) or condition.function not in ("EQUALS", "IS_NOT_DISTINCT_FROM"):
        return None
    left, right = condition.arguments
    kinds = [{type(part) for part in walk(side) if isinstance(part, (OuterRef, InputRef))} for side in (left, right)]
    if kinds == [{InputRef}, {OuterRef}]:
        return right, left
    return (left, right) if kinds == [{OuterRef}, {InputRef}] else None


def outer_columns(conditions: Iterable[Expression]) -> list[int]:
    """The columns of the next query around that conditions name."""
    found = [part for condition in conditions for part in walk(condition) if isinstance(part, OuterRef)]
    if any(part.depth > 1 for part in found):
        raise unsupported("a column of a query further out")
    return sorted({part.index for part in found})


def domain_of(outer: LogicalNode, columns: Sequence[int]) -> LogicalNode:
    """The different values of columns of the query around."""
    chosen = [references(outer)[index] for index in columns]
    rows = Project(outer, tuple(chosen), tuple(f"$domain{index}" for index in range(len(chosen))))
    return Aggregate(rows, tuple(range(len(chosen))))


def or_zero(column: Expression, aggregate: Aggregate, index: int) -> Expression:
    """The result of an aggregate function; where there are no rows, that of none."""
    if aggregate.calls[index].type.nullable:
        return column
    type_ = column.type.copy(nullable=False)
    return Case(type_, (call("IS_NULL", [column]),), (Literal(type_, 0),), replace(column, type=type_))


class Puller:
    """Pulls conditions out of subqueries of a query over the relation ``outer``.

    With ``existence`` it does not matter how often a row occurs in a subquery.
    """

    def __init__(self, outer: LogicalNode, existence: bool = False) -> None:
        self._outer = outer
        self._existence = existence

    def pull(self, node: LogicalNode) -> Pulled:
        """The subquery and the conditions that were in it."""
        match node:
            case Filter():
                below = self.pull(node.input)
                parts = list(conjuncts(node.condition))
                own = conjunction(part for part in parts if not is_correlated(part))
                kept = below.node if own is None else Filter(below.node, own)
                return Pulled(kept, (*below.conditions, *filter(is_correlated, parts)))
            case Project():
                return self._project(node)
            case Aggregate():
                return self._complete_aggregate(node)
            case Sort():
                return self._sort(node)
            case Join() if node.kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI, JoinKind.LEFT):
                return self._join(node)
        if any(_has_outer(part) for part in walk_plan(node)):
            raise unsupported(f"a column of the outer query below {type(node).__name__}")
        return Pulled(node)

    def aggregate(self, node: Aggregate) -> Pulled:
        """An aggregation; groups that have no rows are not there, also without GROUP BY."""
        below = Puller(self._outer).pull(node.input)
        if not below.conditions:
            return Pulled(replace(node, input=below.node))
        if node.grouping_sets is not None:
            raise unsupported("a column of the outer query below GROUPING SETS")
        if not all(map(split, below.conditions)):
            below = self.joined_to_domain(below)
        grouping = list(node.grouping)
        for condition in below.conditions:
            grouping += [column for column in sorted(columns_of(condition)) if column not in grouping]
        # the new groups come after the columns that there were
        old, first = len(node.grouping), len(grouping)
        aggregate = replace(node, input=below.node, grouping=tuple(grouping))
        order = [*range(old), *range(first, first + len(node.calls)), *range(old, first)]
        chosen = [references(aggregate)[index] for index in order]
        project = Project(aggregate, tuple(chosen), tuple(column.name for column in chosen))
        places = {column: order.index(grouping.index(column)) for column in grouping}
        return Pulled(project, tuple(moved_inputs(part, places) for part in below.conditions))

    def _complete_aggregate(self, node: Aggregate) -> Pulled:
        """An aggregation; without GROUP BY it has a row for each row around it, also where there are none."""
        found = self.aggregate(node)
        if node.grouping or not found.conditions:
            return found
        columns = outer_columns(found.conditions)
        domain = domain_of(self._outer, columns)
        width = len(columns)
        places = {column: place for place, column in enumerate(columns)}
        conditions = [_over_domain(part, places, width) for part in found.conditions]
        joined = Join(domain, found.node, JoinKind.LEFT, conjunction(conditions) or TRUE)
        fields = references(joined)
        results = [or_zero(fields[width + index], node, index) for index in range(len(node.calls))]
        names = [*node.row_type.field_names, *(column.name for column in fields[:width])]
        project = Project(joined, (*results, *fields[:width]), tuple(unique_names(names)))
        return Pulled(project, tuple(_same_values(project, self._outer, columns, len(results))))

    def joined_to_domain(self, below: Pulled) -> Pulled:
        """The subquery joined with the different values of the outer columns that its conditions name."""
        columns = outer_columns(below.conditions)
        domain = domain_of(self._outer, columns)
        width = len(below.node.row_type.fields)
        places = {column: width + place for place, column in enumerate(columns)}
        conditions = [_over_domain(part, places, 0) for part in below.conditions]
        joined = Join(below.node, domain, JoinKind.INNER, conjunction(conditions) or TRUE)
        return Pulled(joined, tuple(_same_values(joined, self._outer, columns, width)))

    def _project(self, node: Project) -> Pulled:
        if any(map(is_correlated, node.expressions)):
            raise unsupported("a column of the outer query in SELECT of a subquery")
        below = self.pull(node.input)
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

    def _sort(self, node: Sort) -> Pulled:
        """The order of a subquery has no meaning, but for LIMIT: the first rows for each row of the outer query."""
        below = Puller(self._outer).pull(node.input)
        if not below.conditions:
            return Pulled(replace(node, input=below.node))
        if node.fetch is None and not node.offset:
            return below
        if not all(map(split, below.conditions)):
            below = self.joined_to_domain(below)
        partition = sorted({column for part in below.conditions for column in columns_of(part)})
        width = len(below.node.row_type.fields)
        number = OverCall("ROW_NUMBER", (), _BIGINT, "$number")
        keys = node.keys or tuple(SortKey(column) for column in partition[:1])
        over = Over(below.node, (OverGroup(tuple(partition), keys, _UP_TO_ROW, (number,)),))
        place = references(over)[width]
        first = Literal(_BIGINT, node.offset)
        parts = [call("GREATER_THAN", [place, first])] if node.offset else []
        if node.fetch is not None:
            parts.append(call("LESS_THAN_OR_EQUAL", [place, Literal(_BIGINT, node.offset + node.fetch)]))
        condition = conjunction(parts)
        assert condition is not None
        chosen = references(over)[:width]
        rows = Project(Filter(over, condition), tuple(chosen), tuple(column.name for column in chosen))
        return Pulled(rows, below.conditions)

    def _join(self, node: Join) -> Pulled:
        is_semi = node.kind is JoinKind.SEMI and self._existence
        if is_semi:
            node = replace(node, kind=JoinKind.INNER)
        left = self.pull(node.left)
        right = self.pull(node.right) if node.kind is JoinKind.INNER else Pulled(node.right)
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
        if width == old or is_semi:
            return Pulled(joined, tuple(conditions))
        # own columns first, then those that were added to the left side
        has_right = node.kind in (JoinKind.INNER, JoinKind.LEFT)
        order = [*range(old), *(range(width, width + total) if has_right else ()), *range(old, width)]
        order += range(width + total, len(joined.row_type.fields)) if has_right else ()
        chosen = [references(joined)[index] for index in order]
        project = Project(joined, tuple(chosen), tuple(unique_names(column.name for column in chosen)))
        moved = {column: order.index(column) for column in order}
        return Pulled(project, tuple(moved_inputs(part, moved) for part in conditions))


def _has_outer(node: LogicalNode) -> bool:
    match node:
        case Filter() | Join():
            return is_correlated(node.condition)
        case Project():
            return any(map(is_correlated, node.expressions))
        case Values():
            return any(is_correlated(value) for row in node.rows for value in row)
        case Unnest():
            return is_correlated(node.collection) or (node.condition is not None and is_correlated(node.condition))
    return False


def _over_domain(condition: Expression, places: dict[int, int], added: int) -> Expression:
    """A condition with columns of the domain for those of the outer query; own columns come ``added`` later."""

    def moved(part: Expression) -> Expression:
        if isinstance(part, OuterRef):
            return InputRef(part.type, places[part.index], part.name)
        return replace(part, index=part.index + added) if isinstance(part, InputRef) else part

    return transform(condition, moved)


def _same_values(node: LogicalNode, outer: LogicalNode, columns: Sequence[int], first: int) -> list[Expression]:
    """That columns of the domain, which begin at ``first``, are those of the row of the outer query."""
    fields, own = outer.row_type.fields, references(node)
    return [
        call(
            "IS_NOT_DISTINCT_FROM" if fields[column].type.nullable else "EQUALS",
            [OuterRef(fields[column].type, 1, column, fields[column].name), own[first + place]],
        )
        for place, column in enumerate(columns)
    ]
