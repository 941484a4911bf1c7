"""A place in a list of tokens: looking ahead, matching, names and errors."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import NoReturn, TypeVar

from sqlglot import exp

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.errors import SqlParserException
from firesteel.table.parser.reserved import NON_RESERVED, RESERVED
from firesteel.table.parser.tokens import END, Token, tokenize

__all__ = ["MAX_NAME_LENGTH", "Cursor", "unquote"]

MAX_NAME_LENGTH = 256
"""Characters of a name, as in Flink."""

CLAUSE_WORDS = ("FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "JOIN", "UNION", "WINDOW", "VALUES", "SELECT")
"""Words that are taken for an alias when they are misspelled."""

T = TypeVar("T")
N = TypeVar("N", bound=exp.Expression)


def unquote(text: str) -> str:
    """The text within single quotes or backticks."""
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)


class Cursor:
    """The tokens of a text and a position in them."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens = tokenize(sql)
        self.tokens.extend([self.tokens[-1]] * 4)  # for looking ahead
        self.index = 0

    # looking

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.index]

    @property
    def kind(self) -> str:
        """The kind of the next token."""
        return self.tokens[self.index].kind

    def ahead(self, distance: int) -> str:
        """The kind of a later token."""
        return self.tokens[min(self.index + distance, len(self.tokens) - 1)].kind

    def at(self, *kinds: str) -> bool:
        """Whether the next tokens are of these kinds."""
        return all(self.ahead(distance) == kind for distance, kind in enumerate(kinds))

    # moving

    def advance(self) -> Token:
        """Returns the next token and goes past it."""
        token = self.tokens[self.index]
        if token.kind != END:
            self.index += 1
        return token

    def accept(self, *kinds: str) -> bool:
        """Goes past tokens of these kinds, if they are next."""
        if not self.at(*kinds):
            return False
        self.index += len(kinds)
        return True

    def accept_any(self, *kinds: str) -> str | None:
        """Goes past one token of any of these kinds, and returns its kind."""
        kind = self.kind
        if kind not in kinds:
            return None
        self.index += 1
        return kind

    def expect(self, *kinds: str) -> Token:
        """Goes past tokens of these kinds, which have to be next, and returns the first."""
        first = self.token
        for kind in kinds:
            if self.kind != kind:
                self.unexpected(kind)
            self.index += 1
        return first

    def expect_any(self, *kinds: str) -> str:
        """Goes past one token of any of these kinds."""
        kind = self.accept_any(*kinds)
        if kind is None:
            self.unexpected(*kinds)
        return kind

    # lists

    def comma_list(self, item: Callable[[], T]) -> list[T]:
        """One or more items, separated by commas."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def in_parentheses(self, item: Callable[[], T]) -> list[T]:
        """One or more items in parentheses, separated by commas."""
        self.expect("(")
        items = self.comma_list(item)
        self.expect(")")
        return items

    # names

    def at_name(self, distance: int = 0) -> bool:
        """Whether the next token can be a name."""
        kind = self.ahead(distance)
        return kind in (kinds.IDENTIFIER, kinds.QUOTED) or kind in NON_RESERVED

    def name(self) -> exp.Identifier:
        """A name of one part."""
        token = self.token
        if not self.at_name():
            self.unexpected("name")
        self.index += 1
        quoted = token.kind == kinds.QUOTED
        text = unquote(token.text) if quoted else token.text
        if len(text) > MAX_NAME_LENGTH:
            raise self.error(f"The name has {len(text)} characters; at most {MAX_NAME_LENGTH} are allowed.", token)
        return self.place(exp.Identifier(this=text, quoted=quoted), token)

    def names(self) -> list[exp.Identifier]:
        """A name of one or more parts."""
        parts = [self.name()]
        while self.kind == "." and self.at_name(1):
            self.index += 1
            parts.append(self.name())
        return parts

    def path(self) -> tuple[str, ...]:
        """A name of one or more parts, as text."""
        return tuple(part.name for part in self.names())

    # places and errors

    def place(self, node: N, token: Token) -> N:
        """Notes where a node begins."""
        node.meta["offset"] = token.offset
        return node

    def spanned(self, rule: Callable[[], N]) -> N:
        """What a rule parses, with its place from the first to the last character; see ``nodes.text_of``."""
        start = self.token.offset
        node = rule()
        node.meta["span"] = (start, self.tokens[self.index - 1].end)
        return node

    def error(self, message: str, token: Token | None = None, hint: str | None = None) -> SqlParserException:
        """An error at a token, or at the next one."""
        return SqlParserException(message, self.sql, (token or self.token).offset, hint=hint)

    def unexpected(self, *expected: str) -> NoReturn:
        """Raises the error that the next token is another than expected."""
        token = self.token
        found = token.kind if token.kind == END else f'"{token.text}"'
        message = f"Unexpected {found}."
        if expected:
            message = f"Unexpected {found}, expected {_alternatives(expected)}."
        raise SqlParserException(message, self.sql, token.offset, expected=expected, hint=self._hint(token, expected))

    def _hint(self, token: Token, expected: tuple[str, ...]) -> str | None:
        if token.kind in RESERVED and "name" in expected:
            return f"{token.text} is a reserved word: quote it with backticks, `{token.text}`."
        if token.kind == "!=":
            return "Write <> for not equal."
        if token.kind == kinds.IDENTIFIER:
            words = [word for word in expected if word.isupper()]
            near = difflib.get_close_matches(token.text.upper(), words, n=1)
            if near:
                return f"Did you mean {near[0]}?"
        previous = self.tokens[self.index - 1] if self.index else token
        if previous.kind == kinds.IDENTIFIER and "." not in expected:
            near = difflib.get_close_matches(previous.text.upper(), CLAUSE_WORDS, n=1, cutoff=0.7)
            if near:
                return f"Did you mean {near[0]} instead of {previous.text}?"
        return None

    def end(self) -> None:
        """Checks that all tokens were read."""
        if self.kind != END:
            self.unexpected(END)


def _alternatives(expected: tuple[str, ...]) -> str:
    shown = [word if word.isupper() or word[0].isalpha() else f'"{word}"' for word in expected]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
