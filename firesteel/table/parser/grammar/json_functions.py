"""JSON functions and their clauses."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.special_functions import SpecialFunctionGrammar
from firesteel.table.parser.nodes import Call, JsonBehavior, TypeName

__all__ = ["JSON_FUNCTIONS", "JsonFunctionGrammar"]


class JsonFunctionGrammar(SpecialFunctionGrammar):
    """JSON functions."""

    def _at_operand(self, distance: int) -> bool:
        raise NotImplementedError

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


JSON_FUNCTIONS: dict[str, Callable[[JsonFunctionGrammar, Call], exp.Expression]] = {
    "JSON_EXISTS": JsonFunctionGrammar._json_exists,
    "JSON_VALUE": JsonFunctionGrammar._json_value,
    "JSON_QUERY": JsonFunctionGrammar._json_query,
    "JSON_OBJECT": JsonFunctionGrammar._json_object,
    "JSON_OBJECTAGG": JsonFunctionGrammar._json_object_aggregate,
    "JSON_ARRAY": JsonFunctionGrammar._json_array,
    "JSON_ARRAYAGG": JsonFunctionGrammar._json_array_aggregate,
}
"""How these functions are parsed, after their name."""
