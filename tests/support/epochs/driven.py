"""Epochs driven by hand: rows from task to task, commands as a test wants them, workers that can be lost."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.execution.epochs.task import TaskCache, run_epoch_task
from firesteel.execution.stages.exchange_rows import BATCH, EVENTS, REPORT, unpack_number, unpack_row
from firesteel.execution.stages.stage_graph import stage_descriptors, stages_of
from firesteel.execution.stages.task_commands import EpochCommand, EpochReport
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.checkpoints.pending import PendingCheckpoint
from firesteel.jobmaster.checkpoints.plan import CheckpointPlan
from firesteel.jobmaster.checkpoints.requests import CheckpointRequest
from firesteel.jobmaster.checkpoints.state_assignment import assign_state
from firesteel.runtime.model import messages
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions, SnapshotKind, StopMode
from firesteel.runtime.model.serialization import deserialize_batch
from firesteel.testing import FakeClock, TestingSource
from firesteel.testing.source import TestingSplit
from tests.support.epochs.executions import executed_as

Key = tuple[str, int]


def graph_of(build: Callable[[StreamExecutionEnvironment], Any], parallelism: int = 2, **settings: str) -> JobGraph:
    """The JobGraph of a program."""
    graphs: list[JobGraph] = []

    class Capture:
        def execute(self, job_graph: JobGraph, configuration: Configuration) -> Any:
            graphs.append(job_graph)

    configuration = Configuration()
    for name, value in settings.items():
        configuration.set_string(name.replace("__", ".").replace("_", "-"), value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    env._executor = Capture()
    build(env)
    env.execute_async("epochs")
    return graphs[0]


@dataclass
class Epoch:
    """What the tasks of one epoch have told and sent."""

    number: int
    told: dict[Key, list[Any]] = field(default_factory=dict)
    rows: dict[Key, list[tuple[int, bytes]]] = field(default_factory=dict)

    def report(self, vertex: str, subtask: int = 0) -> EpochReport:
        (report,) = [m for m in self.told[vertex, subtask] if isinstance(m, EpochReport)]
        return report

    def of(self, kind: type, vertex: str | None = None, subtask: int = 0) -> list[Any]:
        """The messages of one kind, of one task or of all."""
        told = self.told.values() if vertex is None else [self.told[vertex, subtask]]
        return [message for each in told for message in each if isinstance(message, kind)]

    def events(self, vertex: str, subtask: int = 0, partition: int = 0) -> list[Any]:
        """The events that a task sent to a partition."""
        rows = [unpack_row(row) for target, row in self.rows[vertex, subtask] if target == partition]
        return [event for row in rows if row.kind == EVENTS for event in pickle.loads(row.payload)]

    def records(self, vertex: str, subtask: int = 0) -> list[Any]:
        """All records that a task sent."""
        rows = [unpack_row(row) for _, row in self.rows[vertex, subtask]]
        return [value for row in rows if row.kind == BATCH for value in deserialize_batch(row.payload).values]


class DrivenEpochs:
    """A job in epochs. Vertices are called by their places: "0", "1", …; worker i has the subtasks i."""

    def __init__(
        self,
        graph: JobGraph,
        directory: Path,
        *,
        attempt: int = 0,
        restore: dict[Key, Any] | None = None,
        clock: FakeClock | None = None,
        first: int = 1,
        capture: Any = None,
    ):
        self.graph = graph
        self.stages = stages_of(graph)
        self.names = {stage.id: str(place) for place, stage in enumerate(self.stages)}
        self.descriptors = stage_descriptors(executed_as(JobExecution.EPOCHS, graph), attempt)
        self.clock = FakeClock(1_000_000) if clock is None else clock
        self.directory = str(directory)
        self.version: int | None = None
        self.restore: dict[Key, Any] = restore or {}
        self.is_restorable = True
        self.next_epoch = first
        self.capture = capture
        self.caches: dict[int, TaskCache] = {}
        self.queues: dict[Key, list[Any]] = {key: [] for key in self.descriptors}
        self.last: tuple[Epoch, CheckpointOptions] | None = None

    def cache(self, worker: int) -> TaskCache:
        if worker not in self.caches:
            settings = {} if self.capture is None else {"capture": self.capture}
            self.caches[worker] = TaskCache(clock=self.clock, **settings)
        return self.caches[worker]

    def lose(self, worker: int) -> None:
        """A worker is gone with all it kept."""
        self.caches.pop(worker).close()

    def close(self) -> None:
        for worker in list(self.caches):
            self.lose(worker)

    def key(self, vertex: str, subtask: int = 0) -> Key:
        return self.stages[int(vertex)].id, subtask

    def tell(self, vertex: str, subtask: int, message: Any) -> None:
        self.queues[self.key(vertex, subtask)].append(message)

    def add_split(self, vertex: str, subtask: int, split: Any, *, last: bool = True) -> None:
        """Gives a reader a list of a TestingSource, or any split; the only one it will get."""
        operator = self.descriptors[self.key(vertex, subtask)].task.operators[0].operator_id
        split = TestingSplit(split) if isinstance(split, str) else split
        self.tell(vertex, subtask, messages.AddSplits(operator, subtask, (split,)))
        if last:
            self.tell(vertex, subtask, messages.NoMoreSplits(operator, subtask))

    def add_splits(self) -> None:
        """Gives each reader of the TestingSources the list of its number."""
        for stage in self.stages:
            source = getattr(stage.vertex.head.node.spec, "source", None)
            if isinstance(source, TestingSource):
                for subtask in range(min(stage.parallelism, len(source.splits))):
                    self.add_split(self.names[stage.id], subtask, str(subtask))

    def command(self, key: Key, trigger: Any, **settings: Any) -> EpochCommand:
        told = (*self.queues[key], *([] if trigger is None else [trigger]))
        self.queues[key] = []
        return EpochCommand(
            self.descriptors[key],
            self.next_epoch,
            self.version,
            self.restore.get(key),
            self.is_restorable,
            told,
            **settings,
        )

    def run(
        self,
        *,
        stop: StopMode | None = None,
        unaligned: bool = False,
        triggers: bool = True,
        again: Iterable[Key] = (),
        **settings: Any,
    ) -> Epoch:
        """Runs an epoch; the tasks ``again`` are run twice, in workers that know nothing of the first time."""
        number = self.next_epoch
        location = CheckpointLocation(f"{self.directory}/chk-{number}", f"{self.directory}/shared")
        options = CheckpointOptions(SnapshotKind.CHECKPOINT, location, stop=stop, unaligned=unaligned)
        epoch = Epoch(number)
        for stage in self.stages:
            for subtask in range(stage.parallelism):
                key = stage.id, subtask
                trigger = messages.TriggerCheckpoint(number, self.clock.now_ms(), options, (key,)) if triggers else None
                command = cloudpickle.dumps(self.command(key, trigger, **settings))
                rows = self.input_of(epoch, stage, subtask)
                for _ in range(2 if (self.names[stage.id], subtask) in again else 1):
                    output = list(run_epoch_task(cloudpickle.loads(command), rows, self.cache(subtask)))
                numbers = [unpack_number(each)[0] for each in output[::2]]
                epoch.rows[self.names[stage.id], subtask] = list(zip(numbers, output[1::2], strict=True))
        for stage in self.stages:
            if stage.is_terminal:
                for subtask in range(stage.parallelism):
                    for _, packed in epoch.rows[self.names[stage.id], subtask]:
                        told = pickle.loads(unpack_row(packed).payload)
                        (report,) = [m for m in told if isinstance(m, EpochReport)]
                        epoch.told[self.names[report.vertex_id], report.subtask] = told
        self.version, self.is_restorable = number, False
        self.last = epoch, options
        self.next_epoch += 1
        return epoch

    def input_of(self, epoch: Epoch, stage: Any, subtask: int) -> list[bytes]:
        """The rows of one partition, those of the last producer first."""
        rows: list[bytes] = []
        for producer in reversed(self.stages):
            if producer.id in stage.producers:
                partition = producer.consumer(stage.id).offset + subtask
                for each in reversed(range(producer.parallelism)):
                    rows += [row for target, row in epoch.rows[self.names[producer.id], each] if target == partition]
        return rows

    def complete(self) -> dict[Key, Any]:
        """The checkpoint of the last epoch is complete; returns what its tasks could be loaded from."""
        assert self.last is not None
        epoch, options = self.last
        pending = PendingCheckpoint(
            epoch.number,
            self.clock.now_ms(),
            options.kind,
            options.location,
            CheckpointRequest(options.kind),
            CheckpointPlan.of(self.graph),
            frozenset(),
        )
        for message in epoch.of(messages.AcknowledgeCheckpoint):
            pending.acknowledge((message.vertex_id, message.subtask), message.state)
        assert not pending.waiting, pending.waiting
        metadata = pending.metadata(self.graph.job_id, self.graph.job_name)
        self.restore = assign_state(metadata, self.graph, allow_non_restored=False, reusable=True)
        self.is_restorable = True
        for queue in self.queues.values():
            queue.append(messages.NotifyCheckpointComplete(epoch.number))
        return self.restore


def report_rows(rows: Iterable[tuple[int, bytes]]) -> int:
    """How many rows are reports."""
    return sum(unpack_row(row).kind == REPORT for _, row in rows)
