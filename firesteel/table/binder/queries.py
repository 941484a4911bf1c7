"""Queries: parsed trees become logical plans."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sqlglot import exp

from firesteel.table.binder.calls import cast_to
from firesteel.table.binder.from_clause import FromClause, FromClauseBinder, ResolveTable, renamed
from firesteel.table.binder.join_hints import JoinHints, check_names, uid_of
from firesteel.table.binder.places import place_of
from firesteel.table.binder.query_expressions import QueryExpressionBinder
from firesteel.table.binder.query_scope import QueryScope
from firesteel.table.binder.select import Rows, SelectBinder, sort_key, sort_ordinal
from firesteel.table.binder.table_functions.models import ResolveModel, no_models
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef
from firesteel.table.bound.session import Session
from firesteel.table.functions.signatures import illegal_null
from firesteel.table.inference.common_type import common_type
from firesteel.table.inference.families import is_null
from firesteel.table.parser import nodes
from firesteel.table.parser.hints import hints_of_query
from firesteel.table.plan.nodes import LogicalNode, Project, SetKind, SetOperation, Sort, Values
from firesteel.table.plan.streaming import NamedQuery
from firesteel.types.logical import LogicalType, RowType

__all__ = ["QueryBinder"]

_SET_KINDS: dict[type[exp.Expression], SetKind] = {
    exp.Union: SetKind.UNION,
    exp.Intersect: SetKind.INTERSECT,
    exp.Except: SetKind.EXCEPT,
}


_INCOMPATIBLE_VALUES = "Values passed to VALUES operator must have compatible types."


class QueryBinder:
    """Binds a query; ``sql`` is the text from which it was parsed, for places in errors."""

    def __init__(
        self,
        resolve_table: ResolveTable,
        sql: str = "",
        session: Session | None = None,
        resolve_model: ResolveModel = no_models,
    ) -> None:
        self._resolve_catalog_table = resolve_table
        self._resolve_model = resolve_model
        self._sql = sql
        self._session = session or Session()
        self._with: list[dict[str, LogicalNode]] = []

    def bind(self, query: exp.Expression, outer: QueryScope | None = None) -> LogicalNode:
        """The plan of a query, within the scope of another one if it is part of that."""
        with_ = query.args.get("with_")
        self._with.append({})
        try:
            if with_ is not None:
                self._add_common_tables(with_, outer)
            order = query.args.get("order")
            rows = self._rows(query, order.expressions if order is not None else (), outer)
            return self._limited(rows, query)
        except ValidationError as error:
            raise error.at(place_of(query, self._sql)) from error.__cause__
        finally:
            self._with.pop()

    def _add_common_tables(self, with_: exp.With, outer: QueryScope | None) -> None:
        for table in with_.expressions:
            node = self.bind(table.this, outer)
            alias = table.args["alias"]
            columns = [column.name for column in alias.columns]
            self._with[-1][alias.name] = renamed(node, columns, alias.name) if columns else node

    def _resolve(self, path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
        if len(path) == 1:
            for tables in reversed(self._with):
                if path[0] in tables:
                    return tables[path[0]]
        return self._resolve_catalog_table(path, options)

    # -- bodies ------------------------------------------------------------------------------------------------

    def _rows(self, query: exp.Expression, order: Sequence[exp.Ordered], outer: QueryScope | None) -> Rows:
        if isinstance(query, exp.Select):
            return self._select(query, order, outer)
        node = self._relation(query, outer)
        names = node.row_type.field_names
        keys = []
        for item in order:
            index = sort_ordinal(item.this, names)
            if index is None:
                raise ValidationError("ORDER BY after a set operation can name its columns only.")
            keys.append(sort_key(item, index, node.row_type.fields[index].type))
        return Rows(node, len(names), keys)

    def _relation(self, query: exp.Expression, outer: QueryScope | None) -> LogicalNode:
        if isinstance(query, exp.Subquery):
            return self.bind(query.this, outer)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, outer)
        if isinstance(query, exp.Values):
            return self._values(query, outer)
        if isinstance(query, nodes.BoundRelation):
            relation: LogicalNode = query.this
            return relation
        if isinstance(query, nodes.ExplicitTable):
            return self._resolve([part.name for part in query.this.parts], ())
        raise ValidationError(f"{type(query).__name__} is not a query.")

    def _select(self, select: exp.Select, order: Sequence[exp.Ordered], outer: QueryScope | None) -> Rows:
        from_ = select.args.get("from_")
        check_names(hints_of_query(select), self._sql)
        hints = JoinHints.of(hints_of_query(select))
        if from_ is None:
            hints.check(())
            one_row = Values(RowType([], nullable=False), ((),))
            source = FromClause(one_row, QueryScope((), outer))
        else:
            tables = FromClauseBinder(
                self._resolve, self.bind, self._binder, outer, self._sql, hints, self._resolve_model
            )
            source = tables.bind_all(from_.this, select.args.get("joins") or ())
        binder = SelectBinder(select, source, self._binder(source.scope), hints.ttl_ms(source.name))
        rows = binder.bind(order)
        uid = uid_of(hints_of_query(select))
        return rows if uid is None else rows._replace(node=NamedQuery(rows.node, uid))

    def _binder(self, scope: QueryScope) -> QueryExpressionBinder:
        return QueryExpressionBinder(scope, self.bind, self._sql, self._session)

    def _set_operation(self, query: exp.SetOperation, outer: QueryScope | None) -> LogicalNode:
        kind, all_ = _SET_KINDS[type(query)], not query.args.get("distinct")
        relations = [self.bind(query.this, outer), self.bind(query.expression, outer)]
        widths = [len(node.row_type.fields) for node in relations]
        if len(set(widths)) != 1:
            raise ValidationError(f"Column count mismatch in {kind.name}: {widths[0]} and {widths[1]} columns.")
        columns = [[_reference(node, index) for node in relations] for index in range(widths[0])]
        messages = (f"Type mismatch in column {index} of {kind.name}." for index in itertools.count(1))
        types = [_common(column, message) for column, message in zip(columns, messages, strict=False)]
        names = relations[0].row_type.field_names
        cast = [
            _projected(node, [cast_to(_reference(node, index), type_) for index, type_ in enumerate(types)], names)
            for node in relations
        ]
        first = cast[0]
        if isinstance(first, SetOperation) and (first.kind, first.all) == (kind, all_) and kind is SetKind.UNION:
            return SetOperation(kind, (*first.relations, cast[1]), all_)
        return SetOperation(kind, tuple(cast), all_)

    def _values(self, query: exp.Values, outer: QueryScope | None) -> LogicalNode:
        binder = self._binder(QueryScope((), outer))
        rows = [[binder.bind(value) for value in row.expressions] for row in query.expressions]
        widths = {len(row) for row in rows}
        if len(widths) != 1:
            raise ValidationError(_INCOMPATIBLE_VALUES)
        for row, bound in zip(query.expressions, rows, strict=True):
            for node, value in zip(row.expressions, bound, strict=True):
                if is_null(value.type):
                    raise illegal_null().at(place_of(node, self._sql))
        columns = list(zip(*rows, strict=True))
        types = [_common(column, _INCOMPATIBLE_VALUES) for column in columns]
        nullable = [any(value.type.nullable for value in column) for column in columns]
        type_ = RowType.of(
            [f"EXPR${index}" for index in range(len(types))],
            [type_.copy(null) for type_, null in zip(types, nullable, strict=True)],
            nullable=False,
        )
        cast = [[cast_to(value, type_) for value, type_ in zip(row, types, strict=True)] for row in rows]
        return Values(type_, tuple(map(tuple, cast)))

    # -- ORDER BY and LIMIT ------------------------------------------------------------------------------------

    def _limited(self, rows: Rows, query: exp.Expression) -> LogicalNode:
        limit, offset = query.args.get("limit"), query.args.get("offset")
        node = rows.node
        if rows.keys or limit is not None or offset is not None:
            fetch = None if limit is None else _count(limit.expression)
            order = query.args.get("order")
            place = None if order is None else place_of(order, self._sql)
            start = 0 if offset is None else _count(offset.expression)
            node = Sort(node, tuple(rows.keys), start, fetch, place=place)
        visible = [_reference(node, index) for index in range(rows.width)]
        return _projected(node, visible, node.row_type.field_names[: rows.width])


def _count(node: exp.Expression) -> int:
    if not isinstance(node, exp.Literal):
        raise ValidationError("LIMIT and OFFSET take a number.")
    return int(node.this)


def _common(column: Sequence[Expression], message: str) -> LogicalType:
    if any(is_null(expression.type) for expression in column):
        raise illegal_null()
    found = common_type([expression.type for expression in column])
    if found is None:
        raise ValidationError(message)
    return found


def _reference(node: LogicalNode, index: int) -> Expression:
    part = node.row_type.fields[index]
    return InputRef(part.type, index, part.name)


def _projected(node: LogicalNode, expressions: Sequence[Expression], names: Sequence[str]) -> LogicalNode:
    """A projection, unless it changes nothing."""
    fields = node.row_type.fields
    same = len(fields) == len(expressions) and all(
        isinstance(expression, InputRef) and (expression.index, fields[index].name) == (index, names[index])
        for index, expression in enumerate(expressions)
    )
    return node if same else Project(node, tuple(expressions), tuple(names))
