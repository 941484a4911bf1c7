"""Literals: numbers, strings, dates, times and intervals."""

from __future__ import annotations

import re

from sqlglot import exp

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.grammar.cursor import Cursor, unquote
from firesteel.table.parser.nodes import IntervalQualifier, TemporalLiteral, Unknown
from firesteel.table.parser.tokens import NUMBERS, STRINGS, Token

__all__ = ["LiteralGrammar"]

UNITS = {
    "YEAR": "YEAR",
    "YEARS": "YEAR",
    "QUARTER": "QUARTER",
    "QUARTERS": "QUARTER",
    "MONTH": "MONTH",
    "MONTHS": "MONTH",
    "WEEK": "WEEK",
    "WEEKS": "WEEK",
    "DAY": "DAY",
    "DAYS": "DAY",
    "HOUR": "HOUR",
    "HOURS": "HOUR",
    "MINUTE": "MINUTE",
    "MINUTES": "MINUTE",
    "SECOND": "SECOND",
    "SECONDS": "SECOND",
}
LATER_UNITS = {
    "YEAR": ("MONTH",),
    "DAY": ("HOUR", "MINUTE", "SECOND"),
    "HOUR": ("MINUTE", "SECOND"),
    "MINUTE": ("SECOND",),
}
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(
    r"\\u(?P<four>[0-9A-Fa-f]{4})|\\U(?P<eight>[0-9A-Fa-f]{8})|\\x(?P<two>[0-9A-Fa-f]{1,2})"
    r"|\\(?P<octal>[0-7]{1,3})|\\.|''",
    re.DOTALL,
)
MAX_INT = 2**31 - 1
CHARSETS = {"ascii", "us-ascii", "utf8", "utf-8", "utf16", "utf-16", "utf-16le", "utf-16be", "latin1", "iso-8859-1"}


