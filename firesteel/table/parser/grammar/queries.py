"""Queries: WITH, SELECT, set operations, VALUES, ORDER BY and LIMIT."""

from __future__ import annotations

from sqlglot import exp

from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.operands import is_query
from firesteel.table.parser.grammar.tables import TableGrammar
from firesteel.table.parser.nodes import DefaultValue, ExplicitTable, JoinTree

__all__ = ["QueryGrammar"]

SET_OPERATIONS: dict[str, tuple[int, type[exp.SetOperation]]] = {
    "UNION": (14, exp.Union),
    "EXCEPT": (14, exp.Except),
    "INTERSECT": (18, exp.Intersect),
}
QUERY_STARTS = ("SELECT", "VALUES", "VALUE", "WITH")


class QueryGrammar(TableGrammar):
    """Queries."""

    def query(self) -> exp.Expression:
        """A query with ORDER BY and LIMIT."""
        return self.ordered_query_or_expression(Context.QUERY)

    def ordered_query_or_expression(self, context: Context) -> exp.Expression:
        """A query with ORDER BY and LIMIT, or an expression."""
        return self._ordered(self._query_or_expression(context))

    def _query_or_expression(self, context: Context) -> exp.Expression:
        with_ = self._with() if self.kind == "WITH" else None
        node = self._set_operations(self._leaf(context), context, 0)
        if with_ is not None:
            if isinstance(node, exp.Subquery) or not is_query(node):
                node = exp.Subquery(this=node)
            node.set("with_", with_)
        return node

    def parenthesized_query_or_join(self, context: Context) -> exp.Expression:
        """What stands in parentheses in FROM, or after WITH name AS: a query or joins."""
        token = self.expect("(")
        if self.kind in QUERY_STARTS or (self.kind == "TABLE" and self.at_name(1)):
            node = self._ordered(self._query_or_expression(context.within_parentheses()))
        else:
            node = self.joined_tables()
            if self.kind in SET_OPERATIONS and self._is_plain_query(node):
                node = self._set_operations(node, context, 0)
        if not is_query(node) and (context is Context.QUERY or not isinstance(node, JoinTree)):
            raise self.error("A query or joins are expected in the parentheses.", token)
        self.expect(")")
        if is_query(node) and not isinstance(node, exp.Subquery):
            node = self.place(exp.Subquery(this=node), token)
        return node

    def _is_plain_query(self, node: exp.Expression) -> bool:
        return isinstance(node, exp.Subquery) and node.args.get("alias") is None

    def _with(self) -> exp.With:
        token = self.expect("WITH")
        recursive = self.accept("RECURSIVE")
        return self.place(exp.With(expressions=self.comma_list(self._common_table), recursive=recursive), token)

    def _common_table(self) -> exp.CTE:
        token = self.token
        alias = exp.TableAlias(this=self.name())
        if self.kind == "(":
            alias.set("columns", self.in_parentheses(self.name))
        self.expect("AS")
        query = self.parenthesized_query_or_join(Context.QUERY)
        assert isinstance(query, exp.Subquery)
        is_bare = not any(value for key, value in query.args.items() if key != "this")
        return self.place(exp.CTE(this=query.this if is_bare else query, alias=alias), token)

    def _set_operations(self, left: exp.Expression, context: Context, precedence: int) -> exp.Expression:
        while self.kind in SET_OPERATIONS:
            own, node_type = SET_OPERATIONS[self.kind]
            if own < precedence:
                break
            if not is_query(left):
                self.unexpected()
            if not context.allows_bare_query:
                raise self.error("A query is allowed here in parentheses only.")
            token = self.advance()
            distinct = self.accept_any("ALL", "DISTINCT") != "ALL"
            right = self._set_operations(self._leaf(Context.QUERY), Context.QUERY, own + 1)
            left = self.place(node_type(this=left, expression=right, distinct=distinct), token)
        return left

    def _leaf(self, context: Context) -> exp.Expression:
        kind = self.kind
        if kind not in ("SELECT", "VALUES", "VALUE", "TABLE"):
            return self.expression(context)
        if not context.allows_bare_query:
            raise self.error("A query is allowed here in parentheses only.")
        if kind == "SELECT":
            return self._select()
        token = self.advance()
        if kind == "TABLE":
            return self.place(ExplicitTable(this=self.table_name()), token)
        return self.place(exp.Values(expressions=self.comma_list(self.row_constructor)), token)

    def row_constructor(self) -> exp.Expression:
        """A row of VALUES; a single expression is a row of one column."""
        token = self.token
        if self.at("(", "ROW", "("):
            self.index += 1
            row = self._row_with_defaults()
            self.expect(")")
            return row
        if self.kind == "(" or self.at("ROW", "("):
            return self._row_with_defaults()
        return self.place(exp.Tuple(expressions=[self.expression(Context.NONCURSOR)]), token)

    def _row_with_defaults(self) -> exp.Expression:
        token = self.token
        self.accept("ROW")
        start = self.expect("(")
        first = self._value_or_default(Context.NONCURSOR, first=True)
        if is_query(first) and not isinstance(first, exp.Subquery):
            first = self.place(exp.Subquery(this=first), start)
        items = [first]
        while self.accept(","):
            items.append(self._value_or_default(Context.NONCURSOR, first=False))
        self.expect(")")
        return self.place(exp.Tuple(expressions=items), token)

    def _value_or_default(self, context: Context, first: bool) -> exp.Expression:
        token = self.token
        if self.accept("DEFAULT"):
            return self.place(DefaultValue(), token)
        return self.ordered_query_or_expression(context) if first else self.expression(context)

    # SELECT

    def _select(self) -> exp.Select:
        token = self.expect("SELECT")
        select = self.place(exp.Select(), token)
        if self.kind == "/*+":
            select.set("hint", exp.Hint(expressions=self.hints()))
        if self.kind == "STREAM":
            self.index += 1
        quantifier = self.accept_any("DISTINCT", "ALL")
        if quantifier == "DISTINCT":
            select.set("distinct", exp.Distinct())
        select.set("expressions", self.comma_list(self._select_item))
        if not self.accept("FROM"):
            return select
        first, joins = self.from_clause()
        select.set("from_", exp.From(this=first))
        if joins:
            select.set("joins", joins)
        if self.accept("WHERE"):
            select.set("where", exp.Where(this=self.expression()))
        if self.kind == "GROUP":
            select.set("group", self._group_by())
        if self.accept("HAVING"):
            select.set("having", exp.Having(this=self.expression()))
        if self.accept("WINDOW"):
            select.set("windows", self.comma_list(self._named_window))
        if self.accept("QUALIFY"):
            select.set("qualify", exp.Qualify(this=self.expression()))
        return select

    def _select_item(self) -> exp.Expression:
        token = self.token
        node: exp.Expression = self.place(exp.Star(), token) if self.accept("*") else self.expression()
        if self.accept("AS"):
            return self.place(exp.Alias(this=node, alias=self.name()), token)
        return self.place(exp.Alias(this=node, alias=self.name()), token) if self.at_name() else node

    def _group_by(self) -> exp.Group:
        token = self.expect("GROUP", "BY")
        quantifier = self.accept_any("DISTINCT", "ALL")
        group = self.place(exp.Group(expressions=self.comma_list(self._grouping_element)), token)
        if quantifier == "DISTINCT":
            group.set("distinct", True)
        return group

    def _grouping_element(self) -> exp.Expression:
        token = self.token
        if self.accept("GROUPING", "SETS"):
            return self.place(exp.GroupingSets(expressions=self.in_parentheses(self._grouping_element)), token)
        if self.accept("ROLLUP"):
            return self.place(exp.Rollup(expressions=self.in_parentheses(self.expression)), token)
        if self.accept("CUBE"):
            return self.place(exp.Cube(expressions=self.in_parentheses(self.expression)), token)
        if self.accept("(", ")"):
            return self.place(exp.Tuple(expressions=[]), token)
        return self.expression()

    def _named_window(self) -> exp.Window:
        name = self.name()
        self.expect("AS")
        window = self.window_specification()
        window.set("this", name)
        return window

    # ORDER BY and LIMIT

    def order_by(self) -> exp.Order:
        """ORDER BY and its items."""
        token = self.expect("ORDER", "BY")
        return self.place(exp.Order(expressions=self.comma_list(self.order_item)), token)

    def order_item(self) -> exp.Ordered:
        """An item of ORDER BY; ``nulls_first`` is not set if the text does not say it."""
        token, node = self.token, self.expression()
        ordered = self.place(exp.Ordered(this=node, desc=self.accept_any("ASC", "DESC") == "DESC"), token)
        if self.accept("NULLS"):
            ordered.set("nulls_first", self.expect_any("FIRST", "LAST") == "FIRST")
        return ordered

    def _ordered(self, node: exp.Expression) -> exp.Expression:
        if self.kind not in ("ORDER", "LIMIT", "OFFSET", "FETCH") or not is_query(node):
            if self.kind == "ORDER" and self.ahead(1) == "BY":
                raise self.error("ORDER BY is allowed after a query only.")
            return node
        if isinstance(node, exp.Subquery):
            node = exp.Subquery(this=node)
        if self.kind == "ORDER":
            node.set("order", self.order_by())
        if self.accept("LIMIT"):
            if not self.accept("ALL"):
                node.set("limit", exp.Limit(expression=self._count()))
            if self.accept("OFFSET"):
                self._offset(node)
        elif self.accept("OFFSET"):
            self._offset(node)
            if self.kind == "LIMIT":
                raise self.error("OFFSET stands after LIMIT.", hint="Write LIMIT n OFFSET m.")
            self._fetch(node)
        else:
            self._fetch(node)
        return node

    def _count(self) -> exp.Expression:
        token = self.token
        return self.place(exp.Placeholder(), token) if self.accept("?") else self.unsigned_number()

    def _offset(self, node: exp.Expression) -> None:
        node.set("offset", exp.Offset(expression=self._count()))
        self.accept_any("ROW", "ROWS")

    def _fetch(self, node: exp.Expression) -> None:
        if not self.accept("FETCH"):
            return
        self.expect_any("FIRST", "NEXT")
        node.set("limit", exp.Limit(expression=self._count()))
        self.expect_any("ROW", "ROWS")
        self.expect("ONLY")

    # OVER and WINDOW

    def window_specification(self) -> exp.Window:
        """What follows OVER or WINDOW w AS; ``this`` is set by the caller."""
        token = self.expect("(")
        window = self.place(exp.Window(), token)
        if self.at_name():
            window.set("alias", self.name())
        if self.accept("PARTITION", "BY"):
            items = [self.expression(Context.NON_QUERY)]
            while self.accept(","):
                items.append(self.expression())
            window.set("partition_by", items)
        if self.kind == "ORDER":
            window.set("order", self.order_by())
        kind = self.accept_any("ROWS", "RANGE")
        if kind:
            window.set("spec", self._frame(kind))
        if self.accept_any("ALLOW", "DISALLOW"):
            self.expect("PARTIAL")
        self.expect(")")
        return window

    def _frame(self, kind: str) -> exp.WindowSpec:
        if not self.accept("BETWEEN"):
            start, start_side = self._bound()
            return exp.WindowSpec(kind=kind, start=start, start_side=start_side, end="CURRENT ROW")
        start, start_side = self._bound()
        self.expect("AND")
        end, end_side = self._bound()
        return exp.WindowSpec(kind=kind, start=start, start_side=start_side, end=end, end_side=end_side)

    def _bound(self) -> tuple[exp.Expression | str, str | None]:
        if self.accept("CURRENT", "ROW"):
            return "CURRENT ROW", None
        if self.kind == "UNBOUNDED" and self.ahead(1) in ("PRECEDING", "FOLLOWING"):
            self.index += 1
            return "UNBOUNDED", self.advance().kind
        value = self.expression(Context.NON_QUERY)
        return value, self.expect_any("PRECEDING", "FOLLOWING")
