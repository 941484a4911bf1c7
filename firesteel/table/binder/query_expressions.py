"""Expressions of a query: those of one row, and those that contain a query."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from firesteel.table.binder.calls import call, cast_to
from firesteel.table.binder.expressions import OPERATORS, ExpressionBinder
from firesteel.table.binder.query_scope import QueryScope
from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.bound.nodes import Case, Expression, InputRef, Literal
from firesteel.table.bound.session import Session
from firesteel.table.functions.signatures import common_arguments
from firesteel.table.plan.nodes import Aggregate, AggregateCall, LogicalNode, Project
from firesteel.table.plan.subqueries import Exists, InSubquery, ScalarSubquery
from firesteel.types.logical import BigIntType, BooleanType

__all__ = ["BindQuery", "QueryExpressionBinder"]

BindQuery = Callable[[exp.Expression, QueryScope | None], LogicalNode]
"""Binds a query within the scope of another."""


_BIGINT, _BOOLEAN = BigIntType(nullable=False), BooleanType()
_NEGATED = {
    "EQUALS": "NOT_EQUALS",
    "NOT_EQUALS": "EQUALS",
    "LESS_THAN": "GREATER_THAN_OR_EQUAL",
    "LESS_THAN_OR_EQUAL": "GREATER_THAN",
    "GREATER_THAN": "LESS_THAN_OR_EQUAL",
    "GREATER_THAN_OR_EQUAL": "LESS_THAN",
}
_EXTREMES = {
    "NOT_EQUALS": ("MIN", "MAX"),
    "LESS_THAN": ("MAX",),
    "LESS_THAN_OR_EQUAL": ("MAX",),
    "GREATER_THAN": ("MIN",),
    "GREATER_THAN_OR_EQUAL": ("MIN",),
}
"""What a value is compared with that is to be so for some row."""


class QueryExpressionBinder(ExpressionBinder):
    """Binds the expressions of a query over the columns of its tables."""

    def __init__(self, scope: QueryScope, bind_query: BindQuery, sql: str, session: Session) -> None:
        super().__init__(scope, sql, session)
        self.scope = scope
        self._bind_query = bind_query
        self._binders[exp.Subquery] = self._scalar
        self._binders[exp.Exists] = self._exists
        self._binders[exp.In] = self._in_list_or_query

    def _bind(self, node: exp.Expression) -> Expression:
        right = node.args.get("expression")
        if type(node) in OPERATORS and isinstance(right, (exp.Any, exp.All)):
            return self._quantified(node, right, is_some=isinstance(right, exp.Any))
        return super()._bind(node)

    def _quantified(self, node: exp.Expression, quantified: exp.Expression, is_some: bool) -> Expression:
        if isinstance(node, (exp.EQ, exp.NEQ)) and isinstance(node, exp.EQ) == is_some:
            found = self._in_list_or_query(exp.In(this=node.this, query=quantified.this))
            return found if is_some else call("NOT", [found])
        query = self._bind_query(quantified.this, self.scope)
        if len(query.row_type.fields) != 1:
            raise ValidationError("Values passed to SOME and ALL operators must have compatible types.")
        operator = OPERATORS[type(node)]
        return _compared(self.bind(node.this), operator, query, is_some, self._position(node))

    def _scalar(self, node: exp.Subquery) -> Expression:
        query = self._bind_query(node, self.scope)
        fields = query.row_type.fields
        if len(fields) != 1:
            raise ValidationError(f"A query in an expression must have one column, but it has {len(fields)}.")
        return ScalarSubquery(fields[0].type.copy(nullable=True), query, position=self._position(node))

    def _exists(self, node: exp.Exists) -> Expression:
        query = self._bind_query(node.this, self.scope)
        return Exists(BooleanType(nullable=False), query, position=self._position(node))

    def _in_list_or_query(self, node: exp.In) -> Expression:
        subquery = node.args.get("query")
        if subquery is None:
            return self._in(node)
        left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        operands = [self.bind(part) for part in left]
        query = self._bind_query(subquery, self.scope)
        fields = query.row_type.fields
        if len(fields) != len(operands):
            raise ValidationError("Values passed to IN operator must have compatible types.")
        common = [common_arguments("IN", [operand, _column(query, index)]) for index, operand in enumerate(operands)]
        cast_query = Project(
            query,
            tuple(cast_to(_column(query, index), type_) for index, type_ in enumerate(common)),
            query.row_type.field_names,
        )
        nullable = any(operand.type.nullable for operand in operands) or any(field.type.nullable for field in fields)
        operands = [cast_to(operand, type_) for operand, type_ in zip(operands, common, strict=True)]
        same = cast_query.row_type == query.row_type
        position = self._position(node)
        return InSubquery(
            BooleanType(nullable=nullable), query if same else cast_query, tuple(operands), position=position
        )


def _column(node: LogicalNode, index: int) -> Expression:
    field = node.row_type.fields[index]
    return InputRef(field.type, index, field.name)


def _compared(
    value: Expression, operator: str, query: LogicalNode, is_some: bool, position: Position | None
) -> Expression:
    """``value operator SOME (query)``, or ALL."""
    if operator not in _NEGATED:
        raise ValidationError("SOME and ALL follow a comparison.", position=position)
    if not is_some:
        return call("NOT", [_compared(value, _NEGATED[operator], query, True, position)])
    (column,) = query.row_type.fields
    names = _EXTREMES[operator]
    calls = [AggregateCall(name, (0,), column.type.copy(), f"${name}") for name in names]
    counts = [AggregateCall("COUNT", arguments, _BIGINT, name) for arguments, name in (((), "$rows"), ((0,), "$known"))]
    aggregate = Aggregate(query, (), (*calls, *counts))

    def result(index: int) -> Expression:
        part = aggregate.row_type.fields[index]
        only = Project(aggregate, (InputRef(part.type, index, part.name),), (part.name,))
        return ScalarSubquery(part.type.copy(nullable=True), only, position=position)

    tests: list[tuple[Expression, bool | None]] = [
        (call("EQUALS", [result(len(names)), Literal(_BIGINT, 0)]), False),
        *((call(operator, [value, result(index)]), True) for index in range(len(names))),
        (call("IS_NULL", [value]), None),
        (call("LESS_THAN", [result(len(names) + 1), result(len(names))]), None),
    ]
    return Case(
        _BOOLEAN,
        tuple(test for test, _ in tests),
        tuple(Literal(_BOOLEAN, outcome) for _, outcome in tests),
        Literal(_BOOLEAN, False),
    )
