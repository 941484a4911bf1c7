"""TableSession: what the statements of one table environment share."""

from __future__ import annotations

import copy
import difflib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from firesteel.config import pipeline_options
from firesteel.config.configuration import Configuration
from firesteel.config.options import all_options
from firesteel.table.binder.from_clause import renamed
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.binder.schemas import resolve_schema
from firesteel.table.binder.time_attributes import without_rowtime
from firesteel.table.binder.user_functions import mark_functions
from firesteel.table.bound.errors import ValidationError
from firesteel.table.bound.session import Session
from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.catalog.manager import CatalogManager, FoundTable
from firesteel.table.catalog.modules import ModuleManager
from firesteel.table.catalog.objects import CatalogBaseTable, CatalogFunction, TableKind
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connector.model import BoundModel
from firesteel.table.environment.planning.catalog_stores import catalog_store
from firesteel.table.environment.planning.jobs import JobDirectory, StartedJobs
from firesteel.table.environment.planning.models import bound_model
from firesteel.table.environment.planning.scans import ScanBuilder
from firesteel.table.environment.planning.user_functions import FunctionLookup
from firesteel.table.environment_settings import EnvironmentSettings
from firesteel.table.parser import parse_query
from firesteel.table.plan.emit_strategy import with_emit_strategy
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.runtime.wall_clock import wall_clock
from firesteel.table.schema import Schema
from firesteel.table.table_config import TableConfig

if TYPE_CHECKING:
    from firesteel.datastream import StreamExecutionEnvironment

__all__ = ["PlannedView", "TableSession"]


@dataclass(frozen=True)
class PlannedView(CatalogBaseTable):
    """A view of a table of the program, which has no SQL text."""

    plan: LogicalNode | None = None


