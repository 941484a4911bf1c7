"""Batch jobs driven by hand: every task is a call, and what is between them are rows that a test can look at."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from firesteel.common import Configuration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors import CollectSink
from firesteel.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.execution.batch.task import run_batch_task
from firesteel.execution.stages.exchange_rows import REPORT, unpack_number, unpack_row
from firesteel.execution.stages.stage_graph import stage_descriptors, stages_of
from firesteel.execution.stages.task_commands import BatchCommand, BatchReport
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.serialization import deserialize_batch
from firesteel.spi.source import Boundedness, InputStatus, ReaderOutput, Source, SourceReader

__all__ = ["DrivenBatch", "Given", "given", "graph_of", "results_of", "run"]


class GivenSplit:
    """What one subtask reads: records, and their timestamps if they have any."""

    def __init__(self, split_id: str, values: Sequence[Any], timestamps: Sequence[int] | None):
        self.split_id = split_id
        self.values = values
        self.timestamps = timestamps


class Given(Source[Any]):
    """A source whose subtask i reads the i-th of some lists; with timestamps these hold pairs of value and time."""

    name = "Given"

    def __init__(self, *lists: Iterable[Any], timestamps: bool = False):
        self.splits = []
        for number, records in enumerate(map(list, lists)):
            values = [record[0] for record in records] if timestamps else records
            times = [record[1] for record in records] if timestamps else None
            self.splits.append(GivenSplit(f"{number}", values, times))

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, context: Any) -> Any:
        raise AssertionError("splits are given")

    def restore_enumerator(self, context: Any, state: Any) -> Any:
        raise AssertionError("splits are given")

    def create_reader(self, context: Any) -> SourceReader[Any]:
        return _Reader()


class _Reader(SourceReader[Any]):
    def __init__(self) -> None:
        self.splits: list[GivenSplit] = []
        self.position = 0
        self.is_complete = False

    def start(self) -> None:
        pass

    def add_splits(self, splits: Sequence[GivenSplit]) -> None:
        self.splits += splits

    def notify_no_more_splits(self) -> None:
        self.is_complete = True

    def poll_next(self, output: ReaderOutput[Any], max_records: int) -> InputStatus:  # type: ignore[type-arg]
        if not self.splits:
            return InputStatus.END_OF_INPUT if self.is_complete else InputStatus.NOTHING_AVAILABLE
        split, begin, end = self.splits[0], self.position, self.position + max_records
        times = None if split.timestamps is None else split.timestamps[begin:end]
        if split.values[begin:end]:
            output.collect(split.split_id, split.values[begin:end], times)
        self.position = end
        if end >= len(split.values):
            self.splits.pop(0)
            self.position = 0
        return InputStatus.MORE_AVAILABLE

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        raise AssertionError("no checkpoints in a batch")

    def close(self) -> None:
        pass


def graph_of(
    build: Callable[[StreamExecutionEnvironment], Any], parallelism: int = 1, options: dict[str, str] | None = None
) -> JobGraph:
    """The graph of a job whose ``build`` makes streams; one that it returns is collected."""
    graphs: list[JobGraph] = []

    class Capture:
        def execute(self, job_graph: JobGraph, configuration: Configuration) -> Any:
            graphs.append(job_graph)

    configuration = Configuration()
    for name, value in (options or {}).items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env._executor = Capture()
    stream = build(env)
    if isinstance(stream, DataStream):
        stream.sink_to(CollectSink("results")).set_parallelism(1)
    env.execute_async("batch")
    return graphs[0]


class DrivenBatch:
    """Runs the tasks of a batch job one by one. Rows of a partition come sorted by their order, otherwise mixed."""

    def __init__(self, job_graph: JobGraph, *, seed: int = 0):
        self.descriptors = stage_descriptors(job_graph, 0)
        self.stages = stages_of(job_graph)
        self.rows: dict[str, list[tuple[int, int, bytes]]] = {}
        self.reports: list[BatchReport] = []
        self._random = random.Random(seed)

    def command(self, vertex_id: str, subtask: int) -> BatchCommand:
        descriptor = self.descriptors[vertex_id, subtask]
        source = getattr(descriptor.task.operators[0].spec, "source", None)
        splits = source.splits[subtask : subtask + 1] if isinstance(source, Given) else ()
        return BatchCommand(descriptor, tuple(splits))

    def run(self, **arguments: Any) -> list[Any]:
        """Runs all tasks; returns what was collected."""
        for stage in self.stages:
            produced = []
            for subtask in range(stage.parallelism):
                command = self.command(stage.id, subtask)
                produced += self.run_task(command, self.input_of(stage.id, subtask), **arguments)
            if stage.is_terminal:
                for _, _, row in produced:
                    self.reports += pickle.loads(unpack_row(row).payload)
            self.rows[stage.id] = produced
        return results_of(self.reports)

    @staticmethod
    def run_task(command: BatchCommand, rows: Iterable[bytes], **arguments: Any) -> list[tuple[int, int, bytes]]:
        """The partition and order of each row, and the row."""
        output = run_batch_task(command, rows, **arguments)
        return [(*unpack_number(number), next(output)) for number in output]

    def input_of(self, vertex_id: str, subtask: int) -> list[bytes]:
        """The rows that a task reads."""
        stage = next(stage for stage in self.stages if stage.id == vertex_id)
        rows = []
        for producer in self.stages:
            if producer.id in stage.producers:
                partition = producer.consumer(vertex_id).offset + subtask
                rows += [(order, row) for target, order, row in self.rows[producer.id] if target == partition]
        self._random.shuffle(rows)
        return [row for _, row in sorted(rows, key=lambda entry: entry[0])]

    def records(self, vertex_id: str) -> list[tuple[int, int, int]]:
        """Partition, order and kind of each row of a vertex but reports."""
        kinds = [(partition, order, unpack_row(row).kind) for partition, order, row in self.rows[vertex_id]]
        return [entry for entry in kinds if entry[2] != REPORT]


def results_of(reports: Iterable[BatchReport]) -> list[Any]:
    """What was sent to the client, in order."""
    return [
        value
        for report in reports
        for _, payload in report.client_payloads
        for value in deserialize_batch(payload).values
    ]


def run(
    build: Callable[[StreamExecutionEnvironment], Any],
    parallelism: int = 1,
    options: dict[str, str] | None = None,
    **arguments: Any,
) -> list[Any]:
    """What a job collects."""
    return DrivenBatch(graph_of(build, parallelism, options)).run(**arguments)


def given(env: StreamExecutionEnvironment, *lists: Iterable[Any], timestamps: bool = False) -> DataStream:
    """A stream of given records."""
    source = Given(*lists, timestamps=timestamps)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "given")
