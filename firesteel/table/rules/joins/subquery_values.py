"""The values of subqueries in expressions: they are joined to the rows of the query around them.

A query with one value is an aggregation, if need be with SINGLE_VALUE. EXISTS and IN are whether the different values
of the subquery have a row; whether IN is unknown is found by counts of rows and of rows without nulls.

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
>>> sql = "SELECT a, EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AS e FROM t"
>>> print(subqueries_to_joins(QueryBinder(resolve).bind(parse_query(sql))).explain())
Project(a=[a], e=[IS_NOT_NULL($found)])
  Join(joinType=[LEFT], condition=[EQUALS(a, $key0)])
    TableScan(table=[c.d.t])
    Project($key0=[$key0], $found=[True])
      Aggregate(groupBy=[$key0])
        Project($key0=[a])
          TableScan(table=[c.d.u])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from firesteel.table.binder.calls import call
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Call, Case, Expression, InputRef, Literal
from firesteel.table.plan.joins import TRUE
from firesteel.table.plan.nodes import Aggregate, AggregateCall, Join, JoinKind, LogicalNode, Project, Sort
from firesteel.table.plan.rewriting import inlined, transform
from firesteel.table.plan.subqueries import Exists, InSubquery, OuterRef, ScalarSubquery, Subquery
from firesteel.table.rules.conjunctions import columns_of, conjunction
from firesteel.table.rules.joins.pull_correlation import (
    Pulled,
    Puller,
    is_correlated,
    or_zero,
    split,
)
from firesteel.table.rules.references import references
from firesteel.types.logical import BigIntType, BooleanType

__all__ = ["SubqueryValues", "always_has_row", "in_conditions", "joined_condition", "without_projection"]

_BIGINT = BigIntType(nullable=False)
_BOOLEAN = BooleanType()
_FALSE, _UNKNOWN = Literal(BooleanType(nullable=False), False), Literal(_BOOLEAN, None)


def joined_condition(condition: Expression, width: int) -> Expression:
    """A condition of a subquery over the ``width`` columns of the query around it, then its own."""

    def joined(part: Expression) -> Expression:
        if isinstance(part, OuterRef):
            # one of a query further out is one of the next query from here
            return (
                InputRef(part.type, part.index, part.name) if part.depth == 1 else replace(part, depth=part.depth - 1)
            )
        return replace(part, index=part.index + width) if isinstance(part, InputRef) else part

    return transform(condition, joined)


def in_conditions(test: InSubquery, query: LogicalNode, knows_nulls: bool = False) -> list[Expression]:
    """That the operands equal the columns of a query; with ``knows_nulls``, that they are not known to be different."""
    conditions: list[Expression] = []
    for operand, column in zip(test.operands, references(query), strict=False):
        equal = call("EQUALS", [_as_outer(operand), column])
        may_be_null = operand.type.nullable or column.type.nullable
        conditions.append(call("OR", [equal, call("IS_NULL", [equal])]) if knows_nulls and may_be_null else equal)
    return conditions


def _as_outer(operand: Expression) -> Expression:
    """An expression of a query as one that its subquery names."""

    def outer(part: Expression) -> Expression:
        if isinstance(part, OuterRef):
            return replace(part, depth=part.depth + 1)
        return OuterRef(part.type, 1, part.index, part.name) if isinstance(part, InputRef) else part

    return transform(operand, outer)


def always_has_row(query: LogicalNode) -> bool:
    """Whether a query has a row whatever the tables are: an aggregation without GROUP BY."""
    while isinstance(query, Project):
        query = query.input
    return isinstance(query, Aggregate) and not query.grouping and query.grouping_sets is None


def without_projection(query: LogicalNode) -> LogicalNode:
    """What has rows if and only if the query has."""
    while isinstance(query, Project) or (isinstance(query, Sort) and query.fetch != 0 and not query.offset):
        query = query.input
    return query


class SubqueryValues:
    """A relation to which the values of subqueries are joined, after its own columns."""

    def __init__(self, node: LogicalNode, without_subqueries: Callable[[LogicalNode], LogicalNode]) -> None:
        self.node = node
        self._without_subqueries = without_subqueries
        self._known: dict[tuple[Subquery, bool], Expression] = {}
        self._aggregates: dict[Aggregate, list[Expression]] = {}

    def replaced(self, expression: Expression) -> Expression:
        """The expression with columns in place of subqueries."""
        return transform(expression, self._value)

    def replaced_condition(self, condition: Expression) -> Expression:
        """The same for a condition for which unknown is as good as false."""
        if isinstance(condition, Call) and condition.function in ("AND", "OR"):
            return call(condition.function, [self.replaced_condition(part) for part in condition.arguments])
        if isinstance(condition, InSubquery):
            operands = tuple(self.replaced(operand) for operand in condition.operands)
            return self._value(replace(condition, operands=operands), truth_only=True)
        return self.replaced(condition)

    def _value(self, part: Expression, truth_only: bool = False) -> Expression:
        if not isinstance(part, Subquery):
            return part
        key = (part, truth_only)
        if key not in self._known:
            try:
                self._known[key] = self._joined(part, truth_only)
            except ValidationError as error:
                raise error.at(part.position) from None
        return self._known[key]

    def _joined(self, part: Subquery, truth_only: bool) -> Expression:
        query = self._without_subqueries(part.query)
        match part:
            case ScalarSubquery():
                return self._scalar(query)
            case Exists() if always_has_row(query):
                return TRUE
            case Exists():
                return call(
                    "IS_NOT_NULL", [self._found(Puller(self.node, existence=True).pull(without_projection(query)))]
                )
            case InSubquery():
                return self._in(part, query, truth_only)
        raise AssertionError(part)

    # -- one value -----------------------------------------------------------------------------------------

    def _scalar(self, query: LogicalNode) -> Expression:
        columns: Sequence[Expression] = references(query)[:1]
        bottom = query
        while isinstance(bottom, Project):
            columns = [inlined(column, bottom.expressions) for column in columns]
            bottom = bottom.input
        if isinstance(bottom, Aggregate) and always_has_row(bottom):
            calls = self._aggregated(bottom)
            return self._over_own(inlined(columns[0], calls))
        return self._single_value(query)

    def _aggregated(self, aggregate: Aggregate) -> list[Expression]:
        """The results of an aggregation without GROUP BY, joined."""
        if aggregate not in self._aggregates:
            fields = self._join(Puller(self.node).aggregate(aggregate))
            results = [or_zero(fields[index], aggregate, index) for index in range(len(aggregate.calls))]
            self._aggregates[aggregate] = results
        return self._aggregates[aggregate]

    def _single_value(self, query: LogicalNode) -> Expression:
        """The value of the only row; null if there is none."""
        column: Expression = references(query)[0]
        while isinstance(query, Project) and any(map(is_correlated, query.expressions)):
            column = inlined(column, query.expressions)
            query = query.input
        used = sorted(columns_of(column))
        fields = query.row_type.fields
        calls = [
            AggregateCall("SINGLE_VALUE", (index,), fields[index].type.copy(), f"$value{place}")
            for place, index in enumerate(used)
        ]
        count = AggregateCall("COUNT", (), _BIGINT, "$count")
        plain = isinstance(column, InputRef)
        made = self._aggregated(Aggregate(query, (), tuple(calls if plain else [*calls, count])))
        if plain:
            return made[0]
        by_index = dict(zip(used, made, strict=False))
        value = transform(column, lambda part: by_index[part.index] if isinstance(part, InputRef) else part)
        has_row = call("GREATER_THAN", [made[-1], Literal(_BIGINT, 0)])
        type_ = column.type.copy()
        return Case(type_, (has_row,), (self._over_own(value),), Literal(type_, None))

    def _over_own(self, expression: Expression) -> Expression:
        """What a subquery names of the query around it are the columns of this relation."""

        def own(part: Expression) -> Expression:
            if isinstance(part, OuterRef):
                return (
                    InputRef(part.type, part.index, part.name)
                    if part.depth == 1
                    else replace(part, depth=part.depth - 1)
                )
            return part

        return transform(expression, own)

    # -- EXISTS and IN -------------------------------------------------------------------------------------

    def _in(self, test: InSubquery, query: LogicalNode, truth_only: bool) -> Expression:
        pulled = Puller(self.node, existence=True).pull(query)
        conditions = in_conditions(test, pulled.node)
        found = call("IS_NOT_NULL", [self._found(Pulled(pulled.node, (*conditions, *pulled.conditions)))])
        if truth_only or not test.type.nullable:
            return found
        keys = tuple(range(len(test.operands)))
        rows = AggregateCall("COUNT", (), _BIGINT, "$rows")
        known = AggregateCall("COUNT", keys, _BIGINT, "$known")
        counts = Aggregate(query, (), (rows, known))
        row_count, known_count = self._aggregated(counts)
        nulls = [call("IS_NULL", [operand]) for operand in test.operands if operand.type.nullable]
        tests = [
            (call("EQUALS", [row_count, Literal(_BIGINT, 0)]), _FALSE),
            *((test_, _UNKNOWN) for test_ in nulls),
            (found, TRUE),
            (call("LESS_THAN", [known_count, row_count]), _UNKNOWN),
        ]
        return Case(_BOOLEAN, tuple(test_ for test_, _ in tests), tuple(result for _, result in tests), _FALSE)

    def _found(self, pulled: Pulled) -> Expression:
        """A column that is not null if the subquery has a row for which its conditions are true."""
        puller = Puller(self.node)
        sides = [split(condition) for condition in pulled.conditions]
        if None in sides:
            pulled = puller.joined_to_domain(pulled)
            sides = [split(condition) for condition in pulled.conditions]
        inner = [side[1] for side in sides if side is not None]
        names = [f"$key{index}" for index in range(len(inner))]
        made = (tuple(inner), tuple(names)) if inner else ((TRUE,), ("$found",))
        different = Aggregate(Project(pulled.node, *made), tuple(range(len(made[0]))))
        keys = references(different)[: len(inner)]
        rows = Project(different, (*keys, TRUE), (*names, "$found"))
        conditions = [
            replace(_equality(condition), arguments=(side[0], references(rows)[index]))
            for index, (condition, side) in enumerate(zip(pulled.conditions, sides, strict=True))
            if side is not None
        ]
        return self._join(Pulled(rows, tuple(conditions)))[len(inner)]

    def _join(self, pulled: Pulled) -> list[InputRef]:
        """Joins a relation with at most one row for each row; returns its columns."""
        width = len(self.node.row_type.fields)
        conditions = [joined_condition(condition, width) for condition in pulled.conditions]
        self.node = Join(self.node, pulled.node, JoinKind.LEFT, conjunction(conditions) or TRUE)
        return references(self.node)[width:]


def _equality(condition: Expression) -> Call:
    assert isinstance(condition, Call)
    return condition
