"""SET and RESET."""

from __future__ import annotations

from firesteel.config.configuration import shown
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, ok, strings
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.parser.statements.utility import ResetOption, SetOption

__all__: list[str] = []


@execute_statement.register
def _set(statement: SetOption, session: TableSession) -> TableResult:
    if statement.key is None:
        entries = sorted(session.configuration.to_dict().items())
        return strings(["key", "value"], [(key, shown(key, value)) for key, value in entries])
    assert statement.value is not None
    session.set_option(statement.key, statement.value)
    return ok()


@execute_statement.register
def _reset(statement: ResetOption, session: TableSession) -> TableResult:
    session.reset_option(statement.key)
    return ok()
