"""Scripts: several statements, separated by semicolons."""

from __future__ import annotations

from collections.abc import Iterator

from firesteel.table.parser import tokens as kinds
from firesteel.table.parser.dialect import parse_whole
from firesteel.table.parser.grammar.statement import StatementGrammar
from firesteel.table.parser.statements.base import Source, Statement
from firesteel.table.parser.tokens import tokenize

__all__ = ["parse_script", "split_script"]


def parse_script(sql: str) -> list[Statement]:
    """Parses statements; their sources and errors have the lines of the script."""
    return parse_whole(sql, _statements)


def _statements(grammar: StatementGrammar) -> list[Statement]:
    statements: list[Statement] = []
    while True:
        while grammar.accept(";"):
            pass
        if grammar.kind == kinds.END:
            return statements
        statements.append(grammar.statement())
        if grammar.kind != kinds.END:
            grammar.expect(";")


def split_script(sql: str) -> Iterator[Source]:
    """The statements of a script as texts, so that those before an error can run.

    A semicolon in a string, a quoted name, a comment, or between STATEMENT SET BEGIN and END does not end a statement.
    """
    start: int | None = None
    end, in_set = 0, False
    previous: list[str] = []
    for token in tokenize(sql):
        if token.kind == kinds.END or (token.kind == ";" and not in_set):
            if start is not None:
                yield Source(sql, start, end)
            start, in_set, previous = None, False, []
            continue
        start = token.offset if start is None else start
        end = token.end
        previous = [*previous[-2:], token.kind]
        if previous == ["STATEMENT", "SET", "BEGIN"]:
            in_set = True
        elif token.kind == "END" and previous[-2:-1] == [";"]:
            in_set = False
