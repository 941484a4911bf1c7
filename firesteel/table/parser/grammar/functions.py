"""Calls of functions: by name, and of functions with a syntax of their own."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.expressions import ExpressionGrammar
from firesteel.table.parser.nodes import Call, DefaultValue, TableArgument, TypeName
from firesteel.table.parser.reserved import FUNCTION_WORDS
from firesteel.table.parser.tokens import STRINGS

__all__ = ["FunctionGrammar"]

TIME_UNITS = {
    "NANOSECOND",
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "DAYOFWEEK",
    "DAYOFYEAR",
    "DOW",
    "DOY",
    "ISODOW",
    "ISOYEAR",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
    "EPOCH",
    "DECADE",
    "CENTURY",
    "MILLENNIUM",
}
WEEKDAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")
DIFFERENCES = ("DATE_DIFF", "DATETIME_DIFF", "TIMESTAMP_DIFF", "TIME_DIFF")
TRUNCATIONS = ("DATE_TRUNC", "DATETIME_TRUNC", "TIMESTAMP_TRUNC", "TIME_TRUNC")
ORDERED_AGGREGATES = ("ARRAY_AGG", "ARRAY_CONCAT_AGG", "GROUP_CONCAT", "STRING_AGG")
PERCENTILES = ("PERCENTILE_CONT", "PERCENTILE_DISC")


class FunctionGrammar(ExpressionGrammar):
    """Calls."""

    def order_by(self) -> exp.Order:
        """ORDER BY and its items."""
        raise NotImplementedError

    def window_specification(self) -> exp.Window:
        """What follows OVER or WINDOW w AS."""
        raise NotImplementedError

    # by name

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

    def _within_group(self, node: exp.Expression) -> exp.Expression:
        self.expect("WITHIN", "GROUP", "(")
        node = exp.WithinGroup(this=node, expression=self.order_by())
        self.expect(")")
        return node

    def _over(self, node: exp.Expression) -> exp.Expression:
        token = self.token
        if not self.accept("OVER"):
            return node
        if self.kind == "(":
            window = self.window_specification()
            window.set("this", node)
        else:
            window = exp.Window(this=node, alias=self.name())
        return self.place(window, token)

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

    def _at_operand(self, distance: int) -> bool:
        kind = self.ahead(distance)
        known = kind in FUNCTION_WORDS or kind in SPECIAL or kind in STRINGS
        return known or self.at_name(distance) or kind in ("(", kinds.INTEGER, kinds.DECIMAL, "CASE", "NULL", "ROW")

    def _escaped_call(self) -> exp.Expression:
        token = self.expect("{FN")
        if self.kind in ("INSERT", "LEFT", "RIGHT", "TRUNCATE", "SUBSTRING"):
            call = self.place(Call(this=self.advance().text), token)
        elif (found := self.special_call()) is not None:
            self.expect("}")
            return found
        else:
            call = self._call_of_name()
        if not self.accept("(", ")"):
            call.set("expressions", self.parenthesized_list(Context.SUB_QUERY))
        self.expect("}")
        return call

    def time_unit(self) -> exp.Var | None:
        """A unit of time, if one is next."""
        token = self.token
        if token.kind not in TIME_UNITS:
            return None
        self.index += 1
        unit = token.kind
        if unit == "WEEK" and self.kind == "(" and self.ahead(1) in WEEKDAYS:
            unit = f"WEEK({self.ahead(1)})"
            self.index += 2
            self.expect(")")
        return self.place(exp.var(unit), token)

    def _time_unit_or_name(self) -> exp.Expression:
        unit = self.time_unit()
        return self.name() if unit is None else unit

    def _cast(self, call: Call) -> exp.Expression:
        self.expect("(")
        value = self.expression()
        self.expect("AS")
        token = self.token
        target = self.place(TypeName(this=self.cast_type()), token)
        self.expect(")")
        name = call.function_name
        if name == "SAFE_CAST":
            call.set("expressions", [value, target])
            return call
        node_type = exp.Cast if name == "CAST" else exp.TryCast
        node = node_type(this=value, to=target)
        node.meta.update(call.meta)
        return node

    def _extract(self, call: Call) -> exp.Expression:
        self.expect("(")
        unit = self._time_unit_or_name()
        self.expect("FROM")
        return self._closed(call, [unit, self.expression()])

    def _position(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = [self.atom()]
        self.expect("IN")
        items.append(self.expression())
        if self.accept("FROM"):
            items.append(self.expression())
        return self._closed(call, items)

    def _overlay(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = [self.expression()]
        for word in ("PLACING", "FROM"):
            self.expect(word)
            items.append(self.expression())
        if self.accept("FOR"):
            items.append(self.expression())
        return self._closed(call, items)

    def _substring(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = [self.expression()]
        self.expect_any("FROM", ",")
        items.append(self.expression())
        if self.accept_any("FOR", ","):
            items.append(self.expression())
        return self._closed(call, items)

    def _trim(self, call: Call) -> exp.Expression:
        self.expect("(")
        side = self.accept_any("BOTH", "TRAILING", "LEADING")
        if side is None and self.kind == "FROM":
            raise self.error("Before FROM, a side or the characters to remove are expected.")
        characters: exp.Expression | None = None
        if self.kind != "FROM":
            characters = self.expression()
        if self.accept("FROM"):
            value = self.expression()
        else:
            characters, value = None, characters or self.expression()
            if side is not None:
                self.unexpected("FROM")
        items = [exp.var(side or "BOTH"), characters or exp.Literal.string(" "), value]
        return self._closed(call, items)

    def _floor(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = [self.expression()]
        if self.accept("TO"):
            items.append(self._time_unit_or_name())
        return self._over(self._closed(call, items))

    def _convert(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = [self.expression()]
        if self.accept("USING"):
            items.append(self.name())
        else:
            self.expect(",")
            items.append(self.name())
            self.expect(",")
            items.append(self.name())
        return self._closed(call, items)

    def _translate(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = [self.expression()]
        if self.accept("USING"):
            items.append(self.name())
        while self.accept(","):
            items.append(self.expression())
        return self._closed(call, items)

    def _unit_first(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = [self._time_unit_or_name()]
        for _ in range(2):
            self.expect(",")
            items.append(self.expression())
        return self._closed(call, items)

    def _unit_last(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = []
        for _ in range(2 if call.function_name in DIFFERENCES else 1):
            items.append(self.expression())
            self.expect(",")
        if call.function_name == "DATE_TRUNC":
            items.append(self.time_unit() or self.expression())
        else:
            items.append(self._time_unit_or_name())
        return self._closed(call, items)

    def _navigation(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = [self.expression()]
        if self.accept(","):
            items.append(self.number())
        return self._closed(call, items)

    def _without_arguments(self, call: Call) -> exp.Expression:
        self.expect("(")
        return self._closed(call, [])

    def _contains_substring(self, call: Call) -> exp.Expression:
        self.expect("(")
        items = [self.expression()]
        self.expect(",")
        items.append(self.expression())
        if self.accept(","):
            name = self.expect("JSON_SCOPE", "=>")
            items.append(exp.Kwarg(this=exp.to_identifier(name.text), expression=self.expression()))
        return self._closed(call, items)

    def _parameters(self, call: Call) -> exp.Expression:
        self.parameter_list(call, Context.SUB_QUERY)
        return call

    def _closed(self, call: Call, items: list[exp.Expression]) -> Call:
        self.expect(")")
        call.set("expressions", items)
        return call

    # JSON

    def _json_input(self, call: Call) -> None:
        self.expect("(")
        items = [self.expression(Context.NON_QUERY)]
        self.expect(",")
        items.append(self.expression(Context.NON_QUERY))
        call.set("expressions", items)
        if self.accept("PASSING"):
            call.set("passing", self.comma_list(self._passed))

    def _passed(self) -> exp.Expression:
        value = self.expression(Context.NON_QUERY)
        self.expect("AS")
        return exp.Alias(this=value, alias=self.name())

    def _json_exists(self, call: Call) -> exp.Expression:
        self._json_input(call)
        behavior = self.json_behavior("TRUE", "FALSE", "UNKNOWN", "ERROR")
        if behavior is not None:
            self.expect("ON", "ERROR")
            call.set("on_error", behavior)
        self.expect(")")
        return call

    def _json_value(self, call: Call) -> exp.Expression:
        self._json_input(call)
        self._returning(call)
        self._empty_or_error(call, "ERROR", "NULL", "DEFAULT")
        self.expect(")")
        return call

    def _json_query(self, call: Call) -> exp.Expression:
        self._json_input(call)
        self._returning(call)
        if self.accept("WITHOUT"):
            call.set("wrapper", "WITHOUT")
        elif self.accept("WITH"):
            call.set("wrapper", f"WITH {self.accept_any('CONDITIONAL', 'UNCONDITIONAL') or 'UNCONDITIONAL'}")
        if call.args.get("wrapper"):
            self.accept("ARRAY")
            self.expect("WRAPPER")
        self._empty_or_error(call, "ERROR", "NULL", "EMPTY")
        self.expect(")")
        return call

    def _returning(self, call: Call) -> None:
        if self.accept("RETURNING"):
            call.set("returning", TypeName(this=self.cast_type()))

    def _empty_or_error(self, call: Call, *allowed: str) -> None:
        while (behavior := self.json_behavior(*allowed)) is not None:
            self.expect("ON")
            call.set("on_empty" if self.expect_any("EMPTY", "ERROR") == "EMPTY" else "on_error", behavior)

    def _json_object(self, call: Call) -> exp.Expression:
        self.expect("(")
        if not self._at_null_clause() and self.kind != ")":
            call.set("expressions", self.comma_list(self._json_pair))
        self._null_clause(call)
        self.expect(")")
        return call

    def _json_object_aggregate(self, call: Call) -> exp.Expression:
        self.expect("(")
        call.set("expressions", [self._json_pair()])
        self._null_clause(call)
        self.expect(")")
        return self._over(call) if self.kind == "OVER" else call

    def _json_pair(self) -> exp.Expression:
        token = self.token
        with_key = self.kind == "KEY" and self._at_operand(1) and self.ahead(1) not in ("VALUE", ":")
        if with_key:
            self.index += 1
        key = self.expression(Context.NON_QUERY)
        if with_key and self.kind == ":":
            raise self.error("After KEY, VALUE is expected, not a colon.")
        self.expect_any("VALUE", ":")
        pair = exp.JSONKeyValue(this=key, expression=self.expression(Context.NON_QUERY))
        return self.place(pair, token)

    def _json_array(self, call: Call) -> exp.Expression:
        self.expect("(")
        if not self._at_null_clause() and self.kind != ")":
            call.set("expressions", self.comma_list(lambda: self.expression(Context.NON_QUERY)))
        self._null_clause(call)
        self.expect(")")
        return call

    def _json_array_aggregate(self, call: Call) -> exp.Expression:
        self.expect("(")
        call.set("expressions", [self.expression(Context.NON_QUERY)])
        if self.kind == "ORDER":
            call.set("order", self.order_by())
        self._null_clause(call)
        self.expect(")")
        if self.kind == "WITHIN":
            if call.args.get("order"):
                raise self.error("JSON_ARRAYAGG has ORDER BY or WITHIN GROUP, not both.")
            return self._within_group(call)
        return call

    def _at_null_clause(self) -> bool:
        return self.kind in ("NULL", "ABSENT") and self.at(self.kind, "ON", "NULL")

    def _null_clause(self, call: Call) -> None:
        if self._at_null_clause():
            call.set("on_null", self.kind)
            self.index += 3


Syntax = Callable[[FunctionGrammar, Call], exp.Expression]
SPECIAL: dict[str, Syntax] = {
    **dict.fromkeys(("CAST", "TRY_CAST", "SAFE_CAST"), FunctionGrammar._cast),
    "EXTRACT": FunctionGrammar._extract,
    "POSITION": FunctionGrammar._position,
    "OVERLAY": FunctionGrammar._overlay,
    "SUBSTRING": FunctionGrammar._substring,
    "TRIM": FunctionGrammar._trim,
    **dict.fromkeys(("FLOOR", "CEIL", "CEILING"), FunctionGrammar._floor),
    "CONVERT": FunctionGrammar._convert,
    "TRANSLATE": FunctionGrammar._translate,
    **dict.fromkeys(("TIMESTAMPADD", "TIMESTAMPDIFF"), FunctionGrammar._unit_first),
    **dict.fromkeys((*DIFFERENCES, *TRUNCATIONS), FunctionGrammar._unit_last),
    **dict.fromkeys(("FIRST", "LAST", "PREV", "NEXT"), FunctionGrammar._navigation),
    **dict.fromkeys(("CLASSIFIER", "MATCH_NUMBER"), FunctionGrammar._without_arguments),
    "CONTAINS_SUBSTR": FunctionGrammar._contains_substring,
    **dict.fromkeys(("DATE", "TIME", "DATETIME", "TIMESTAMP", "TUMBLE", "HOP", "SESSION"), FunctionGrammar._parameters),
    "JSON_EXISTS": FunctionGrammar._json_exists,
    "JSON_VALUE": FunctionGrammar._json_value,
    "JSON_QUERY": FunctionGrammar._json_query,
    "JSON_OBJECT": FunctionGrammar._json_object,
    "JSON_OBJECTAGG": FunctionGrammar._json_object_aggregate,
    "JSON_ARRAY": FunctionGrammar._json_array,
    "JSON_ARRAYAGG": FunctionGrammar._json_array_aggregate,
}
"""How the functions with a syntax of their own are parsed, after their name."""
