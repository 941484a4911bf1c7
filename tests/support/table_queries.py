"""Tables of connectors and queries over them, run in process without a TableEnvironment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec
from firesteel.table.binder.queries import QueryBinder
from firesteel.table.catalog import ObjectIdentifier
from firesteel.table.catalog.columns import Column
from firesteel.table.catalog.resolved_schema import ResolvedSchema, UniqueConstraint
from firesteel.table.connector.factory import FactoryContext, find_factory
from firesteel.table.connector.sink import DynamicTableSink
from firesteel.table.connector.source import ScanTableSource
from firesteel.table.connectors.in_memory import InMemorySource, batch_of
from firesteel.table.parser import parse_query
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.plan.streaming import Sink
from firesteel.table.rules.optimizer import optimize
from firesteel.table.translate.catalogue import Translator
from firesteel.testing.in_process import InProcessExecutor
from firesteel.types.logical import LogicalType, RowType

__all__ = ["context_of", "plan_of", "run_query", "sink_of", "source_of", "write_rows"]


def context_of(
    columns: Mapping[str, LogicalType] | RowType,
    options: Mapping[str, str],
    primary_key: Sequence[str] = (),
    partition_keys: Sequence[str] = (),
) -> FactoryContext:
    """A table of physical columns, as a factory sees it."""
    named = dict(zip(columns.field_names, columns.children(), strict=True)) if isinstance(columns, RowType) else columns
    key = UniqueConstraint("PK", tuple(primary_key)) if primary_key else None
    schema = ResolvedSchema([Column.physical(name, type_) for name, type_ in named.items()], primary_key=key)
    identifier = ObjectIdentifier("default_catalog", "default_database", "t")
    rest = {name: value for name, value in options.items() if name != "connector"}
    return FactoryContext(identifier, schema, rest, tuple(partition_keys))


def source_of(columns: Any, options: Mapping[str, str], **others: Any) -> ScanTableSource:
    """The source of a table."""
    context = context_of(columns, options, **others)
    source = find_factory(context, options["connector"]).create_source(context)
    assert isinstance(source, ScanTableSource)
    return source


def sink_of(columns: Any, options: Mapping[str, str], **others: Any) -> DynamicTableSink:
    """The sink of a table."""
    context = context_of(columns, options, **others)
    return find_factory(context, options["connector"]).create_sink(context)


def plan_of(sql: str, tables: Mapping[str, ScanTableSource | LogicalNode]) -> LogicalNode:
    """The optimized plan of a query over sources or plans."""

    def resolve(path: Sequence[str], options: tuple[tuple[str, str], ...]) -> LogicalNode:
        table = tables[path[-1]]
        if isinstance(table, LogicalNode):
            return table
        identifier = ObjectIdentifier("default_catalog", "default_database", path[-1])
        return TableScan(identifier, table.produced_type, options, table)

    return optimize(QueryBinder(resolve, sql).bind(parse_query(sql)))


def environment(parallelism: int) -> StreamExecutionEnvironment:
    """An environment that runs jobs in process."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env._executor = InProcessExecutor()
    return env


def run_query(sql: str, tables: Mapping[str, ScanTableSource | LogicalNode], parallelism: int = 2) -> list[Any]:
    """The rows of a query."""
    env, root = environment(parallelism), plan_of(sql, tables)
    translator = Translator(env, [root])
    rows = translator.apply(translator.translate(root), "ColumnsToRows", ColumnsToRowsSpec())
    return list(rows.execute_and_collect())


def write_rows(
    sink: DynamicTableSink,
    row_type: RowType,
    rows: Sequence[Sequence[Any]],
    kinds: Any = None,
    primary_key: tuple[int, ...] = (),
) -> None:
    """Writes rows with values as rows hold them inside of the engine."""
    env = environment(1)
    source = InMemorySource(row_type, batch_of(rows, row_type, kinds), mode=_mode(kinds))
    scan = TableScan(ObjectIdentifier("c", "d", "rows"), row_type, source=source)
    root = Sink(scan, None, sink, primary_key)
    Translator(env, [root]).translate(root)
    env.execute("write")


def _mode(kinds: Any) -> Any:
    from firesteel.table.changelog_mode import ChangelogMode

    return ChangelogMode.all() if kinds else ChangelogMode.insert_only()
