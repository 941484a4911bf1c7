"""The RDDs of a batch job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import cloudpickle
from pyspark import SparkContext

from firesteel.execution.stages.stage_graph import Stage, stages_of
from firesteel.execution.stages.task_commands import BatchCommand, StageTaskDescriptor
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.messages import TaskKey
from firesteel.spark.blocking.worker import RunBatchTasks
from firesteel.spark.session.rdds import JavaRDD, Rdds
from firesteel.spark.session.worker_environment import WorkerEnvironment

__all__ = ["BatchRdds", "padded_offsets"]

_PROTOCOL = 5


class BatchRdds:
    """One RDD per vertex, with shuffles that sort in between. When they are run again, Spark skips what it has.

    A producer's output is shuffled once for all its consumers, each of which then reads its own partitions. A consumer
    of several producers needs the rows of all of them in one order: what they have for it is shuffled together.
    """

    def __init__(
        self,
        context: SparkContext,
        job_graph: JobGraph,
        commands: Mapping[TaskKey, BatchCommand],
        function: bytes | None = None,
        environment: WorkerEnvironment | None = None,
    ):
        self._rdds = Rdds.of(context)
        self._job_graph = job_graph
        self._commands = commands
        self._function = function
        self._environment = environment
        self._stages = {stage.id: stage for stage in stages_of(job_graph)}
        self._outputs: dict[str, JavaRDD] = {}
        self._exchanges: dict[str, JavaRDD] = {}
        self._shuffles: list[JavaRDD] = []
        self._broadcasts: list[Any] = []
        for stage in self._stages.values():
            self._outputs[stage.id] = self._stage(stage)
        self.tasks = frozenset(commands)
        self.results: JavaRDD = self._rdds.union(
            [self._outputs[stage.id] for stage in self._stages.values() if stage.is_terminal]
        )
        """What all terminal stages yield."""

    def forget(self) -> None:
        """Removes the files of the shuffles and the broadcasts."""
        self._rdds.forget(self._rdds.shuffle_id(shuffled) for shuffled in self._shuffles)
        for broadcast in self._broadcasts:
            broadcast.destroy()

    def _stage(self, stage: Stage) -> JavaRDD:
        parent, tasks = self._input(stage)
        commands = [self._commands[stage.id, subtask] for subtask in range(stage.parallelism)]
        descriptors = tuple(self._relocated(stage, command.descriptor) for command in commands)
        function = RunBatchTasks(
            cloudpickle.dumps(descriptors, _PROTOCOL),
            tuple(cloudpickle.dumps(command.splits, _PROTOCOL) for command in commands),
            tasks,
            stage.is_terminal,
            self._function,
        )
        output, broadcast = self._rdds.shipped(parent, function, self._environment)
        if broadcast is not None:
            self._broadcasts.append(broadcast)
        return output

    def _relocated(self, stage: Stage, descriptor: StageTaskDescriptor) -> StageTaskDescriptor:
        offsets, _ = padded_offsets(stage)
        consumers = {edge.id: edge.target_vertex for edge in stage.vertex.output_edges}
        return replace(descriptor, output_offsets=tuple(offsets[consumers[edge]] for edge in descriptor.output_edges))

    def _input(self, stage: Stage) -> tuple[JavaRDD, int]:
        """What a stage reads, and in how many partitions."""
        if stage.is_source:
            source: Any = stage.vertex.head.node.spec.get_source()
            if getattr(source, "reads_rows", False):
                from pyspark.sql import SparkSession  # takes its time, and most jobs do without

                rows = source.row_rdd(SparkSession.builder.getOrCreate()).rdd()
                return rows, self._rdds.partitions(rows)
            return self._rdds.empty(stage.parallelism), stage.parallelism
        producers = [self._stages[producer] for producer in stage.producers]
        if len(producers) == 1:
            pairs = self._exchanged(producers[0], stage)
        else:
            pairs = self._shuffle([self._pairs(producer, stage) for producer in producers], stage.parallelism)
        return self._rdds.rows(pairs), stage.parallelism

    def _pairs(self, producer: Stage, stage: Stage) -> JavaRDD:
        """What a producer has for a stage that reads others as well."""
        if len(producer.consumers) == 1:
            return self._rdds.pairs(self._outputs[producer.id])
        return self._exchanged(producer, stage)

    def _exchanged(self, producer: Stage, stage: Stage) -> JavaRDD:
        """What a producer has for a stage, in the stage's partitions."""
        offsets, total = padded_offsets(producer)
        if producer.id not in self._exchanges:
            # only once: otherwise Spark would run the producer once for each of its consumers
            is_sorted = any(len(self._stages[consumer].producers) == 1 for consumer in offsets)
            pairs = self._rdds.pairs(self._outputs[producer.id])
            self._exchanges[producer.id] = self._shuffle([pairs], total, is_sorted=is_sorted)
        return self._rdds.select(self._exchanges[producer.id], offsets[stage.id], stage.parallelism, total)

    def _shuffle(self, pairs: Sequence[JavaRDD], partitions: int, *, is_sorted: bool = True) -> JavaRDD:
        shuffled = self._rdds.shuffle(self._rdds.union(pairs), partitions, is_sorted=is_sorted)
        self._shuffles.append(shuffled)
        return shuffled


def padded_offsets(stage: Stage) -> tuple[dict[str, int], int]:
    """The first partition of each consumer, and the number of all; some are not used.

    Each one is a multiple of the consumer's parallelism, so that Spark's partitioner, which takes the number modulo the
    number of partitions, finds the subtask in it also where this output is shuffled again with that of others.
    """
    offsets: dict[str, int] = {}
    total = 0
    for consumer in stage.consumers:
        offsets[consumer.vertex_id] = -(-total // consumer.parallelism) * consumer.parallelism
        total = offsets[consumer.vertex_id] + consumer.parallelism
    return offsets, total
