"""Runs plans as jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.config import pipeline_options, table_options
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.catalog.columns import PhysicalColumn
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.environment.planning.program_sink import ProgramSink
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.results.result import PrintStyle, ResultRows, TableResult
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.streaming import Sink
from firesteel.table.rules.optimizer import optimize
from firesteel.table.runtime.operators.collect import CollectColumnsSpec
from firesteel.table.translate.catalogue import Translator
from firesteel.types.logical import BigIntType

if TYPE_CHECKING:
    from firesteel.common.job_client import JobClient
    from firesteel.datastream import StreamExecutionEnvironment

__all__ = ["add_inserts", "collecting", "execute_inserts", "execute_query", "job_plan", "schema_of"]


def schema_of(plan: LogicalNode) -> ResolvedSchema:
    """The columns of a query."""
    return ResolvedSchema(PhysicalColumn(part.name, part.type) for part in plan.row_type.fields)


def execute_query(session: TableSession, plan: LogicalNode) -> TableResult:
    """Runs a query whose rows the client collects."""
    translator = _translator(session, [root := optimize(collecting(plan))])
    results = translator.translate(root).execute_and_collect("collect")
    return TableResult(
        schema_of(plan),
        ResultRows(results),
        style=PrintStyle.CHANGELOG if session.is_streaming else PrintStyle.QUERY,
        job_client=results._job_client,
        session=session.expression_session(),
        max_width=session.configuration.get(table_options.MAX_COLUMN_WIDTH),
    )


def collecting(plan: LogicalNode) -> Sink:
    """The plan of a query whose rows the client collects."""
    return Sink(plan, None, ProgramSink("collect", CollectColumnsSpec()))


def execute_inserts(session: TableSession, sinks: Sequence[Sink]) -> TableResult:
    """Runs plans that write to tables, as one job."""
    translator = _translator(session, roots := [optimize(sink) for sink in sinks])
    for root in roots:
        translator.translate(root)
    tables = [_table_of(sink) for sink in sinks]
    client = translator.environment.execute_async(f"insert-into_{','.join(tables)}")
    names = _numbered(tables)
    schema = ResolvedSchema.physical(names, [BigIntType() for _ in names])
    batch = batch_of([[-1] * len(names)], schema.to_physical_row_data_type())
    return TableResult(schema, ResultRows(_After(client, batch)), style=PrintStyle.RAW, job_client=client)


def add_inserts(session: TableSession, sinks: Sequence[Sink]) -> None:
    """Adds plans that write to tables to the program of the stream environment."""
    roots = [optimize(sink) for sink in sinks]
    translator = Translator(session.environment, roots, session.configuration, session.expression_session())
    for root in roots:
        translator.translate(root)


def job_plan(session: TableSession, plans: Sequence[LogicalNode]) -> str:
    """The operators of the job that runs plans, as JSON."""
    sinks = [plan if isinstance(plan, Sink) else collecting(plan) for plan in plans]
    translator = _translator(session, roots := [optimize(sink) for sink in sinks])
    for root in roots:
        translated = translator.translate(root)
        if root.identifier is None:  # type: ignore[attr-defined]
            translated.sink_to(CollectSink("plan"))
    return translator.environment.get_execution_plan()


class _After:
    """The row of an INSERT, which is there when the job has ended."""

    def __init__(self, client: JobClient, batch: ColumnBatch) -> None:
        self._client = client
        self._batch = batch

    def __iter__(self) -> Iterator[ColumnBatch]:
        self._client.get_job_execution_result().result()
        yield self._batch

    def close(self) -> None:
        result = self._client.get_job_execution_result()
        if not result.done():
            self._client.cancel().result()


def _table_of(sink: Sink) -> str:
    return sink.sink.as_summary_string() if sink.identifier is None else sink.identifier.as_summary_string()


def _numbered(names: Sequence[str]) -> list[str]:
    """Names of tables; those that occur several times are numbered."""
    return [
        name if names.count(name) == 1 else f"{name}_{names[: index + 1].count(name)}"
        for index, name in enumerate(names)
    ]


def _translator(session: TableSession, roots: Sequence[LogicalNode]) -> Translator:
    return Translator(_job_environment(session), roots, session.configuration, session.expression_session())


def _job_environment(session: TableSession) -> StreamExecutionEnvironment:
    """An environment for one job, so that operators of the program do not become part of it."""
    environment: Any = session.environment._create_scratch()
    environment._executor = session.environment._executor
    environment._slot_sharing_groups = session.environment._slot_sharing_groups
    if not session.is_streaming:
        environment._configuration.set(pipeline_options.RUNTIME_MODE, "BATCH")
    return environment  # type: ignore[no-any-return]
