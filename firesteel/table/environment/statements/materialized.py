"""CREATE, ALTER, DROP and SHOW CREATE of materialized tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from firesteel.config import checkpointing_options
from firesteel.table.binder.ddl.materialized import (
    altered_query,
    create_materialized_table_text,
    created_materialized_table,
)
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.materialized import CatalogMaterializedTable, RefreshMode, RefreshStatus
from firesteel.table.catalog.objects import TableKind
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import AfterJob
from firesteel.table.environment.results.result import ResultRows, TableResult, ok, strings
from firesteel.table.environment.statements.catalogs import create_table
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.environment.statements.refreshing import RefreshJobs, refresh_once, start_continuous
from firesteel.table.parser.statements import alter, objects, tables
from firesteel.types.logical import VarCharType

__all__ = ["alter_materialized_table", "drop_materialized_table", "show_create_materialized_table"]


@execute_statement.register
def _create(statement: tables.CreateMaterializedTable, session: TableSession) -> TableResult:
    identifier = session.manager.qualify(statement.path)
    old = session.find_table(identifier)
    sql = statement.source.sql if statement.source is not None else ""
    if statement.or_alter and old is not None and old.table.kind is TableKind.MATERIALIZED_TABLE:
        return _alter_query(session, old, alter.AlterQuery(statement.query), sql)
    query_type = session.bind(statement.query, sql).row_type
    table = created_materialized_table(
        statement, query_type, session.manager.qualify, session.expression_session(), session.configuration
    )
    create_table(session, identifier, table, ignore_if_exists=False, temporary=False)
    try:
        _activate(session, _found(session, identifier))
    except Exception as error:
        session.manager.drop_table(identifier, TableKind.MATERIALIZED_TABLE)
        if isinstance(error, ValidationError):
            raise
        raise ValidationError(
            f"Submit {table.refresh_mode.value.lower()} refresh job for materialized table {identifier} occur "
            f"exception: {error}"
        ) from error
    return ok()


def alter_materialized_table(statement: alter.AlterObject, session: TableSession) -> TableResult:
    """ALTER MATERIALIZED TABLE."""
    found = _found(session, session.manager.qualify(statement.path))
    sql = statement.source.sql if statement.source is not None else ""
    match statement.change:
        case alter.Suspend():
            _suspend(session, found)
            return ok()
        case alter.Resume():
            return _resume(session, found, dict(statement.change.options))
        case alter.Refresh():
            partition = {key: "" if value is None else value.name for key, value in statement.change.partition}
            return _refreshed(refresh_once(session, found, partition))
        case alter.AlterQuery():
            return _alter_query(session, found, statement.change, sql)
    raise ValidationError(
        "ALTER MATERIALIZED TABLE can SUSPEND, RESUME and REFRESH a table, and change its query with AS.",
        hint="Drop the table and create it again for other changes.",
    )


def drop_materialized_table(statement: objects.Drop, session: TableSession) -> TableResult:
    """DROP MATERIALIZED TABLE: ends its job or schedule first."""
    identifier = session.manager.qualify(statement.path)
    found = session.find_table(identifier)
    if found is None or found.table.kind is not TableKind.MATERIALIZED_TABLE:
        if statement.if_exists:
            return ok()
        raise ValidationError(
            f"Materialized Table with identifier '{identifier.as_summary_string()}' does not exist.",
            hint=session.nearest_table(identifier.object_name),
        )
    jobs = refresh_jobs(session)
    jobs.unschedule(identifier)
    client = jobs.clients.pop(identifier, None)
    if client is not None and not _is_over(client):
        client.cancel().result()
    session.manager.drop_table(identifier, TableKind.MATERIALIZED_TABLE)
    return ok()


def show_create_materialized_table(path: tuple[str, ...], session: TableSession) -> TableResult:
    """SHOW CREATE MATERIALIZED TABLE."""
    identifier = session.manager.qualify(path)
    found = session.find_table(identifier)
    if found is None:
        raise ValidationError(
            f"Could not execute SHOW CREATE MATERIALIZED TABLE {identifier.as_summary_string()}. Materialized table "
            f"with identifier {identifier} does not exist.",
            hint=session.nearest_table(identifier.object_name),
        )
    if found.table.kind is not TableKind.MATERIALIZED_TABLE:
        raise ValidationError(
            f"SHOW CREATE MATERIALIZED TABLE is only supported for materialized tables, but {identifier} is a "
            f"{found.table.kind.value.lower()}."
        )
    return strings(["result"], [(create_materialized_table_text(found, session.resolved_schema(found.table)),)])


def refresh_jobs(session: TableSession) -> RefreshJobs:
    """The jobs of the materialized tables of a session."""
    if session.refresh_jobs is None:
        session.refresh_jobs = RefreshJobs()
    jobs: RefreshJobs = session.refresh_jobs
    return jobs


def _found(session: TableSession, identifier: ObjectIdentifier) -> FoundTable:
    found = session.find_table(identifier)
    if found is None or found.table.kind is not TableKind.MATERIALIZED_TABLE:
        raise ValidationError(
            f"Materialized table {identifier} does not exist.", hint=session.nearest_table(identifier.object_name)
        )
    return found


def _table(found: FoundTable) -> CatalogMaterializedTable:
    assert isinstance(found.table, CatalogMaterializedTable)
    return found.table


def _keep(session: TableSession, found: FoundTable, table: CatalogMaterializedTable) -> FoundTable:
    catalog = session.manager.get_catalog(found.identifier.catalog_name)
    catalog.alter_table(found.identifier.to_object_path(), table, ignore_if_not_exists=False)
    return found._replace(table=table)


def _activate(
    session: TableSession, found: FoundTable, options: dict[str, str] | None = None, savepoint: str | None = None
) -> None:
    """Starts the job of a table, or its schedule."""
    table, jobs = _table(found), refresh_jobs(session)
    if table.refresh_mode is RefreshMode.CONTINUOUS:
        jobs.clients[found.identifier] = start_continuous(session, found, options or {}, savepoint)
    else:
        if options:
            raise ValidationError("RESUME of a table in full refresh mode takes no options.")
        jobs.schedule(session, found.identifier, table.freshness)
    _keep(session, found, replace(table, refresh_status=RefreshStatus.ACTIVATED, savepoint_path=None))


def _suspend(session: TableSession, found: FoundTable) -> FoundTable:
    table, identifier, jobs = _table(found), found.identifier, refresh_jobs(session)
    if table.refresh_status is RefreshStatus.SUSPENDED:
        what = "continuous refresh job" if table.refresh_mode is RefreshMode.CONTINUOUS else "refresh workflow"
        raise ValidationError(f"Materialized table {identifier} {what} has been suspended.")
    path = None
    if table.refresh_mode is RefreshMode.CONTINUOUS:
        client = jobs.clients.get(identifier)
        if client is None:
            raise ValidationError(
                f"The continuous refresh job of materialized table {identifier} belongs to another session.",
                hint="Stop the job with firesteel stop, or alter the table where it was created.",
            )
        directory = session.configuration.get(checkpointing_options.SAVEPOINTS_DIRECTORY)
        if not directory:
            raise ValidationError(
                "Savepoint directory is not configured, can't stop job with savepoint.",
                hint=f"SET '{checkpointing_options.SAVEPOINTS_DIRECTORY.key}' = '…'.",
            )
        if not _is_over(client):
            path = client.stop_with_savepoint(False, directory).result()
        del jobs.clients[identifier]
    else:
        jobs.unschedule(identifier)
    return _keep(session, found, replace(table, refresh_status=RefreshStatus.SUSPENDED, savepoint_path=path))


def _resume(session: TableSession, found: FoundTable, options: dict[str, str]) -> TableResult:
    table, identifier = _table(found), found.identifier
    if table.refresh_status is RefreshStatus.ACTIVATED:
        client = refresh_jobs(session).clients.get(identifier)
        if table.refresh_mode is RefreshMode.FULL:
            raise ValidationError(f"Materialized table {identifier} refresh workflow has been resumed.")
        if client is not None and not _is_over(client):
            raise ValidationError(
                f"Materialized table {identifier} continuous refresh job has been resumed, jobId is "
                f"{client.get_job_id()}."
            )
    _activate(session, found, options, table.savepoint_path)
    return ok()


def _alter_query(session: TableSession, found: FoundTable, change: alter.AlterQuery, sql: str) -> TableResult:
    """Another query: a continuous refresh starts anew with it, without the state of the old one."""
    query_type = session.bind(change.query, sql).row_type
    table = altered_query(_table(found), change.query, sql, query_type, session.manager.qualify)
    runs = table.refresh_status is RefreshStatus.ACTIVATED and table.refresh_mode is RefreshMode.CONTINUOUS
    if not runs:
        _keep(session, found, replace(table, savepoint_path=None))
        return ok()
    suspended = _suspend(session, found)
    changed = replace(table, refresh_status=RefreshStatus.SUSPENDED, savepoint_path=None)
    try:
        _activate(session, _keep(session, found, changed))
    except Exception:
        # as it was: the old query goes on where it was stopped
        restored = _keep(session, found, _table(suspended))
        _activate(session, restored, savepoint=_table(suspended).savepoint_path)
        raise
    return ok()


def _is_over(client: Any) -> bool:
    return bool(client.get_job_execution_result().done())


def _refreshed(result: TableResult) -> TableResult:
    """The id of the job that refreshes a table, which is there when the job has ended."""
    client = result.get_job_client()
    assert client is not None
    schema = ResolvedSchema.physical(["job id"], [VarCharType()])
    batch = batch_of([(str(client.get_job_id()),)], schema.to_physical_row_data_type())
    return TableResult(schema, ResultRows(AfterJob(client, batch)), job_client=client)
