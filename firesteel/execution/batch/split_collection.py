"""Collects all splits of a bounded job from the split enumerators before anything is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.graph.job_graph import JobGraph
from firesteel.runtime.model.messages import AddSplits, NoMoreSplits, ReaderStarted, RequestSplit, TaskKey

__all__ = ["SplitCollection"]

Tell = Callable[[TaskKey, ReaderStarted | RequestSplit], None]
"""Forwards the message of a reader."""


class SplitCollection:
    """Simulates the readers of all sources: each requests splits until there are no more.

    Readers ask in turn, so that splits assigned on request are spread evenly. Sources whose rows come from
    elsewhere (``reads_rows``) are not asked.
    """

    def __init__(self, job_graph: JobGraph, attempt: int, tell: Tell):
        self._attempt = attempt
        self._tell = tell
        self._names: dict[str, str] = {}
        self._vertices: dict[str, str] = {}
        self._open: dict[tuple[str, int], None] = {}
        """Readers that may get more."""
        self._hungry: list[tuple[str, int]] = []
        """Readers that got splits and have not asked for more yet."""
        self._splits: dict[TaskKey, list[Any]] = {}
        for vertex in job_graph.vertices:
            node = vertex.head.node
            source = node.spec.get_source()
            if source is not None and not getattr(source, "reads_rows", False):
                self._names[node.operator_id] = node.name
                self._vertices[node.operator_id] = vertex.id
                for subtask in range(vertex.parallelism):
                    self._open[node.operator_id, subtask] = None

    def begin(self) -> None:
        """All readers start, and ask."""
        for operator_id, subtask in self._open:
            vertex_id = self._vertices[operator_id]
            self._tell((vertex_id, subtask), ReaderStarted(self._attempt, vertex_id, operator_id, subtask))
        self._hungry = list(self._open)
        self.ask()

    def ask(self) -> None:
        """Requests more splits for the readers that got some."""
        hungry, self._hungry = self._hungry, []
        for operator_id, subtask in hungry:
            if (operator_id, subtask) in self._open:
                vertex_id = self._vertices[operator_id]
                self._tell((vertex_id, subtask), RequestSplit(self._attempt, vertex_id, operator_id, subtask))

    def accept(self, message: AddSplits | NoMoreSplits) -> None:
        """An enumerator has answered."""
        reader = message.operator_id, message.subtask
        if isinstance(message, NoMoreSplits):
            self._open.pop(reader, None)
            return
        task = self._vertices[message.operator_id], message.subtask
        self._splits.setdefault(task, []).extend(message.splits)
        self._hungry.append(reader)

    @property
    def is_complete(self) -> bool:
        """Whether all readers have all their splits."""
        return not self._open

    def splits(self) -> dict[TaskKey, tuple[Any, ...]]:
        """What each task is to read, in the order in which it was assigned."""
        return {task: tuple(splits) for task, splits in self._splits.items()}

    def waiting(self) -> str:
        """The sources that have not signalled the last split, and for which readers."""
        readers: dict[str, list[str]] = {}
        for operator_id, subtask in self._open:
            readers.setdefault(operator_id, []).append(str(subtask))
        return "; ".join(
            f"'{self._names[operator_id]}' (reader{'s' if len(subtasks) > 1 else ''} {', '.join(subtasks)})"
            for operator_id, subtasks in readers.items()
        )
