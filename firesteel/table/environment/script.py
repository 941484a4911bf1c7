"""Statements of a session that come as text, such as those of a script or a shell."""

from __future__ import annotations

import re

from firesteel.common.errors import FiresteelError
from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.environment.environment import TableEnvironment
from firesteel.table.environment.planning.inserts import bind_insert
from firesteel.table.environment.results.execution import execute_inserts
from firesteel.table.environment.results.result import TableResult, ok
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.parser import SqlParserException, parse_statement
from firesteel.table.parser.statements.base import Source, Statement
from firesteel.table.parser.statements.dml import BeginStatementSet, EndStatementSet, Insert

__all__ = ["ScriptError", "ScriptSession"]


class ScriptError(FiresteelError):
    """A statement that failed; the message has its place."""


class ScriptSession:
    """Executes statements one after the other; those between BEGIN STATEMENT SET and END run as one job."""

    def __init__(self, environment: TableEnvironment) -> None:
        self.environment = environment
        self._session = environment._session
        self._set: list[Insert] | None = None

    @property
    def in_statement_set(self) -> bool:
        """Whether a statement set has begun and not ended."""
        return self._set is not None

    def execute(self, source: Source) -> TableResult:
        """Executes a statement of a text. Errors that have no place of their own have that of the statement."""
        try:
            return self._execute(_parsed(source))
        except SqlParserException as error:
            raise ScriptError(str(error)) from error
        except ValidationError as error:
            raise ScriptError(_located(error, source), hint=error.hint) from error

    def leave_statement_set(self) -> None:
        """Forgets a statement set that has begun."""
        self._set = None

    def _execute(self, statement: Statement) -> TableResult:
        match statement:
            case BeginStatementSet():
                if self._set is not None:
                    raise ValidationError("A statement set cannot begin within another one.")
                self._set = []
                return ok()
            case EndStatementSet():
                if self._set is None:
                    raise ValidationError("There is no statement set to end.", hint="BEGIN STATEMENT SET; begins one.")
                inserts, self._set = self._set, None
                if not inserts:
                    raise ValidationError("NO statement in the statement set.")
                return execute_inserts(self._session, [bind_insert(self._session, each) for each in inserts])
            case Insert() if self._set is not None:
                bind_insert(self._session, statement)
                self._set.append(statement)
                return ok()
            case _ if self._set is not None:
                raise ValidationError("Only INSERT statements are allowed in a statement set.")
            case _:
                return execute_statement(statement, self._session)


def _parsed(source: Source) -> Statement:
    """The statement, with places in the script."""
    before = re.sub(r"[^\n]", " ", source.sql[: source.start])
    return parse_statement(before + source.text)


def _located(error: ValidationError, source: Source) -> str:
    """The message, with the line and a caret; without a place of its own, that of the statement."""
    if error.position is None:
        if source.sql.strip().rstrip(";").rstrip() == source.text:
            return error.reason  # there is no other statement
        return f"{error.reason} (statement at line {source.line}, column {source.column})"
    return f"{error}\n{_excerpt(source.sql, error.position)}".replace(f"\nHint: {error.hint}", "")


def _excerpt(sql: str, position: Position) -> str:
    lines = sql.split("\n")
    if position.line > len(lines):
        return ""
    line = lines[position.line - 1]
    indent = "".join(character if character == "\t" else " " for character in line[: position.column - 1])
    return f"{line}\n{indent}^"
