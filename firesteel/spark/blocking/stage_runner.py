"""Runs the stages of batch jobs and of epochs on Spark."""

from __future__ import annotations

import itertools
import logging
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import cloudpickle
from pyspark import InheritableThread, SparkContext

from firesteel.common.errors import FiresteelError
from firesteel.execution.epochs.task import mixed_runs
from firesteel.execution.stages.exchange_rows import unpack_row
from firesteel.execution.stages.stage_graph import in_stage_order
from firesteel.execution.stages.stage_runner import EpochRun, StageError, StageMessage
from firesteel.execution.stages.task_commands import BatchCommand, EpochReport
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.messages import TaskKey
from firesteel.spark.blocking.batch_rdds import BatchRdds
from firesteel.spark.blocking.epoch_rdds import EpochRdds
from firesteel.spark.session.failures import of_attempt, stage_error
from firesteel.spark.session.liveness import host_error
from firesteel.spark.session.rdds import Rdds
from firesteel.spark.session.worker_environment import WorkerEnvironment

__all__ = ["SparkStageRunner"]

_log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 10.0
MAX_EPOCH_RETRIES = 2
_jobs = itertools.count()


class SparkStageRunner:
    """The StageRunner of Spark: a batch is one Spark job, an epoch is one Spark job.

    ``batch_task`` and ``epoch_task`` are what workers run, by default ``run_batch_task`` and ``run_epoch_task``;
    ``environment`` is what workers are started with.
    """

    def __init__(
        self,
        context: SparkContext,
        *,
        batch_task: Callable[..., Iterator[bytes]] | None = None,
        epoch_task: Callable[..., Iterator[bytes]] | None = None,
        environment: WorkerEnvironment | None = None,
    ):
        self._context = context
        self._environment = environment or WorkerEnvironment()
        self._batch_task = None if batch_task is None else cloudpickle.dumps(batch_task)
        self._epoch_task = None if epoch_task is None else cloudpickle.dumps(epoch_task)
        self._lock = threading.Lock()
        self._group: str | None = None
        self._cancelled: str | None = None
        self._batch: BatchRdds | None = None
        self._epochs: EpochRdds | None = None
        self._last_runs: dict[TaskKey, str] = {}

    # -- StageRunner --------------------------------------------------------------------------------

    def run_batch(self, job_graph: JobGraph, commands: Mapping[TaskKey, BatchCommand]) -> Sequence[StageMessage]:
        """Runs a batch job; after a run that failed, only the stages that had not finished, with its commands."""
        with self._job(job_graph.job_name, _attempt_of(commands)) as attempt:
            self._environment.prepare()
            if self._batch is None or self._batch.tasks != commands.keys():
                self._batch = BatchRdds(self._context, job_graph, commands, self._batch_task, self._environment)
            rows = Rdds.of(self._context).collect(self._batch.results)
            self._forget_batch()
        return of_attempt(in_stage_order(job_graph, [_told(row) for row in rows]), attempt)

    def run_epoch(self, job_graph: JobGraph, epoch: EpochRun) -> Sequence[StageMessage]:
        """Runs one epoch; again if its failure was not caused by a task, as long as the tasks' state can be loaded.

        A lost worker or executor then costs a reload. No task keeps the work of a failed run.
        """
        description, attempt = f"{job_graph.job_name}: epoch {epoch.epoch}", _attempt_of(epoch.commands)
        retries = MAX_EPOCH_RETRIES if all(command.is_restorable for command in epoch.commands.values()) else 0
        with self._job(description, attempt):
            while True:
                try:
                    return self._run_epoch(job_graph, epoch)
                except Exception as error:
                    failure = error if isinstance(error, FiresteelError) else self._describe(error, attempt)
                    if retries == 0 or self._cancelled is not None or getattr(failure, "messages", True):
                        raise failure from error
                    retries -= 1
                    _log.info("%s is run again: %s", description, failure)

    def _run_epoch(self, job_graph: JobGraph, epoch: EpochRun) -> Sequence[StageMessage]:
        stages = self._stages_of(job_graph)
        try:
            rows = Rdds.of(self._context).collect(stages.results(epoch, self._last_runs))
        finally:
            with suppress(Exception):
                stages.forget_epoch()
        messages = in_stage_order(job_graph, [_told(row) for row in rows])
        reports = [message for message in messages if isinstance(message, EpochReport)]
        problem = mixed_runs(reports)
        if problem is not None:
            raise StageError(problem)
        self._last_runs = {(report.vertex_id, report.subtask): report.run for report in reports}
        return messages

    def cancel(self, reason: str) -> None:
        """Has Spark cancel the job of the run; Python workers that do not end by themselves are killed."""
        with self._lock:
            group = self._group
            if group is not None and self._cancelled is None:
                self._cancelled = reason
        if group is not None:
            with suppress(Exception):  # the context may be stopped already, and with it the run
                self._context._jsc.sc().cancelJobGroupAndFutureJobs(group)

    def close(self, on_closed: Callable[[], Any] | None = None) -> None:
        """Makes the workers close the tasks they keep, as far as they can be reached in a few seconds."""
        epochs, self._epochs = self._epochs, None
        with suppress(Exception):
            self._forget_batch()
        if epochs is not None:
            with suppress(Exception):  # the context may be stopped already, and with it the workers
                thread = InheritableThread(target=self._close_tasks, args=(epochs,), name="firesteel-close-tasks")
                thread.daemon = True
                thread.start()
                thread.join(CLOSE_TIMEOUT_S)
                if thread.is_alive():
                    self.cancel("the tasks could not be closed in time")
            with suppress(Exception):
                epochs.close()
        self._environment.release()
        if on_closed is not None:
            on_closed()

    # -- runs ---------------------------------------------------------------------------------------

    @contextmanager
    def _job(self, description: str, attempt: int) -> Iterator[int]:
        """What is collected inside is one cancellable Spark job; any error becomes a StageError."""
        group = f"firesteel-stages-{next(_jobs)}"
        with self._lock:
            self._group, self._cancelled = group, None
        try:
            self._context.setJobGroup(group, description, interruptOnCancel=True)
            yield attempt
        except Exception as error:
            if self._cancelled is not None:
                raise StageError(f"The run was cancelled: {self._cancelled}") from error
            if isinstance(error, FiresteelError):
                raise
            raise self._describe(error, attempt) from error
        finally:
            with self._lock:
                self._group = None
            with suppress(Exception):
                self._context._jsc.sc().clearJobGroup()

    def _describe(self, error: Exception, attempt: int) -> FiresteelError:
        return host_error(self._context, error) or stage_error(error, attempt)

    def _stages_of(self, job_graph: JobGraph) -> EpochRdds:
        if self._epochs is not None and not self._epochs.fits(job_graph):
            rows = self._epochs.closing(job_is_over=False)
            Rdds.of(self._context).collect(rows)
            self._epochs.close()
            self._epochs = None
        if self._epochs is None:
            self._environment.prepare()
            self._epochs = EpochRdds(self._context, job_graph, self._epoch_task, self._environment)
        return self._epochs

    def _close_tasks(self, epochs: EpochRdds) -> None:
        with suppress(Exception), self._job("close tasks", 0):
            Rdds.of(self._context).collect(epochs.closing(job_is_over=True))

    def _forget_batch(self) -> None:
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.forget()


def _attempt_of(commands: Mapping[TaskKey, Any]) -> int:
    return next((int(command.descriptor.task.attempt) for command in commands.values()), 0)


def _told(row: bytes) -> Sequence[StageMessage]:
    told: Sequence[StageMessage] = pickle.loads(unpack_row(row).payload)
    return told
