"""TableEnvironment: executes SQL."""

from __future__ import annotations

from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.catalog.catalog import Catalog
from firesteel.table.environment import ddl  # noqa: F401 - registers its statements
from firesteel.table.environment.result import TableResult
from firesteel.table.environment.session import TableSession
from firesteel.table.environment.statements import execute_statement
from firesteel.table.environment.table import Table
from firesteel.table.environment_settings import EnvironmentSettings
from firesteel.table.expressions.errors import ValidationError
from firesteel.table.parser import parse_statement
from firesteel.table.parser.statements.dml import Query
from firesteel.table.table_config import TableConfig

__all__ = ["TableEnvironment"]


class TableEnvironment:
    """Creates tables and executes SQL.

    >>> table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> table_env.sql_query("SELECT 1 AS one_").get_resolved_schema().get_column_names()
    ['one_']
    """

    def __init__(self, session: TableSession) -> None:
        self._session = session

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """An environment of its own."""
        settings = _settings(environment_settings)
        return TableEnvironment(TableSession(StreamExecutionEnvironment.get_execution_environment(), settings))

    # -- statements --------------------------------------------------------------------------------------------

    def execute_sql(self, stmt: str) -> TableResult:
        """Executes one statement."""
        return execute_statement(parse_statement(stmt), self._session)

    def sql_query(self, query: str) -> Table:
        """The table of a query."""
        statement = parse_statement(query)
        if not isinstance(statement, Query):
            raise ValidationError(
                "Unsupported SQL query! sqlQuery() only accepts a single SQL query of type SELECT, UNION, INTERSECT, "
                "EXCEPT, VALUES, and ORDER_BY.",
                hint="Use execute_sql for other statements.",
            )
        return Table(self._session.bind(statement.query, query), self._session, self)

    # -- catalogs ----------------------------------------------------------------------------------------------

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Adds a catalog."""
        self._session.manager.register_catalog(catalog_name, catalog)

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """A catalog; None if there is none of this name."""
        return self._session.manager.find_catalog(catalog_name)

    def get_current_catalog(self) -> str | None:
        """The catalog of names without one."""
        return self._session.manager.current_catalog

    def use_catalog(self, catalog_name: str) -> None:
        """Changes the current catalog."""
        self._session.manager.set_current_catalog(catalog_name)

    def get_current_database(self) -> str | None:
        """The database of names without one."""
        return self._session.manager.current_database

    def use_database(self, database_name: str) -> None:
        """Changes the current database."""
        self._session.manager.set_current_database(database_name)

    def get_config(self) -> TableConfig:
        """The options."""
        return self._session.config

    def from_path(self, path: str) -> Table:
        """The table or view of a name."""
        return Table(self._session.relation(self._path(path)), self._session, self)

    def _path(self, path: Any) -> list[str]:
        return path.split(".") if isinstance(path, str) else list(path)


def _settings(settings: EnvironmentSettings | Configuration) -> EnvironmentSettings:
    if isinstance(settings, EnvironmentSettings):
        return settings
    if not isinstance(settings, Configuration):
        raise TypeError("argument should be EnvironmentSettings or Configuration")
    return EnvironmentSettings.new_instance().with_configuration(settings).build()
