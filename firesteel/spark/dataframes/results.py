"""Streams as DataFrames: the program of a stream becomes the lineage of an RDD, computed when Spark needs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from firesteel.common.errors import FiresteelError
from firesteel.execution.batch.split_collection import SplitCollection
from firesteel.execution.stages.exchange_rows import BATCH, unpack_row
from firesteel.execution.stages.stage_graph import stage_descriptors
from firesteel.execution.stages.task_commands import BatchCommand
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.jobmaster.shell.job_serialization import serialize_job
from firesteel.jobmaster.sources.coordinator import SourceCoordinators
from firesteel.runtime.model.messages import AddSplits, NoMoreSplits, ReaderStarted, RequestSplit, TaskKey
from firesteel.runtime.operators.source import SourceSpec
from firesteel.spark.blocking.batch_rdds import BatchRdds
from firesteel.spark.dataframes.errors import passing_on_complaints
from firesteel.spark.dataframes.result_task import DataFrameSink, run_dataframe_task
from firesteel.spark.dataframes.source import DataFrameSource
from firesteel.spark.session.session import get_spark_context

__all__ = ["DataFrameSink", "create_dataframe"]


def create_dataframe(job_graph: JobGraph, sink: DataFrameSink) -> DataFrame:
    """A DataFrame of what reaches the sink, to which all paths of the job lead; nothing runs before Spark needs it."""
    # the tasks get what a slot would get, not objects of this process
    shipped: JobGraph = cloudpickle.loads(serialize_job(job_graph))
    splits = _collect_splits(job_graph)
    commands = {
        key: BatchCommand(descriptor, splits.get(key, ())) for key, descriptor in stage_descriptors(shipped, 0).items()
    }
    context = get_spark_context(job_graph.configuration, job_graph.total_subtasks, in_use=lambda: True)
    session = SparkSession.builder.getOrCreate()
    stages = BatchRdds(context, _with_lazy_rows(job_graph), commands, cloudpickle.dumps(run_dataframe_task))
    with passing_on_complaints("The stream cannot become a DataFrame"):
        binary = session._jvm.org.apache.spark.sql.Encoders.BINARY()
        rows = DataFrame(session._jsparkSession.createDataset(stages.results, binary), session)
        return rows.mapInArrow(_decoding(sink.arrow_schema), StructType.fromJson(json.loads(sink.json)))


def _decoding(schema: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """From rows of bytes to the Arrow batches in them: nothing is decoded, only copied."""

    def decode(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for value in batch.column(0):
                row = unpack_row(value.as_py())
                if row.kind == BATCH:
                    yield pa.ipc.read_record_batch(pa.py_buffer(bytes(row.payload)), schema)

    return decode


def _collect_splits(job_graph: JobGraph) -> dict[TaskKey, tuple[Any, ...]]:
    """What the source tasks are to read, from the enumerators of those that are not read by Spark."""
    coordinators = SourceCoordinators(job_graph)
    answers: list[Any] = []

    def tell(_task: TaskKey, message: ReaderStarted | RequestSplit) -> None:
        answers.extend(coordinators.accept(message))

    collection = SplitCollection(job_graph, 0, tell)
    try:
        coordinators.start()
        collection.begin()
        while not collection.is_complete:
            for call in coordinators.take_calls():
                answers.extend(coordinators.call_returned(call.operator_id, call.number, *call.make()))
            if not answers:
                raise FiresteelError(
                    f"These sources have not signalled the end of their splits: {collection.waiting()}."
                )
            received, answers[:] = list(answers), ()
            for _, message in received:
                if isinstance(message, (AddSplits, NoMoreSplits)):
                    collection.accept(message)
            collection.ask()
    finally:
        coordinators.close()
    return collection.splits()


def _with_lazy_rows(job_graph: JobGraph) -> JobGraph:
    """The job with sources that have Spark run nothing when they are asked for their RDD."""
    return replace(job_graph, vertices=tuple(map(_lazy, job_graph.vertices)))


def _lazy(vertex: JobVertex) -> JobVertex:
    spec = vertex.head.node.spec
    if not isinstance(spec, SourceSpec) or not isinstance(spec.source, DataFrameSource):
        return vertex
    head = replace(vertex.head, node=replace(vertex.head.node, spec=replace(spec, source=spec.source.lazily())))
    return replace(vertex, operators=(head, *vertex.operators[1:]))
