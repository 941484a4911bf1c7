"""UPDATE, DELETE and TRUNCATE, which no connector supports yet."""

from __future__ import annotations

from typing import NoReturn

from firesteel.table.environment.planning.inserts import find_sink_table, sink_for
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.expressions.errors import ValidationError
from firesteel.table.parser.statements.base import ObjectPath
from firesteel.table.parser.statements.dml import Delete, TruncateTable, Update

__all__: list[str] = []


@execute_statement.register
def _update(statement: Update, session: TableSession) -> TableResult:
    if session.is_streaming:
        raise ValidationError("UPDATE statement is not supported for streaming mode now.")
    _refuse(session, statement.path, "update", "SupportsRowLevelUpdate")


@execute_statement.register
def _delete(statement: Delete, session: TableSession) -> TableResult:
    find_sink_table(session, statement.path)
    if session.is_streaming:
        raise ValidationError("DELETE statement is not supported for streaming mode now.")
    _refuse(session, statement.path, "delete", "SupportsRowLevelDelete or SupportsDeletePushDown")


@execute_statement.register
def _truncate(statement: TruncateTable, session: TableSession) -> TableResult:
    find_sink_table(session, statement.path)
    if session.is_streaming:
        raise ValidationError("TRUNCATE TABLE statement is not supported in streaming mode.")
    _refuse(session, statement.path, "truncate", "SupportsTruncate")


def _refuse(session: TableSession, path: ObjectPath, operation: str, interface: str) -> NoReturn:
    found = find_sink_table(session, path)
    sink_for(session, found, found.table.options)
    raise ValidationError(
        f"Can't perform {operation} operation of the table {found.identifier.as_summary_string()} because the "
        f"corresponding dynamic table sink has not yet implemented {interface}."
    )
