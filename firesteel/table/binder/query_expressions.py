"""Expressions of a query: those of one row, and those that contain a query."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from firesteel.table.binder.calls import cast_to
from firesteel.table.binder.expressions import ExpressionBinder
from firesteel.table.binder.query_scope import QueryScope
from firesteel.table.expressions.errors import ValidationError
from firesteel.table.expressions.nodes import Expression, InputRef
from firesteel.table.expressions.session import Session
from firesteel.table.functions.signatures import common_arguments
from firesteel.table.plan.nodes import LogicalNode, Project
from firesteel.table.plan.subqueries import Exists, InSubquery, ScalarSubquery
from firesteel.types.logical import BooleanType

__all__ = ["BindQuery", "QueryExpressionBinder"]

BindQuery = Callable[[exp.Expression, QueryScope], LogicalNode]
"""Binds a query within the scope of another."""


class QueryExpressionBinder(ExpressionBinder):
    """Binds the expressions of a query over the columns of its tables."""

    def __init__(self, scope: QueryScope, bind_query: BindQuery, sql: str, session: Session) -> None:
        super().__init__(scope, sql, session)
        self.scope = scope
        self._bind_query = bind_query
        self._binders[exp.Subquery] = self._scalar
        self._binders[exp.Exists] = self._exists
        self._binders[exp.In] = self._in_list_or_query

    def _scalar(self, node: exp.Subquery) -> Expression:
        query = self._bind_query(node, self.scope)
        fields = query.row_type.fields
        if len(fields) != 1:
            raise ValidationError(f"A query in an expression must have one column, but it has {len(fields)}.")
        return ScalarSubquery(fields[0].type.copy(nullable=True), query)

    def _exists(self, node: exp.Exists) -> Expression:
        return Exists(BooleanType(nullable=False), self._bind_query(node.this, self.scope))

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
        return InSubquery(BooleanType(nullable=nullable), query if same else cast_query, tuple(operands))


def _column(node: LogicalNode, index: int) -> Expression:
    field = node.row_type.fields[index]
    return InputRef(field.type, index, field.name)