class LiteralGrammar(Cursor):
    """Literals."""

    # numbers

    def integer(self) -> int:
        """An integer without sign, as in the parameters of types."""
        token = self.expect(kinds.INTEGER)
        value = int(token.text)
        if value > MAX_INT:
            raise self.error(f"{token.text} is larger than {MAX_INT}.", token)
        return value

    def at_unsigned_number(self) -> bool:
        """Whether a number without sign is next."""
        return self.kind in NUMBERS or self.at("DECIMAL", kinds.STRING)

    def unsigned_number(self) -> exp.Expression:
        """A number without sign."""
        token = self.token
        if self.accept("DECIMAL"):
            text = unquote(self.expect(kinds.STRING).text)
            if not re.fullmatch(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", text):
                raise self.error(f"{text!r} is not a decimal number.", token)
            return self.place(exp.Literal.number(text.strip()), token)
        if token.kind not in NUMBERS:
            self.unexpected("number")
        self.index += 1
        return self.place(exp.Literal.number(token.text), token)

    def number(self) -> exp.Expression:
        """A number that may have a sign."""
        token = self.token
        if self.accept("-"):
            return self.place(exp.Neg(this=self.unsigned_number()), token)
        self.accept("+")
        return self.unsigned_number()

    # strings

    def quoted_text(self) -> str:
        """The value of a plain string."""
        if self.kind != kinds.STRING:
            self.unexpected("string")
        return unquote(self.advance().text)

    def string(self) -> exp.Expression:
        """A string of any kind; adjacent strings are one."""
        token = self.token
        if token.kind not in STRINGS:
            self.unexpected("string")
        self.index += 1
        if token.kind == kinds.ESCAPED_STRING:
            return self.place(exp.Literal.string(self._unescape(token)), token)
        if token.kind == kinds.BINARY_STRING:
            return self._binary_string(token)
        start = token.text.index("'")
        if token.kind == kinds.PREFIXED_STRING and start > 1:
            charset = token.text[1:start]
            if charset.lower().replace("_", "-") not in CHARSETS:
                raise self.error(f"The character set {charset} is not known.", token)
        parts = [unquote(token.text[start:])]
        while self.kind == kinds.STRING:
            parts.append(unquote(self.advance().text))
        text = "".join(parts)
        if self.kind == "UESCAPE":
            if token.kind != kinds.UNICODE_STRING:
                raise self.error("UESCAPE is allowed after strings of the form U&'…' only.")
            self.index += 1
            text = self._decode_unicode(text, self.quoted_text(), token)
        elif token.kind == kinds.UNICODE_STRING:
            text = self._decode_unicode(text, "\\", token)
        return self.place(exp.Literal.string(text), token)

    def string_value(self) -> str:
        """The value of a string of any kind, as in options."""
        return str(self.string().this)

    def _binary_string(self, token: Token) -> exp.Expression:
        parts = [token.text[2:-1]]
        while self.kind == kinds.STRING:
            parts.append(unquote(self.advance().text))
        text = "".join(parts)
        if not re.fullmatch(r"[0-9A-Fa-f]*", text) or len(text) % 2:
            raise self.error("A binary string has an even number of hexadecimal digits.", token)
        return self.place(exp.HexString(this=text.upper()), token)

    def _decode_unicode(self, text: str, escape: str, token: Token) -> str:
        if len(escape) != 1 or re.match(r"[0-9A-Fa-f+'\"\s]", escape):
            raise self.error(f"{escape!r} is not allowed as the escape character.", token)

        def decode(found: re.Match[str]) -> str:
            if found["same"]:
                return escape
            if not found["digits"]:
                raise self.error(f"A unicode escape is {escape} and four hexadecimal digits.", token)
            return chr(int(found["digits"], 16))

        mark = re.escape(escape)
        return re.sub(rf"{mark}(?:(?P<same>{mark})|(?P<digits>[0-9A-Fa-f]{{4}})|)", decode, text)

    def _unescape(self, token: Token) -> str:
        def decode(found: re.Match[str]) -> str:
            digits = found["four"] or found["eight"] or found["two"]
            if digits:
                return chr(int(digits, 16))
            if found["octal"]:
                return chr(int(found["octal"], 8))
            character = found.group()[1]
            if character in "uU":
                raise self.error("The unicode escape is not complete.", token)
            return ESCAPES.get(character, character)

        return _ESCAPE.sub(decode, token.text[2:-1])

    # the others

    def at_temporal_literal(self) -> bool:
        """Whether a date, time or timestamp is next."""
        if self.kind in ("{D", "{T", "{TS"):
            return True
        if self.kind in ("DATE", "TIME", "DATETIME", "TIMESTAMP") and self.ahead(1) == kinds.STRING:
            return True
        return self.at("TIMESTAMP", "WITH", "LOCAL")

    def temporal_literal(self) -> exp.Expression:
        """A date, time or timestamp; whether its string is one is checked by the binder."""
        token = self.advance()
        if token.kind.startswith("{"):
            kind = {"{D": "DATE", "{T": "TIME", "{TS": "TIMESTAMP"}[token.kind]
            text = self.quoted_text()
            self.expect("}")
        else:
            kind = token.kind
            if self.accept("WITH"):
                self.expect("LOCAL", "TIME", "ZONE")
                kind = "TIMESTAMP_LTZ"
            text = self.quoted_text()
        return self.place(TemporalLiteral(this=text, kind=kind), token)

    def special_literal(self) -> exp.Expression | None:
        """TRUE, FALSE, UNKNOWN or NULL."""
        token = self.token
        node: exp.Expression
        if token.kind in ("TRUE", "FALSE"):
            node = exp.Boolean(this=token.kind == "TRUE")
        elif token.kind == "NULL":
            node = exp.Null()
        elif token.kind == "UNKNOWN":
            node = Unknown()
        else:
            return None
        self.index += 1
        return self.place(node, token)

    def literal(self) -> exp.Expression:
        """Any literal, as in PARTITION (a = …)."""
        if self.kind in ("+", "-") or self.at_unsigned_number():
            return self.number()
        if self.kind in STRINGS:
            return self.string()
        if self.at_temporal_literal():
            return self.temporal_literal()
        if self.kind == "INTERVAL":
            return self.interval_literal()
        found = self.special_literal()
        if found is None:
            self.unexpected("literal")
        return found

    # intervals

    def interval_literal(self) -> exp.Expression:
        """INTERVAL and a string with its fields."""
        token = self.expect("INTERVAL")
        sign = self.accept_any("-", "+")
        start = self.token
        text = self.place(exp.Literal.string(self.quoted_text()), start)
        return self._signed(exp.Interval(this=text, unit=self.interval_qualifier()), sign, token)

    def _signed(self, interval: exp.Interval, sign: str | None, token: Token) -> exp.Expression:
        self.place(interval, token)
        return self.place(exp.Neg(this=interval), token) if sign == "-" else interval

    def interval_qualifier(self) -> IntervalQualifier:
        """The fields of an interval."""
        token, start = self.token, self.interval_unit()
        if start == "SECOND":
            precision, fraction = self._second_precision()
            return self._qualifier(token, start, precision, None, fraction)
        precision, end, fraction = self.optional_precision(), None, None
        later = LATER_UNITS.get(start, ())
        if self.kind == "TO" and UNITS.get(self.ahead(1)) in later:
            self.index += 1
            end = self.interval_unit()
            if end == "SECOND":
                fraction = self.optional_precision()
        return self._qualifier(token, start, precision, end, fraction)

    def single_unit_qualifier(self) -> IntervalQualifier:
        """One field of an interval, as after an expression."""
        token, start = self.token, self.interval_unit()
        if start == "SECOND":
            precision, fraction = self._second_precision()
            return self._qualifier(token, start, precision, None, fraction)
        return self._qualifier(token, start, self.optional_precision(), None, None)

    def _qualifier(
        self, token: Token, start: str, precision: int | None, end: str | None, fraction: int | None
    ) -> IntervalQualifier:
        return self.place(IntervalQualifier(start=start, precision=precision, end=end, fraction=fraction), token)

    def interval_unit(self) -> str:
        """A field of an interval, in the singular."""
        unit = UNITS.get(self.kind)
        if unit is None:
            self.unexpected("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
        self.index += 1
        return unit

    def _second_precision(self) -> tuple[int | None, int | None]:
        if not self.accept("("):
            return None, None
        precision, fraction = self.integer(), None
        if self.accept(","):
            fraction = self.integer()
        self.expect(")")
        return precision, fraction

    def optional_precision(self) -> int | None:
        """A number in parentheses, if there is one."""
        if not self.accept("("):
            return None
        value = self.integer()
        self.expect(")")
        return value
