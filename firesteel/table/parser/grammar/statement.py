"""Statements of all kinds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.grammar.utility import UtilityGrammar
from firesteel.table.parser.statements.base import Source, Statement
from firesteel.table.parser.statements.dml import BeginStatementSet, EndStatementSet, Query, StatementSet
from firesteel.table.parser.statements.utility import ResetOption, SetOption

__all__ = ["StatementGrammar"]

QUERY_STARTS = ("SELECT", "WITH", "VALUES", "VALUE", "TABLE", "(")
_KEY = r"(?P<key>[A-Za-z][\w.-]*)"
_SET = re.compile(rf"SET\s+{_KEY}\s*=\s*(?:'(?P<quoted>[^']*)'|(?P<value>[^;\s]+))\s*", re.IGNORECASE)
_RESET = re.compile(rf"RESET\s+{_KEY}\s*", re.IGNORECASE)


class StatementGrammar(UtilityGrammar):
    """Statements."""

    def statement(self) -> Statement:
        """A statement with its place in the text."""
        start = self.token.offset
        statement = self._client_option() or self._statement()
        return _with_source(statement, Source(self.sql, start, self.tokens[self.index - 1].end))

    def _statement(self) -> Statement:
        kind = self.kind
        parse = self._statements().get(kind)
        if kind == "REPLACE" and not self.at_replace_table():
            parse = None
        if parse is not None:
            return parse()
        if kind not in QUERY_STARTS:
            self.unexpected(*STATEMENT_WORDS)
        return Query(self.query())

    def _statements(self) -> dict[str, Callable[[], Statement]]:
        return {
            "CREATE": self.create,
            "REPLACE": self.replace_table,
            "ALTER": self.alter,
            "DROP": self.drop,
            "INSERT": self.insert,
            "UPSERT": self.insert,
            "UPDATE": self.update,
            "DELETE": self.delete,
            "TRUNCATE": self.truncate,
            "BEGIN": self._begin,
            "END": self._end,
            "SHOW": self.show,
            "DESCRIBE": self.describe,
            "DESC": self.describe,
            "USE": self.use,
            "LOAD": self.load,
            "UNLOAD": self.unload,
            "ADD": self.jar,
            "REMOVE": self.jar,
            "STOP": self.stop,
            "CALL": self.call,
            "ANALYZE": self.analyze,
            "EXPLAIN": self.explain,
            "EXECUTE": self._execute,
            "COMPILE": self.compile,
            "SET": self.set,
            "RESET": self.reset,
        }

    def _execute(self) -> Statement:
        return self.execute_plan() if self.ahead(1) == "PLAN" and self.ahead(2) in kinds.STRINGS else self.execute()

    def _begin(self) -> Statement:
        self.expect("BEGIN", "STATEMENT", "SET")
        return BeginStatementSet()

    def _end(self) -> Statement:
        self.expect("END")
        return EndStatementSet()

    def _client_option(self) -> Statement | None:
        """``SET key = value`` and ``RESET key`` without quotes, as Flink's clients read them."""
        if self.kind not in ("SET", "RESET") or self.ahead(1) in (*kinds.STRINGS, ";", kinds.END):
            return None
        found = (_SET if self.kind == "SET" else _RESET).match(self.sql, self.token.offset)
        if found is None:
            return None
        while self.kind != kinds.END and self.token.offset < found.end():
            self.index += 1
        if self.kind not in (kinds.END, ";"):
            self.unexpected(";")
        if "quoted" not in found.groupdict():
            return ResetOption(found["key"])
        return SetOption(found["key"], found["value"] if found["quoted"] is None else found["quoted"])


STATEMENT_WORDS = (
    "SELECT",
    "WITH",
    "VALUES",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "REPLACE",
    "ALTER",
    "DROP",
    "TRUNCATE",
    "EXECUTE",
    "BEGIN",
    "EXPLAIN",
    "COMPILE",
    "SHOW",
    "DESCRIBE",
    "USE",
    "LOAD",
    "UNLOAD",
    "SET",
    "RESET",
    "ADD",
    "REMOVE",
    "ANALYZE",
    "CALL",
    "STOP",
)
"""The words with which statements begin, for error messages."""


def _with_source(statement: Statement, source: Source) -> Statement:
    """The statement with its place, also those that are part of it."""
    inner = getattr(statement, "statement", None)
    if isinstance(inner, Statement):
        return replace(statement, source=source, statement=_with_source(inner, source))  # type: ignore[call-arg]
    if isinstance(statement, StatementSet):
        inserts = tuple(replace(insert, source=source) for insert in statement.statements)
        return replace(statement, source=source, statements=inserts)
    return replace(statement, source=source)
