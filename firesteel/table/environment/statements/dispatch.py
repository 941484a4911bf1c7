"""Executes statements: each kind has a function of its own."""

from __future__ import annotations

from functools import singledispatch

from firesteel.table.bound.errors import ValidationError
from firesteel.table.environment.planning.inserts import bind_insert
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import execute_inserts, execute_query
from firesteel.table.environment.results.result import TableResult
from firesteel.table.parser.statements.base import Statement
from firesteel.table.parser.statements.dml import Insert, Query, StatementSet
from firesteel.table.parser.statements.utility import Execute
from firesteel.table.plan.nodes import LogicalNode

__all__ = ["execute_statement", "plan_of"]


@singledispatch
def execute_statement(statement: Statement, session: TableSession) -> TableResult:
    """The result of a statement."""
    del session
    raise ValidationError(f"Unsupported statement: {type(statement).__name__} is not supported yet.")


def plan_of(statement: Statement, session: TableSession) -> LogicalNode:
    """The plan of a query or INSERT."""
    if isinstance(statement, Insert):
        return bind_insert(session, statement)
    if not isinstance(statement, Query):
        raise ValidationError("Only queries and INSERT have a plan.")
    sql = statement.source.sql if statement.source is not None else ""
    return session.bind(statement.query, sql)


@execute_statement.register
def _query(statement: Query, session: TableSession) -> TableResult:
    return execute_query(session, plan_of(statement, session))


@execute_statement.register
def _insert(statement: Insert, session: TableSession) -> TableResult:
    return execute_inserts(session, [bind_insert(session, statement)])


@execute_statement.register
def _statement_set(statement: StatementSet, session: TableSession) -> TableResult:
    return execute_inserts(session, [bind_insert(session, insert) for insert in statement.statements])


@execute_statement.register
def _execute(statement: Execute, session: TableSession) -> TableResult:
    return execute_statement(statement.statement, session)
