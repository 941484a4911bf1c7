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

from firesteel.table.binder.calls import call
from firesteel.table.expressions.nodes import Call, Case, Expression, InputRef, Literal, walk
from firesteel.table.plan.joins import TRUE
from firesteel.table.plan.nodes import Aggregate, Filter, Join, JoinKind, LogicalNode, Project
from firesteel.table.plan.rewriting import inlined, moved_inputs, transform
from firesteel.table.plan.subqueries import Exists, InSubquery, OuterRef, ScalarSubquery, Subquery
from firesteel.table.rules.conjunctions import conjunction, conjuncts
from firesteel.table.rules.joins.pull_correlation import Pulled, is_correlated, pull_correlation, unsupported
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
            raise unsupported("a subquery in ON")
    return node


def _has_query(expression: Expression) -> bool:
    return any(isinstance(part, Subquery) for part in walk(expression))


def _filter(node: Filter) -> LogicalNode:
    below = node.input
    width = len(below.row_type.fields)
    plain: list[Expression] = []
    with_values: list[Expression] = []
    for part in conjuncts(node.condition):
        negated = isinstance(part, Call) and part.function == "NOT"
        test = part.arguments[0] if isinstance(part, Call) and negated else part
        if isinstance(test, (Exists, InSubquery)):
            below = _tested(below, test, JoinKind.ANTI if negated else JoinKind.SEMI)
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
    values = _Values(below)
    condition = conjunction(values.replaced(part) for part in with_values)
    assert condition is not None
    filtered = Filter(values.node, condition)
    chosen = references(filtered)[:width]
    return Project(filtered, tuple(chosen), tuple(column.name for column in chosen))


def _below_tests(node: LogicalNode, bottom: LogicalNode, condition: Expression) -> LogicalNode:
    if node is bottom:
        return Filter(node, condition)
    assert isinstance(node, Join)
    return replace(node, left=_below_tests(node.left, bottom, condition))


def _project(node: Project) -> LogicalNode:
    values = _Values(node.input)
    expressions = tuple(values.replaced(expression) for expression in node.expressions)
    return Project(values.node, expressions, node.names)


def _tested(below: LogicalNode, test: Exists | InSubquery, kind: JoinKind) -> LogicalNode:
    """The rows for which a subquery has rows, or has none."""
    if isinstance(test, InSubquery) and any(map(_has_query, test.operands)):
        raise unsupported("a subquery as an operand of IN")
    width = len(below.row_type.fields)
    query = subqueries_to_joins(test.query)
    if isinstance(test, Exists):
        query = _without_projection(query)
    pulled = pull_correlation(query)
    conditions = _joined_conditions(pulled, width)
    if isinstance(test, InSubquery):
        columns = [replace(column, index=width + column.index) for column in references(pulled.node)]
        for operand, column in zip(test.operands, columns, strict=False):
            equal = call("EQUALS", [operand, column])
            if kind is JoinKind.ANTI and (operand.type.nullable or column.type.nullable):
                # not known to be different
                equal = call("OR", [equal, call("IS_NULL", [equal])])
            conditions.insert(len(conditions) - len(pulled.conditions), equal)
    return Join(below, pulled.node, kind, conjunction(conditions) or TRUE)


def _without_projection(query: LogicalNode) -> LogicalNode:
    """What has rows if and only if the query has."""
    while isinstance(query, Project):
        query = query.input
    return query


def _joined_conditions(pulled: Pulled, width: int) -> list[Expression]:
    """The conditions of a subquery over the columns of the query around it, then its own."""

    def joined(part: Expression) -> Expression:
        if isinstance(part, OuterRef):
            if part.depth != 1:
                raise unsupported("a column of a query further out")
            return InputRef(part.type, part.index, part.name)
        return part

    places = {index: width + index for index in range(len(pulled.node.row_type.fields))}
    return [transform(moved_inputs(part, places), joined) for part in pulled.conditions]


class _Values:
    """A relation to which the values of scalar subqueries are joined."""

    def __init__(self, node: LogicalNode) -> None:
        self.node = node
        self._known: dict[ScalarSubquery, Expression] = {}

    def replaced(self, expression: Expression) -> Expression:
        """The expression with columns in place of subqueries."""
        return transform(expression, self._value)

    def _value(self, part: Expression) -> Expression:
        if isinstance(part, ScalarSubquery):
            if part not in self._known:
                self._known[part] = self._join(part)
            return self._known[part]
        if isinstance(part, Subquery):
            raise unsupported(f"{part.word} within another expression")
        return part

    def _join(self, subquery: ScalarSubquery) -> Expression:
        query = subqueries_to_joins(subquery.query)
        columns: Sequence[Expression] = references(query)
        while isinstance(query, Project) and not any(map(is_correlated, query.expressions)):
            columns = [inlined(column, query.expressions) for column in columns]
            query = query.input
        if not isinstance(query, Aggregate) or query.grouping:
            raise unsupported("a query in an expression that is no aggregation without GROUP BY")
        pulled = pull_correlation(query)
        width = len(self.node.row_type.fields)
        conditions = _joined_conditions(pulled, width)
        self.node = Join(self.node, pulled.node, JoinKind.LEFT, conjunction(conditions) or TRUE)
        fields = references(self.node)
        calls = [_or_zero(fields[width + index], query, index) for index in range(len(query.calls))]
        return inlined(columns[0], calls)


def _or_zero(column: InputRef, aggregate: Aggregate, index: int) -> Expression:
    """The result of an aggregate function; where there are no rows, that of none."""
    if aggregate.calls[index].type.nullable:
        return column
    type_ = column.type.copy(nullable=False)
    return Case(type_, (call("IS_NULL", [column]),), (Literal(type_, 0),), replace(column, type=type_))
