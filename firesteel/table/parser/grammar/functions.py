"""Calls of functions: their names, arguments and clauses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.json_functions import JSON_FUNCTIONS, JsonFunctionGrammar
from firesteel.table.parser.grammar.special_functions import SPECIAL_FUNCTIONS
from firesteel.table.parser.nodes import Call, DefaultValue, TableArgument
from firesteel.table.parser.reserved import FUNCTION_WORDS, NILADIC_FUNCTIONS
from firesteel.table.parser.tokens import NUMBERS, STRINGS

__all__ = ["FunctionGrammar"]

SPECIAL: dict[str, Callable[[Any, Call], exp.Expression]] = {**SPECIAL_FUNCTIONS, **JSON_FUNCTIONS}
ORDERED_AGGREGATES = ("ARRAY_AGG", "ARRAY_CONCAT_AGG", "GROUP_CONCAT", "STRING_AGG")
PERCENTILES = ("PERCENTILE_CONT", "PERCENTILE_DISC")
OPERAND_STARTS = {
    *STRINGS,
    *NUMBERS,
    *NILADIC_FUNCTIONS,
    *("(", "?", "{D", "{T", "{TS", "{FN", "CASE", "ROW", "ARRAY", "MULTISET", "INTERVAL"),
    *("TRUE", "FALSE", "UNKNOWN", "NULL"),
}
"""What an operand can start with, besides names and functions."""


class FunctionGrammar(JsonFunctionGrammar):
    """Calls."""

    def named_call(self) -> exp.Expression:
        """A call of a function by its name."""
        token = self.token
        self.accept("SPECIFIC")
        call = self._call_of_name()
        if token.kind in ORDERED_AGGREGATES:
            self._ordered_aggregate(call)
        elif token.kind in PERCENTILES:
            self._percentile(call)
        else:
            self.call_arguments(call)
        return self._call_clauses(call)

    def _call_clauses(self, call: Call) -> exp.Expression:
        node: exp.Expression = call
        if self.kind in ("IGNORE", "RESPECT") and self.ahead(1) == "NULLS":
            node = exp.IgnoreNulls(this=node) if self.kind == "IGNORE" else exp.RespectNulls(this=node)
            self.index += 2
        if self.accept("WITHIN", "DISTINCT"):
            node = Call(this="WITHIN DISTINCT", expressions=[node, *self.in_parentheses(self.expression)])
        if self.kind == "WITHIN":
            node = self._within_group(node)
        if self.accept("FILTER"):
            self.expect("(", "WHERE")
            node = exp.Filter(this=node, expression=exp.Where(this=self.expression()))
            self.expect(")")
        return self._over(node)

    def call_arguments(self, call: Call) -> None:
        """The arguments of a function, in parentheses."""
        if self.accept("(", ")"):
            return
        if self.at("(", "*", ")"):
            self.index += 1
            call.append("expressions", self.place(exp.Star(), self.advance()))
            self.index += 1
            return
        self.parameter_list(call, Context.SUB_QUERY)

    def parameter_list(self, call: Call, context: Context, quantified: bool = True) -> None:
        """At least one argument in parentheses."""
        self.expect("(")
        quantifier = self.accept_any("DISTINCT", "ALL") if quantified else None
        if quantifier:
            call.set("quantifier", quantifier)
        call.set("expressions", self.arguments(context))
        self.expect(")")

    def arguments(self, context: Context) -> list[exp.Expression]:
        """Arguments; only the first can be a query without parentheses."""
        items = [self._argument(context, first=True)]
        while self.accept(","):
            items.append(self._argument(context, first=False))
        return items

    def _argument(self, context: Context, first: bool) -> exp.Expression:
        token, name = self.token, None
        if self.at_name() and self.ahead(1) == "=>":
            name = self.name()
            self.index += 1
        value = self._argument_value(context, first)
        return value if name is None else self.place(exp.Kwarg(this=name, expression=value), token)

    def _argument_value(self, context: Context, first: bool) -> exp.Expression:
        token = self.token
        if self.accept("DEFAULT"):
            return self.place(DefaultValue(), token)
        if self.kind == "TABLE" and self.at_name(1):
            self.index += 1
            table = self.table_name()
            if first and self.kind in ("UNION", "INTERSECT", "EXCEPT"):
                self.unexpected(",", ")")
            return self._table_argument(table)
        if not first:
            return self.expression(context)
        value = self.ordered_query_or_expression(context.within_parentheses())
        if self.kind in ("PARTITION", "ORDER"):
            return self._table_argument(value)
        return value

    def _table_argument(self, table: exp.Expression) -> TableArgument:
        argument = TableArgument(this=table)
        if self.accept("PARTITION", "BY"):
            names = self.in_parentheses(self.name) if self.kind == "(" else [self.name()]
            argument.set("partition_by", names)
        if self.accept("ORDER", "BY"):
            items = self.in_parentheses(self.order_item) if self.kind == "(" else [self.order_item()]
            argument.set("order", exp.Order(expressions=items))
        return argument

    def order_item(self) -> exp.Ordered:
        """An item of ORDER BY."""
        raise NotImplementedError

    def _ordered_aggregate(self, call: Call) -> None:
        self.expect("(")
        quantifier = self.accept_any("DISTINCT", "ALL")
        if quantifier:
            call.set("quantifier", quantifier)
        call.set("expressions", self.comma_list(lambda: self._argument(Context.SUB_QUERY, first=False)))
        if self.kind in ("IGNORE", "RESPECT"):
            call.set("null_treatment", self.kind)
            self.index += 1
            self.expect("NULLS")
        if self.kind == "ORDER":
            call.set("order", self.order_by())
        if self.accept("SEPARATOR"):
            call.set("separator", self.string())
        self.expect(")")

    def _percentile(self, call: Call) -> None:
        self.expect("(")
        items = [self._argument(Context.SUB_QUERY, first=False)]
        if self.accept(","):
            items.append(self.number())
            if self.kind in ("IGNORE", "RESPECT"):
                call.set("null_treatment", self.kind)
                self.index += 1
                self.expect("NULLS")
        call.set("expressions", items)
        self.expect(")")

    def _call_of_name(self) -> Call:
        token = self.token
        if token.kind in FUNCTION_WORDS and not self.at_name():
            self.index += 1
            return self.place(Call(this=token.text), token)
        *path, name = self.path()
        call = self.place(Call(this=name), token)
        if path:
            call.set("path", tuple(path))
        return call

    # with a syntax of their own

    def special_call(self) -> exp.Expression | None:
        """A call of a function that has a syntax of its own."""
        token, kind = self.token, self.kind
        if kind in ("RUNNING", "FINAL") and self._at_operand(1):
            self.index += 1
            return self.place(Call(this=kind, expressions=[self._primary(Context.NON_QUERY)]), token)
        if kind == "{FN":
            return self._escaped_call()
        if self.ahead(1) != "(" or kind not in SPECIAL:
            return None
        self.index += 1
        return SPECIAL[kind](self, self.place(Call(this=token.text), token))

    def _escaped_call(self) -> exp.Expression:
        token = self.expect("{FN")
        if self.kind in ("INSERT", "LEFT", "RIGHT", "TRUNCATE", "SUBSTRING"):
            call = self.place(Call(this=self.advance().text), token)
        elif (found := self.special_call()) is not None:
            self.expect("}")
            return found
        else:
            call = self._call_of_name()
        if self.at("(", "*", ")"):
            self.index += 3
            call.set("expressions", [exp.Star()])
        elif not self.accept("(", ")"):
            call.set("expressions", self.parenthesized_list(Context.SUB_QUERY))
        self.expect("}")
        return call

    def _at_operand(self, distance: int) -> bool:
        kind = self.ahead(distance)
        return self.at_name(distance) or kind in OPERAND_STARTS or kind in FUNCTION_WORDS or kind in SPECIAL
