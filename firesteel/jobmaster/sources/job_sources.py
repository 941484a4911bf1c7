"""Source coordinators of a job, for the JobMaster: split enumerators of an attempt and their messages to readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from firesteel.common.errors import FiresteelError, TaskFailure
from firesteel.graph.execution_graph import ExecutionGraph
from firesteel.jobmaster.model.enumerator_call import EnumeratorCall
from firesteel.jobmaster.model.events import CallReturned
from firesteel.jobmaster.model.failure import failure_of
from firesteel.jobmaster.sources.coordinator import ReaderMessage, SourceCoordinators
from firesteel.runtime.model.messages import JobMasterMessage, ReaderStarted, RequestSplit, SourceEvent

__all__ = ["JobSources", "SourcedJob"]


class SourcedJob(Protocol):
    """What the sources ask of the JobMaster."""

    execution_graph: ExecutionGraph

    def send_to_slot(self, slot_index: int, message: JobMasterMessage) -> None:
        """Sends to one slot."""
        ...

    def fail_job(self, failure: TaskFailure) -> None:
        """The job cannot go on like this."""
        ...


class JobSources:
    """Runs the enumerators of the present attempt and sends what they assign. One that raises fails the job."""

    def __init__(self, job: SourcedJob):
        self._job = job
        self._coordinators: SourceCoordinators | None = None

    def start(self, restored: Mapping[str, bytes]) -> None:
        """Starts the enumerators of an attempt from their states, by operator id; raises what they raise."""
        self._coordinators = SourceCoordinators(self._job.execution_graph.job_graph, restored)
        self._coordinators.start()

    def close(self) -> list[TaskFailure]:
        """Closes the enumerators; returns what they raised."""
        coordinators, self._coordinators = self._coordinators, None
        return [] if coordinators is None else coordinators.close()

    @property
    def all_readers_started(self) -> bool:
        """Whether every reader of every source has started."""
        return self._coordinators is not None and self._coordinators.all_readers_started

    def accept(self, message: ReaderStarted | RequestSplit | SourceEvent) -> None:
        """A reader has started, has nothing left to read, or has sent an event."""
        self._ask(lambda sources: sources.accept(message))

    def call_returned(self, event: CallReturned) -> None:
        """A call that an enumerator asked for has been made."""
        self._ask(lambda sources: sources.call_returned(event.operator_id, event.number, event.result, event.error))

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        self._ask(lambda sources: sources.notify_checkpoint_complete(checkpoint_id))

    def snapshot(self, checkpoint_id: int) -> dict[str, bytes]:
        """The states of the enumerators, by operator id; raises what an enumerator raises.

        What enumerators assign meanwhile is sent before this returns, so that it reaches the readers before the
        barrier, as in Flink.
        """
        if self._coordinators is None:
            return {}
        try:
            return self._coordinators.snapshot(checkpoint_id)
        finally:
            self._ask(lambda sources: sources.flush())

    def take_calls(self) -> list[EnumeratorCall]:
        """Calls that enumerators requested in another thread, each once."""
        return [] if self._coordinators is None else self._coordinators.take_calls()

    def _ask(self, ask: Callable[[SourceCoordinators], list[ReaderMessage]]) -> None:
        """Calls an enumerator, and sends its messages to the readers."""
        coordinators = self._coordinators
        if coordinators is None:
            return
        try:
            for subtask, message in ask(coordinators):
                vertex_id = coordinators.vertex_of(message.operator_id)
                self._job.send_to_slot(self._job.execution_graph.slots.slot_of(vertex_id, subtask), message)
        except FiresteelError as error:
            self._job.fail_job(failure_of(error))
