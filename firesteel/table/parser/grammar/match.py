"""MATCH_RECOGNIZE."""

from __future__ import annotations

from sqlglot import exp

from firesteel.table.parser import pattern as patterns
from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.grammar.context import Context
from firesteel.table.parser.grammar.functions import FunctionGrammar
from firesteel.table.parser.nodes import MatchRecognize, PatternText, Subset

__all__ = ["MatchGrammar"]


class MatchGrammar(FunctionGrammar):
    """MATCH_RECOGNIZE on a table."""

    def at_match_recognize(self) -> bool:
        """Whether MATCH_RECOGNIZE is next, possibly after an alias of its input."""
        return self.kind == "MATCH_RECOGNIZE" or (
            self.kind == "AS" and self.at_name(1) and self.ahead(2) == "MATCH_RECOGNIZE"
        )

    def match_recognize(self, table: exp.Expression) -> MatchRecognize:
        """The clauses of MATCH_RECOGNIZE."""
        token = self.token
        match = MatchRecognize(this=table)
        if self.accept("AS"):
            match.set("input_alias", self.name())
        self.expect("MATCH_RECOGNIZE", "(")
        if self.accept("PARTITION", "BY"):
            match.set("partition_by", self._partition())
        if self.kind == "ORDER":
            match.set("order", self.order_by())
        if self.accept("MEASURES"):
            match.set("measures", self.comma_list(self._measure))
        if self.accept("ONE"):
            self.expect("ROW", "PER", "MATCH")
            match.set("rows", exp.var("ONE ROW PER MATCH"))
        elif self.accept("ALL"):
            self.expect("ROWS", "PER", "MATCH")
            match.set("rows", exp.var("ALL ROWS PER MATCH"))
        if self.accept("AFTER"):
            self.expect("MATCH", "SKIP")
            match.set("after", self._skip())
        match.set("pattern", self._row_pattern())
        if self.accept("WITHIN"):
            match.set("within", self.interval_literal())
        if self.accept("SUBSET"):
            match.set("subsets", self.comma_list(self._subset))
        self.expect("DEFINE")
        match.set("define", self.comma_list(self._definition))
        self.expect(")")
        return self.place(match, token)

    def _partition(self) -> list[exp.Expression]:
        items = [self.expression(Context.NON_QUERY)]
        while self.accept(","):
            items.append(self.expression())
        return items

    def _measure(self) -> exp.Alias:
        token, value = self.token, self.expression(Context.NON_QUERY)
        self.expect("AS")
        return self.place(exp.Alias(this=value, alias=self.name()), token)

    def _definition(self) -> exp.Alias:
        token, name = self.token, self.name()
        self.expect("AS")
        return self.place(exp.Alias(this=self.expression(), alias=name), token)

    def _skip(self) -> exp.Expression:
        token = self.token
        if self.accept("PAST"):
            self.expect("LAST", "ROW")
            return exp.var("PAST LAST ROW")
        self.expect("TO")
        if self.accept("NEXT", "ROW"):
            return exp.var("NEXT ROW")
        side = "LAST"
        if self.kind in ("FIRST", "LAST") and self.at_name(1):
            side = self.advance().kind
        return self.place(exp.Alias(this=exp.var(side), alias=self.name()), token)

    def _subset(self) -> Subset:
        token, name = self.token, self.name()
        self.expect("=", "(")
        names = self._partition()
        self.expect(")")
        return self.place(Subset(this=name, expressions=names), token)

    # the pattern

    def _row_pattern(self) -> PatternText:
        token = self.expect("PATTERN", "(")
        from_start = self.accept("^")
        pattern = self._alternation()
        to_end = self.accept("$")
        self.expect(")")
        return self.place(PatternText(this=patterns.RowPattern(pattern, from_start, to_end)), token)

    def _alternation(self) -> patterns.Pattern:
        parts = [self._concatenation()]
        while self.accept("|"):
            parts.append(self._concatenation())
        return parts[0] if len(parts) == 1 else patterns.Alternation(tuple(parts))

    def _concatenation(self) -> patterns.Pattern:
        parts = [self._factor()]
        while self.at_name() or self.kind in ("(", "PERMUTE") or self.at("{", "-"):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else patterns.Concatenation(tuple(parts))

    def _factor(self) -> patterns.Pattern:
        part = self._pattern_primary()
        bounds: tuple[int, int | None]
        if self.accept("*"):
            bounds = 0, None
        elif self.accept("+"):
            bounds = 1, None
        elif self.accept("?"):
            bounds = 0, 1
        elif self.kind == "{" and self.ahead(1) != "-":
            bounds = self._repetition()
        else:
            return part
        return patterns.Quantified(part, *bounds, reluctant=self.accept("?"))

    def _repetition(self) -> tuple[int, int | None]:
        token = self.expect("{")
        least, most = 0, None
        if self.accept(","):
            most = self.integer()
        else:
            least = self.integer()
            if not self.accept(","):
                most = least
            elif self.kind == kinds.INTEGER:
                most = self.integer()
        if most is not None and most < least:
            raise self.error(f"The repetition {{{least}, {most}}} ends before it starts.", token)
        self.expect("}")
        return least, most

    def _pattern_primary(self) -> patterns.Pattern:
        token = self.token
        if self.accept("("):
            part = self._alternation()
            self.expect(")")
            return part
        if self.accept("{", "-"):
            part = self._alternation()
            self.expect("-", "}")
            return patterns.Exclusion(part)
        if self.accept("PERMUTE"):
            return patterns.Permutation(tuple(self.in_parentheses(self._alternation)))
        if not self.at_name():
            self.unexpected("name", "(")
        return patterns.Variable(self.name().name, token.offset)
