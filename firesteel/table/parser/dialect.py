"""Entry points of the parser: a text to a statement, a query, an expression or a type."""

from __future__ import annotations

from sqlglot import exp

from firesteel.table.parser.grammar.statement import StatementGrammar
from firesteel.table.parser.statements.base import Statement
from firesteel.table.parser.types import SqlType

__all__ = ["parse_expression", "parse_query", "parse_statement", "parse_type"]


def parse_statement(sql: str) -> Statement:
    """Parses one statement, which a semicolon may follow; a query is a ``Query``."""
    grammar = StatementGrammar(sql)
    statement = grammar.statement()
    while grammar.accept(";"):
        pass
    grammar.end()
    return statement


def parse_query(sql: str) -> exp.Expression:
    """Parses a query."""
    grammar = StatementGrammar(sql)
    query = grammar.query()
    grammar.accept(";")
    grammar.end()
    return query


def parse_expression(sql: str) -> exp.Expression:
    """Parses an expression, such as that of a computed column."""
    grammar = StatementGrammar(sql)
    expression = grammar.expression()
    grammar.end()
    return expression


def parse_type(sql: str) -> SqlType:
    """Parses a type, with its nullability."""
    grammar = StatementGrammar(sql)
    type_ = grammar.column_type()
    grammar.end()
    return type_
