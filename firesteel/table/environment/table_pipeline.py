"""TablePipeline: a query and the table that its rows are written to."""

from __future__ import annotations

from firesteel.table.catalog.identifiers import ObjectIdentifier
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.planning.streams import is_anonymous
from firesteel.table.environment.results.execution import execute_inserts
from firesteel.table.environment.results.result import TableResult
from firesteel.table.environment.statements.compiled_plan import CompiledPlan, compile_plan
from firesteel.table.environment.statements.explain import explain_plans
from firesteel.table.explain_detail import ExplainDetail
from firesteel.table.plan.streaming import Sink

__all__ = ["TablePipeline"]


class TablePipeline:
    """The rows of a table on their way to another one: ``Table.insert_into`` makes it."""

    def __init__(self, session: TableSession, sink: Sink) -> None:
        self._session = session
        self._sink = sink

    def execute(self) -> TableResult:
        """Runs the query and writes its rows."""
        return execute_inserts(self._session, [self._sink])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan."""
        return explain_plans([self._sink], self._session, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan."""
        print(self.explain(*extra_details))  # noqa: T201

    def compile_plan(self) -> CompiledPlan:
        """The optimized plan, which can be stored and executed later."""
        return compile_plan(self._session, [self._sink])

    def get_sink_identifier(self) -> ObjectIdentifier | None:
        """The name of the table that is written to; None if a descriptor without a name declares it."""
        identifier = self._sink.identifier
        return None if identifier is None or is_anonymous(identifier) else identifier

    def __str__(self) -> str:
        identifier = self._sink.identifier
        return f"TablePipeline with sink table '{'' if identifier is None else identifier}'"
