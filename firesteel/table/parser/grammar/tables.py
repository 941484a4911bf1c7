"""The FROM clause: tables, joins, table functions, UNNEST, temporal tables, samples and pivots."""

from __future__ import annotations

from sqlglot import exp

from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.functions import FunctionGrammar
from firesteel.table.parser.grammar.match import MatchGrammar
from firesteel.table.parser.nodes import Call, HintCall, JoinTree, TableFunction
from firesteel.table.parser.tokens import STRINGS

__all__ = ["TableGrammar"]

JOIN_STARTS = ("NATURAL", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS")


class TableGrammar(MatchGrammar, FunctionGrammar):
    """The FROM clause."""

    def parenthesized_query_or_join(self, context: Context) -> exp.Expression:
        """What stands in parentheses in FROM: a query or joins."""
        raise NotImplementedError

    def row_constructor(self) -> exp.Expression:
        """A row of VALUES."""
        raise NotImplementedError

    def from_clause(self) -> tuple[exp.Expression, list[exp.Join]]:
        """The first table, and those joined to it in the order of the text; a comma is a cross join."""
        first, joins = self.table_reference(), []
        while True:
            token = self.token
            if self.accept(","):
                joins.append(self.place(exp.Join(this=self.table_reference()), token))
            elif self.kind in JOIN_STARTS:
                joins.append(self._join())
            else:
                return first, joins

    def joined_tables(self) -> exp.Expression:
        """Tables in parentheses."""
        first, joins = self.table_reference(), []
        while self.kind in JOIN_STARTS:
            joins.append(self._join())
        return JoinTree(this=first, joins=joins) if joins else first

    def _join(self) -> exp.Join:
        token = self.token
        join = self.place(exp.Join(), token)
        if self.accept("NATURAL"):
            join.set("method", "NATURAL")
        kind = self.expect_any("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS")
        if kind in ("LEFT", "RIGHT", "FULL"):
            join.set("side", kind)
            self.accept("OUTER")
        elif kind != "JOIN":
            join.set("kind", kind)
        if kind == "CROSS" and self.kind == "APPLY":
            raise self.error("CROSS APPLY is not supported.", hint="Write CROSS JOIN LATERAL TABLE(…).")
        if kind != "JOIN":
            self.expect("JOIN")
        join.set("this", self.table_reference())
        if self.accept("ON"):
            join.set("on", self.expression())
        elif self.accept("USING"):
            join.set("using", self.in_parentheses(self.name))
        return join

    def table_reference(self) -> exp.Expression:
        """A table with its alias."""
        token = self.token
        node = self._table_primary()
        if self.kind == "PIVOT":
            node = self._pivot(node)
        if self.kind == "UNPIVOT":
            node = self._unpivot(node)
        alias = self._alias()
        if alias is not None:
            self._check_not_join(node, "an alias")
            node = self._with_alias(node, alias)
        if self.kind == "TABLESAMPLE":
            self._check_not_join(node, "TABLESAMPLE")
            node = self._sampled(node)
        if "offset" not in node.meta:
            self.place(node, token)
        return node

    def _check_not_join(self, node: exp.Expression, what: str) -> None:
        if isinstance(node, JoinTree):
            raise self.error(f"Joins in parentheses cannot have {what}.")

    def _with_alias(self, node: exp.Expression, alias: exp.TableAlias) -> exp.Expression:
        if node.args.get("alias") is not None:
            node = exp.Subquery(this=node)
        node.set("alias", alias)
        return node

    def _alias(self) -> exp.TableAlias | None:
        if not self.accept("AS") and not self.at_name():
            return None
        alias = exp.TableAlias(this=self.name())
        if self.kind == "(":
            alias.set("columns", self.in_parentheses(self.name))
        return alias

    def _table_primary(self) -> exp.Expression:
        token = self.token
        lateral = self.accept("LATERAL")
        node: exp.Expression
        if self.kind == "UNNEST":
            return self._unnest()
        if self.kind == "(":
            node = self.parenthesized_query_or_join(Context.QUERY_OR_JOIN)
            if lateral:
                self._check_not_join(node, "LATERAL")
                node = self.place(exp.Lateral(this=node), token)
            return self.match_recognize(node) if self.at_match_recognize() else node
        if self.kind == "TABLE":
            node = self._explicit_table_function()
            return self.place(exp.Lateral(this=node), token) if lateral else node
        if lateral:
            self.unexpected("TABLE", "UNNEST", "(")
        return self._named_table()

    def _named_table(self) -> exp.Expression:
        token = self.token
        if not self.at_name():
            self.unexpected("name", "(", "TABLE", "LATERAL", "UNNEST")
        table = self.table_name()
        if self.kind == "(":
            call = self.place(Call(this=table.name), token)
            path = tuple(part.name for part in table.parts[:-1])
            if path:
                call.set("path", path)
            self._routine_arguments(call)
            return self.place(TableFunction(this=call), token)
        if self.kind == "/*+":
            table.set("hints", self.hints())
        if self.kind == "EXTEND":
            raise self.error("EXTEND is not supported.")
        if self.accept("FOR"):
            self.expect("SYSTEM_TIME", "AS", "OF")
            table.set("system_time", self.expression(Context.NON_QUERY))
        return self.match_recognize(table) if self.at_match_recognize() else table

    def _explicit_table_function(self) -> TableFunction:
        token = self.expect("TABLE", "(")
        self.accept("SPECIFIC")
        call = self.routine_call()
        self.expect(")")
        return self.place(TableFunction(this=call, explicit=True), token)

    def routine_call(self, context: Context = Context.CURSOR) -> Call:
        """A call of a table function or a procedure."""
        token = self.token
        *path, name = self.path()
        call = self.place(Call(this=name), token)
        if path:
            call.set("path", tuple(path))
        self._routine_arguments(call, context)
        return call

    def _routine_arguments(self, call: Call, context: Context = Context.CURSOR) -> None:
        self.expect("(")
        if self.kind != ")":
            call.set("expressions", self.arguments(context))
        self.expect(")")

    def _unnest(self) -> exp.Unnest:
        token = self.expect("UNNEST")
        unnest = self.place(exp.Unnest(expressions=self.parenthesized_list(Context.SUB_QUERY)), token)
        if self.accept("WITH"):
            self.expect("ORDINALITY")
            unnest.set("offset", True)
        return unnest

    def _sampled(self, node: exp.Expression) -> exp.Expression:
        token = self.expect("TABLESAMPLE")
        method = self.expect_any("BERNOULLI", "SYSTEM", "SUBSTITUTE")
        self.expect("(")
        size = self.string() if method == "SUBSTITUTE" else self.unsigned_number()
        self.expect(")")
        sample = self.place(exp.TableSample(method=method, percent=size), token)
        if method != "SUBSTITUTE" and self.accept("REPEATABLE"):
            self.expect("(")
            sign = self.accept_any("+", "-")
            seed = self.integer()
            sample.set("seed", exp.Literal.number(-seed if sign == "-" else seed))
            self.expect(")")
        node.set("sample", sample)
        return node

    # PIVOT and UNPIVOT

    def _pivot(self, node: exp.Expression) -> exp.Expression:
        token = self.expect("PIVOT")
        self._check_not_join(node, "PIVOT")
        self.expect("(")
        aggregates = self.comma_list(self._pivot_aggregate)
        self.expect("FOR")
        axes = self._name_or_names()
        self.expect("IN", "(")
        values = [] if self.kind == ")" else self.comma_list(self._pivot_value)
        self.expect(")", ")")
        field = exp.In(this=exp.Tuple(expressions=axes), expressions=values)
        return self._pivoted(node, self.place(exp.Pivot(expressions=aggregates, fields=[field]), token))

    def _pivot_aggregate(self) -> exp.Expression:
        call = self.named_call()
        if self.accept("AS") or self.at_name():
            return exp.Alias(this=call, alias=self.name())
        return call

    def _pivot_value(self) -> exp.Expression:
        value = self.row_constructor()
        if self.accept("AS") or self.at_name():
            return exp.Alias(this=value, alias=self.name())
        return value

    def _unpivot(self, node: exp.Expression) -> exp.Expression:
        token = self.expect("UNPIVOT")
        self._check_not_join(node, "UNPIVOT")
        nulls = self.accept_any("INCLUDE", "EXCLUDE")
        if nulls:
            self.expect("NULLS")
        self.expect("(")
        measures = self._name_or_names()
        self.expect("FOR")
        axes = self._name_or_names()
        self.expect("IN")
        values = self.in_parentheses(self._unpivot_value)
        self.expect(")")
        field = exp.In(this=exp.Tuple(expressions=axes), expressions=values)
        pivot = exp.Pivot(expressions=measures, fields=[field], unpivot=True, include_nulls=nulls == "INCLUDE")
        return self._pivoted(node, self.place(pivot, token))

    def _unpivot_value(self) -> exp.Expression:
        columns = exp.Tuple(expressions=self._name_or_names())
        return exp.Alias(this=columns, alias=self.row_constructor()) if self.accept("AS") else columns

    def _name_or_names(self) -> list[exp.Identifier]:
        return self.in_parentheses(self.name) if self.kind == "(" else [self.name()]

    def _pivoted(self, node: exp.Expression, pivot: exp.Pivot) -> exp.Expression:
        if node.args.get("pivots"):
            node = exp.Subquery(this=node)
        node.set("pivots", [pivot])
        return node

    # hints

    def hints(self) -> list[HintCall]:
        """Hints: ``/*+ OPTIONS('k'='v'), BROADCAST(t) */``."""
        self.expect("/*+")
        found = self.comma_list(self._hint_call)
        self.expect("*/")
        return found

    def _hint_call(self) -> HintCall:
        token = self.token
        hint = self.place(HintCall(this=self.name().name), token)
        if not self.accept("("):
            return hint
        distance = 1
        while self.kind in STRINGS and self.ahead(distance) in STRINGS:
            distance += 1  # adjacent strings are one
        if self.ahead(distance) == "=":
            hint.set("options", tuple(self.comma_list(self._hint_option)))
        elif self.at_name():
            hint.set("expressions", self.comma_list(self.name))
        elif self.kind != ")":
            hint.set("expressions", self.comma_list(self._hint_literal))
        self.expect(")")
        return hint

    def _hint_option(self) -> tuple[str, str]:
        key = self.name().name if self.at_name() else self.string_value()
        self.expect("=")
        return key, self.string_value()

    def _hint_literal(self) -> exp.Expression:
        return self.string() if self.kind in STRINGS else self.number()
