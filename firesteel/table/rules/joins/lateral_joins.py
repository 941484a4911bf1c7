"""LATERAL queries become joins on the conditions with which they name columns of the tables before them.

>>> from firesteel.table import DataTypes
>>> from firesteel.table.binder.queries import QueryBinder
>>> from firesteel.table.catalog import ObjectIdentifier
>>> from firesteel.table.parser import parse_query
>>> from firesteel.table.plan.nodes import TableScan
>>> from firesteel.table.rules.joins.subqueries_to_joins import subqueries_to_joins
>>> from firesteel.types.logical import RowType
>>> row_type = RowType.of(["a", "b"], [DataTypes.INT(), DataTypes.INT()])
>>> def resolve(path, options):
...     return TableScan(ObjectIdentifier("c", "d", path[-1]), row_type)
>>> sql = "SELECT t.a, x FROM t, LATERAL (SELECT u.b + t.b AS x FROM u WHERE u.a = t.a)"
>>> print(subqueries_to_joins(QueryBinder(resolve, sql).bind(parse_query(sql))).explain())
Project(a=[a], x=[x])
  Project(a=[a], b=[b], x=[PLUS(b, b)])
    Join(joinType=[INNER], condition=[EQUALS(a, a)])
      TableScan(table=[c.d.t])
      TableScan(table=[c.d.u])
"""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.table.binder.calls import call
from firesteel.table.bound.nodes import Case, Expression, Literal
from firesteel.table.plan.joins import TRUE
from firesteel.table.plan.nodes import Aggregate, Filter, Join, JoinKind, LogicalNode, Project, Values
from firesteel.table.plan.rewriting import inlined
from firesteel.table.plan.subqueries import LateralJoin
from firesteel.table.rules.conjunctions import conjunction, conjuncts
from firesteel.table.rules.joins.pull_correlation import Puller, is_correlated, or_zero, unsupported
from firesteel.table.rules.joins.subquery_values import always_has_row, joined_condition
from firesteel.table.rules.references import references

__all__ = ["lateral_join"]


def lateral_join(node: LateralJoin) -> LogicalNode:
    """A join without references from its right to its left side."""
    width = len(node.left.row_type.fields)
    query: LogicalNode = node.right
    columns: Sequence[Expression] = references(query)
    while isinstance(query, Project) and (any(map(is_correlated, query.expressions)) or always_has_row(query.input)):
        columns = [inlined(column, query.expressions) for column in columns]
        query = query.input
    if isinstance(query, Values) and not query.row_type.fields and len(query.rows) == 1 and node.kind is JoinKind.INNER:
        return _checked(node, Project(node.left, *_named(node, [joined_condition(part, 0) for part in columns])))
    if isinstance(query, Aggregate) and always_has_row(query):
        pulled = Puller(node.left).aggregate(query)
        joined = _join(node.left, pulled.node, JoinKind.LEFT, pulled.conditions)
        fields = references(joined)[width:]
        results = [or_zero(fields[index], query, index) for index in range(len(query.calls))]
        # the columns of the left side are where they were
        made = [inlined(joined_condition(column, width), [*references(joined)[:width], *results]) for column in columns]
        return _checked(node, Project(joined, *_named(node, made)))
    pulled = Puller(node.left).pull(query)
    is_plain = columns == references(query)
    if is_plain:
        joined = _join(node.left, pulled.node, node.kind, pulled.conditions, list(conjuncts(node.condition)))
    else:
        # an expression over columns of the left side alone is null if there is no row
        right = _marked(pulled.node) if node.kind is JoinKind.LEFT else pulled.node
        joined = _join(node.left, right, node.kind, pulled.conditions)
    found = references(joined)
    made = [joined_condition(column, width) for column in columns]
    if not is_plain and node.kind is JoinKind.LEFT:
        made = [_if_found(column, found[-1]) for column in made]
    result = Project(joined, *_named(node, made))
    return result if is_plain else _checked(node, result)


def _join(
    left: LogicalNode,
    right: LogicalNode,
    kind: JoinKind,
    conditions: Sequence[Expression],
    on: Sequence[Expression] = (),
) -> LogicalNode:
    width = len(left.row_type.fields)
    parts = [joined_condition(condition, width) for condition in conditions]
    return Join(left, right, kind, conjunction([*parts, *on]) or TRUE)


def _checked(node: LateralJoin, joined: LogicalNode) -> LogicalNode:
    """The rows for which ON is true; a row without any is kept by an outer join only if ON is TRUE."""
    if node.condition == TRUE:
        return joined
    if node.kind is JoinKind.LEFT:
        raise unsupported("a condition other than TRUE in ON of a LEFT JOIN with such a LATERAL query")
    return Filter(joined, node.condition)


def _named(node: LateralJoin, made: Sequence[Expression]) -> tuple[tuple[Expression, ...], tuple[str, ...]]:
    own = references(node.left)
    return (*own, *made), tuple(node.row_type.field_names)


def _marked(node: LogicalNode) -> LogicalNode:
    """The relation with a column that is not null, unless an outer join has no row of it."""
    own = references(node)
    return Project(node, (*own, TRUE), (*(column.name for column in own), "$found"))


def _if_found(value: Expression, marker: Expression) -> Expression:
    type_ = value.type.copy()
    return Case(type_, (call("IS_NOT_NULL", [marker]),), (value,), Literal(type_, None))
