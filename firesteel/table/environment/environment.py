"""TableEnvironment: executes SQL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.catalog import Catalog
from firesteel.table.catalog.exceptions import CatalogException
from firesteel.table.catalog.manager import FoundTable
from firesteel.table.catalog.objects import CatalogBaseTable, CatalogDescriptor, TableKind
from firesteel.table.environment.function_methods import FunctionMethods
from firesteel.table.environment.model_methods import ModelMethods
from firesteel.table.environment.module_methods import ModuleMethods
from firesteel.table.environment.planning.elements import batch_of_elements, batch_of_frame
from firesteel.table.environment.planning.inserts import find_sink_table
from firesteel.table.environment.planning.session import PlannedView, TableSession
from firesteel.table.environment.planning.streams import anonymous
from firesteel.table.environment.results.result import TableResult
from firesteel.table.environment.results.spark import from_dataframe
from firesteel.table.environment.statement_set import StatementSet
from firesteel.table.environment.statements import alter, analyze, changes, describe, modules, options, procedures  # noqa: F401 - they register their statements
from firesteel.table.environment.statements.catalogs import failing_with, make_catalog
from firesteel.table.environment.statements.compiled_plan import CompiledPlan, load_plan
from firesteel.table.environment.statements.ddl import create_table
from firesteel.table.environment.statements.dispatch import execute_statement
from firesteel.table.environment.statements.explain import explain_statement
from firesteel.table.environment.statements.plans import compile_statement
from firesteel.table.environment.table import Table
from firesteel.table.environment_settings import EnvironmentSettings
from firesteel.table.explain_detail import ExplainDetail
from firesteel.table.parser import parse_path, parse_statement
from firesteel.table.parser.statements.dml import Query
from firesteel.table.plan.nodes import TableScan
from firesteel.table.plan_reference import PlanReference
from firesteel.table.schema import Schema, UnresolvedPhysicalColumn
from firesteel.table.table_config import TableConfig
from firesteel.table.table_descriptor import TableDescriptor

__all__ = ["TableEnvironment"]


class TableEnvironment(FunctionMethods, ModelMethods, ModuleMethods):
    """Creates tables and executes SQL.

    >>> table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> table_env.sql_query("SELECT 1 AS number_").get_resolved_schema().get_column_names()
    ['number_']
    """

    def __init__(self, session: TableSession) -> None:
        self._session = session
        self._manager = session.manager
        self._manager.make_catalog = partial(make_catalog, session.configuration)

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """An environment of its own."""
        settings = as_settings(environment_settings)
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

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """The plan of a query or an INSERT."""
        return explain_statement(parse_statement(stmt), self._session, extra_details)

    def compile_plan_sql(self, stmt: str) -> CompiledPlan:
        """The optimized plan of an INSERT or a statement set, which can be stored and executed later."""
        return compile_statement(parse_statement(stmt), self._session)

    def load_plan(self, plan_reference: PlanReference) -> CompiledPlan:
        """A plan that was compiled before."""
        return load_plan(self._session, plan_reference)

    def execute_plan(self, plan_reference: PlanReference) -> TableResult:
        """Executes a plan that was compiled before."""
        return self.load_plan(plan_reference).execute()

    def create_statement_set(self) -> StatementSet:
        """A set of INSERT statements that run as one job."""
        return StatementSet(self._session, self)

    def get_config(self) -> TableConfig:
        """The options."""
        return self._session.config

    # -- tables ------------------------------------------------------------------------------------------------

    def from_path(self, path: str) -> Table:
        """The table or view of a name."""
        return Table(self._session.relation(parse_path(path)), self._session, self)

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """The rows of a table that has no name."""
        identifier = anonymous("TableDescriptor")
        self._session.unnamed_tables[identifier] = _declared(descriptor)
        return Table(self._session.relation(identifier.to_list()), self._session, self)

    def from_elements(self, elements: Iterable[Any], schema: Any = None, verify_schema: bool = True) -> Table:
        """A table of rows of the program; ``schema`` is a row type or the names of the columns."""
        source = batch_of_elements(list(elements), schema, verify_schema)
        return Table(TableScan(anonymous("Collection_Source"), source.type, (), source), self._session, self)

    def from_pandas(self, pdf: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """A table of the rows of a pandas DataFrame; ``schema`` is a row type or the names of the columns."""
        del splits_num  # the rows are one batch
        source = batch_of_frame(pdf, schema)
        return Table(TableScan(anonymous("Pandas_Source"), source.type, (), source), self._session, self)

    def from_dataframe(self, dataframe: Any) -> Table:
        """A table of the rows of a Spark DataFrame. In Flink there is no equivalent."""
        source = from_dataframe(self._session, dataframe)
        return Table(TableScan(anonymous("DataFrame_Source"), source.produced_type, (), source), self._session, self)

    def create_temporary_view(self, view_path: str, table_or_data_stream: Any, *fields_or_schema: Any) -> None:
        """Gives a table, or a stream of a StreamTableEnvironment, a name for the time of the session."""
        table = self._as_table(table_or_data_stream, fields_or_schema)
        self._create_view(view_path, table, ignore_if_exists=False, temporary=True)

    def create_view(self, view_path: str, table: Table, ignore_if_exists: bool | None = False) -> None:
        """Gives a table a name in the catalog."""
        self._create_view(view_path, table, bool(ignore_if_exists), temporary=False)

    def create_temporary_table(
        self,
        path: str,
        descriptor: TableDescriptor,
        ignoreIfExists: bool | None = False,  # noqa: N803
    ) -> None:
        """Creates a table for the time of the session."""
        self._create_table(path, descriptor, bool(ignoreIfExists), temporary=True)

    def create_table(self, path: str, descriptor: TableDescriptor, ignoreIfExists: bool | None = False) -> None:  # noqa: N803
        """Creates a table in its catalog."""
        self._create_table(path, descriptor, bool(ignoreIfExists), temporary=False)

    def drop_temporary_table(self, table_path: str) -> bool:
        """Drops a temporary table; False if there is none."""
        return self._drop(table_path, TableKind.TABLE, temporary=True)

    def drop_temporary_view(self, view_path: str) -> bool:
        """Drops a temporary view; False if there is none."""
        return self._drop(view_path, TableKind.VIEW, temporary=True)

    def drop_table(self, table_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Drops a table; False if there is none."""
        return self._drop(table_path, TableKind.TABLE, must_exist=not ignore_if_not_exists)

    def drop_view(self, view_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Drops a view; False if there is none."""
        return self._drop(view_path, TableKind.VIEW, must_exist=not ignore_if_not_exists)

    # -- catalogs ----------------------------------------------------------------------------------------------

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Adds a catalog."""
        self._manager.register_catalog(catalog_name, catalog)

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """Makes a catalog of options, and adds it to the catalog store."""
        with failing_with(f"Could not execute CREATE CATALOG: (catalogName: [{catalog_name}])"):
            self._manager.create_catalog(replace(catalog_descriptor, catalog_name=catalog_name))

    def get_catalog(self, catalog_name: str) -> Catalog | None:
        """A catalog; None if there is none of this name."""
        return self._manager.find_catalog(catalog_name)

    def get_current_catalog(self) -> str | None:
        """The catalog of names without one."""
        return self._manager.current_catalog

    def use_catalog(self, catalog_name: str) -> None:
        """Changes the current catalog."""
        self._manager.set_current_catalog(catalog_name)

    def get_current_database(self) -> str | None:
        """The database of names without one."""
        return self._manager.current_database

    def use_database(self, database_name: str) -> None:
        """Changes the current database."""
        self._manager.set_current_database(database_name)

    def list_catalogs(self) -> list[str]:
        """The catalogs."""
        return self._manager.list_catalogs()

    def list_databases(self) -> list[str]:
        """The databases of the current catalog."""
        return self._manager.get_catalog(self._manager.require_catalog()).list_databases()

    def list_tables(self) -> list[str]:
        """The tables and views of the current database, temporary ones included."""
        return self._manager.list_tables(*self._database())

    def list_views(self) -> list[str]:
        """The views of the current database, temporary ones included."""
        return self._manager.list_tables(*self._database(), TableKind.VIEW)

    def list_materialized_tables(self) -> list[str]:
        """The materialized tables of the current database."""
        return self._manager.list_tables(*self._database(), TableKind.MATERIALIZED_TABLE)

    def list_temporary_tables(self) -> list[str]:
        """The temporary tables and views of the current database."""
        return sorted(self._manager.temporary_tables.names(*self._database()))

    def list_temporary_views(self) -> list[str]:
        """The temporary views of the current database."""
        kept = self._manager.temporary_tables.by_name
        names = (self._manager.qualify([name]) for name in self.list_temporary_tables())
        return [name.object_name for name in names if kept[name].kind is TableKind.VIEW]

    # -- dependencies of functions -----------------------------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Adds a file, package or directory that functions can import."""
        self._session.environment.add_python_file(file_path)

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Has the packages of a requirements file installed for jobs."""
        self._session.environment.set_python_requirements(requirements_file_path, requirements_cache_dir)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Adds an archive that is extracted to the working directory of functions."""
        self._session.environment.add_python_archive(archive_path, target_dir)

    # -- for the other classes of this package -----------------------------------------------------------------

    def _sink_table(self, path_or_descriptor: Any) -> FoundTable:
        if not isinstance(path_or_descriptor, TableDescriptor):
            return find_sink_table(self._session, parse_path(path_or_descriptor))
        identifier = anonymous("TableDescriptor_Sink")
        self._session.unnamed_tables[identifier] = _declared(path_or_descriptor)
        return find_sink_table(self._session, identifier.to_list())

    def _database(self) -> tuple[str, str]:
        identifier = self._manager.qualify(["-"])
        return identifier.catalog_name, identifier.database_name

    def _as_table(self, table: Any, fields_or_schema: tuple[Any, ...]) -> Table:
        if not isinstance(table, Table):
            raise TypeError("A view is made of a Table; of a DataStream in a StreamTableEnvironment.")
        if fields_or_schema:
            raise ValueError("The fields or schema of a view can be given for a DataStream only.")
        return table

    def _create_view(self, path: str, table: Table, ignore_if_exists: bool, temporary: bool) -> None:
        fields = table._plan.row_type.fields
        schema = Schema(tuple(UnresolvedPhysicalColumn(part.name, part.type) for part in fields))
        view = PlannedView(TableKind.VIEW, schema, plan=table._plan)
        create_table(self._session, self._manager.qualify(parse_path(path)), view, ignore_if_exists, temporary)

    def _create_table(self, path: str, descriptor: TableDescriptor, ignore_if_exists: bool, temporary: bool) -> None:
        identifier = self._manager.qualify(parse_path(path))
        table = _declared(descriptor)
        self._session.resolved_schema(table)
        create_table(self._session, identifier, table, ignore_if_exists, temporary)

    def _drop(self, path: str, kind: TableKind, *, temporary: bool = False, must_exist: bool = False) -> bool:
        identifier = self._manager.qualify(parse_path(path))
        try:
            self._manager.drop_table(identifier, kind, temporary=temporary)
        except CatalogException as error:
            if must_exist or "exists." in error.message:
                raise ValidationError(error.message, hint=error.hint) from error
            return False
        return True


def _declared(descriptor: TableDescriptor) -> CatalogBaseTable:
    if descriptor.schema is None:
        raise ValidationError(
            "The descriptor of a table needs a schema.", hint="TableDescriptor.for_connector(…).schema(…) declares it."
        )
    keys, comment = descriptor.partition_keys, descriptor.comment
    return CatalogBaseTable.create_table(descriptor.schema, keys, descriptor.options, comment)


def as_settings(settings: EnvironmentSettings | Configuration) -> EnvironmentSettings:
    """The settings of either of the two."""
    if isinstance(settings, EnvironmentSettings):
        return settings
    if not isinstance(settings, Configuration):
        raise TypeError("argument should be EnvironmentSettings or Configuration")
    return EnvironmentSettings.new_instance().with_configuration(settings).build()
