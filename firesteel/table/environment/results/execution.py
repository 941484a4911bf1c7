"""Runs plans as jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.config import checkpointing_options, pipeline_options, table_options
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.errors import ValidationError
from firesteel.table.catalog.columns import PhysicalColumn
from firesteel.table.catalog.resolved_schema import ResolvedSchema
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.environment.planning.program_sink import ProgramSink
from firesteel.table.environment.planning.session import TableSession
from firesteel.table.environment.planning.streams import anonymous
from firesteel.table.environment.results.final_rows import FinalRows
from firesteel.table.environment.results.result import PrintStyle, ResultRows, TableResult
from firesteel.table.environment.results.spark import SparkRows, from_dataframe, plan_for_spark
from firesteel.table.plan.constraints import ConstraintEnforcer
from firesteel.table.plan.nodes import LogicalNode, TableScan
from firesteel.table.plan.streaming import FinalRows as FinalRowsNode
from firesteel.table.plan.streaming import Sink
from firesteel.table.rules.bounded_sort import bounded_sorts
from firesteel.table.rules.optimizer import optimize, optimize_all
from firesteel.table.rules.options import OptimizerOptions
from firesteel.table.runtime.operators.collect import CollectColumnsSpec, CollectedColumns
from firesteel.table.spark_sql.queries import UnsupportedInSparkError
from firesteel.table.translate.catalogue import Translator
from firesteel.types.logical import BigIntType

if TYPE_CHECKING:
    from firesteel.common.job_client import JobClient
    from firesteel.datastream import StreamExecutionEnvironment

__all__ = [
    "AfterJob",
    "add_inserts",
    "collecting",
    "dataframe_of",
    "execute_inserts",
    "execute_query",
    "execute_translated",
    "job_environment",
    "job_plan",
    "optimizer_options",
    "schema_of",
    "translator_of",
    "with_final_rows",
]


def schema_of(plan: LogicalNode) -> ResolvedSchema:
    """The columns of a query."""
    return ResolvedSchema(PhysicalColumn(part.name, part.type) for part in plan.row_type.fields)


def execute_query(session: TableSession, plan: LogicalNode) -> TableResult:
    """Runs a query whose rows the client collects."""
    client, rows = (None, None) if session.is_streaming else _on_spark(session, plan)
    if rows is None:
        if session.is_streaming:
            root = optimize(collecting(plan), OptimizerOptions.of(session.configuration))
        else:
            root = optimize(collecting(bounded_sorts(plan)), optimizer_options(session))
        translator = translator_of(session, [root])
        stream = translator.translate(root)
        _choose_runtime_mode(session, translator)
        collected = stream.execute_and_collect(_job_name(session, "collect"))
        client = collected._job_client
        session.started_jobs.add(client, _job_name(session, "collect"))
        results = CollectedColumns(collected)
        is_final = session.is_streaming or translator.traits(root.inputs()[0]).mode.is_insert_only
        rows = ResultRows(results if is_final else FinalRows(results, plan.row_type))
    return TableResult(
        schema_of(plan),
        rows,
        style=PrintStyle.CHANGELOG if session.is_streaming else PrintStyle.QUERY,
        job_client=client,
        session=session.expression_session(),
        max_width=session.configuration.get(table_options.MAX_COLUMN_WIDTH),
    )


def _on_spark(session: TableSession, plan: LogicalNode) -> tuple[None, ResultRows | None]:
    try:
        return None, ResultRows(SparkRows(plan_for_spark(session, plan)))
    except UnsupportedInSparkError:
        return None, None


def collecting(plan: LogicalNode) -> Sink:
    """The plan of a query whose rows the client collects."""
    return Sink(plan, None, ProgramSink("collect", CollectColumnsSpec()))


def execute_inserts(session: TableSession, sinks: Sequence[Sink]) -> TableResult:
    """Runs plans that write to tables, as one job."""
    bound = sinks if session.is_streaming else [_of_bounded(session, sink) for sink in sinks]
    roots = [root for root in _optimized(bound, session) if isinstance(root, Sink)]
    return execute_translated(session, roots, translator_of(session, roots))


def execute_translated(session: TableSession, sinks: Sequence[Sink], translator: Translator) -> TableResult:
    """Runs optimized plans that write to tables, as one job."""
    written = [translator.translate(sink) for sink in sinks]
    _choose_runtime_mode(session, translator)
    if translator.has_keys:
        for sink, stream in zip(sinks, written, strict=True):
            if sink.sink.overwrites:  # one subtask commits all
                stream.set_parallelism(1)
    tables = [_table_of(sink) for sink in sinks]
    name = _job_name(session, f"insert-into_{','.join(tables)}")
    client = translator.environment.execute_async(name)
    session.started_jobs.add(client, name)
    names = _numbered(tables)
    schema = ResolvedSchema.physical(names, [BigIntType() for _ in names])
    batch = batch_of([[-1] * len(names)], schema.to_physical_row_data_type())
    return TableResult(schema, ResultRows(AfterJob(client, batch)), style=PrintStyle.RAW, job_client=client)


def _job_name(session: TableSession, default: str) -> str:
    return session.configuration.get_optional(pipeline_options.PIPELINE_NAME) or default


def dataframe_of(session: TableSession, plan: LogicalNode) -> Any:
    """A Spark DataFrame of a query over bounded tables."""
    try:
        return plan_for_spark(session, plan).dataframe()
    except UnsupportedInSparkError as error:
        raise ValidationError(f"The query cannot become a DataFrame: {error}.") from error


def _of_bounded(session: TableSession, sink: Sink) -> Sink:
    """An INSERT in batch mode: its query runs on Spark if it can, else its rows are written when they are final."""
    query = sink.input.input if isinstance(sink.input, ConstraintEnforcer) else sink.input
    try:
        source = from_dataframe(session, plan_for_spark(session, query).dataframe())
    except UnsupportedInSparkError:
        return with_final_rows(sink)
    source = replace(source, physical_type=query.row_type)
    scan: LogicalNode = TableScan(anonymous("DataFrame_Source"), query.row_type, (), source)
    if isinstance(sink.input, ConstraintEnforcer):
        scan = replace(sink.input, input=scan)
    return replace(sink, input=scan)


def with_final_rows(sink: Sink) -> Sink:
    """An INSERT of batch mode on Firesteel's operators: rows are written when they are final."""
    enforcer = sink.input if isinstance(sink.input, ConstraintEnforcer) else None
    final = FinalRowsNode(bounded_sorts(sink.input if enforcer is None else enforcer.input))
    return replace(sink, input=final if enforcer is None else replace(enforcer, input=final))


