"""Runs a source's split enumerator in the JobMaster and turns its decisions into messages for the readers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import cloudpickle

from firesteel.common.connector import Source, SplitEnumerator
from firesteel.common.errors import FiresteelError, TaskFailure, UserCodeError
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.failure import failure_of
from firesteel.runtime.messages import AddSplits, NoMoreSplits, ReaderStarted, RequestSplit
from firesteel.runtime.operators.specs import SourceSpec

__all__ = ["ReaderMessage", "SourceCoordinator", "SourceCoordinators"]

ReaderMessage: TypeAlias = tuple[int, AddSplits | NoMoreSplits]
"""The subtask of a reader, and what it is to be told."""


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
        self._pending_splits: dict[int, list[Any]] = {}
        self._no_more_splits: set[int] = set()
        self._pending_no_more: set[int] = set()
        self._closed = False

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
            raise ValueError(f"split {split!r} assigned to reader {subtask} after it was told there are no more")
        self._pending_splits.setdefault(subtask, []).append(split)

    def signal_no_more_splits(self, subtask: int) -> None:
        """Tells a reader that what it has is all it gets."""
        self._check(subtask)
        if subtask not in self._no_more_splits:
            self._no_more_splits.add(subtask)
            self._pending_no_more.add(subtask)

    # What the JobMaster calls

    def start(self) -> list[ReaderMessage]:
        """Creates and starts the enumerator, which goes on from a checkpoint if there is one."""

        def create() -> None:
            if self._restored is None:
                self._enumerator = self._source.create_enumerator(self)
            else:
                self._enumerator = self._source.restore_enumerator(self, pickle.loads(self._restored))
            self._enumerator.start()

        return self._run(create)

    def reader_started(self, subtask: int) -> list[ReaderMessage]:
        """A reader has started."""

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
        """What a checkpoint keeps of the enumerator."""
        snapshots: list[bytes] = []
        self._run(lambda: snapshots.append(cloudpickle.dumps(self._running.snapshot_state(checkpoint_id), 5)))
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
        try:
            call()
        except Exception as error:
            failure = failure_of(error, operator=self.name, uid=self._uid, defined_at=self._defined_at)
            raise UserCodeError(failure) from error
        return self._flush()

    def _flush(self) -> list[ReaderMessage]:
        messages: list[ReaderMessage] = []
        for subtask in sorted(self._readers):
            splits = self._pending_splits.pop(subtask, None)
            if splits:
                messages.append((subtask, AddSplits(self.operator_id, subtask, tuple(splits))))
            if subtask in self._pending_no_more:
                self._pending_no_more.remove(subtask)
                messages.append((subtask, NoMoreSplits(self.operator_id, subtask)))
        return messages


class SourceCoordinators:
    """The coordinators of all sources of a job, for one attempt: without a checkpoint each begins anew."""

    def __init__(self, job_graph: JobGraph, restored: Mapping[str, bytes] | None = None):
        states = restored or {}
        self._coordinators = {
            operator.node.operator_id: SourceCoordinator(
                operator.node.operator_id,
                operator.node.name,
                operator.node.spec.source,
                vertex.parallelism,
                uid=operator.node.uid,
                defined_at=operator.node.defined_at,
                restored=states.get(operator.node.operator_id),
            )
            for vertex in job_graph.vertices
            for operator in vertex.operators
            if isinstance(operator.node.spec, SourceSpec)
        }

    def start(self) -> None:
        """Starts all enumerators; what they assign waits until the readers start."""
        for coordinator in self._coordinators.values():
            coordinator.start()

    def reader_started(self, message: ReaderStarted) -> list[ReaderMessage]:
        """A reader of one of the sources has started."""
        return self._coordinator(message.operator_id).reader_started(message.subtask)

    def request_split(self, message: RequestSplit) -> list[ReaderMessage]:
        """A reader of one of the sources has nothing left to read."""
        return self._coordinator(message.operator_id).request_split(message.subtask, message.host)

    @property
    def all_readers_started(self) -> bool:
        """Whether every reader of every source has started."""
        return all(coordinator.all_readers_started for coordinator in self._coordinators.values())

    def snapshot(self, checkpoint_id: int) -> dict[str, bytes]:
        """What a checkpoint keeps of each enumerator, by operator id."""
        return {
            operator_id: coordinator.snapshot(checkpoint_id) for operator_id, coordinator in self._coordinators.items()
        }

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
