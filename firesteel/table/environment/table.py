"""Table: a query of a table environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.environment.planning.inserts import sink_of
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.execution import dataframe_of, execute_inserts, execute_query, schema_of
from firesteel.table.environment.results.result import TableResult
from firesteel.table.environment.statements.explain import explain_plans
from firesteel.table.explain_detail import ExplainDetail
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.table_schema import TableSchema

if TYPE_CHECKING:
    from firesteel.table.environment.environment import TableEnvironment

__all__ = ["Table"]


class Table:
    """The rows of a query: nothing is computed before it is executed or written."""

    def __init__(self, plan: LogicalNode, session: TableSession, environment: TableEnvironment) -> None:
        self._plan = plan
        self._session = session
        self._t_env = environment

    def get_schema(self) -> TableSchema:
        """Names and types of the columns."""
        schema = self.get_resolved_schema()
        return TableSchema(schema.get_column_names(), schema.get_column_data_types())

    def get_resolved_schema(self) -> ResolvedSchema:
        """The columns."""
        return schema_of(self._plan)

    def print_schema(self) -> None:
        """Prints the columns as a tree."""
        print(self.get_resolved_schema())  # noqa: T201

    def execute(self) -> TableResult:
        """Runs the query; its rows come to the client."""
        return execute_query(self._session, self._plan)

    def execute_insert(self, table_path_or_descriptor: Any, overwrite: bool = False) -> TableResult:
        """Writes the rows to a table."""
        found = self._t_env._sink_table(table_path_or_descriptor)
        return execute_inserts(self._session, [sink_of(self._session, found, self._plan, overwrite=overwrite)])

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan of the query."""
        return explain_plans([self._plan], self._session, extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints the plan."""
        print(self.explain(*extra_details))  # noqa: T201

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame; for bounded queries."""
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]

        names = self.get_resolved_schema().get_column_names()
        with self.execute().collect() as rows:
            values = [list(row) for row in rows]
        return pd.DataFrame(values, columns=names)

    def to_dataframe(self) -> Any:
        """The rows as a Spark DataFrame, for queries over bounded tables; Spark computes it when it is used.

        In Flink there is no equivalent.
        """
        return dataframe_of(self._session, self._plan)

    def __str__(self) -> str:
        return self._plan.explain()
