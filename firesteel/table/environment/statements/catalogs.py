"""CREATE, ALTER and DROP of catalogs, databases and functions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.catalog import Catalog
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.in_memory import GenericInMemoryCatalog
from firesteel.table.catalog.objects import CatalogBaseTable, CatalogDatabase, CatalogDescriptor, CatalogFunction
from firesteel.table.environment.planning.scans import options_text
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import TableResult, ok
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.parser.statements import objects

__all__ = ["CATALOG_TYPES", "create_table", "database_of", "drop_function", "failing_with", "make_catalog"]

CATALOG_TYPES: dict[str, str] = {
    "generic_in_memory": "firesteel.table.environment.statements.catalogs",
    "iceberg": "firesteel.table.connectors.iceberg.catalog",
    "jdbc": "firesteel.table.connectors.postgres.catalog",
    "spark": "firesteel.table.environment.spark_tables",
}
"""The module of each type of catalog; its ``create(name, options, configuration)`` makes one."""


@contextmanager
def failing_with(message: str) -> Iterator[None]:
    """Errors of catalogs say which statement failed."""
    try:
        yield
    except CatalogException as error:
        raise ValidationError(f"{message}\n{error.message}", hint=error.hint) from error


# -- catalogs --------------------------------------------------------------------------------------------------


def create(name: str, options: Mapping[str, str], configuration: Configuration) -> Catalog:  # noqa: ARG001
    """A catalog in memory."""
    unknown = [key for key in options if key not in ("type", "default-database", "property-version")]
    if unknown:
        raise ValidationError(
            f"Unsupported options found for 'generic_in_memory'.\n\nUnsupported options:\n\n{unknown[0]}"
        )
    return GenericInMemoryCatalog(name, options.get("default-database", "default"))


def make_catalog(configuration: Configuration, descriptor: CatalogDescriptor) -> Catalog:
    """Makes a catalog of its options; ``configuration`` is that of the session."""
    name, options = descriptor.catalog_name, descriptor.options
    kind = options.get("type")
    message = f"Unable to create catalog '{name}'.\n\nCatalog options are:\n{options_text(options)}"
    if kind is None:
        raise ValidationError(
            f"{message}\nCatalog options do not contain an option key 'type' for discovering a catalog."
        )
    if kind not in CATALOG_TYPES:
        raise ValidationError(
            f"{message}\nCould not find any factory for identifier '{kind}'. Available factory identifiers are:\n\n"
            + "\n".join(sorted(CATALOG_TYPES))
        )
    factory: Any = importlib.import_module(CATALOG_TYPES[kind])
    try:
        catalog: Catalog = factory.create(name, options, configuration)
    except ValidationError as error:
        raise ValidationError(f"{message}\n{error.reason}", hint=error.hint) from error
    return catalog


@execute_statement.register
def _create_catalog(statement: objects.CreateCatalog, session: TableSession) -> TableResult:
    if statement.if_not_exists and session.manager.has_catalog(statement.name):
        return ok()
    with failing_with(f"Could not execute CREATE CATALOG: (catalogName: [{statement.name}])"):
        options = Configuration.from_dict(dict(statement.options))
        session.manager.create_catalog(CatalogDescriptor(statement.name, options, statement.comment))
    return ok()


# -- databases -------------------------------------------------------------------------------------------------


@execute_statement.register
def _create_database(statement: objects.CreateDatabase, session: TableSession) -> TableResult:
    catalog, name = database_of(session, statement.path)
    database = CatalogDatabase.create_instance(dict(statement.options), statement.comment)
    message = (
        f"Could not execute CREATE DATABASE: (catalogName: [{catalog}], databaseName: [{name}], "
        f"ignoreIfExists: [{str(statement.if_not_exists).lower()}])"
    )
    with failing_with(message):
        session.manager.get_catalog(catalog).create_database(name, database, statement.if_not_exists)
    return ok()


@execute_statement.register
def _drop_database(statement: objects.DropDatabase, session: TableSession) -> TableResult:
    catalog, name = database_of(session, statement.path)
    with failing_with(
        f"Could not execute DROP DATABASE {catalog}.{name} {'CASCADE' if statement.cascade else 'RESTRICT'}"
    ):
        session.manager.drop_database(catalog, name, statement.if_exists, statement.cascade)
    return ok()


def database_of(session: TableSession, path: tuple[str, ...]) -> tuple[str, str]:
    """The catalog and the name of a database."""
    if len(path) > 2:
        raise ValidationError(f"The name of a database has one or two parts, got '{'.'.join(path)}'.")
    return (path[0], path[1]) if len(path) == 2 else (session.manager.require_catalog(), path[0])


# -- tables ----------------------------------------------------------------------------------------------------


def create_table(
    session: TableSession,
    identifier: ObjectIdentifier,
    table: CatalogBaseTable,
    ignore_if_exists: bool,
    temporary: bool,
) -> None:
    """Adds a table or view to its catalog."""
    try:
        session.manager.create_table(identifier, table, ignore_if_exists=ignore_if_exists, temporary=temporary)
    except CatalogException as error:
        if temporary:
            raise ValidationError(str(error)) from error
        message = f"Could not execute CreateTable in path {identifier}"
        raise ValidationError(f"{message}\n{error}", hint=error.hint) from error


# -- functions -------------------------------------------------------------------------------------------------


@execute_statement.register
def _create_function(statement: objects.CreateFunction, session: TableSession) -> TableResult:
    language = (statement.language or "JAVA").upper()
    if language != "PYTHON":
        raise ValidationError(
            f"Functions in {language} are not supported.",
            hint="CREATE FUNCTION … AS 'module.function' LANGUAGE PYTHON.",
        )
    function = CatalogFunction.create_instance(statement.class_name, language)
    if statement.system:
        name = statement.path[-1].lower()
        if name in session.system_functions and not statement.if_not_exists:
            raise ValidationError(
                f"Could not register temporary system function. A function named '{name}' does already exist."
            )
        session.system_functions.setdefault(name, function)
        return ok()
    identifier = session.manager.qualify(statement.path)
    if statement.temporary:
        known = session.manager.temporary_functions.by_name
        if identifier in known and not statement.if_not_exists:
            raise ValidationError(
                f"Could not register temporary catalog function. A function '{identifier}' does already exist."
            )
        known.setdefault(identifier, function)
        return ok()
    with failing_with(f"Could not register function '{identifier}'."):
        catalog = session.manager.get_catalog(identifier.catalog_name)
        catalog.create_function(identifier.to_object_path(), function, statement.if_not_exists)
    return ok()


def drop_function(statement: objects.Drop, session: TableSession) -> TableResult:
    """DROP FUNCTION."""
    if statement.system:
        name = statement.path[-1].lower()
        if session.system_functions.pop(name, None) is None and not statement.if_exists:
            raise ValidationError(f"Could not drop temporary system function. A function named '{name}' doesn't exist.")
        return ok()
    identifier = session.manager.qualify(statement.path)
    if statement.temporary:
        known = session.manager.temporary_functions.by_name
        if known.pop(identifier, None) is None and not statement.if_exists:
            raise ValidationError(f"Temporary catalog function {identifier} doesn't exist")
        return ok()
    try:
        catalog = session.manager.get_catalog(identifier.catalog_name)
        catalog.drop_function(identifier.to_object_path(), statement.if_exists)
    except CatalogException as error:
        raise ValidationError(error.message, hint=error.hint) from error
    return ok()
