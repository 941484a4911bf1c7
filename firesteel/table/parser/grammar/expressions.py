"""Expressions, with the precedence of operators that Calcite has."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.literals import UNITS
from firesteel.table.parser.grammar.type_names import TypeGrammar
from firesteel.table.parser.nodes import (
    Call,
    ExplicitTable,
    JsonBehavior,
    MapConstructor,
    ModelArgument,
    MultisetConstructor,
    SubqueryConstructor,
    Unknown,
)
from firesteel.table.parser.reserved import FUNCTION_WORDS, NILADIC_FUNCTIONS
from firesteel.table.parser.tokens import STRINGS, Token

__all__ = ["ExpressionGrammar", "is_query"]

OR, AND, NOT, IS, COMPARISON, PREDICATE, PLUS, TIMES, SIGN, ITEM = 22, 24, 26, 28, 30, 32, 40, 60, 80, 100

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


def is_query(node: exp.Expression) -> bool:
    """Whether a node is a query, possibly in parentheses."""
    return isinstance(node, exp.Select | exp.SetOperation | exp.Values | exp.Subquery | ExplicitTable)


class ExpressionGrammar(TypeGrammar):
    """Expressions; functions and queries are in the classes that derive from this one."""

    # what queries and functions provide

    def ordered_query_or_expression(self, context: Context) -> exp.Expression:
        """A query with ORDER BY and LIMIT, or an expression."""
        raise NotImplementedError

    def special_call(self) -> exp.Expression | None:
        """A call of a function that has a syntax of its own."""
        raise NotImplementedError

    def named_call(self) -> exp.Expression:
        """A call of a function by its name."""
        raise NotImplementedError

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

    def _check_not_query_only(self, context: Context, token: Token) -> None:
        if context is Context.QUERY:
            raise self.error("A query is expected here, not an expression.", token)

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
        if operator in PATTERN_OPERATORS and precedence <= PREDICATE:
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
            name, own = f"MULTISET {self.ahead(1)}", 18 if self.ahead(1) == "INTERSECT" else 14
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
            name = f"{name} {self.accept_any('ALL', 'DISTINCT') or 'DISTINCT'}"
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

    def call_arguments(self, call: Call) -> None:
        """The arguments of a function, in parentheses."""
        raise NotImplementedError

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

    def parenthesized_list(self, context: Context) -> list[exp.Expression]:
        """Expressions in parentheses, or a query, which is then an ``exp.Subquery``."""
        token = self.expect("(")
        first = self.ordered_query_or_expression(context.within_parentheses())
        if is_query(first) and not isinstance(first, exp.Subquery):
            first = self.place(exp.Subquery(this=first), token)
        items = [first]
        while self.kind == ",":
            self._check_not_query_only(context, self.token)
            self.index += 1
            items.append(self.expression(context))
        self.expect(")")
        return items

    def atom(self) -> exp.Expression:
        """A literal, a call, a constructor or a name."""
        token, kind = self.token, self.kind
        if self.at_unsigned_number():
            return self.unsigned_number()
        if kind in STRINGS:
            return self.string()
        if self.at_temporal_literal():
            return self.temporal_literal()
        found = self.special_literal()
        if found is not None:
            return found
        if kind == "INTERVAL":
            return self._interval()
        if self.accept("?"):
            return self.place(exp.Placeholder(), token)
        if kind == "CASE":
            return self._case()
        found = self._constructor() or self.special_call()
        if found is not None:
            return found
        if kind == "SPECIFIC" or self._at_call():
            return self.named_call()
        if kind in NILADIC_FUNCTIONS:
            self.index += 1
            return self.place(Call(this=token.text, niladic=True), token)
        if kind == "MODEL" and self.at_name(1):
            self.index += 1
            return self.place(ModelArgument(this=self.table_name()), token)
        if (kind == "NEXT" or (kind == "CURRENT" and self.ahead(2) == "FOR")) and self.ahead(1) == "VALUE":
            self.index += 2
            self.expect("FOR")
            return self.place(Call(this=f"{kind} VALUE", expressions=[self.table_name()]), token)
        if not self.at_name():
            self.unexpected("expression", "name")
        return self.column()

    def _at_call(self) -> bool:
        if self.kind in FUNCTION_WORDS and not self.at_name():
            return self.ahead(1) == "("
        distance = 0
        while self.at_name(distance):
            if self.ahead(distance + 1) == "(":
                return True
            if self.ahead(distance + 1) != ".":
                return False
            distance += 2
        return False

    def column(self) -> exp.Expression:
        """A name of one or more parts, or ``t.*``."""
        token = self.token
        parts: list[exp.Expression] = list(self.names())
        if self.at(".", "*"):
            self.index += 2
            parts.append(exp.Star())
        keys = ("this", "table", "db", "catalog")
        head, rest = parts[:4], parts[4:]
        arguments: dict[str, Any] = dict(zip(keys, reversed(head), strict=False))
        node: exp.Expression = self.place(exp.Column(**arguments), token)
        for part in rest:
            node = exp.Dot(this=node, expression=part)
        return node

    def table_name(self) -> exp.Table:
        """The name of a table, model or another object."""
        token, parts = self.token, self.names()
        keys = ("this", "db", "catalog")
        if len(parts) > len(keys):
            arguments: dict[str, Any] = {"this": exp.Dot.build(parts[2:]), "db": parts[1], "catalog": parts[0]}
        else:
            arguments = dict(zip(keys, reversed(parts), strict=False))
        return self.place(exp.Table(**arguments), token)

    def _interval(self) -> exp.Expression:
        if self.ahead(2 if self.ahead(1) in ("+", "-") else 1) == kinds.STRING:
            return self.interval_literal()
        token = self.expect("INTERVAL")
        sign = self.accept_any("-", "+")
        if self.accept("("):
            value = self.expression()
            self.expect(")")
        elif self.at_unsigned_number():
            value = self.unsigned_number()
        else:
            value = self.column()
        return self._signed(exp.Interval(this=value, unit=self.single_unit_qualifier()), sign, token)

    def _case(self) -> exp.Expression:
        token = self.expect("CASE")
        operand = None if self.kind == "WHEN" else self.expression()
        branches = []
        while self.accept("WHEN"):
            conditions = self.comma_list(self.expression)
            condition = conditions[0] if len(conditions) == 1 else exp.Tuple(expressions=conditions)
            self.expect("THEN")
            branches.append(exp.If(this=condition, true=self.expression()))
        if not branches:
            self.unexpected("WHEN")
        default = self.expression() if self.accept("ELSE") else None
        if self.kind != "END":
            self.unexpected("WHEN", "ELSE", "END")
        self.index += 1
        return self.place(exp.Case(this=operand, ifs=branches, default=default), token)

    def _constructor(self) -> exp.Expression | None:
        token, kind, following = self.token, self.kind, self.ahead(1)
        if kind not in ("ARRAY", "MAP", "MULTISET", "PERIOD") or following not in ("(", "["):
            return None
        self.index += 1
        if kind == "PERIOD":
            items = self.in_parentheses(self.expression)
            if len(items) != 2:
                raise self.error("PERIOD has a start and an end.", token)
            return self.place(Call(this="PERIOD", expressions=items), token)
        if following == "(":
            return self.place(self._constructor_of_query(kind), token)
        self.index += 1
        items = [] if self.kind == "]" and kind != "MULTISET" else self._elements()
        self.expect("]")
        node_type = {"ARRAY": exp.Array, "MAP": MapConstructor, "MULTISET": MultisetConstructor}[kind]
        return self.place(node_type(expressions=items), token)

    def _elements(self) -> list[exp.Expression]:
        items = [self.expression(Context.NON_QUERY)]
        while self.accept(","):
            items.append(self.expression())
        return items

    def _constructor_of_query(self, kind: str) -> exp.Expression:
        if kind == "MULTISET":
            self.expect("(")
            query = self.ordered_query_or_expression(Context.QUERY)
            self.expect(")")
            return SubqueryConstructor(this=query, kind=kind)
        if self.accept("(", ")"):
            return Call(this=kind, expressions=[])
        items = self.parenthesized_list(Context.ALL)
        if len(items) == 1 and is_query(items[0]):
            return SubqueryConstructor(this=items[0], kind=kind)
        return Call(this=kind, expressions=items)

    def json_behavior(self, *allowed: str) -> JsonBehavior | None:
        """What a JSON function gives when empty or on error, before ON."""
        token = self.token
        if self.kind == "DEFAULT" and "DEFAULT" in allowed:
            self.index += 1
            return self.place(JsonBehavior(this="DEFAULT", value=self.expression(Context.NON_QUERY)), token)
        if self.kind == "EMPTY" and "EMPTY" in allowed:
            self.index += 1
            return self.place(JsonBehavior(this=f"EMPTY {self.expect_any('ARRAY', 'OBJECT')}"), token)
        kind = self.accept_any(*allowed)
        return None if kind is None else self.place(JsonBehavior(this=kind), token)
