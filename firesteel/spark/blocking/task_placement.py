"""Task placement of epochs: each task runs in the same Python process on the same executor every time.

Correctness does not depend on it: a task that finds itself elsewhere loads its state there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark import SparkContext

from firesteel.execution.stages.stage_graph import Stage
from firesteel.runtime.model.messages import TaskKey
from firesteel.spark.session.rdds import JavaRDD, Rdds

__all__ = ["SLOT_VARIABLE", "Executors", "WorkerSlots", "slots_of", "worker_slots"]

SLOT_VARIABLE = "FIRESTEEL_SLOT"
"""Spark keeps apart Python workers whose environments differ: so those of one slot are only used for that slot."""

LOOK_EVERY_S = 5.0
"""How often Spark is asked for its executors. One that is gone meanwhile is no harm: Spark takes another."""


def slots_of(stages: Sequence[Stage]) -> dict[TaskKey, int]:
    """Gives each task a slot, so that no two tasks that could run at the same time have the same one.

    Stages of which one comes after the other share slots, subtask by subtask; so no slot ever has more than one
    worker, and a task finds the one it had before.
    """
    before: dict[str, set[str]] = {}
    for stage in stages:
        before[stage.id] = set().union(*({producer} | before[producer] for producer in stage.producers))
    lanes: list[list[Stage]] = []
    for stage in stages:
        lane = next((lane for lane in lanes if lane[-1].id in before[stage.id]), None)
        if lane is None:
            lanes.append([stage])
        else:
            lane.append(stage)
    slots: dict[TaskKey, int] = {}
    first = 0
    for lane in lanes:
        for stage in lane:
            slots.update({(stage.id, subtask): first + subtask for subtask in range(stage.parallelism)})
        first += max(stage.parallelism for stage in lane)
    return slots


class WorkerSlots:
    """Numbers for the slots of this process's jobs.

    Spark never ends the process from which it forks the workers of an environment, so numbers are used again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: set[int] = set()

    def take(self, count: int) -> tuple[int, ...]:
        """The lowest numbers that are free.

        >>> slots = WorkerSlots()
        >>> slots.take(2), slots.take(1)
        ((0, 1), (2,))
        >>> slots.give_back((0, 1))
        >>> slots.take(3)
        (0, 1, 3)
        """
        numbers: list[int] = []
        with self._lock:
            number = 0
            while len(numbers) < count:
                if number not in self._taken:
                    numbers.append(number)
                number += 1
            self._taken.update(numbers)
        return tuple(numbers)

    def give_back(self, numbers: Sequence[int]) -> None:
        """The numbers are free again."""
        with self._lock:
            self._taken.difference_update(numbers)


@dataclass
class Executors:
    """Spreads slots over a cluster's executors, and leaves them there for as long as the executor lives."""

    context: SparkContext
    _looked_at: float = float("-inf")
    _places: dict[str, JavaRDD] = field(default_factory=dict)
    _slots: dict[int, str] = field(default_factory=dict)

    @property
    def is_single(self) -> bool:
        """Whether there is only one place."""
        master = str(self.context.master)
        return master.startswith("local") and not master.startswith("local-cluster")

    def place(self, slots: Sequence[int]) -> dict[int, JavaRDD]:
        """A place for each slot, for ``Rdds.at``; none if there is nothing to choose from."""
        if self.is_single:
            return {}
        if time.monotonic() - self._looked_at > LOOK_EVERY_S or not self._slots.keys() >= set(slots):
            self._looked_at = time.monotonic()
            self._spread(slots)
        return {slot: self._places[location] for slot, location in self._slots.items()}

    def _spread(self, slots: Sequence[int]) -> None:
        locations = self._locations()
        if len(locations) < 2:
            self._slots = {}
            return
        rdds = Rdds.of(self.context)
        self._places = {location: self._places.get(location) or rdds.located(location) for location in locations}
        kept = {slot: self._slots[slot] for slot in slots if self._slots.get(slot) in self._places}
        load = {location: list(kept.values()).count(location) for location in locations}
        for slot in slots:
            if slot not in kept:
                kept[slot] = min(locations, key=lambda location: load[location])
                load[kept[slot]] += 1
        self._slots = kept

    def _locations(self) -> list[str]:
        """The executors, in the form in which Spark takes preferred locations."""
        executors = self.context._jsc.sc().statusStore().executorList(True)
        summaries = [executors.apply(index) for index in range(executors.size())]
        return sorted(
            f"executor_{summary.hostPort().rpartition(':')[0]}_{summary.id()}"
            for summary in summaries
            if summary.id() != "driver"
        )


worker_slots = WorkerSlots()
"""Those of this process."""
