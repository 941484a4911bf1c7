"""SHOW, DESCRIBE of databases and catalogs, and USE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from firesteel.table.binder.ddl.show_create import create_catalog_text, create_table_text, create_view_text
from firesteel.table.binder.table_functions.changelogs import CHANGELOG_FUNCTIONS
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.objects import TableKind
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.planning.user_functions import function_names
from firesteel.table.environment.results.result import TableResult, ok, rows_of, strings
from firesteel.table.environment.statements.describe import describe_table
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.environment.statements.jobs import show_jobs
from firesteel.table.environment.statements.materialized import show_create_materialized_table
from firesteel.table.environment.statements.models import show_create_model
from firesteel.table.functions.registry import functions
from firesteel.table.parser.statements import utility
from firesteel.types.logical import BooleanType, VarCharType

__all__ = ["list_functions", "list_user_functions"]

_COLUMNS = {
    "CATALOGS": "catalog name",
    "CURRENT CATALOG": "current catalog name",
    "CURRENT DATABASE": "current database name",
    "DATABASES": "database name",
    "TABLES": "table name",
    "VIEWS": "view name",
    "MATERIALIZED TABLES": "materialized table",
    "FUNCTIONS": "function name",
    "USER FUNCTIONS": "function name",
    "MODULES": "module name",
    "JARS": "jars",
    "MODELS": "model name",
    "PROCEDURES": "procedure name",
}


@execute_statement.register
def _show(statement: utility.Show, session: TableSession) -> TableResult:
    if statement.what == "COLUMNS":
        assert statement.path is not None
        return describe_table(session, statement.path, lambda names: _matching(names, statement.like))
    if statement.what == "FULL MODULES":
        schema = ResolvedSchema.physical(["module name", "used"], [VarCharType(), BooleanType()])
        return TableResult(
            schema,
            rows_of(
                schema.to_physical_row_data_type(),
                [(entry.name(), entry.used()) for entry in session.modules.list_full_modules()],
            ),
        )
    if statement.what == "JOBS":
        return show_jobs(session)
    if statement.what not in _COLUMNS:
        raise ValidationError(f"SHOW {statement.what} is not supported yet.")
    names = _matching(_names(statement, session), statement.like)
    return strings([_COLUMNS[statement.what]], [(name,) for name in names])


def _names(statement: utility.Show, session: TableSession) -> Sequence[str]:
    manager = session.manager
    match statement.what:
        case "CATALOGS":
            return manager.list_catalogs()
        case "CURRENT CATALOG":
            return [manager.current_catalog or ""]
        case "CURRENT DATABASE":
            return [manager.current_database or ""]
        case "DATABASES":
            catalog = statement.path[-1] if statement.path else manager.require_catalog()
            return manager.get_catalog(catalog).list_databases()
        case "FUNCTIONS":
            return list_functions(session)
        case "USER FUNCTIONS":
            return list_user_functions(session)
        case "MODULES":
            return session.modules.list_modules()
        case "JARS":
            return []
    catalog, database = _database(statement.path, session)
    match statement.what:
        case "TABLES":
            return manager.list_tables(catalog, database)
        case "VIEWS":
            return manager.list_tables(catalog, database, TableKind.VIEW)
        case "MATERIALIZED TABLES":
            return manager.list_tables(catalog, database, TableKind.MATERIALIZED_TABLE)
        case "MODELS":
            return sorted(manager.get_catalog(catalog).list_models(database))
    return manager.get_catalog(catalog).list_procedures(database)


def _database(path: Sequence[str] | None, session: TableSession) -> tuple[str, str]:
    """The database of FROM or IN, or the current one."""
    manager = session.manager
    if not path:
        identifier = manager.qualify(["-"])
        return identifier.catalog_name, identifier.database_name
    catalog = path[0] if len(path) > 1 else manager.require_catalog()
    if not manager.get_catalog(catalog).database_exists(path[-1]):
        raise ValidationError(f"Database '{catalog}'.'{path[-1]}' doesn't exist.")
    return catalog, path[-1]


def list_user_functions(session: TableSession) -> list[str]:
    """The functions of the program in the current database, and temporary ones."""
    return function_names(session)


def list_functions(session: TableSession) -> list[str]:
    """All functions: built-in ones and those of the program."""
    built_in = {name.lower() for name in functions() if name.replace("_", "").isalnum()}
    of_modules = {name.lower() for _, module in session.modules.used() for name in module.list_functions()}
    return sorted({*built_in, *of_modules, *map(str.lower, CHANGELOG_FUNCTIONS), *list_user_functions(session)})


def _matching(names: Iterable[str], like: utility.LikePattern | None) -> list[str]:
    if like is None:
        return list(names)
    parts = (".*" if part == "%" else "." if part == "_" else re.escape(part) for part in like.pattern)
    pattern = re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if like.ignore_case else 0))
    return [name for name in names if (pattern.fullmatch(name) is None) == like.negated]


@execute_statement.register
def _show_create(statement: utility.ShowCreate, session: TableSession) -> TableResult:
    manager = session.manager
    if statement.kind == "CATALOG":
        name = statement.path[0]
        descriptor = manager.store.get_catalog(name)
        if descriptor is None:
            raise ValidationError(f"Cannot obtain metadata information from Catalog {name}.")
        return strings(["result"], [(create_catalog_text(name, descriptor.options, descriptor.comment),)])
    if statement.kind == "MATERIALIZED TABLE":
        return show_create_materialized_table(statement.path, session)
    if statement.kind == "MODEL":
        return show_create_model(statement.path, session)
    if statement.kind not in ("TABLE", "VIEW"):
        raise ValidationError(f"SHOW CREATE {statement.kind} is not supported yet.")
    identifier = manager.qualify(statement.path)
    found = manager.find_table(identifier)
    if found is None:
        raise ValidationError(
            f"Could not execute SHOW CREATE {statement.kind}. {statement.kind.capitalize()} with identifier "
            f"{identifier} does not exist.",
            hint=session.nearest_table(identifier.object_name),
        )
    if found.table.kind is not TableKind[statement.kind]:
        one, other = found.table.kind.value.replace("_", " "), statement.kind
        raise ValidationError(
            f"SHOW CREATE {other} is only supported for {other.lower()}s, but {identifier} is a {one.lower()}. Please "
            f"use SHOW CREATE {one} instead."
        )
    text = create_view_text if statement.kind == "VIEW" else create_table_text
    return strings(["result"], [(text(found, session.resolved_schema(found.table)),)])


@execute_statement.register
def _show_partitions(statement: utility.ShowPartitions, session: TableSession) -> TableResult:
    identifier = session.manager.qualify(statement.path)
    found = session.manager.get_table(identifier)
    catalog = session.manager.get_catalog(identifier.catalog_name)
    if not found.table.is_partitioned:
        raise ValidationError(
            f"Table {identifier.to_object_path()} in catalog {identifier.catalog_name} is not partitioned."
        )
    specs = [] if found.is_temporary else catalog.list_partitions(identifier.to_object_path())
    wanted = {key: "" if value is None else value.name for key, value in statement.partition}
    specs = [spec for spec in specs if wanted.items() <= spec.partition_spec.items()]
    rows = ["/".join(f"{key}={value}" for key, value in spec.partition_spec.items()) for spec in specs]
    return strings(["partition name"], [(row,) for row in rows])


@execute_statement.register
def _use_catalog(statement: utility.UseCatalog, session: TableSession) -> TableResult:
    session.manager.set_current_catalog(statement.name)
    return ok()


@execute_statement.register
def _use_database(statement: utility.UseDatabase, session: TableSession) -> TableResult:
    manager = session.manager
    if len(statement.path) > 1:
        catalog, database = statement.path
        if not manager.get_catalog(catalog).database_exists(database):
            raise CatalogException(f"A database with name [{database}] does not exist in the catalog: [{catalog}].")
        manager.set_current_catalog(catalog)
    manager.set_current_database(statement.path[-1])
    return ok()
