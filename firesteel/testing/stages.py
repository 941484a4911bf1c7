"""In-process stage runner for batch jobs and epochs, without Spark; commands and rows are pickled.

It does on purpose what Spark may do, so that nothing can come to rely on the contrary: rows of several producers come
mixed, in another order each time; each task has its own copy of every function; a task can be run again, in a worker
that has lost what it kept, or after it had already finished.
"""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import cloudpickle

from firesteel.execution.batch.task import run_batch_task
from firesteel.execution.epochs.task import run_epoch_task
from firesteel.execution.stages.errors import StageTaskError
from firesteel.execution.stages.exchange_rows import REPORT, unpack_number, unpack_row
from firesteel.execution.stages.stage_graph import Stage, in_stage_order, stages_of
from firesteel.execution.stages.stage_runner import EpochRun, StageError, StageMessage
from firesteel.execution.stages.task_cache import TaskCache
from firesteel.execution.stages.task_commands import BatchCommand, EpochCommand
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.messages import TaskKey
from firesteel.runtime.slot.mailbox import Clock, SystemClock

__all__ = ["FaultKind", "InProcessStageRunner", "TaskFault"]

Command = BatchCommand | EpochCommand
_Numbered = tuple[int, int, bytes]
"""Partition, order and row."""


class FaultKind(Enum):
    """What happens to a task."""

    RETRY = "retry"
    """It breaks off and is run again, where it was."""
    KILL = "kill"
    """Its worker dies, with all that it kept, and the task is run again in a new one."""
    FAIL = "fail"
    """It breaks off and is not run again: the run fails, without a word of the task."""


@dataclass(frozen=True)
class TaskFault:
    """Happens once, to the first task it fits."""

    kind: FaultKind
    vertex: str | None = None
    """A vertex id, or part of its name; None: any."""
    subtask: int | None = None
    epoch: int | None = None
    after_rows: int | None = 0
    """Rows it has produced by then; None: all, so that it has finished, but not reported it."""

    def fits(self, command: Command) -> bool:
        """Whether it is that task's."""
        task = command.descriptor.task
        return (
            (self.vertex is None or self.vertex == task.vertex_id or self.vertex in task.name)
            and self.subtask in (None, task.subtask)
            and self.epoch in (None, getattr(command, "epoch", None))
        )


