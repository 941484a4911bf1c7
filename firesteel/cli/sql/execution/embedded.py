"""Statements that this process executes; their jobs run in it or on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from firesteel.cli.sql.execution.result import NULL, ResultKind, ResultRow, StatementResult
from firesteel.config.configuration import Configuration, shown
from firesteel.table import EnvironmentSettings, TableEnvironment
from firesteel.table.environment.results.result import PrintStyle, TableResult
from firesteel.table.environment.script import ScriptSession
from firesteel.table.result_kind import ResultKind as TableResultKind

if TYPE_CHECKING:
    from firesteel.table.environment.planning.jobs import JobDirectory
    from firesteel.table.parser.statements.base import Source

__all__ = ["EmbeddedExecutor"]

_QUERIES = (PrintStyle.CHANGELOG, PrintStyle.QUERY)


class EmbeddedExecutor:
    """Executes statements in a table environment. ``jobs`` are those of the cluster, if there is one."""

    def __init__(self, settings: Mapping[str, str], jobs: JobDirectory | None = None) -> None:
        configuration = Configuration.from_dict(dict(settings))
        chosen = EnvironmentSettings.new_instance().with_configuration(configuration).build()
        self._environment = TableEnvironment.create(chosen)
        self._script = ScriptSession(self._environment)
        self._ends_jobs = jobs is None
        if jobs is not None:
            self._environment._session.jobs = jobs

    def execute(self, source: Source) -> StatementResult:
        """Executes a statement of a text."""
        return _result_of(self._script.execute(source))

    def ask(self, sql: str) -> list[Sequence[str]]:
        """The rows of a statement that shows something."""
        return [row for batch in self._environment.execute_sql(sql).texts() for _, row in batch]

    def options(self) -> Mapping[str, str]:
        """The options that are set in the session."""
        entries = self._environment._session.configuration.to_dict()
        return {key: shown(key, value) for key, value in entries.items()}

    def in_statement_set(self) -> bool:
        """Whether a statement set has begun and not ended."""
        return self._script.in_statement_set

    def leave_statement_set(self) -> None:
        """Forgets a statement set that has begun."""
        self._script.leave_statement_set()

    def jobs_that_end(self) -> Sequence[str]:
        """The jobs of this process that run."""
        if not self._ends_jobs:
            return ()
        return [job.job_id for job in self._environment._session.started_jobs.running()]

    def close(self) -> None:
        """Cancels the jobs of this process."""
        for job_id in self.jobs_that_end():
            self._environment._session.jobs.stop(job_id, with_savepoint=False, with_drain=False, directory=None)


class _TableRows:
    """The rows of a result of a table environment."""

    def __init__(self, result: TableResult, null: str) -> None:
        self._result = result
        self._null = null

    def batches(self) -> Iterator[list[ResultRow]]:
        return self._result.texts(self._null)

    def cancel(self) -> None:
        self._result.cancel()

    def progress(self) -> tuple[int, int] | None:
        return self._result.progress()


def _result_of(result: TableResult) -> StatementResult:
    client = result.get_job_client()
    is_query = result.style in _QUERIES
    if result.get_result_kind() is TableResultKind.SUCCESS:
        kind = ResultKind.OK
    elif result.is_insert:
        kind = ResultKind.INSERT
    else:
        kind = ResultKind.QUERY if is_query else ResultKind.CONTENT
    return StatementResult(
        kind,
        result.get_resolved_schema().to_source_row_data_type(),
        _TableRows(result, NULL if is_query else ""),
        is_streaming=result.style is PrintStyle.CHANGELOG,
        job_id=None if client is None else str(client.get_job_id()),
    )
