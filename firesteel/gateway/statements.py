"""Executes the statements of a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from firesteel.common.job_client import JobClient
from firesteel.config import table_options
from firesteel.gateway.operations import Operation
from firesteel.gateway.results import ResultInfo, ResultPages
from firesteel.table import TableEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.environment.planning.inserts import bind_insert
from firesteel.table.environment.results.execution import execute_inserts
from firesteel.table.environment.results.result import TableResult, ok, strings
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.parser import parse_statement
from firesteel.table.parser.statements import alter, objects, tables, utility
from firesteel.table.parser.statements.base import Statement
from firesteel.table.parser.statements.dml import BeginStatementSet, EndStatementSet, Insert, Query

__all__ = ["StatementExecutor"]

_CONFIGURING = (alter, objects, tables)
_CONFIGURING_UTILITIES = (
    utility.SetOption,
    utility.ResetOption,
    utility.UseCatalog,
    utility.UseDatabase,
    utility.UseModules,
    utility.LoadModule,
    utility.UnloadModule,
    utility.Jar,
)


class StatementExecutor:
    """Executes statements in one table environment; not by two threads at once."""

    def __init__(self, environment: TableEnvironment) -> None:
        self.environment = environment
        self._session = environment._session
        self._set: list[Insert] | None = None

    def execute(self, sql: str, settings: Mapping[str, str], operation: Operation) -> ResultPages:
        """Executes one statement; ``settings`` are options for it alone."""
        if not sql.strip():
            raise ValidationError("The statement is empty.")
        with self._with(settings):
            statement = parse_statement(sql)
            result = self._execute(statement)
            client = result.get_job_client()
            if client is None or not result.is_insert:
                is_query = client is not None or isinstance(statement, Query)
                return self._pages(result, client, operation, is_query=is_query)
            if self._session.configuration.get(table_options.DML_SYNC):
                operation.on_cancel(client.cancel)
                result.wait()
        job = strings(["job id"], [(str(client.get_job_id()),)])
        return self._pages(job, client, operation, is_query=False)

    def configure(self, sql: str, settings: Mapping[str, str], operation: Operation) -> ResultPages:
        """Executes a statement that changes the session."""
        statement = parse_statement(sql)
        if not _configures(statement):
            raise ValidationError(
                f"Unsupported statement for configuring session: {sql}",
                hint="The configureSession API supports SET, RESET, USE, CREATE, DROP, ALTER, LOAD MODULE, UNLOAD "
                "MODULE and ADD JAR.",
            )
        return self.execute(sql, settings, operation)

    def _execute(self, statement: Statement) -> TableResult:
        if isinstance(statement, BeginStatementSet):
            if self._set is not None:
                raise ValidationError("A statement set cannot begin within another one.")
            self._set = []
            return ok()
        if self._set is None:
            if isinstance(statement, EndStatementSet):
                raise ValidationError("There is no statement set to end.", hint="BEGIN STATEMENT SET; begins one.")
            return execute_statement(statement, self._session)
        if isinstance(statement, EndStatementSet):
            inserts, self._set = self._set, None
            return self._insert(inserts) if inserts else ok()
        if not isinstance(statement, Insert):
            raise ValidationError("Only INSERT statements are allowed in a statement set.", hint="END; ends the set.")
        bind_insert(self._session, statement)
        self._set.append(statement)
        return ok()

    def _insert(self, inserts: Sequence[Insert]) -> TableResult:
        return execute_inserts(self._session, [bind_insert(self._session, each) for each in inserts])

    def _pages(
        self, result: TableResult, client: JobClient | None, operation: Operation, *, is_query: bool
    ) -> ResultPages:
        job_id = None if client is None else str(client.get_job_id())
        info = ResultInfo(
            result.get_resolved_schema(),
            result.get_result_kind(),
            is_query,
            job_id,
            self._session.expression_session(),
        )
        name = f"firesteel-sql-results-{operation.handle[:8]}"
        return ResultPages(info, result._rows, is_ready=not is_query, name=name)

    @contextmanager
    def _with(self, settings: Mapping[str, str]) -> Iterator[None]:
        configuration = self._session.configuration
        before = {key: configuration.to_dict().get(key) for key in settings}
        try:
            for key, value in settings.items():
                self._session.set_option(key, value)
            yield
        finally:
            for key, earlier in before.items():
                configuration.remove_config(key)
                if earlier is not None:
                    self._session.set_option(key, earlier)


def _configures(statement: Statement) -> bool:
    modules = {module.__name__ for module in _CONFIGURING}
    return type(statement).__module__ in modules or isinstance(statement, _CONFIGURING_UTILITIES)
