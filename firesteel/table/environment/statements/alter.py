"""Executes ALTER."""

from __future__ import annotations

from firesteel.config.configuration import Configuration
from firesteel.table.binder.ddl.alter_table import altered_table
from firesteel.table.binder.ddl.views import created_view
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.objects import (
    CatalogDatabase,
    CatalogDescriptor,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
    TableKind,
)
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, ok
from firesteel.table.environment.statements.catalogs import database_of, failing_with
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.environment.statements.materialized import alter_materialized_table
from firesteel.table.environment.statements.models import alter_model
from firesteel.table.parser.statements import alter
from firesteel.table.parser.statements.dml import PartitionSpec

__all__: list[str] = []


@execute_statement.register
def _alter(statement: alter.AlterObject, session: TableSession) -> TableResult:
    match statement.kind:
        case "TABLE" | "VIEW":
            try:
                return _alter_table(statement, session)
            except CatalogException as error:
                raise ValidationError(error.message, hint=error.hint) from error
        case "DATABASE":
            return _alter_database(statement, session)
        case "FUNCTION":
            return _alter_function(statement, session)
        case "CATALOG":
            return _alter_catalog(statement, session)
        case "MODEL":
            return alter_model(statement, session)
        case "MATERIALIZED TABLE":
            return alter_materialized_table(statement, session)
    raise ValidationError(f"ALTER {statement.kind} is not supported yet.")


def _alter_table(statement: alter.AlterObject, session: TableSession) -> TableResult:
    manager, noun = session.manager, statement.kind.capitalize()
    identifier = manager.qualify(statement.path)
    found = manager.find_table(identifier)
    if found is not None and found.table.kind is TableKind.MATERIALIZED_TABLE:
        raise ValidationError(f"ALTER {statement.kind} for a materialized table is not allowed")
    if found is None or found.is_temporary or found.table.kind is not TableKind[statement.kind]:
        if statement.if_exists:
            return ok()
        raise ValidationError(
            f"{noun} {identifier} doesn't exist or is a temporary {noun.lower()}.",
            hint=session.nearest_table(identifier.object_name),
        )
    catalog, path = manager.get_catalog(identifier.catalog_name), identifier.to_object_path()
    change = statement.change
    sql = statement.source.sql if statement.source is not None else ""
    match change:
        case alter.Rename():
            new = manager.qualify(change.new_path)
            if new.to_object_path().database_name != path.database_name or new.catalog_name != identifier.catalog_name:
                raise ValidationError(f"{noun} {identifier} cannot be renamed to another database.")
            catalog.rename_table(path, new.object_name, ignore_if_not_exists=False)
        case alter.AlterQuery():
            plan = session.bind(change.query, sql)
            view = created_view(change.query, sql, plan.row_type, manager.qualify, comment=found.table.comment)
            catalog.alter_table(path, view, ignore_if_not_exists=False)
        case alter.AddPartitions():
            for partition in change.partitions:
                new_partition = CatalogPartition.create_instance(dict(partition.options))
                spec = _partition(partition.partition)
                catalog.create_partition(path, spec, new_partition, change.if_not_exists)
        case alter.DropPartitions():
            for dropped in change.partitions:
                catalog.drop_partition(path, _partition(dropped), change.if_exists)
        case _:
            changed = altered_table(found.table, change, sql, session.expression_session())
            catalog.alter_table(path, changed, ignore_if_not_exists=False)
    return ok()


def _partition(spec: PartitionSpec) -> CatalogPartitionSpec:
    return CatalogPartitionSpec({key: "" if value is None else value.name for key, value in spec})


def _alter_database(statement: alter.AlterObject, session: TableSession) -> TableResult:
    catalog_name, name = database_of(session, statement.path)
    catalog = session.manager.get_catalog(catalog_name)
    if not isinstance(statement.change, alter.SetOptions):
        raise ValidationError("ALTER DATABASE can SET options only.")
    try:
        database = catalog.get_database(name)
    except CatalogException as error:
        raise ValidationError(error.message, hint=error.hint) from error
    properties = {**database.properties, **dict(statement.change.options)}
    new = CatalogDatabase.create_instance(properties, database.comment)
    catalog.alter_database(name, new, ignore_if_not_exists=False)
    return ok()


def _alter_function(statement: alter.AlterObject, session: TableSession) -> TableResult:
    change = statement.change
    assert isinstance(change, alter.AlterFunction)
    if change.system:
        raise ValidationError("Alter temporary system function is not supported")
    if change.temporary:
        raise ValidationError("Alter temporary catalog function is not supported")
    identifier = session.manager.qualify(statement.path)
    catalog = session.manager.get_catalog(identifier.catalog_name)
    function = CatalogFunction.create_instance(change.class_name, change.language or "PYTHON")
    try:
        catalog.alter_function(identifier.to_object_path(), function, statement.if_exists)
    except CatalogException as error:
        raise ValidationError(error.message, hint=error.hint) from error
    return ok()


def _alter_catalog(statement: alter.AlterObject, session: TableSession) -> TableResult:
    (name,) = statement.path
    old = session.manager.store.get_catalog(name)
    change = statement.change
    if isinstance(change, alter.ResetOptions):
        if not change.keys:
            raise ValidationError("ALTER CATALOG RESET does not support empty key")
        if "type" in change.keys:
            raise ValidationError("ALTER CATALOG RESET does not support changing 'type'")
    with failing_with(f"Could not execute ALTER CATALOG {name}"):
        if old is None:
            raise CatalogException(f"Catalog {name} does not exist in the catalog store.")
        options, comment = old.options, old.comment
        match change:
            case alter.AlterCatalogComment():
                comment = change.comment
            case alter.SetOptions():
                options = {**options, **dict(change.options)}
            case alter.ResetOptions():
                options = {key: value for key, value in options.items() if key not in change.keys}
        session.manager.alter_catalog(CatalogDescriptor(name, Configuration.from_dict(options), comment))
    return ok()