def add_inserts(session: TableSession, sinks: Sequence[Sink]) -> None:
    """Adds plans that write to tables to the program of the stream environment."""
    roots = _optimized(sinks, session)
    translator = Translator(session.environment, roots, session.configuration, session.expression_session())
    for root in roots:
        translator.translate(root)


def job_plan(session: TableSession, plans: Sequence[LogicalNode]) -> str:
    """The operators of the job that runs plans, as JSON."""
    sinks = [plan if isinstance(plan, Sink) else collecting(plan) for plan in plans]
    sinks = sinks if session.is_streaming else [with_final_rows(sink) for sink in sinks]
    translator = translator_of(session, roots := _optimized(sinks, session))
    for root in roots:
        translated = translator.translate(root)
        if root.identifier is None:  # type: ignore[attr-defined]
            translated.sink_to(CollectSink("plan"))
    _choose_runtime_mode(session, translator)
    return translator.environment.get_execution_plan()


class AfterJob:
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


def optimizer_options(session: TableSession) -> OptimizerOptions:
    """The options of a session. In batch mode nothing is done with rows of the same primary key, as in Flink."""
    return (
        OptimizerOptions.of(session.configuration)
        if session.is_streaming
        else OptimizerOptions("NONE", is_bounded=True)
    )


def _optimized(sinks: Sequence[Sink], session: TableSession) -> list[LogicalNode]:
    return optimize_all(sinks, optimizer_options(session))


def _table_of(sink: Sink) -> str:
    return sink.sink.as_summary_string() if sink.identifier is None else sink.identifier.as_summary_string()


def _numbered(names: Sequence[str]) -> list[str]:
    """Names of tables; those that occur several times are numbered."""
    return [
        name if names.count(name) == 1 else f"{name}_{names[: index + 1].count(name)}"
        for index, name in enumerate(names)
    ]


def translator_of(session: TableSession, roots: Sequence[LogicalNode]) -> Translator:
    """The translator of the plans of one job."""
    return Translator(job_environment(session), roots, session.configuration, session.expression_session())


def job_environment(session: TableSession) -> StreamExecutionEnvironment:
    """An environment for one job, so that operators of the program do not become part of it."""
    environment: Any = session.environment._create_scratch()
    environment._executor = session.environment._executor
    environment._slot_sharing_groups = session.environment._slot_sharing_groups
    return environment  # type: ignore[no-any-return]


def _choose_runtime_mode(session: TableSession, translator: Translator) -> None:
    """How the job of a batch query runs: as stages, or pipelined if rows are exchanged by key, since stages cannot."""
    if not session.is_streaming:
        mode = "STREAMING" if translator.has_keys else "BATCH"
        translator.environment._configuration.set(pipeline_options.RUNTIME_MODE, mode)
        # batches are not checkpointed: what fails starts again
        translator.environment._configuration.remove_config(checkpointing_options.CHECKPOINTING_INTERVAL)
