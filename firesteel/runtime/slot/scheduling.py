"""Task scheduling within a slot: which task runs next."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from firesteel.runtime.task.task_metrics import BACKPRESSURED, BUSY, IDLE

if TYPE_CHECKING:
    from firesteel.runtime.model.deployment import TaskDeploymentDescriptor
    from firesteel.runtime.task.task import Task

__all__ = ["MAX_WAIT_S", "TaskScheduler", "rank_vertices"]

MAX_WAIT_S = 0.01
"""How long a task can be passed over for tasks further downstream."""


class TaskScheduler:
    """Chooses the next task of a slot among those that have work and room.

    The most downstream one goes first, so that records leave before new ones enter; sources go last and take turns.
    That order alone starves tasks: a consumer that other slots keep supplied always has work, and the source beside it
    would never run. So each task is asked again at the latest ``MAX_WAIT_S`` after it ran or was last asked, and if it
    can run then it goes before all others; of several such tasks the one that was asked first. It continues for as long
    as the turn took that it had to wait for, at most ``MAX_WAIT_S``: else a task whose turns are short would get next
    to nothing beside one whose turns are long. A task that can run therefore waits for at most ``MAX_WAIT_S`` and one
    turn, or as many as fit into ``MAX_WAIT_S``, of each other task of the slot.
    """

    def __init__(self, tasks: Sequence[Task]):
        downstream_first = sorted(tasks, key=lambda task: task.rank, reverse=True)
        self._order = [task for task in downstream_first if task.source is None]
        self._order += (task for task in downstream_first if task.source is not None)
        self._asked = deque(self._order)
        """All tasks, the one that was asked the longest time ago first."""
        self._turn_began: float | None = None
        """When the last turn began, if there was one."""
        self._favoured: Task | None = None
        """A task that was overdue, which goes on until a certain time."""
        self._favoured_until = 0.0

    def next_task(self, now: float, above: int = -1) -> Task | None:
        """The task to run now, of those with a rank above the given one; None if none of them can run."""
        task = self._favoured
        if task is not None:
            if now < self._favoured_until and task.rank > above and _can_run(task, now):
                return self._begin(task, now)
            self._favoured = None
        task = self._overdue_task(now, above)
        if task is not None:
            return self._begin(task, now)
        for task in self._order:
            if task.rank > above and _can_run(task, now):
                return self._begin(task, now)
        self._turn_began = None
        return None

    def _overdue_task(self, now: float, above: int) -> Task | None:
        asked = self._asked
        overdue = now - MAX_WAIT_S
        while (task := asked[0]).asked_at <= overdue:
            asked.rotate(-1)
            task.asked_at = now
            if task.rank > above and _can_run(task, now):
                if self._turn_began is not None:
                    self._favoured = task
                    self._favoured_until = now + min(now - self._turn_began, MAX_WAIT_S)
                return task
        return None

    def _begin(self, task: Task, now: float) -> Task:
        """Notes that a task has its turn, and puts a source behind the other sources."""
        self._turn_began = task.asked_at = now
        asked, order = self._asked, self._order
        if asked[-1] is not task:
            asked.remove(task)
            asked.append(task)
        if task.source is not None and order[-1] is not task:
            order.remove(task)
            order.append(task)
        return task


def _can_run(task: Task, now: float) -> bool:
    """Whether a task has work and room; if not, notes what it waits for."""
    if task.finished or task.running:
        return False
    times = task.times
    if not task.has_work(now):
        # one that waits for its calls, not for records, is what holds up the job
        state = IDLE if task.can_read else BUSY
        if state == BUSY:
            task.input_clock.stop()
        if times is not None and times.state != state:
            times.enter(state)
        return False
    if not task.has_room():
        task.input_clock.stop()
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
