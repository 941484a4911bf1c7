"""Python worker of Spark: runs the tasks of a stage, and caches those of epochs for the next one."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import cloudpickle

from firesteel.execution.stages.task_commands import BatchCommand, EpochCommand, StageTaskDescriptor
from firesteel.process.pyflink_names import resolve_pyflink_names
from firesteel.process.worker_environment import enter_worker_environment
from firesteel.spark.blocking.printed_output import Printed
from firesteel.spark.session.function_logging import function_logging

if TYPE_CHECKING:
    from pyspark.core.broadcast import Broadcast

    from firesteel.execution.stages.task_cache import TaskCache

__all__ = ["CloseTasks", "RunBatchTasks", "RunEpochTask"]

GC_THRESHOLDS = (50_000, 20, 20)
GC_INTERVAL_S = 10.0
GC_PAUSES = 50
"""All that a worker keeps is searched for garbage at most every ten seconds, and for at most a fiftieth of the time."""
_Key = tuple[str, str, int]


@dataclass(frozen=True)
class RunBatchTasks:
    """Runs the tasks of one vertex of a batch job, each in its partition."""

    descriptors: bytes
    """Those of all subtasks, pickled together as they have most in common."""
    splits: tuple[bytes, ...]
    """Those of each subtask, pickled."""
    tasks: int
    """How many there are: not as many as subtasks where the rows of a DataFrame are read, whose partitions count."""
    is_terminal: bool
    function: bytes | None = None
    """Another function than run_batch_task, pickled."""

    def __call__(self, partition: int, rows: Iterator[bytes]) -> Iterator[bytes]:
        enter_worker_environment()
        resolve_pyflink_names()
        command = self._command(partition)
        if self.function is None:
            from firesteel.execution.batch.task import run_batch_task

            output = run_batch_task(command, rows, capture=Printed)
        else:
            output = cloudpickle.loads(self.function)(command, rows)
        output = _logged(command.descriptor, output)
        return _guarded(_without_numbers(output) if self.is_terminal else output, rows)

    def _command(self, partition: int) -> BatchCommand:
        descriptors: tuple[StageTaskDescriptor, ...] = cloudpickle.loads(self.descriptors)
        descriptor = descriptors[partition % len(descriptors)]
        if self.tasks != len(descriptors):
            task = replace(descriptor.task, subtask=partition, parallelism=self.tasks)
            return BatchCommand(replace(descriptor, task=task))
        return BatchCommand(descriptor, cloudpickle.loads(self.splits[partition]))


@dataclass(frozen=True)
class RunEpochTask:
    """Runs one task of one epoch."""

    key: _Key
    """Job id, vertex id and subtask."""
    descriptors: Broadcast[Mapping[str, bytes]]
    """By vertex id those of all its subtasks, pickled. They stay the same, and so are already in a worker in use."""
    generation: int
    """Another one whenever the descriptors are others."""
    command: bytes
    """The rest of the EpochCommand, pickled."""
    last_run: str | None
    """The run whose state was acknowledged with the epoch before. What a worker has kept of another one is void."""
    is_terminal: bool
    function: bytes | None = None
    """Another function than run_epoch_task, pickled."""

    def __call__(self, _partition: int, rows: Iterator[bytes]) -> Iterator[bytes]:
        """Runs the task, with what the worker has kept of it."""
        enter_worker_environment()
        resolve_pyflink_names()
        if self.function is None:
            from firesteel.execution.epochs.task import run_epoch_task as run
        else:
            run = _loaded(self.function)
        descriptor, is_cached = self._descriptor()
        command = EpochCommand(descriptor, **cloudpickle.loads(self.command))
        output = _logged(descriptor, run(command, rows, _tasks()), resumes=is_cached)
        return _kept(_guarded(_without_numbers(output) if self.is_terminal else output, rows))

    def _descriptor(self) -> tuple[StageTaskDescriptor, bool]:
        """The descriptor that the task in the cache has, or a fresh one and False if the task has to be built."""
        found = _descriptors.get(self.key)
        if _tasks().keep_only(self.key, self.last_run) and found is not None and found[0] == self.generation:
            return found[1], True
        # functions may keep things in themselves, so a new task must not get those of an old one
        _, vertex_id, subtask = self.key
        descriptor: StageTaskDescriptor = cloudpickle.loads(self.descriptors.value[vertex_id])[subtask]
        _descriptors[self.key] = (self.generation, descriptor)
        return descriptor, False


@dataclass(frozen=True)
class CloseTasks:
    """Makes a worker close the tasks it keeps of a job."""

    job_id: str
    job_is_over: bool

    def __call__(self, _partition: int, rows: Iterator[bytes]) -> Iterator[bytes]:
        """Closes them, if there are any."""
        if _tasks.cache_info().currsize:
            _tasks().close(self.job_id, job_is_over=self.job_is_over)
        for key in [key for key in _descriptors if key[0] == self.job_id]:
            del _descriptors[key]
        yield from rows


_descriptors: dict[_Key, tuple[int, StageTaskDescriptor]] = {}


@cache
def _tasks() -> TaskCache:
    """The tasks this process keeps."""
    from firesteel.execution.stages.task_cache import TaskCache

    return TaskCache(capture=Printed)


@cache
def _loaded(function: bytes) -> Any:
    return cloudpickle.loads(function)


def _logged(descriptor: StageTaskDescriptor, output: Iterator[bytes], *, resumes: bool = False) -> Iterator[bytes]:
    """Runs a task with the log of its functions."""
    task = descriptor.task
    with function_logging(task.configuration, task.job_id, task.log_name, resumes=resumes):
        yield from output


def _without_numbers(output: Iterator[bytes]) -> Iterator[bytes]:
    for _number in output:
        yield next(output)


def _guarded(output: Iterator[bytes], rows: Iterator[bytes]) -> Iterator[bytes]:
    """Runs a task to its end, with a garbage collection that suits it."""
    thresholds = gc.get_threshold()
    # a batch is thousands of tuples that live for a millisecond: looking for cycles among them is wasted
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield from output
        for _ in rows:
            pass  # Spark only uses a worker again that has read all its input
    finally:
        gc.set_threshold(*thresholds)  # Spark reuses the process


def _kept(output: Iterator[bytes]) -> Iterator[bytes]:
    """Runs a task of an epoch, whose objects stay."""
    yield from output
    _garbage.set_aside()


class _Garbage:
    """Spares a worker the search through all it keeps.

    Spark has a worker search for cyclic garbage after every task: with a million keys of state that takes a second, and
    it takes 20 ms with nothing but modules. So what is there at the end of a task is set aside, and searched only as
    often as costs little.
    """

    def __init__(self) -> None:
        self._searched_at = float("-inf")
        self._took = 0.0

    def set_aside(self) -> None:
        """Called when a task is done."""
        now = time.monotonic()
        if now - self._searched_at > max(GC_INTERVAL_S, self._took * GC_PAUSES):
            gc.unfreeze()
            gc.collect()
            self._searched_at = time.monotonic()
            self._took = self._searched_at - now
        gc.freeze()


_garbage = _Garbage()