class _WatchedClock:
    """Breaks off a task that looks at the clock when its run is cancelled: a source that waits does nothing else."""

    def __init__(self, clock: Clock, check: Callable[[], None]):
        self._clock = clock
        self._check = check

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        self._check()
        return self._clock.now_ms()

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set."""
        self._check()
        return self._clock.monotonic_ms()


class InProcessStageRunner:
    """A StageRunner that runs one task after the other in the calling thread.

    ``executed`` lists the tasks in the order in which they were run, with the ends they had.
    """

    def __init__(self, faults: Iterable[TaskFault] = (), *, seed: int = 0):
        self.faults = list(faults)
        self.executed: list[tuple[str, int, str]] = []
        self.clock: Clock | None = None
        """Processing time; None: the wall clock."""
        self.on_task_state: Callable[[TaskKey, str], None] | None = None
        """Is told of tasks that are RUNNING and FINISHED; called in the runner's thread."""
        self._random = random.Random(seed)
        self._caches: dict[int, TaskCache] = {}
        self._cancelled: str | None = None
        self._lock = threading.Lock()
        self._rows: dict[str, list[list[_Numbered]]] = {}
        """What the finished stages of a batch have produced, by vertex and subtask, while somebody may need it."""
        self._reports: dict[str, list[Sequence[StageMessage]]] = {}
        """What came of terminal stages of a batch that have finished."""

    # -- StageRunner --------------------------------------------------------------------------------

    def run_batch(self, job_graph: JobGraph, commands: Mapping[TaskKey, BatchCommand]) -> Sequence[StageMessage]:
        """Runs the stages that have not finished in a run before."""
        self._begin()
        stages = stages_of(job_graph)
        done = {stage.id for stage in stages if stage.id in self._rows or stage.id in self._reports}
        for stage in stages:
            if stage.id in done:
                continue
            outputs = self._run_stage(stage, commands, stages, is_sorted=True)
            if stage.is_terminal:
                self._reports[stage.id] = _reports(stage, outputs)
            else:
                self._rows[stage.id] = outputs
            done.add(stage.id)
            for producer in stages:
                if producer.id in self._rows and all(consumer.vertex_id in done for consumer in producer.consumers):
                    self._rows[producer.id] = []
        return in_stage_order(job_graph, [report for reports in self._reports.values() for report in reports])

    def run_epoch(self, job_graph: JobGraph, epoch: EpochRun) -> Sequence[StageMessage]:
        """Runs all stages."""
        self._begin()
        stages = stages_of(job_graph)
        reports: list[Sequence[StageMessage]] = []
        self._rows = {}
        for stage in stages:
            outputs = self._run_stage(stage, epoch.commands, stages, is_sorted=False)
            if stage.is_terminal:
                reports += _reports(stage, outputs)
            else:
                self._rows[stage.id] = outputs
        self._rows = {}
        return in_stage_order(job_graph, reports)

    def cancel(self, reason: str) -> None:
        """Ends a run with the next row that is read or produced, or the next look at the clock."""
        with self._lock:
            self._cancelled = reason

    def close(self, on_closed: Callable[[], Any] | None = None) -> None:
        """Makes all workers close their tasks."""
        self._begin()
        for worker in list(self._caches):
            self.forget(worker)
        self._rows, self._reports = {}, {}
        if on_closed is not None:
            on_closed()

    # -- for tests ----------------------------------------------------------------------------------

    def forget(self, worker: int) -> None:
        """A worker is gone with all it kept, and a new one is in its place. Subtask i runs in worker i."""
        cache = self._caches.pop(worker, None)
        if cache is not None:
            cache.close()

    def workers(self) -> list[int]:
        """The workers that keep tasks."""
        return sorted(self._caches)

    # -- one stage ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        with self._lock:
            self._cancelled = None

    def _check(self) -> None:
        if self._cancelled is not None:
            raise StageError(f"The run was cancelled: {self._cancelled}")

    def run_task(self, command: Command, rows: Iterable[bytes]) -> Iterator[bytes]:
        """What a worker does: numbers and rows in turn."""
        if isinstance(command, BatchCommand):
            return run_batch_task(command, rows, clock=self._watched_clock())
        worker = command.descriptor.task.subtask
        if worker not in self._caches:
            self._caches[worker] = TaskCache(clock=self._watched_clock())
        return run_epoch_task(command, rows, self._caches[worker])

    def _watched_clock(self) -> Clock:
        return _WatchedClock(self.clock or SystemClock(), self._check)

    def _run_stage(
        self,
        stage: Stage,
        commands: Mapping[TaskKey, Command],
        stages: Sequence[Stage],
        *,
        is_sorted: bool,
    ) -> list[list[_Numbered]]:
        outputs = []
        for subtask in range(stage.parallelism):
            command = commands[stage.id, subtask]
            rows = self._input_of(stage, subtask, stages, is_sorted=is_sorted)
            self._tell(stage, subtask, "RUNNING")
            outputs.append(self._run_until_done(stage, command, rows))
            self._tell(stage, subtask, "FINISHED")
        return outputs

    def _tell(self, stage: Stage, subtask: int, state: str) -> None:
        if self.on_task_state is not None:
            self.on_task_state((stage.id, subtask), state)

    def _input_of(self, stage: Stage, subtask: int, stages: Sequence[Stage], *, is_sorted: bool) -> list[bytes]:
        """The rows of one partition: those of a producer in their order, those of several mixed."""
        queues: list[list[tuple[int, bytes]]] = []
        for producer in stages:
            if producer.id in stage.producers:
                partition = producer.consumer(stage.id).offset + subtask
                for rows in self._rows[producer.id]:
                    mine = [(order, row) for target, order, row in rows if target == partition]
                    if mine:
                        queues.append(mine)
        turns = [place for place, queue in enumerate(queues) for _ in queue]
        self._random.shuffle(turns)
        iterators = [iter(queue) for queue in queues]
        mixed = [next(iterators[place]) for place in turns]
        if is_sorted:
            mixed.sort(key=lambda numbered: numbered[0])
        return [row for _, row in mixed]

    def _run_until_done(self, stage: Stage, command: Command, rows: list[bytes]) -> list[_Numbered]:
        pickled = cloudpickle.dumps(command, pickle.HIGHEST_PROTOCOL)
        name = command.descriptor.task.name
        subtask = command.descriptor.task.subtask
        while True:
            fault = next((fault for fault in self.faults if fault.fits(command)), None)
            if fault is not None:
                self.faults.remove(fault)
            try:
                output = self._collect(stage, self.run_task(cloudpickle.loads(pickled), self._watched(rows)), fault)
            except BaseException as error:
                self.executed.append((name, subtask, "failed"))
                self._check()  # a cancelled run fails regardless of a task's result
                if isinstance(error, StageTaskError):
                    raise StageError(error.message, error.messages) from error
                raise
            if output is not None:
                self.executed.append((name, subtask, "finished"))
                return output
            assert fault is not None
            self.executed.append((name, subtask, fault.kind.value))
            if fault.kind is FaultKind.KILL:
                self.forget(subtask)
            elif fault.kind is FaultKind.FAIL:
                raise StageError(f"Subtask {subtask} of '{name}' was made to fail.")

    def _watched(self, rows: Iterable[bytes]) -> Iterator[bytes]:
        for row in rows:
            self._check()
            yield row

    def _collect(self, stage: Stage, output: Iterator[bytes], fault: TaskFault | None) -> list[_Numbered] | None:
        """All numbers and rows; None if the fault came to pass meanwhile."""
        collected: list[_Numbered] = []
        stream = iter(output)
        while fault is None or fault.after_rows is None or len(collected) < fault.after_rows:
            self._check()
            number = next(stream, None)
            if number is None:
                return collected if fault is None else None
            partition, order = unpack_number(number)
            if not stage.is_terminal and partition >= stage.partitions:
                raise AssertionError(f"'{stage.vertex.name}' has no partition {partition}, only {stage.partitions}")
            collected.append((partition, order, bytes(next(stream))))
        close = getattr(stream, "close", None)
        if close is not None:
            close()
        return None


def _reports(stage: Stage, outputs: Sequence[Sequence[_Numbered]]) -> list[Sequence[StageMessage]]:
    reports: list[Sequence[StageMessage]] = []
    for rows in outputs:
        for _, _, packed in rows:
            row = unpack_row(packed)
            if row.kind != REPORT:
                raise AssertionError(f"'{stage.vertex.name}' has no consumer, but produced a row of kind {row.kind}")
            reports.append(pickle.loads(row.payload))
    return reports
