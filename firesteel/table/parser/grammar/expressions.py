"""Expressions, with the precedence of operators that Calcite has."""

from __future__ import annotations

from sqlglot import exp

from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.literals import UNITS
from firesteel.table.parser.grammar.operands import OperandGrammar, is_query
from firesteel.table.parser.nodes import (
    Call,
    SubqueryConstructor,
    Unknown,
)

__all__ = ["BINARY", "ExpressionGrammar"]

OR, AND, NOT, IS, COMPARISON, PREDICATE, PLUS, TIMES, SIGN = 44, 48, 52, 56, 60, 64, 80, 120, 160
"""How strongly operators bind, twice Calcite's numbers: an operator that is evaluated from the left binds its right
operand stronger by 1, and LIKE, which is evaluated from the right, its left operand."""

BINARY: dict[str, tuple[int, type[exp.Expression]]] = {
    "OR": (OR, exp.Or),
    "AND": (AND, exp.And),
    "=": (COMPARISON, exp.EQ),
    "<>": (COMPARISON, exp.NEQ),
    "<": (COMPARISON, exp.LT),
    "<=": (COMPARISON, exp.LTE),
    ">": (COMPARISON, exp.GT),
    ">=": (COMPARISON, exp.GTE),
    "+": (PLUS, exp.Add),
    "-": (PLUS, exp.Sub),
    "*": (TIMES, exp.Mul),
    "/": (TIMES, exp.Div),
    "%": (TIMES, exp.Mod),
    "||": (TIMES, exp.DPipe),
}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
PERIOD_OPERATORS = ("CONTAINS", "OVERLAPS", "EQUALS", "PRECEDES", "SUCCEEDS")
PATTERN_OPERATORS: dict[str, type[exp.Expression]] = {
    "LIKE": exp.Like,
    "ILIKE": exp.ILike,
    "RLIKE": exp.RegexpLike,
    "SIMILAR": exp.SimilarTo,
}
PREFIX: dict[str, int] = {"+": SIGN, "-": SIGN, "NOT": NOT, "EXISTS": PLUS, "UNIQUE": PLUS}
NEGATABLE = {"IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "SIMILAR", "SUBMULTISET"}
JSON_KINDS = ("VALUE", "OBJECT", "ARRAY", "SCALAR")


class ExpressionGrammar(OperandGrammar):
    """Expressions; functions and queries are in the classes that derive from this one."""

    # what queries and functions provide

    # operators

    def expression(self, context: Context = Context.SUB_QUERY) -> exp.Expression:
        """An expression."""
        return self._operators(context, 0)

    def _operators(self, context: Context, precedence: int, stop_at_and: bool = False) -> exp.Expression:
        left = self._prefixed(context, stop_at_and)
        while True:
            token = self.token
            node = self._infix(left, precedence, stop_at_and)
            if node is None:
                return left
            self._check_not_query_only(context, token)
            left = node

    def _prefixed(self, context: Context, stop_at_and: bool) -> exp.Expression:
        token = self.token
        precedence = PREFIX.get(token.kind)
        if precedence is None:
            return self._extended(context)
        self._check_not_query_only(context, token)
        self.index += 1
        operand = self._operators(context, precedence, stop_at_and)
        if token.kind == "+":
            return operand
        if token.kind == "-":
            return self.place(exp.Neg(this=operand), token)
        if token.kind == "NOT":
            return self.place(exp.Not(this=operand), token)
        if token.kind == "EXISTS":
            return self.place(exp.Exists(this=operand), token)
        return self.place(SubqueryConstructor(this=operand, kind="UNIQUE"), token)

    def _infix(self, left: exp.Expression, precedence: int, stop_at_and: bool) -> exp.Expression | None:
        """The operator that is next, applied to its left operand; none if it binds less than the precedence."""
        kind = self.kind
        if kind in BINARY:
            return self._binary(left, precedence, stop_at_and)
        if kind == "[":
            return self._item(left)
        negated = kind == "NOT" and self.ahead(1) in NEGATABLE
        operator = self.ahead(1) if negated else kind
        node: exp.Expression | None = None
        if operator in PATTERN_OPERATORS and precedence <= PREDICATE + 1:
            node = self._pattern(left, operator, negated, stop_at_and)
        elif operator == "IN" and precedence <= PREDICATE:
            token = self.token
            self.index += 2 if negated else 1
            node = self.place(self._in(left), token)
        elif operator == "BETWEEN" and precedence <= PREDICATE:
            node = self._between(left, negated)
        elif operator == "SUBMULTISET" and precedence <= COMPARISON:
            self.index += 2 if negated else 1
            self.expect("OF")
            node = self._named_operator("SUBMULTISET OF", left, COMPARISON, stop_at_and)
        elif kind == "IS":
            return self._is(left, precedence, stop_at_and)
        else:
            return self._rare(left, precedence, stop_at_and)
        return exp.Not(this=node) if negated and node is not None else node

    def _binary(self, left: exp.Expression, precedence: int, stop_at_and: bool) -> exp.Expression | None:
        token = self.token
        own, node_type = BINARY[token.kind]
        if own < precedence or (stop_at_and and token.kind == "AND"):
            return None
        self.index += 1
        if token.kind in COMPARISONS and self.kind in ("SOME", "ANY", "ALL"):
            quantifier = exp.All if self.advance().kind == "ALL" else exp.Any
            operand = self._list_or_query(self.parenthesized_list(Context.NONCURSOR))
            return self.place(node_type(this=left, expression=quantifier(this=operand)), token)
        right = self._operators(Context.SUB_QUERY, own + 1, stop_at_and)
        return self.place(node_type(this=left, expression=right), token)

    def _list_or_query(self, items: list[exp.Expression]) -> exp.Expression:
        return items[0] if len(items) == 1 and is_query(items[0]) else exp.Tuple(expressions=items)

    def _item(self, left: exp.Expression) -> exp.Expression:
        token = self.expect("[")
        kind = self.accept_any("OFFSET", "ORDINAL", "SAFE_OFFSET", "SAFE_ORDINAL")
        index = self.expression()
        self.expect("]")
        node: exp.Expression = self.place(exp.Bracket(this=left, expressions=[index]), token)
        if kind:
            node.set("offset", kind)
        while self.kind == "." and self.at_name(1):
            self.index += 1
            node = exp.Dot(this=node, expression=self.name())
        return node

    def _pattern(self, left: exp.Expression, operator: str, negated: bool, stop_at_and: bool) -> exp.Expression:
        token = self.token
        self.index += 2 if negated else 1
        if operator == "SIMILAR":
            self.expect("TO")
        right = self._operators(Context.SUB_QUERY, PREDICATE, stop_at_and)
        node = self.place(PATTERN_OPERATORS[operator](this=left, expression=right), token)
        if self.accept("ESCAPE"):
            return exp.Escape(this=node, expression=self._primary(Context.SUB_QUERY))
        return node

    def _in(self, left: exp.Expression) -> exp.Expression:
        items = self.parenthesized_list(Context.NONCURSOR)
        if len(items) == 1 and is_query(items[0]):
            return exp.In(this=left, query=items[0])
        return exp.In(this=left, expressions=items)

    def _between(self, left: exp.Expression, negated: bool) -> exp.Expression:
        token = self.token
        self.index += 2 if negated else 1
        symmetric = self.accept_any("SYMMETRIC", "ASYMMETRIC") == "SYMMETRIC"
        low = self._operators(Context.SUB_QUERY, 0, stop_at_and=True)
        if self.kind != "AND":
            self.unexpected("AND")
        self.index += 1
        high = self._operators(Context.SUB_QUERY, PREDICATE + 1)
        node = exp.Between(this=left, low=low, high=high)
        if symmetric:
            node.set("symmetric", True)
        return self.place(node, token)

    def _is(self, left: exp.Expression, precedence: int, stop_at_and: bool) -> exp.Expression | None:
        token = self.token
        negated = self.ahead(1) == "NOT"
        if self.ahead(2 if negated else 1) == "DISTINCT":
            if precedence > COMPARISON:
                return None
            self.index += 2 if negated else 1
            self.expect("DISTINCT", "FROM")
            right = self._operators(Context.SUB_QUERY, COMPARISON + 1, stop_at_and)
            node_type = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self.place(node_type(this=left, expression=right), token)
        if precedence > IS:
            return None
        self.index += 2 if negated else 1
        node = self.place(exp.Is(this=left, expression=self._is_what()), token)
        return exp.Not(this=node) if negated else node

    def _is_what(self) -> exp.Expression:
        kind = self.expect_any("NULL", "TRUE", "FALSE", "UNKNOWN", "JSON", "EMPTY", "A")
        if kind == "NULL":
            return exp.Null()
        if kind in ("TRUE", "FALSE"):
            return exp.Boolean(this=kind == "TRUE")
        if kind == "UNKNOWN":
            return Unknown()
        if kind == "JSON":
            what = self.accept_any(*JSON_KINDS) or "VALUE"
            return exp.var(f"JSON {what}")
        if kind == "A":
            self.expect("SET")
            return exp.var("A SET")
        return exp.var(kind)

    def _rare(self, left: exp.Expression, precedence: int, stop_at_and: bool) -> exp.Expression | None:
        kind, name, own = self.kind, self.kind, COMPARISON
        if kind == "MEMBER":
            name = "MEMBER OF"
        elif kind == "IMMEDIATELY" and self.ahead(1) in ("PRECEDES", "SUCCEEDS"):
            name = f"IMMEDIATELY {self.ahead(1)}"
        elif kind == "MULTISET" and self.ahead(1) in ("UNION", "INTERSECT", "EXCEPT"):
            name, own = f"MULTISET {self.ahead(1)}", 36 if self.ahead(1) == "INTERSECT" else 28
        elif kind == "FORMAT" and self.ahead(1) == "JSON":
            return self._format_json(left, precedence)
        elif kind not in PERIOD_OPERATORS:
            if kind == "!=":
                self.unexpected("<>")
            return None
        if own < precedence:
            return None
        words = name.split()
        self.expect(*words)
        if words[0] == "MULTISET":
            name = f"{name} {self.accept_any('ALL', 'DISTINCT') or 'ALL'}"
        return self._named_operator(name, left, own, stop_at_and)

    def _named_operator(self, name: str, left: exp.Expression, own: int, stop_at_and: bool) -> exp.Expression:
        right = self._operators(Context.SUB_QUERY, own + 1, stop_at_and)
        return Call(this=name, expressions=[left, right])

    def _format_json(self, left: exp.Expression, precedence: int) -> exp.Expression | None:
        if precedence > IS:
            return None
        return Call(this="FORMAT JSON", expressions=[left, *self.json_format()])

    def json_format(self) -> list[exp.Expression]:
        """FORMAT JSON and the encoding."""
        self.expect("FORMAT", "JSON")
        if not self.accept("ENCODING"):
            return []
        return [exp.var(self.expect_any("UTF8", "UTF16", "UTF32"))]

    # operands

    def _extended(self, context: Context) -> exp.Expression:
        """An operand and its fields: ``f(x).a``."""
        node = self._primary(context)
        while self.kind == "." and self.at_name(1):
            self.index += 1
            field = self.name()
            if self.kind != "(":
                node = exp.Dot(this=node, expression=field)
                continue
            call = self.place(Call(this=field.name), self.token)
            self.call_arguments(call)
            node = exp.Dot(this=node, expression=call)
        return node

    def _primary(self, context: Context) -> exp.Expression:
        token = self.token
        if token.kind == "(" or (token.kind == "ROW" and self.ahead(1) == "("):
            return self._row_or_parentheses(context)
        if token.kind == "CURSOR":
            if context not in (Context.ALL, Context.CURSOR):
                raise self.error("CURSOR is allowed as an argument of table functions only.")
            self.index += 1
            return self.place(SubqueryConstructor(this=self.expression(Context.QUERY), kind="CURSOR"), token)
        node = self.atom()
        self._check_not_query_only(context, token)
        return node

    def _row_or_parentheses(self, context: Context) -> exp.Expression:
        token = self.token
        explicit = self.accept("ROW")
        items = self.parenthesized_list(context)
        if explicit or len(items) > 1:
            return self.place(exp.Tuple(expressions=items), token)
        if self.kind in UNITS:
            qualifier = self.interval_qualifier()
            if not isinstance(items[0], exp.Sub):
                raise self.error("Only a difference can have the unit of an interval: (a - b) DAY.", token)
            return self.place(
                Call(this="MINUS_DATE", expressions=[items[0].this, items[0].expression, qualifier]), token
            )
        return items[0]
