"""Streaming queries over tables of rows, run in process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.common.types import RowKind
from firesteel.config.configuration import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connectors.in_memory import InMemorySource, batch_of
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.plan.streaming import Sink
from firesteel.table.rules.optimizer import optimize
from firesteel.table.translate.catalogue import Translator
from firesteel.testing.in_process import InProcessExecutor
from firesteel.types.logical import LogicalType, RowType

__all__ = ["Tables", "materialized"]


@dataclass(frozen=True)
class _Changes(DynamicTableSink):
    """Takes all kinds of rows, and leaves them a stream."""

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return requested.with_updates() if requested.has_updates else requested

    def consume(self, stream: Any, context: SinkContext) -> Any:
        return stream

    def as_summary_string(self) -> str:
        return "changes"


class Tables:
    """Tables with the rows that are given, and queries over them."""

    def __init__(self, configuration: dict[str, str] | None = None) -> None:
        self._scans: dict[str, LogicalNode] = {}
        self._configuration = Configuration()
        for key, value in (configuration or {}).items():
            self._configuration.set_string(key, value)

    def add(
        self,
        name: str,
        columns: dict[str, LogicalType],
        rows: Sequence[Sequence[Any]],
        kinds: Sequence[RowKind] | None = None,
        primary_key: tuple[int, ...] = (),
    ) -> None:
        """Adds a table; with kinds, it is a changelog."""
        type_ = RowType.of(list(columns), list(columns.values()), nullable=False)
        mode = ChangelogMode.insert_only() if kinds is None else ChangelogMode.all()
        source = InMemorySource(type_, batch_of(rows, type_, kinds), name, mode)
        identifier = ObjectIdentifier("default_catalog", "default_database", name)
        self._scans[name] = TableScan(identifier, type_, (), source, primary_key)

    def resolve(self, path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
        """The scan of a table."""
        return self._scans[path[-1]]

    def plan(self, sql: str) -> LogicalNode:
        """The optimized plan of a query."""
        return optimize(QueryBinder(self.resolve, sql).bind(parse_query(sql)))

    def run(self, sql: str, parallelism: int = 2) -> list[tuple[str, tuple[Any, ...]]]:
        """The changelog of a query: kinds and rows."""
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(parallelism)
        env._executor = InProcessExecutor()
        root = Sink(self.plan(sql), None, _Changes())
        translator = Translator(env, [root], self._configuration)
        rows = translator.apply(translator.translate(root), "ColumnsToRows", ColumnsToRowsSpec())
        return [(str(row.get_row_kind()), tuple(row)) for row in rows.execute_and_collect()]

    def result(self, sql: str, parallelism: int = 2) -> list[tuple[Any, ...]]:
        """The rows of a query when its changes are applied, sorted."""
        return materialized(self.run(sql, parallelism))


def materialized(changes: Sequence[tuple[str, tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """The rows that are left of a changelog, sorted. A row that is taken back must have been there."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for kind, row in changes:
        rows[row] += 1 if kind in ("+I", "+U") else -1
        assert rows[row] >= 0, f"{kind}{row} takes back what is not there"
    return sorted(rows.elements(), key=repr)
