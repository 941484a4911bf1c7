"""Which task of a slot runs next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from firesteel.runtime.task_metrics import BACKPRESSURED, IDLE

if TYPE_CHECKING:
    from firesteel.runtime.deployment import TaskDeploymentDescriptor
    from firesteel.runtime.task import Task

__all__ = ["MAX_WAIT_S", "TaskScheduler", "rank_vertices"]

MAX_WAIT_S = 0.01
"""How long a task can be passed over for tasks further downstream."""


class TaskScheduler:
    """Chooses the next task of a slot among those that have work and room.

    The most downstream one goes first, so that records leave before new ones enter; sources go last and take turns.
    That order alone starves tasks: a consumer that other slots keep supplied always has work, and the source beside it
    would never run. So each task is asked again at the latest ``MAX_WAIT_S`` after it ran or was last asked, and if it
    can run then it goes before all others; of several such tasks the one that was asked first. A task that can run
    therefore waits for at most ``MAX_WAIT_S`` and one turn of each other task of the slot.
    """

    def __init__(self, tasks: Sequence[Task]):
        downstream_first = sorted(tasks, key=lambda task: task.rank, reverse=True)
        self._order = [task for task in downstream_first if task.source is None]
        self._order += (task for task in downstream_first if task.source is not None)
        self._asked = deque(self._order)
        """All tasks, the one that was asked the longest time ago first."""

    def next_task(self, now: float, above: int = -1) -> Task | None:
        """The task to run now, of those with a rank above the given one; None if none of them can run."""
        asked = self._asked
        overdue = now - MAX_WAIT_S
        while (task := asked[0]).asked_at <= overdue:
            asked.rotate(-1)
            task.asked_at = now
            if task.rank > above and _can_run(task, now):
                self._end_round(task)
                return task
        for task in self._order:
            if task.rank > above and _can_run(task, now):
                asked.remove(task)
                asked.append(task)
                task.asked_at = now
                self._end_round(task)
                return task
        return None

    def _end_round(self, task: Task) -> None:
        """Puts a source that runs behind the other sources."""
        order = self._order
        if task.source is not None and order[-1] is not task:
            order.remove(task)
            order.append(task)


def _can_run(task: Task, now: float) -> bool:
    """Whether a task has work and room; if not, notes what it waits for."""
    if task.finished or task.running:
        return False
    times = task.times
    if not task.has_work(now):
        if times is not None and times.state != IDLE:
            times.enter(IDLE)
        return False
    if not task.has_room():
        if times is not None and times.state != BACKPRESSURED:
            times.enter(BACKPRESSURED)
        return False
    return True


def rank_vertices(slots: Iterable[Sequence[TaskDeploymentDescriptor]]) -> dict[str, int]:
    """Numbers the vertices of some slots so that every producer comes before its consumers.

    The tasks of each slot are in such an order already, which is the same in all slots of a job.
    """
    order: TopologicalSorter[str] = TopologicalSorter()
    producers: dict[int, str] = {}
    slots = list(slots)
    for tasks in slots:
        for task in tasks:
            order.add(task.vertex_id)
            producers.update((channel.id, task.vertex_id) for output in task.outputs for channel in output.channels)
        for before, task in pairwise(tasks):
            order.add(task.vertex_id, before.vertex_id)
    for task in chain.from_iterable(slots):
        channels = (channel.id for entry in task.inputs for channel in entry.channels)
        order.add(task.vertex_id, *(producers[channel] for channel in channels if channel in producers))
    return {vertex: rank for rank, vertex in enumerate(order.static_order())}
