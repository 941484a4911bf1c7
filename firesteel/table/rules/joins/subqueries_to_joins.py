"""Subqueries become joins: IN and EXISTS semi and anti joins, a query with one value a left join.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.binder.queries import QueryBinder
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.parser import parse_query
>>> from firesteel.table.plan.nodes import TableScan
>>> from firesteel.types.logical import RowType
>>> row_type = RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()])
>>> def resolve(path, options):
...     return TableScan(ObjectIdentifier("c", "d", path[-1]), row_type)
>>> query = QueryBinder(resolve).bind(parse_query("SELECT a FROM t WHERE b IN (SELECT b FROM u WHERE u.a = t.a)"))
>>> print(subqueries_to_joins(query).explain())
Project(a=[a])
  Join(joinType=[SEMI], condition=[AND(EQUALS(b, b), EQUALS(a, a))])
    TableScan(table=[c.d.t])
    Project(b=[b], $outer0=[a])
      TableScan(table=[c.d.u])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Expression, InputRef, Literal, walk
from firesteel.table.plan.joins import TRUE
from firesteel.table.plan.nodes import Filter, Join, JoinKind, LogicalNode, Project
from firesteel.table.plan.rewriting import moved_inputs
from firesteel.table.plan.subqueries import Exists, InSubquery, LateralJoin, Subquery
from firesteel.table.rules.conjunctions import columns_of, conjunction, conjuncts
from firesteel.table.rules.joins.lateral_joins import lateral_join
from firesteel.table.rules.joins.outer_columns import moved_outer_columns, named_outer_columns
from firesteel.table.rules.joins.pull_correlation import Puller, unsupported
from firesteel.table.rules.joins.subquery_values import (
    SubqueryValues,
    always_has_row,
    in_conditions,
    joined_condition,
    without_projection,
)
from firesteel.table.rules.references import references

__all__ = ["subqueries_to_joins"]


def subqueries_to_joins(node: LogicalNode) -> LogicalNode:
    """A plan without expressions that contain queries."""
    inputs = [subqueries_to_joins(below) for below in node.inputs()]
    if any(new is not old for new, old in zip(inputs, node.inputs(), strict=True)):
        node = node.with_inputs(inputs)
    match node:
        case Filter() if _has_query(node.condition):
            return _filter(node)
        case Project() if any(map(_has_query, node.expressions)):
            return _project(node)
        case Join() if _has_query(node.condition):
            return _join(node)
        case LateralJoin():
            try:
                return lateral_join(node)
            except ValidationError as error:
                raise error.at(node.position) from None
    return node


def _has_query(expression: Expression) -> bool:
    return any(isinstance(part, Subquery) for part in walk(expression))


def _values(node: LogicalNode) -> SubqueryValues:
    return SubqueryValues(node, subqueries_to_joins)


# -- conditions --------------------------------------------------------------------------------------------


def _filter(node: Filter) -> LogicalNode:
    below = node.input
    width = len(below.row_type.fields)
    plain: list[Expression] = []
    with_values: list[Expression] = []
    for part in conjuncts(node.condition):
        negated = isinstance(part, Call) and part.function == "NOT"
        test = part.arguments[0] if isinstance(part, Call) and negated else part
        if isinstance(test, (Exists, InSubquery)) and not any(map(_has_query, test.children())):
            try:
                below = _tested(below, test, JoinKind.ANTI if negated else JoinKind.SEMI)
            except ValidationError as error:
                raise error.at(test.position) from None
        elif _has_query(part):
            with_values.append(part)
        else:
            plain.append(part)
    own = conjunction(plain)
    if own is not None:
        # below the joins, where it removes rows before they are joined
        below = _below_tests(below, node.input, own)
    if not with_values:
        return below
    values = _values(below)
    condition = conjunction([values.replaced_condition(part) for part in with_values])
    assert condition is not None
    return _first_columns(Filter(values.node, condition), width)


def _below_tests(node: LogicalNode, bottom: LogicalNode, condition: Expression) -> LogicalNode:
    if node is bottom:
        return Filter(node, condition)
    if isinstance(node, Filter):
        return replace(node, input=_below_tests(node.input, bottom, condition))
    assert isinstance(node, Join)
    return replace(node, left=_below_tests(node.left, bottom, condition))


def _first_columns(node: LogicalNode, width: int) -> LogicalNode:
    chosen = references(node)[:width]
    return Project(node, tuple(chosen), tuple(column.name for column in chosen))


def _project(node: Project) -> LogicalNode:
    values = _values(node.input)
    expressions = tuple(values.replaced(expression) for expression in node.expressions)
    return Project(values.node, expressions, node.names)


def _tested(below: LogicalNode, test: Exists | InSubquery, kind: JoinKind) -> LogicalNode:
    """The rows for which a subquery has rows, or has none."""
    width = len(below.row_type.fields)
    query = subqueries_to_joins(test.query)
    if isinstance(test, Exists):
        if always_has_row(query):
            return below if kind is JoinKind.SEMI else Filter(below, Literal(TRUE.type, False))
        query = without_projection(query)
    pulled = Puller(below, existence=True).pull(query)
    conditions = list(pulled.conditions)
    if isinstance(test, InSubquery):
        conditions = [*in_conditions(test, pulled.node, knows_nulls=kind is JoinKind.ANTI), *conditions]
    joined = [joined_condition(condition, width) for condition in conditions]
    return Join(below, pulled.node, kind, conjunction(joined) or TRUE)


# -- ON ----------------------------------------------------------------------------------------------------


def _join(node: Join) -> LogicalNode:
    """A join whose condition contains queries: tested after an inner join, computed before an outer one."""
    parts = list(conjuncts(node.condition))
    plain = [part for part in parts if not _has_query(part)]
    queries = [part for part in parts if _has_query(part)]
    if node.kind is JoinKind.INNER:
        condition = conjunction(queries)
        assert condition is not None
        return _filter(Filter(replace(node, condition=conjunction(plain) or TRUE), condition))
    left, right = len(node.left.row_type.fields), len(node.right.row_type.fields)
    sides = [_values(node.left), _values(node.right)]
    made: list[tuple[int, Expression]] = []
    for part in queries:
        columns = columns_of(part) | named_outer_columns(part)
        is_right = bool(columns) and min(columns) >= left
        if not is_right and columns and max(columns) >= left:
            raise unsupported(f"a subquery with columns of both sides in ON of a {node.kind.value} join")
        if is_right:
            places = {index: index - left for index in range(left, left + right)}
            part = moved_outer_columns(moved_inputs(part, places), places)
        made.append((int(is_right), sides[is_right].replaced_condition(part)))
    # the values of conditions are columns after those of their side
    columns_by_side = [[condition for side, condition in made if side == number] for number in (0, 1)]
    inputs = [
        _with_columns(values.node, width, conditions)
        for values, width, conditions in zip(sides, (left, right), columns_by_side, strict=True)
    ]
    first = len(inputs[0].row_type.fields)
    places = {index: index if index < left else index - left + first for index in range(left + right)}
    conditions = [moved_inputs(part, places) for part in plain]
    for side, (node_, width, offset) in enumerate(((inputs[0], left, 0), (inputs[1], right, first))):
        fields = references(node_)[width:]
        conditions += [replace(field, index=field.index + offset) for field in fields if columns_by_side[side]]
    joined = replace(node, left=inputs[0], right=inputs[1], condition=conjunction(conditions) or TRUE)
    fields = references(joined)
    chosen: Sequence[InputRef] = [*fields[:left], *fields[first : first + right]]
    return Project(joined, tuple(chosen), tuple(node.row_type.field_names))


def _with_columns(node: LogicalNode, width: int, conditions: Sequence[Expression]) -> LogicalNode:
    own = references(node)[:width]
    names = [*(column.name for column in own), *(f"$on{index}" for index in range(len(conditions)))]
    return Project(node, (*own, *conditions), tuple(names)) if conditions else node
