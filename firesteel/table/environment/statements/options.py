"""SET and RESET."""

from __future__ import annotations

from firesteel.config.configuration import shown
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, ok, strings
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.expressions.errors import ValidationError
from firesteel.table.parser.statements.utility import ResetOption, SetOption

__all__ = ["set_option"]

_FIXED = ("execution.runtime-mode",)


@execute_statement.register
def _set(statement: SetOption, session: TableSession) -> TableResult:
    if statement.key is None:
        entries = sorted(session.configuration.to_dict().items())
        return strings(["key", "value"], [(key, shown(key, value)) for key, value in entries])
    assert statement.value is not None
    set_option(session, statement.key, statement.value)
    return ok()


def set_option(session: TableSession, key: str, value: str) -> None:
    """Sets an option of the session; its value is checked at once if the key is known."""
    if key in _FIXED and value.upper() != ("STREAMING" if session.is_streaming else "BATCH"):
        raise ValidationError(
            f"'{key}' cannot be changed in a session.", hint="Create an environment with EnvironmentSettings."
        )
    session.set_option(key, value)


@execute_statement.register
def _reset(statement: ResetOption, session: TableSession) -> TableResult:
    session.reset_option(statement.key)
    return ok()
