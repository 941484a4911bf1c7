"""Scripts: statements one after the other, with results as Flink's client prints them."""

from __future__ import annotations

import re
from collections.abc import Callable

from firesteel.common.errors import FiresteelError
from firesteel.table.bound.errors import Position, ValidationError
from firesteel.table.environment.environment import TableEnvironment
from firesteel.table.environment.planning.inserts import bind_insert
from firesteel.table.environment.results.execution import execute_inserts
from firesteel.table.environment.results.result import TableResult
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.parser import SqlParserException, parse_statement, split_script
from firesteel.table.parser.statements.base import Source, Statement
from firesteel.table.parser.statements.dml import BeginStatementSet, EndStatementSet, Insert
from firesteel.table.result_kind import ResultKind

__all__ = ["ScriptError", "run_script"]


class ScriptError(FiresteelError):
    """A statement of a script that failed; the message has its place."""


def run_script(environment: TableEnvironment, sql: str, write: Callable[[str], object]) -> None:
    """Executes the statements of a text in order, until one fails.

    An INSERT is waited for, as with ``table.dml-sync`` in Flink's client. Statements between BEGIN STATEMENT SET and
    END run as one job.
    """
    _Script(environment, sql, write).run()


class _Script:
    def __init__(self, environment: TableEnvironment, sql: str, write: Callable[[str], object]) -> None:
        self._environment = environment
        self._session = environment._session
        self._sql = sql
        self._write = write
        self._set: list[Insert] | None = None

    def run(self) -> None:
        try:
            sources = list(split_script(self._sql))
        except SqlParserException as error:
            raise ScriptError(str(error)) from error
        for source in sources:
            try:
                self._execute(_parsed(source))
            except SqlParserException as error:
                raise ScriptError(str(error)) from error
            except ValidationError as error:
                raise ScriptError(_located(error, source), hint=error.hint) from error
        if self._set is not None:
            raise ScriptError("The statement set has no END.", hint="Write END; after its last INSERT.")

    def _execute(self, statement: Statement) -> None:
        match statement:
            case BeginStatementSet():
                if self._set is not None:
                    raise ValidationError("A statement set cannot begin within another one.")
                self._set = []
                self._write("[INFO] Begin a statement set.\n")
            case EndStatementSet():
                if self._set is None:
                    raise ValidationError("There is no statement set to end.", hint="BEGIN STATEMENT SET; begins one.")
                inserts, self._set = self._set, None
                if not inserts:
                    raise ValidationError("NO statement in the statement set.")
                self._show(execute_inserts(self._session, [bind_insert(self._session, each) for each in inserts]))
            case Insert() if self._set is not None:
                bind_insert(self._session, statement)
                self._set.append(statement)
                self._write("[INFO] Add SQL update statement to the statement set.\n")
            case _ if self._set is not None:
                raise ValidationError("Only INSERT statements are allowed in a statement set.")
            case _:
                self._show(execute_statement(statement, self._session))

    def _show(self, result: TableResult) -> None:
        client = result.get_job_client()
        names = result.get_resolved_schema().get_column_names()
        if result.get_result_kind() is ResultKind.SUCCESS:
            self._write("[INFO] Execute statement succeeded.\n")
        elif client is not None and result.is_insert:
            self._write(f"[INFO] Submitting SQL update statement to the cluster...\nJob ID: {client.get_job_id()}\n")
            result.wait()
            self._write(f"[INFO] Complete execution of the SQL update statement: {', '.join(names)}\n")
        else:
            result.print()


def _parsed(source: Source) -> Statement:
    """The statement, with places in the script."""
    before = re.sub(r"[^\n]", " ", source.sql[: source.start])
    return parse_statement(before + source.text)


def _located(error: ValidationError, source: Source) -> str:
    """The message, with the line and a caret; without a place of its own, that of the statement."""
    if error.position is None:
        return f"{error.reason} (statement at line {source.line}, column {source.column})"
    return f"{error}\n{_excerpt(source.sql, error.position)}".replace(f"\nHint: {error.hint}", "")


def _excerpt(sql: str, position: Position) -> str:
    lines = sql.split("\n")
    if position.line > len(lines):
        return ""
    line = lines[position.line - 1]
    indent = "".join(character if character == "\t" else " " for character in line[: position.column - 1])
    return f"{line}\n{indent}^"
