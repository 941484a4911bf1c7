"""Operands of expressions: literals, names, constructors, CASE."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.type_names import TypeGrammar
from firesteel.table.parser.nodes import (
    Call,
    ExplicitTable,
    MapConstructor,
    ModelArgument,
    MultisetConstructor,
    SubqueryConstructor,
)
from firesteel.table.parser.reserved import FUNCTION_WORDS, NILADIC_FUNCTIONS
from firesteel.table.parser.tokens import STRINGS, Token

__all__ = ["OperandGrammar", "is_query"]


def is_query(node: exp.Expression) -> bool:
    """Whether a node is a query, possibly in parentheses."""
    return isinstance(node, exp.Select | exp.SetOperation | exp.Values | exp.Subquery | ExplicitTable)


class OperandGrammar(TypeGrammar):
    """Operands; expressions, functions and queries are in the classes that derive from this one."""

    def expression(self, context: Context = Context.SUB_QUERY) -> exp.Expression:
        """An expression."""
        raise NotImplementedError

    def ordered_query_or_expression(self, context: Context) -> exp.Expression:
        """A query with ORDER BY and LIMIT, or an expression."""
        raise NotImplementedError

    def special_call(self) -> exp.Expression | None:
        """A call of a function that has a syntax of its own."""
        raise NotImplementedError

    def named_call(self) -> exp.Expression:
        """A call of a function by its name."""
        raise NotImplementedError

    def call_arguments(self, call: Call) -> None:
        """The arguments of a function, in parentheses."""
        raise NotImplementedError

    def _check_not_query_only(self, context: Context, token: Token) -> None:
        if context is Context.QUERY:
            raise self.error("A query is expected here, not an expression.", token)

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
        items = [] if self.kind == "]" and kind != "MULTISET" else self._elements(kind)
        self.expect("]")
        node_type = {"ARRAY": exp.Array, "MAP": MapConstructor, "MULTISET": MultisetConstructor}[kind]
        return self.place(node_type(expressions=items), token)

    def _elements(self, kind: str) -> list[exp.Expression]:
        items = [self.expression(Context.NON_QUERY)]
        while self.accept(","):
            items.append(self.expression(Context.NON_QUERY if kind == "MULTISET" else Context.SUB_QUERY))
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
