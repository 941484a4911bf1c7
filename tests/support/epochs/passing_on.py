"""Tasks that only pass rows on and say what they have read, to see what a runner of stages does with them."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from firesteel.common import Configuration
from firesteel.common.errors import TaskFailure
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.execution.stages.errors import StageTaskError
from firesteel.execution.stages.exchange_rows import BATCH, REPORT, pack_number, pack_row, unpack_row
from firesteel.execution.stages.stage_graph import stage_descriptors
from firesteel.execution.stages.stage_runner import EpochRun
from firesteel.execution.stages.task_commands import BatchCommand, BatchReport, EpochCommand, EpochReport
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.messages import TaskKey, TaskStateChanged
from tests.support.epochs.executions import executed_as

__all__ = ["batch_commands", "epoch_of", "graph_of", "pass_on", "read_by"]

LAST = 1 << 30


def graph_of(build: Callable[[StreamExecutionEnvironment], Any], parallelism: int = 2) -> JobGraph:
    """The job graph of a program."""
    graphs: list[JobGraph] = []

    class Capture:
        def execute(self, job_graph: JobGraph, configuration: Configuration) -> Any:
            graphs.append(job_graph)

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env._executor = Capture()
    build(env)
    env.execute_async("stages")
    return graphs[0]


def batch_commands(graph: JobGraph, attempt: int = 0, splits: tuple[Any, ...] = ()) -> dict[TaskKey, BatchCommand]:
    """Commands of a batch; sources take what they are to do from their splits."""
    descriptors = stage_descriptors(executed_as(JobExecution.BATCH, graph), attempt)
    return {key: BatchCommand(descriptor, splits) for key, descriptor in descriptors.items()}


def epoch_of(
    graph: JobGraph,
    epoch: int = 1,
    descriptors: Any = None,
    version: int | None = None,
    is_restorable: bool = True,
) -> EpochRun:
    """Commands of an epoch."""
    descriptors = descriptors or stage_descriptors(executed_as(JobExecution.EPOCHS, graph), 0)
    commands = {
        key: EpochCommand(descriptor, epoch, version, None, is_restorable) for key, descriptor in descriptors.items()
    }
    return EpochRun(epoch, commands)


class pass_on:
    """A function for tasks of a batch or an epoch.

    Each source task sends ``rows`` rows of ``size`` bytes to every consumer subtask, in falling order. Each other task
    sends what it reads on to everybody. Each reports what it has read, in ``accumulators`` or ``gauges``. If there is a
    file ``mixed``, one removes it and says that it has read a run that does not count.
    """

    def __init__(
        self,
        rows: int = 3,
        size: int = 0,
        fail: str = "",
        behave: Callable[[Any], None] | None = None,
        mixed: Path | None = None,
    ) -> None:
        self.rows = rows
        self.size = size
        self.fail = fail
        self.behave = behave
        self.mixed = mixed

    def __call__(self, command: Any, rows: Iterable[bytes], cache: Any = None) -> Iterator[bytes]:
        """Runs one task."""
        descriptor = command.descriptor
        task, offsets = descriptor.task, descriptor.output_offsets
        if self.behave is not None:
            self.behave(command)
        if self.fail and self.fail in task.name:
            failure = TaskFailure("it was to fail", error_type="ValueError", task=task.name)
            message = TaskStateChanged(task.attempt, task.vertex_id, task.subtask, "FAILED", failure)
            raise StageTaskError([message])
        read: list[Any] = []
        if not descriptor.input_edges:
            for number in range(self.rows):
                yield from self._send(descriptor, self.rows - number, (task.name, task.subtask, number))
        reports = []
        for row in rows:
            kind, _, _, _, payload = unpack_row(row)
            if kind == REPORT:
                reports.append(row)
                continue
            path, order_number, _ = pickle.loads(payload)
            read.append((order_number, path))
            if offsets:
                yield from self._send(descriptor, order_number, (*path, task.name, task.subtask))
        told = {"read": read, "pid": os.getpid(), "slot": os.environ.get("FIRESTEEL_SLOT"), "at": time.monotonic()}
        report: Any
        if isinstance(command, EpochCommand):
            report = EpochReport(task.vertex_id, task.subtask, command.epoch, gauges=told)
            if self.mixed is not None and not offsets and task.subtask == 0 and self.mixed.exists():
                self.mixed.unlink()
                report = replace(report, read_runs={(descriptor.input_edges[0], 0): "another one"})
        else:
            report = BatchReport(task.vertex_id, task.subtask, accumulators={**told, "splits": command.splits})
        for row in [*reports, pack_row(REPORT, 0, task.subtask, 0, pickle.dumps([report]))]:
            yield pack_number(offsets[0] if offsets else 0, LAST)
            yield row

    def _send(self, descriptor: Any, order: int, path: tuple[Any, ...]) -> Iterator[bytes]:
        task = descriptor.task
        payload = pickle.dumps((path, order, bytes(self.size)))
        for offset, edge, output in zip(descriptor.output_offsets, descriptor.output_edges, task.outputs, strict=True):
            for channel in output.channels:
                yield pack_number(offset + channel.consumer, order)
                yield pack_row(BATCH, edge, task.subtask, 0, payload)


def read_by(told: Iterable[Any]) -> dict[TaskKey, dict[str, Any]]:
    """What each task has reported."""
    found: dict[TaskKey, dict[str, Any]] = {}
    for report in told:
        assert (report.vertex_id, report.subtask) not in found
        found[report.vertex_id, report.subtask] = getattr(report, "accumulators", None) or report.gauges
    return found
