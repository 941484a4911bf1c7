"""The RDDs of an epoch: one partition per task, each for the Python worker that has run the task before."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import cloudpickle
from pyspark import SparkContext

from firesteel.execution.stages.stage_graph import Stage, stages_of
from firesteel.execution.stages.stage_runner import EpochRun
from firesteel.execution.stages.task_commands import EpochCommand, StageTaskDescriptor
from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.messages import TaskKey
from firesteel.spark.blocking.task_placement import SLOT_VARIABLE, Executors, slots_of, worker_slots
from firesteel.spark.blocking.worker import CloseTasks, RunEpochTask
from firesteel.spark.session.rdds import JavaRDD, PythonStage, Rdds
from firesteel.spark.session.worker_environment import WorkerEnvironment

__all__ = ["EpochRdds"]

_PROTOCOL = 5
_FIELDS = tuple(field.name for field in fields(EpochCommand) if field.name != "descriptor")
_generations = itertools.count()


class EpochRdds:
    """Makes the RDDs of one job's epochs.

    The descriptors of the tasks, with all functions, are broadcast once; an epoch only ships what is new.
    """

    def __init__(
        self,
        context: SparkContext,
        job_graph: JobGraph,
        function: bytes | None = None,
        environment: WorkerEnvironment | None = None,
    ):
        self._job_id = job_graph.job_id
        self._context = context
        self._rdds = Rdds.of(context)
        self._function = function
        self._stages = stages_of(job_graph)
        self._slots = slots_of(self._stages)
        self._numbers = worker_slots.take(max(self._slots.values()) + 1)
        environment = environment or WorkerEnvironment()
        self._environments = [environment.with_variables({SLOT_VARIABLE: str(number)}) for number in self._numbers]
        self._executors = Executors(context)
        self._descriptors: dict[TaskKey, StageTaskDescriptor] = {}
        self._broadcast: Any = None
        self._broadcasts: Any = None
        self._generation = -1
        self._shuffles: list[JavaRDD] = []

    def fits(self, job_graph: JobGraph) -> bool:
        """Whether a job graph, perhaps that of a later attempt, has the same tasks and exchanges."""
        return _shape(stages_of(job_graph)) == _shape(self._stages)

    def results(self, epoch: EpochRun, last_runs: Mapping[TaskKey, str]) -> JavaRDD:
        """What all terminal stages of an epoch yield."""
        self._ship_descriptors(epoch)
        rdds, places = self._rdds, self._executors.place(range(len(self._numbers)))
        exchanges: dict[str, JavaRDD] = {}
        stages = {stage.id: stage for stage in self._stages}
        results: list[JavaRDD] = []
        for stage in self._stages:
            tasks: list[JavaRDD] = []
            for subtask in range(stage.parallelism):
                key = (stage.id, subtask)
                rows = self._input([stages[producer] for producer in stage.producers], exchanges, stage.id, subtask)
                place = places.get(self._slots[key])
                if place is not None:
                    rows = rdds.at(place, rows)
                command = epoch.commands[key]
                task = RunEpochTask(
                    (command.descriptor.task.job_id, *key),
                    self._broadcast,
                    self._generation,
                    cloudpickle.dumps({name: getattr(command, name) for name in _FIELDS}, _PROTOCOL),
                    last_runs.get(key),
                    stage.is_terminal,
                    self._function,
                )
                tasks.append(rdds.python(rows, task, self._environments[self._slots[key]], self._broadcasts))
            if stage.is_terminal:
                results += tasks
            else:
                pairs = rdds.pairs(rdds.union(tasks))
                shuffled = rdds.shuffle(pairs, stage.partitions, is_sorted=False)
                self._shuffles.append(shuffled)
                exchanges[stage.id] = rdds.rows(shuffled)
        return rdds.union(results)

    def _input(self, producers: list[Stage], exchanges: Mapping[str, JavaRDD], vertex_id: str, subtask: int) -> JavaRDD:
        if not producers:
            return self._rdds.empty(1)
        return self._rdds.concatenate(
            [
                self._rdds.select(
                    exchanges[producer.id], producer.consumer(vertex_id).offset + subtask, 1, producer.partitions
                )
                for producer in producers
            ]
        )

    def _ship_descriptors(self, epoch: EpochRun) -> None:
        descriptors = {key: command.descriptor for key, command in epoch.commands.items()}
        if all(self._descriptors.get(key) is descriptor for key, descriptor in descriptors.items()):
            return
        self._drop_broadcast()
        by_vertex = {
            stage.id: cloudpickle.dumps(
                tuple(descriptors[stage.id, subtask] for subtask in range(stage.parallelism)), _PROTOCOL
            )
            for stage in self._stages
        }
        self._broadcast = self._context.broadcast(by_vertex)
        self._broadcasts = self._rdds.broadcasts(self._broadcast)
        self._descriptors = descriptors
        self._generation = next(_generations)

    # -- afterwards ---------------------------------------------------------------------------------

    def forget_epoch(self) -> None:
        """Removes the files of the last epoch's shuffles."""
        shuffles, self._shuffles = self._shuffles, []
        self._rdds.forget(self._rdds.shuffle_id(shuffled) for shuffled in shuffles)

    def closing(self, *, job_is_over: bool) -> JavaRDD:
        """Has every worker close the tasks it keeps of the job."""
        rdds = self._rdds
        close: PythonStage = CloseTasks(self._job_id, job_is_over)
        places = self._executors.place(range(len(self._numbers)))
        empty = rdds.empty(1)
        return rdds.union(
            [
                rdds.python(rdds.at(places[slot], empty) if slot in places else empty, close, environment)
                for slot, environment in enumerate(self._environments)
            ]
        )

    def close(self) -> None:
        """Lets go of what the driver holds; the job is over, or has another shape from now on."""
        numbers, self._numbers = self._numbers, ()
        worker_slots.give_back(numbers)
        self._drop_broadcast()

    def _drop_broadcast(self) -> None:
        if self._broadcast is not None:
            broadcast, self._broadcast = self._broadcast, None
            broadcast.destroy()


def _shape(stages: Sequence[Stage]) -> list[tuple[Any, ...]]:
    return [(stage.id, stage.parallelism, stage.consumers, stage.producers) for stage in stages]
