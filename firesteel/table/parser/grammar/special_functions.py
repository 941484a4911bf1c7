"""Functions with a syntax of their own: CAST, EXTRACT, TRIM, SUBSTRING, …"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.expressions import ExpressionGrammar
from firesteel.table.parser.nodes import Call, TypeName

__all__ = ["SPECIAL_FUNCTIONS", "SpecialFunctionGrammar", "Syntax"]

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


class SpecialFunctionGrammar(ExpressionGrammar):
    """Functions whose arguments are separated by words."""

    def order_by(self) -> exp.Order:
        """ORDER BY and its items."""
        raise NotImplementedError

    def window_specification(self) -> exp.Window:
        """What follows OVER or WINDOW w AS."""
        raise NotImplementedError

    def parameter_list(self, call: Call, context: Context, quantified: bool = True) -> None:
        """At least one argument in parentheses."""
        raise NotImplementedError

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
        value = None if self.kind == "FROM" else self.expression()
        if self.accept("FROM"):
            characters, value = value, self.expression()
        assert value is not None
        return self._closed(call, [exp.var(side or "BOTH"), characters or exp.Literal.string(" "), value])

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


Syntax = Callable[[SpecialFunctionGrammar, Call], exp.Expression]
SPECIAL_FUNCTIONS: dict[str, Syntax] = {
    **dict.fromkeys(("CAST", "TRY_CAST", "SAFE_CAST"), SpecialFunctionGrammar._cast),
    "EXTRACT": SpecialFunctionGrammar._extract,
    "POSITION": SpecialFunctionGrammar._position,
    "OVERLAY": SpecialFunctionGrammar._overlay,
    "SUBSTRING": SpecialFunctionGrammar._substring,
    "TRIM": SpecialFunctionGrammar._trim,
    **dict.fromkeys(("FLOOR", "CEIL", "CEILING"), SpecialFunctionGrammar._floor),
    "CONVERT": SpecialFunctionGrammar._convert,
    "TRANSLATE": SpecialFunctionGrammar._translate,
    **dict.fromkeys(("TIMESTAMPADD", "TIMESTAMPDIFF"), SpecialFunctionGrammar._unit_first),
    **dict.fromkeys((*DIFFERENCES, *TRUNCATIONS), SpecialFunctionGrammar._unit_last),
    **dict.fromkeys(("FIRST", "LAST", "PREV", "NEXT"), SpecialFunctionGrammar._navigation),
    **dict.fromkeys(("CLASSIFIER", "MATCH_NUMBER"), SpecialFunctionGrammar._without_arguments),
    "CONTAINS_SUBSTR": SpecialFunctionGrammar._contains_substring,
    **dict.fromkeys(
        ("DATE", "TIME", "DATETIME", "TIMESTAMP", "TUMBLE", "HOP", "SESSION"), SpecialFunctionGrammar._parameters
    ),
}
"""How these functions are parsed, after their name."""
