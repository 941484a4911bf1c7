"""Entry points of the parser: a text to a statement, a query, an expression or a type."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp

from firesteel.table.parser.errors import SqlParserException
from firesteel.table.parser.grammar.statement import StatementGrammar
from firesteel.table.parser.statements.base import Statement
from firesteel.table.parser.types import SqlType

__all__ = ["parse_expression", "parse_path", "parse_query", "parse_statement", "parse_type", "parse_whole"]

T = TypeVar("T")


def parse_whole(sql: str, rule: Callable[[StatementGrammar], T]) -> T:
    """Parses all of a text by one rule of the grammar; semicolons may follow."""
    grammar = StatementGrammar(sql)
    try:
        result = rule(grammar)
    except RecursionError:
        raise SqlParserException("The statement is nested too deeply.", sql, grammar.token.offset) from None
    while grammar.accept(";"):
        pass
    grammar.end()
    return result


def parse_statement(sql: str) -> Statement:
    """Parses one statement; a query is a ``Query``."""
    return parse_whole(sql, StatementGrammar.statement)


def parse_query(sql: str) -> exp.Expression:
    """Parses a query."""
    return parse_whole(sql, StatementGrammar.query)


def parse_expression(sql: str) -> exp.Expression:
    """Parses an expression, such as that of a computed column."""
    return parse_whole(sql, StatementGrammar.expression)


def parse_path(sql: str) -> tuple[str, ...]:
    """Parses the name of a table: up to three parts."""
    return parse_whole(sql, StatementGrammar.path)


def parse_type(sql: str) -> SqlType:
    """Parses a type, with its nullability."""
    return parse_whole(sql, StatementGrammar.column_type)
