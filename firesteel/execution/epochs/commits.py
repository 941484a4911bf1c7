"""Committer calls of a job in epochs, made once the checkpoint of an epoch is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from firesteel.common.errors import TaskFailure
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.stream_graph import StreamNode
from firesteel.jobmaster.model.failure import failure_of
from firesteel.process import fault_points
from firesteel.runtime.checkpoint.files import StateFileReader
from firesteel.runtime.model.assigned_state import AssignedOperatorState
from firesteel.runtime.model.messages import TaskKey
from firesteel.runtime.model.state_handles import TaskStateSnapshot
from firesteel.runtime.operators.sink import COMMITTABLES
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.spi.sink import Committer, Sink

__all__ = ["CommitFailed", "EpochCommits"]


class CommitFailed(Exception):
    """A sink could not commit. The checkpoint has what it prepared: the next attempt commits it again."""

    def __init__(self, task: TaskKey, failure: TaskFailure):
        super().__init__(failure.message)
        self.task = task
        self.failure = failure


class EpochCommits:
    """The committers of one attempt; all of it happens in this process, and in one thread.

    The steps are those of SinkOperator, of which this does the third: once checkpoint n is complete, what any writer
    prepared for checkpoints up to n is committed, as it is in the state that the tasks have acknowledged for n. The
    tasks are notified of it with the next epoch, and forget what they had prepared. Should this process or the attempt
    end before the third step has, the next attempt starts from n, and its tasks commit again what they restore.
    """

    def __init__(self, job_graph: JobGraph):
        self._sinks: list[tuple[str, StreamNode, Sink]] = [
            (vertex.id, operator.node, sink)
            for vertex in job_graph.vertices
            for operator in vertex.operators
            if (sink := operator.node.spec.get_sink()) is not None
        ]
        self._configuration = job_graph.configuration
        self._committers: dict[str, Committer[Any] | None] = {}
        self._committed = 0

    @property
    def any_sink_commits(self) -> bool:
        """Whether the output of any sink is visible only once it is committed."""
        return any(self._committer(node.operator_id, sink) is not None for _, node, sink in self._sinks)

    def commit(self, checkpoint_id: int, states: Mapping[TaskKey, TaskStateSnapshot]) -> int:
        """Commits what is due with a checkpoint; returns how many committables that were. Raises CommitFailed."""
        number = 0
        with StateFileReader.configured(self._configuration) as files:
            for vertex_id, node, sink in self._sinks:
                try:
                    due = self._due(checkpoint_id, vertex_id, node.operator_id, states, files)
                    committer = self._committer(node.operator_id, sink) if due else None
                    if committer is not None:
                        fault_points.reach("sink.commit")
                        committer.commit(due)
                        fault_points.reach("sink.committed")
                except Exception as error:
                    raise CommitFailed((vertex_id, 0), _failure(error, node)) from error
                number += len(due)
        self._committed = checkpoint_id
        return number

    def _due(
        self,
        checkpoint_id: int,
        vertex_id: str,
        operator_id: str,
        states: Mapping[TaskKey, TaskStateSnapshot],
        files: StateFileReader,
    ) -> list[Any]:
        """In the order of checkpoints, then of subtasks.

        A task that was not notified yet of the last checkpoint that completed still names what was committed with it.
        """
        backend = OperatorStateBackend()
        own = {subtask: state for (vertex, subtask), state in states.items() if vertex == vertex_id}
        for _, snapshot in sorted(own.items(), key=lambda entry: entry[0]):
            operator = snapshot.operators.get(operator_id)
            lists = () if operator is None else operator.operator
            whole = [AssignedOperatorState(each, 0, each.items) for each in lists if each.name == COMMITTABLES]
            backend.restore(whole, files)
        prepared = [pair for pair in backend.restored(COMMITTABLES) if self._committed < pair[0] <= checkpoint_id]
        return [item for _, item in sorted(prepared, key=lambda pair: pair[0])]

    def _committer(self, operator_id: str, sink: Sink) -> Committer[Any] | None:
        if operator_id not in self._committers:
            self._committers[operator_id] = sink.create_committer()
        return self._committers[operator_id]

    def finish(self) -> None:
        """The job has ended, and all it has prepared is committed: what tasks left that were run twice can go."""
        for committer in self._committers.values():
            if committer is not None:
                committer.finish()

    def close(self) -> None:
        """Closes the committers; raises the first error of those there were."""
        errors: list[Exception] = []
        committers, self._committers = self._committers, {}
        for committer in committers.values():
            try:
                if committer is not None:
                    committer.close()
            except Exception as error:  # noqa: BLE001 - every committer gets its chance to close
                errors.append(error)
        if errors:
            raise errors[0]


def _failure(error: Exception, node: StreamNode) -> TaskFailure:
    failure = failure_of(error, operator=node.name, uid=node.uid, defined_at=node.defined_at)
    return replace(failure, during="commit()")
