"""Executes CREATE and DROP."""

from __future__ import annotations

from firesteel.table.binder.ddl.create_table import created_as, created_table
from firesteel.table.binder.ddl.views import created_view
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.nodes import Expression, InputRef, Literal
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.objects import CatalogBaseTable, TableKind
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.environment.planning.inserts import sink_of
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import execute_inserts
from firesteel.table.environment.results.result import TableResult, ok
from firesteel.table.environment.statements.catalogs import create_table, drop_function, failing_with
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.environment.statements.materialized import drop_materialized_table
from firesteel.table.environment.statements.models import drop_model
from firesteel.table.parser.statements import objects, tables
from firesteel.table.plan.nodes import LogicalNode, Project

__all__ = ["create_table"]


@execute_statement.register
def _create_table(statement: tables.CreateTable, session: TableSession) -> TableResult:
    identifier = session.manager.qualify(statement.path)
    if statement.query is not None:
        return _create_table_as(statement, identifier, session)
    base = None if statement.like is None else _like(statement.like, session)
    table = created_table(statement, base, session.expression_session())
    create_table(session, identifier, table, statement.if_not_exists, statement.temporary)
    return ok()


def _like(like: tables.TableLike, session: TableSession) -> CatalogBaseTable:
    identifier = session.manager.qualify(like.table)
    found = session.manager.find_table(identifier)
    if found is None:
        raise ValidationError(
            f"Source table '{identifier}' of the LIKE clause not found in the catalog",
            hint=session.nearest_table(identifier.object_name),
        )
    if found.table.kind is TableKind.VIEW:
        raise ValidationError(f"Source table '{identifier}' of the LIKE clause can not be a VIEW")
    return found.table


def _create_table_as(statement: tables.CreateTable, identifier: ObjectIdentifier, session: TableSession) -> TableResult:
    if statement.temporary:
        raise ValidationError(
            "CREATE OR REPLACE TABLE AS SELECT syntax does not support temporary table yet."
            if statement.replace
            else "CREATE TABLE AS SELECT syntax does not support to create temporary table yet."
        )
    assert statement.query is not None
    old = session.manager.find_table(identifier)
    if statement.if_not_exists and old is not None:
        return ok()
    if statement.replace and old is None and not statement.or_create:
        raise ValidationError(
            f"The table {identifier} to be replaced doesn't exist. You can try to use CREATE TABLE AS statement or "
            "CREATE OR REPLACE TABLE AS statement."
        )
    sql = statement.source.sql if statement.source is not None else ""
    plan = session.bind(statement.query, sql)
    table, names = created_as(statement, plan.row_type, session.expression_session())
    if statement.replace and old is not None:
        session.manager.drop_table(identifier, TableKind.TABLE)
    try:
        create_table(session, identifier, table, ignore_if_exists=False, temporary=False)
        found = session.manager.get_table(identifier)
        sink = sink_of(session, found, _by_name(plan, names, session.resolved_schema(table)))
        return execute_inserts(session, [sink])
    except Exception:
        if statement.replace or old is None:
            session.manager.drop_table(identifier, TableKind.TABLE, ignore_if_not_exists=True)
        if statement.replace and old is not None:
            create_table(session, identifier, old.table, ignore_if_exists=False, temporary=False)
        raise


def _by_name(plan: LogicalNode, names: list[str], schema: ResolvedSchema) -> LogicalNode:
    """The query with the columns of the table, NULL where it has none."""
    columns = [column for column in schema.columns if column.is_persisted()]
    types = [part.type for part in plan.row_type.fields]
    expressions: list[Expression] = []
    for column in columns:
        if column.name in names:
            index = names.index(column.name)
            expressions.append(InputRef(types[index], index, column.name))
        elif column.data_type.nullable:
            expressions.append(Literal(column.data_type, None))
        else:
            raise ValidationError(f"Column '{column.name}' has no default value and does not allow NULLs")
    return Project(plan, tuple(expressions), tuple(column.name for column in columns))


@execute_statement.register
def _create_view(statement: tables.CreateView, session: TableSession) -> TableResult:
    manager = session.manager
    identifier = manager.qualify(statement.path)
    sql = statement.source.sql if statement.source is not None else ""
    plan = session.bind(statement.query, sql)
    view = created_view(statement.query, sql, plan.row_type, manager.qualify, statement.columns, statement.comment)
    if statement.replace:
        manager.drop_table(identifier, TableKind.VIEW, ignore_if_not_exists=True, temporary=statement.temporary)
    create_table(session, identifier, view, statement.if_not_exists, statement.temporary)
    return ok()


@execute_statement.register
def _drop(statement: objects.Drop, session: TableSession) -> TableResult:
    manager = session.manager
    if statement.kind == "CATALOG":
        (name,) = statement.path
        with failing_with(f"Could not execute DROP CATALOG: (catalogName: [{name}])"):
            manager.unregister_catalog(name, statement.if_exists)
        return ok()
    if statement.kind == "FUNCTION":
        return drop_function(statement, session)
    if statement.kind == "MODEL":
        drop_model(session, statement.path, ignore_if_not_exists=statement.if_exists, temporary=statement.temporary)
        return ok()
    if statement.kind == "MATERIALIZED TABLE":
        return drop_materialized_table(statement, session)
    if statement.kind not in ("TABLE", "VIEW"):
        raise ValidationError(f"DROP {statement.kind} is not supported yet.")
    kind = TableKind[statement.kind]
    identifier = manager.qualify(statement.path)
    try:
        manager.drop_table(identifier, kind, ignore_if_not_exists=statement.if_exists, temporary=statement.temporary)
    except CatalogException as error:
        raise ValidationError(error.message, hint=error.hint) from error
    return ok()
