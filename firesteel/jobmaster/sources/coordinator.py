"""Source coordinator: runs a source's split enumerator in the JobMaster and sends splits and events to the readers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import cloudpickle

from firesteel.common.errors import FiresteelError, TaskFailure, UserCodeError
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.model.enumerator_call import EnumeratorCall
from firesteel.jobmaster.model.failure import failure_of
from firesteel.runtime.model.messages import (
    AddSplits,
    NoMoreSplits,
    ReaderEvent,
    ReaderStarted,
    RequestSplit,
    SourceEvent,
)
from firesteel.spi.source import Source, SplitEnumerator

__all__ = ["ReaderMessage", "SourceCoordinator", "SourceCoordinators"]

ReaderMessage: TypeAlias = tuple[int, AddSplits | NoMoreSplits | ReaderEvent]
"""The subtask of a reader, and the message for it."""


@dataclass(frozen=True)
class _AwaitedCall:
    call: Callable[[], Any]
    handler: Callable[[Any, Exception | None], None]
    period_ms: int | None


class SourceCoordinator:
    """One source operator's enumerator for one attempt; it is the SplitEnumeratorContext the enumerator sees.

    An enumerator may assign splits at any time, also to readers that have not started: those wait here. Each
    method returns what is to be sent now. What the enumerator raises comes out as a UserCodeError that names
    the source. Enumerators run inside the JobMaster and must not block for long.
    """

    def __init__(
        self,
        operator_id: str,
        name: str,
        source: Source[Any],
        parallelism: int,
        *,
        uid: str | None = None,
        defined_at: str | None = None,
        restored: bytes | None = None,
    ):
        self.operator_id = operator_id
        self.name = name
        self._source = source
        self._parallelism = parallelism
        self._uid = uid
        self._defined_at = defined_at
        self._enumerator: SplitEnumerator[Any] | None = None
        self._restored = restored
        self._readers: set[int] = set()
        self._pending: dict[int, list[AddSplits | ReaderEvent]] = {}
        """What readers are to be told, in order."""
        self._no_more_splits: set[int] = set()
        self._pending_no_more: set[int] = set()
        self._closed = False
        self._calls: list[EnumeratorCall] = []
        self._awaited: dict[int, _AwaitedCall] = {}
        self._call_count = 0

    # What the enumerator calls

    def current_parallelism(self) -> int:
        """How many readers there are."""
        return self._parallelism

    def registered_readers(self) -> list[int]:
        """Subtasks whose reader has started."""
        return sorted(self._readers)

    def assign_split(self, split: Any, subtask: int) -> None:
        """Gives a split to a reader."""
        self._check(subtask)
        if subtask in self._no_more_splits:
            raise ValueError(f"split {split!r} assigned to reader {subtask} after signal_no_more_splits")
        told = self._pending.setdefault(subtask, [])
        splits: tuple[Any, ...] = ()
        if told and isinstance(told[-1], AddSplits):
            splits = told.pop().splits  # type: ignore[union-attr]
        told.append(AddSplits(self.operator_id, subtask, (*splits, split)))

    def signal_no_more_splits(self, subtask: int) -> None:
        """Signals a reader that it gets no more splits."""
        self._check(subtask)
        if subtask not in self._no_more_splits:
            self._no_more_splits.add(subtask)
            self._pending_no_more.add(subtask)

    def send_event_to_reader(self, subtask: int, event: Any) -> None:
        """Sends an event to a reader, in order with the splits."""
        self._check(subtask)
        self._pending.setdefault(subtask, []).append(ReaderEvent(self.operator_id, subtask, event))

    def call_async(
        self,
        call: Callable[[], Any],
        handler: Callable[[Any, Exception | None], None],
        *,
        initial_delay_ms: int = 0,
        period_ms: int | None = None,
    ) -> None:
        """Has a call made in another thread, and its result handled here."""
        self._await(_AwaitedCall(call, handler, period_ms), initial_delay_ms)

    def _await(self, awaited: _AwaitedCall, delay_ms: int) -> None:
        self._call_count += 1
        self._awaited[self._call_count] = awaited
        self._calls.append(EnumeratorCall(self.operator_id, self._call_count, awaited.call, delay_ms))

    # What the JobMaster calls

    def take_calls(self) -> list[EnumeratorCall]:
        """What is to be done in another thread, each once."""
        calls, self._calls = self._calls, []
        return calls

    def call_returned(self, number: int, result: Any, error: Exception | None) -> list[ReaderMessage]:
        awaited = self._awaited.pop(number, None)
        if awaited is None or self._closed:
            return []

        def handle() -> None:
            awaited.handler(result, error)
            if awaited.period_ms is not None:
                self._await(awaited, awaited.period_ms)

        return self._run(handle)

    def source_event(self, subtask: int, event: Any) -> list[ReaderMessage]:
        """A reader has sent an event."""
        return self._run(lambda: self._running.handle_source_event(subtask, event))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> list[ReaderMessage]:
        return self._run(lambda: self._running.notify_checkpoint_complete(checkpoint_id))

    def start(self) -> list[ReaderMessage]:
        """Creates and starts the enumerator, restored from a checkpoint if there is one."""

        def create() -> None:
            if self._restored is None:
                self._enumerator = self._source.create_enumerator(self)
            else:
                self._enumerator = self._source.restore_enumerator(self, pickle.loads(self._restored))
            self._enumerator.start()

        return self._run(create)

    def reader_started(self, subtask: int) -> list[ReaderMessage]:
        def add() -> None:
            self._check(subtask)
            self._readers.add(subtask)
            self._running.add_reader(subtask)

        return self._run(add)

    def request_split(self, subtask: int, host: str | None) -> list[ReaderMessage]:
        """A reader has nothing left to read."""

        def request() -> None:
            self._check(subtask)
            self._running.handle_split_request(subtask, host)

        return self._run(request)

    @property
    def all_readers_started(self) -> bool:
        """Whether splits that were assigned have reached their readers, so that a checkpoint finds them there."""
        return len(self._readers) == self._parallelism

    def snapshot(self, checkpoint_id: int) -> bytes:
        """What a checkpoint keeps of the enumerator. What it assigns meanwhile waits for `flush`."""
        snapshots: list[bytes] = []
        self._call(lambda: snapshots.append(cloudpickle.dumps(self._running.snapshot_state(checkpoint_id), 5)))
        return snapshots[0]

    def close(self) -> None:
        """Closes the enumerator, once."""
        if self._closed or self._enumerator is None:
            return
        self._closed = True
        self._run(self._enumerator.close)

    @property
    def _running(self) -> SplitEnumerator[Any]:
        if self._enumerator is None or self._closed:
            raise RuntimeError("the enumerator is not running")
        return self._enumerator

    def _check(self, subtask: int) -> None:
        if not 0 <= subtask < self._parallelism:
            raise ValueError(f"no reader {subtask}: {self.name} has readers 0 to {self._parallelism - 1}")

    def _run(self, call: Callable[[], None]) -> list[ReaderMessage]:
        self._call(call)
        return self.flush()

    def _call(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:  # a connector may even exit; only this job is to end with it
            failure = failure_of(error, operator=self.name, uid=self._uid, defined_at=self._defined_at)
            raise UserCodeError(failure) from error

    def flush(self) -> list[ReaderMessage]:
        """Pending messages for readers that have started."""
        messages: list[ReaderMessage] = []
        for subtask in sorted(self._readers):
            messages += ((subtask, message) for message in self._pending.pop(subtask, ()))
            if subtask in self._pending_no_more:
                self._pending_no_more.remove(subtask)
                messages.append((subtask, NoMoreSplits(self.operator_id, subtask)))
        return messages


class SourceCoordinators:
    """The coordinators of all sources of a job, for one attempt: without a checkpoint each starts from scratch."""

    def __init__(self, job_graph: JobGraph, restored: Mapping[str, bytes] | None = None):
        states = restored or {}
        self._vertices = {
            operator.node.operator_id: vertex.id for vertex in job_graph.vertices for operator in vertex.operators
        }
        self._coordinators = {
            operator.node.operator_id: SourceCoordinator(
                operator.node.operator_id,
                operator.node.name,
                source,
                vertex.parallelism,
                uid=operator.node.uid,
                defined_at=operator.node.defined_at,
                restored=states.get(operator.node.operator_id),
            )
            for vertex in job_graph.vertices
            for operator in vertex.operators
            if (source := operator.node.spec.get_source()) is not None
        }

    def start(self) -> None:
        """Starts all enumerators; what they assign waits until the readers start."""
        for coordinator in self._coordinators.values():
            coordinator.start()

    def accept(self, message: ReaderStarted | RequestSplit | SourceEvent) -> list[ReaderMessage]:
        """A reader of one of the sources has started, has nothing left to read, or has sent an event."""
        coordinator = self._coordinator(message.operator_id)
        if isinstance(message, ReaderStarted):
            return coordinator.reader_started(message.subtask)
        if isinstance(message, RequestSplit):
            return coordinator.request_split(message.subtask, message.host)
        return coordinator.source_event(message.subtask, message.event)

    def take_calls(self) -> list[EnumeratorCall]:
        """Calls that enumerators requested in another thread, each once."""
        return [call for coordinator in self._coordinators.values() for call in coordinator.take_calls()]

    def call_returned(self, operator_id: str, number: int, result: Any, error: Exception | None) -> list[ReaderMessage]:
        """A call that an enumerator requested has completed."""
        return self._coordinator(operator_id).call_returned(number, result, error)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> list[ReaderMessage]:
        return [
            message
            for coordinator in self._coordinators.values()
            for message in coordinator.notify_checkpoint_complete(checkpoint_id)
        ]

    def vertex_of(self, operator_id: str) -> str:
        """The vertex a source is in."""
        return self._vertices[operator_id]

    @property
    def all_readers_started(self) -> bool:
        """Whether every reader of every source has started."""
        return all(coordinator.all_readers_started for coordinator in self._coordinators.values())

    def snapshot(self, checkpoint_id: int) -> dict[str, bytes]:
        """What a checkpoint keeps of each enumerator, by operator id."""
        return {
            operator_id: coordinator.snapshot(checkpoint_id) for operator_id, coordinator in self._coordinators.items()
        }

    def flush(self) -> list[ReaderMessage]:
        """Pending messages for readers."""
        return [message for coordinator in self._coordinators.values() for message in coordinator.flush()]

    def close(self) -> list[TaskFailure]:
        """Closes all enumerators; one that fails to close does not keep the others from it."""
        failures = []
        for coordinator in self._coordinators.values():
            try:
                coordinator.close()
            except UserCodeError as error:
                failures.append(error.failure)
        return failures

    def _coordinator(self, operator_id: str) -> SourceCoordinator:
        try:
            return self._coordinators[operator_id]
        except KeyError:
            raise FiresteelError(f"A reader named operator {operator_id}, which is not a source.") from None
