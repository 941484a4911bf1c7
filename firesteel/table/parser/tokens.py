"""Splits SQL text into tokens, by the rules of Flink's lexer."""

from __future__ import annotations

import re
from typing import NamedTuple

from firesteel.table.parser.errors import SqlParserException
from firesteel.table.parser.reserved import KEYWORDS

__all__ = ["END", "Token", "tokenize"]

IDENTIFIER = "identifier"
QUOTED = "quoted identifier"
STRING = "string"
PREFIXED_STRING = "string with a character set"
UNICODE_STRING = "unicode string"
ESCAPED_STRING = "string with escapes"
BINARY_STRING = "binary string"
INTEGER = "integer"
DECIMAL = "decimal number"
APPROXIMATE = "number with an exponent"
END = "end of input"
STRINGS = (STRING, PREFIXED_STRING, UNICODE_STRING, ESCAPED_STRING, BINARY_STRING)
NUMBERS = (INTEGER, DECIMAL, APPROXIMATE)


class Token(NamedTuple):
    """A token; its kind is the keyword in capitals, the operator, or one of the names above."""

    kind: str
    text: str
    offset: int

    @property
    def end(self) -> int:
        """The offset after the token."""
        return self.offset + len(self.text)


_LETTER = (
    r"$A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u3040-\u318f\u3300-\u337f\u3400-\u3d2d\u4e00-\u9fff\uf900-\ufaff"
)
_DIGIT = r"0-9\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u0e50-\u0e59\u0ed0-\u0ed9\u1040-\u1049"
_QUOTED = r"'(?:[^']|'')*'"

_TOKENS = re.compile(
    rf"""
    (?P<skip>[ \t\n\r\f]+|(?://|--)[^\n\r]*|/\*(?!\+).*?\*/)
  | (?P<binary>[xX]{_QUOTED})
  | (?P<prefixed>(?:_[A-Za-z0-9][A-Za-z0-9:._-]*|[nN]){_QUOTED})
  | (?P<unicode>[uU]&{_QUOTED})
  | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*')
  | (?P<string>{_QUOTED})
  | (?P<approximate>(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+)
  | (?P<decimal>[0-9]+\.[0-9]*|\.[0-9]+)
  | (?P<integer>[0-9]+)
  | (?P<word>[{_LETTER}][{_LETTER}{_DIGIT}]*)
  | (?P<quoted>`(?:[^`\n\r]|``)+`)
  | (?P<brace>\{{[ ]*(?:[tT][sS]|[fF][nN]|[dD]|[tT])|[{{}}])
  | (?P<operator>/\*\+|\*/|<=|>=|<>|!=|\|\||=>|\.\.|[()\[\];.,=<>?:+\-*/%|^$])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {
    "binary": BINARY_STRING,
    "prefixed": PREFIXED_STRING,
    "unicode": UNICODE_STRING,
    "escaped": ESCAPED_STRING,
    "string": STRING,
    "approximate": APPROXIMATE,
    "decimal": DECIMAL,
    "integer": INTEGER,
    "quoted": QUOTED,
}


def tokenize(sql: str) -> list[Token]:
    """Returns the tokens of a text and, as the last one, its end."""
    tokens: list[Token] = []
    position, length = 0, len(sql)
    match = _TOKENS.match
    while position < length:
        found = match(sql, position)
        if found is None:
            raise _lexical_error(sql, position)
        group, text = found.lastgroup, found.group()
        if group == "word":
            upper = text.upper()
            kind = upper if upper in KEYWORDS or text == "$" else IDENTIFIER
            tokens.append(Token(kind, text, position))
        elif group == "operator":
            tokens.append(Token(text, text, position))
        elif group == "brace":
            tokens.append(Token(text.replace(" ", "").upper(), text, position))
        elif group != "skip":
            assert group is not None
            tokens.append(Token(_KINDS[group], text, position))
        position = found.end()
    tokens.append(Token(END, "", length))
    return tokens


def _lexical_error(sql: str, position: int) -> SqlParserException:
    character = sql[position]
    if character == "'" or re.match(r"(?:[xXnNeE]|[uU]&|_\w+)'", sql[position:]):
        return SqlParserException("The string is not closed.", sql, position, hint="Write '' for a quote in a string.")
    if sql.startswith("/*", position):
        return SqlParserException("The comment is not closed.", sql, position)
    if character == "`":
        return SqlParserException("The quoted name is empty or not closed.", sql, position)
    if character == '"':
        hint = "Names are quoted with backticks, strings with single quotes."
        return SqlParserException('A double quote is not allowed: "', sql, position, hint=hint)
    return SqlParserException(f"The character {character!r} is not allowed here.", sql, position)
