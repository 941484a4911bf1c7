"""LOAD, UNLOAD and USE of modules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, ok
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.names import quoted, string_literal
from firesteel.table.parser.statements import utility

__all__: list[str] = []


@execute_statement.register
def _load_module(statement: utility.LoadModule, session: TableSession) -> TableResult:
    options = dict(statement.options)
    shown = ", ".join(f"{string_literal(key)} = {string_literal(value)}" for key, value in options.items())
    with _failing_with(f"LOAD MODULE {quoted(statement.name)}" + (f" WITH ({shown})" if options else "")):
        session.modules.load(statement.name, session.modules.create(statement.name, options))
    return ok()


@execute_statement.register
def _unload_module(statement: utility.UnloadModule, session: TableSession) -> TableResult:
    with _failing_with(f"UNLOAD MODULE {statement.name}"):
        session.modules.unload(statement.name)
    return ok()


@execute_statement.register
def _use_modules(statement: utility.UseModules, session: TableSession) -> TableResult:
    with _failing_with(f"USE MODULES: [{', '.join(statement.names)}]"):
        session.modules.use(statement.names)
    return ok()


@contextmanager
def _failing_with(text: str) -> Iterator[None]:
    try:
        yield
    except CatalogException as error:
        raise ValidationError(f"Could not execute {text}. {error.message}", hint=error.hint) from error
