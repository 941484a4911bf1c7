"""StatementSet: INSERT statements that run as one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.table.bound.errors import ValidationError
from firesteel.table.environment.planning.inserts import bind_insert, sink_of
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import add_inserts, execute_inserts
from firesteel.table.environment.results.result import TableResult
from firesteel.table.environment.statements.compiled_plan import CompiledPlan, compile_plan
from firesteel.table.environment.statements.explain import explain_plans
from firesteel.table.environment.table_pipeline import TablePipeline
from firesteel.table.parser import parse_statement
from firesteel.table.parser.statements.dml import Insert
from firesteel.table.plan.streaming import Sink

if TYPE_CHECKING:
    from firesteel.table.environment.environment import TableEnvironment
    from firesteel.table.environment.table import Table
    from firesteel.table.explain_detail import ExplainDetail

__all__ = ["StatementSet"]


class StatementSet:
    """Inserts that run as one job, in which equal parts of their plans run once."""

    def __init__(self, session: TableSession, environment: TableEnvironment) -> None:
        self._session = session
        self._t_env = environment
        self._sinks: list[Sink] = []

    def add_insert_sql(self, stmt: str) -> StatementSet:
        """Adds an INSERT statement."""
        statement = parse_statement(stmt)
        if not isinstance(statement, Insert):
            raise ValidationError("Only insert statement is supported now.")
        self._sinks.append(bind_insert(self._session, statement))
        return self

    def add_insert(self, target_path_or_descriptor: Any, table: Table, overwrite: bool = False) -> StatementSet:
        """Adds the rows of a table that are written to another one."""
        found = self._t_env._sink_table(target_path_or_descriptor)
        self._sinks.append(sink_of(self._session, found, table._plan, overwrite=overwrite))
        return self

    def add(self, table_pipeline: TablePipeline) -> StatementSet:
        """Adds a pipeline, which ``Table.insert_into`` makes."""
        if table_pipeline._session is not self._session:
            raise ValidationError("Only pipelines of the same TableEnvironment can be added to a statement set.")
        self._sinks.append(table_pipeline._sink)
        return self

    def attach_as_datastream(self) -> None:
        """Adds the inserts to the program of the stream environment, which executes them with its own operators."""
        add_inserts(self._session, self._taken())

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plans of all inserts."""
        return explain_plans(self._sinks, self._session, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plans."""
        print(self.explain(*extra_details))  # noqa: T201

    def compile_plan(self) -> CompiledPlan:
        """The optimized plan of all inserts, which can be stored and executed later; the set is empty then."""
        return compile_plan(self._session, self._taken())

    def execute(self) -> TableResult:
        """Runs all inserts; the set is empty then."""
        return execute_inserts(self._session, self._taken())

    def _taken(self) -> list[Sink]:
        if not self._sinks:
            raise ValidationError("The statement set is empty.", hint="Add an INSERT with add_insert_sql.")
        sinks, self._sinks = self._sinks, []
        return sinks