class TableSession:
    """Catalogs, options and the stream environment of a table environment."""

    def __init__(self, environment: StreamExecutionEnvironment, settings: EnvironmentSettings) -> None:
        self.environment = environment
        environment._configuration.add_all(settings.configuration)
        self.config = TableConfig(environment._configuration)
        self._initial = Configuration(environment._configuration)
        self.manager = CatalogManager(settings.catalog_name, settings.database_name, catalog_store(self.configuration))
        self.system_functions: dict[str, CatalogFunction] = {}
        """Temporary system functions by lower-case name."""
        self.unnamed_tables: dict[ObjectIdentifier, CatalogBaseTable] = {}
        """Tables of descriptors, which no catalog lists."""
        self.find_function = FunctionLookup(self)
        self.modules = ModuleManager()
        self.started_jobs = StartedJobs()
        self.jobs: JobDirectory = self.started_jobs
        """The jobs of SHOW JOBS and STOP JOB: those that this session started, unless it is given others."""
        self.refresh_jobs: Any = None
        """The jobs of materialized tables, once there are some."""
        self._expanding: list[str] = []

    @property
    def configuration(self) -> Configuration:
        """All options."""
        return self.config.get_configuration()

    @property
    def is_streaming(self) -> bool:
        """Whether queries run as streams; SET 'execution.runtime-mode' changes it."""
        return self.configuration.get(pipeline_options.RUNTIME_MODE) != "BATCH"

    def set_option(self, key: str, value: str) -> None:
        """Sets an option; a value that its type does not allow is an error."""
        option = next((option for option in all_options() if key in (option.key, *option.fallback_keys)), None)
        self.configuration.set(key if option is None else option, value)

    def reset_option(self, key: str | None) -> None:
        """Sets an option, or all of them, to what they were in the beginning."""
        for each in [key] if key is not None else list(self.configuration.key_set()):
            self.configuration.remove_config(each)
            if self._initial.contains_key(each):
                self.configuration.set(each, self._initial.get(each))

    def derived(self, options: Mapping[str, str]) -> TableSession:
        """A session with the same catalogs and functions, and other options."""
        derived = copy.copy(self)
        derived.environment = self.environment._create_scratch()
        derived.environment._executor = self.environment._executor
        derived.environment._slot_sharing_groups = self.environment._slot_sharing_groups
        derived.config = TableConfig(derived.environment._configuration)
        derived.find_function = FunctionLookup(derived)
        derived._expanding = []
        for key, value in options.items():
            derived.set_option(key, value)
        return derived

    def expression_session(self) -> Session:
        """What expressions depend on. A batch has one time; in a stream each row has that of its evaluation."""
        now = wall_clock if self.is_streaming else partial(int, time.time_ns())
        database = self.manager.current_database or ""
        zone = self.config.get_local_timezone()
        return Session(zone, now, database, self.is_streaming, find_function=self.find_function)

    def resolved_schema(self, table: CatalogBaseTable) -> ResolvedSchema:
        """The columns of a table or view."""
        return self.resolved_schema_of(table.schema)

    def resolved_schema_of(self, schema: Schema) -> ResolvedSchema:
        """The columns of a declaration."""
        resolved = resolve_schema(schema, self.expression_session())
        return resolved if self.is_streaming else without_rowtime(resolved)

    def resolved_columns(self, schema: Schema) -> ResolvedSchema:
        """The columns of a schema without time attributes, such as that of a model."""
        return resolve_schema(schema, self.expression_session())

    def model(self, path: Sequence[str]) -> BoundModel:
        """A model that a query calls."""
        identifier = self.manager.qualify(path)
        found = self.manager.models.find(identifier)
        if found is None:
            raise ValidationError(f"Object '{'.'.join(path)}' not found", hint=self.manager.models.nearest(identifier))
        schemas = (self.resolved_columns(found.model.input_schema), self.resolved_columns(found.model.output_schema))
        return bound_model(found, *schemas, self.configuration)

    def bind(self, query: exp.Expression, sql: str) -> LogicalNode:
        """The plan of a query."""
        session = self.expression_session()
        mark_functions(query, session)
        plan = QueryBinder(self.relation, sql, session, self.model).bind(query)
        return with_emit_strategy(plan, self.configuration) if self.is_streaming else plan

    def mark(self, query: exp.Expression) -> None:
        """Gives calls in a query the definitions of the functions of the user that they call."""
        mark_functions(query, self.expression_session())

    def relation(self, path: Sequence[str], options: tuple[tuple[str, str], ...] = ()) -> LogicalNode:
        """The plan of a table or view."""
        identifier = self.manager.qualify(path)
        found = self.find_table(identifier)
        if found is None:
            raise ValidationError(
                f"Object '{'.'.join(path)}' not found", hint=self.nearest_table(identifier.object_name)
            )
        if isinstance(found.table, PlannedView):
            assert found.table.plan is not None
            return found.table.plan
        if found.table.kind is TableKind.VIEW:
            return self._view(found.table, identifier.as_summary_string())
        scans = ScanBuilder(self.configuration, self.is_streaming)
        return scans.build(found, self.resolved_schema(found.table), dict(options))

    def find_table(self, identifier: ObjectIdentifier) -> FoundTable | None:
        """A table or view of a catalog, or one without a name; None if there is none."""
        unnamed = self.unnamed_tables.get(identifier)
        return self.manager.find_table(identifier) if unnamed is None else FoundTable(identifier, unnamed, True)

    def _view(self, view: CatalogBaseTable, name: str) -> LogicalNode:
        if name in self._expanding:
            raise ValidationError(f"The view '{name}' refers to itself.")
        assert view.expanded_query is not None
        self._expanding.append(name)
        try:
            plan = self.bind(parse_query(view.expanded_query), view.expanded_query)
        finally:
            self._expanding.pop()
        return renamed(plan, [column.name for column in view.schema.columns], name)

    def nearest_table(self, name: str) -> str | None:
        """A hint that names the nearest table of the current database."""
        catalog, database = self.manager.current_catalog, self.manager.current_database
        known = self.manager.list_tables(catalog, database) if catalog and database else []
        near = difflib.get_close_matches(name, known, 1)
        return f"Did you mean '{near[0]}'?" if near else None
