"""The interfaces of a source (Flink's FLIP-27): an enumerator finds splits, and readers read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from enum import Enum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from firesteel.api.output_tag import OutputTag
from firesteel.spi.execution_traits import ExecutionTraits
from firesteel.spi.metrics import ConnectorMetrics

__all__ = [
    "Boundedness",
    "InputStatus",
    "ReaderContext",
    "ReaderOutput",
    "Source",
    "SourceReader",
    "SourceSplit",
    "SplitEnumerator",
    "SplitEnumeratorContext",
]


class Boundedness(Enum):
    """Whether a source ends by itself."""

    BOUNDED = "BOUNDED"
    CONTINUOUS_UNBOUNDED = "CONTINUOUS_UNBOUNDED"


class InputStatus(Enum):
    """What a reader's poll found."""

    MORE_AVAILABLE = "MORE_AVAILABLE"
    NOTHING_AVAILABLE = "NOTHING_AVAILABLE"
    END_OF_INPUT = "END_OF_INPUT"


class SourceSplit(Protocol):
    """A part of a source that one reader reads; picklable, and also its own checkpoint state."""

    @property
    def split_id(self) -> str:
        """Unique within the source."""
        ...


SplitT = TypeVar("SplitT", bound=SourceSplit)


class SplitEnumeratorContext(Protocol):
    """What an enumerator can do; implemented by the JobMaster's source coordinator."""

    def current_parallelism(self) -> int:
        """How many readers there are."""
        ...

    def registered_readers(self) -> list[int]:
        """Subtasks whose reader has started."""
        ...

    def assign_split(self, split: Any, subtask: int) -> None:
        """Gives a split to a reader."""
        ...

    def signal_no_more_splits(self, subtask: int) -> None:
        """Signals a reader that it gets no more splits."""
        ...

    def send_event_to_reader(self, subtask: int, event: Any) -> None:
        """Has the reader's ``handle_source_event`` called; in order with the splits. Events must be picklable."""
        ...

    def call_async(
        self,
        call: Callable[[], Any],
        handler: Callable[[Any, Exception | None], None],
        *,
        initial_delay_ms: int = 0,
        period_ms: int | None = None,
    ) -> None:
        """Has a call that may block made in another thread, and its result handled in this one.

        The handler gets the result, or None and what the call raised; if the handler raises, the job fails. With a
        period the call is made again so long after the last one was handled, until the enumerator is closed. The call
        must not touch the enumerator's state: what it needs it is given, what it finds it returns.
        """
        ...


class SplitEnumerator(ABC, Generic[SplitT]):
    """Finds splits and hands them out; runs once per source, in the JobMaster."""

    def start(self) -> None:
        """Called once before any reader registers."""

    @abstractmethod
    def handle_split_request(self, subtask: int, host: str | None) -> None:
        """A reader has nothing left to read."""

    @abstractmethod
    def add_splits_back(self, splits: list[SplitT], subtask: int) -> None:
        """A reader failed; its splits have to be read again."""

    def add_reader(self, subtask: int) -> None:
        """A reader has started."""

    def handle_source_event(self, subtask: int, event: Any) -> None:
        """A reader has sent an event."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """A checkpoint is complete."""

    def snapshot_state(self, checkpoint_id: int) -> Any:
        """What a checkpoint keeps of the enumerator; of the splits, only those that were not assigned yet."""
        return None

    def close(self) -> None:
        """Called once at the end."""


class ReaderContext(Protocol):
    """What a reader can ask of its task."""

    @property
    def subtask_index(self) -> int:
        """Which of the parallel readers this is."""
        ...

    @property
    def parallelism(self) -> int:
        """How many readers there are."""
        ...

    @property
    def attempt_number(self) -> int:
        """How often the job was started before."""
        ...

    @property
    def execution(self) -> ExecutionTraits:
        """What holds because of how the job is executed, such as that the reader is polled in epochs only."""
        ...

    @property
    def reuses_objects(self) -> bool:
        """Whether the job is configured with ``pipeline.object-reuse``."""
        ...

    def send_split_request(self) -> None:
        """Asks the enumerator for another split."""
        ...

    def send_source_event(self, event: Any) -> None:
        """Has the enumerator's ``handle_source_event`` called; in order with split requests."""
        ...

    def get_metrics_group(self) -> ConnectorMetrics:
        """The metrics of the source operator."""
        ...

    def processing_time(self) -> int:
        """The job's wall clock in milliseconds (a fake one in tests)."""
        ...

    def poll_at(self, timestamp: int) -> None:
        """Has the reader polled again once the wall clock reaches the timestamp."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set, for delays and deadlines (a fake one in tests)."""
        ...

    def poll_after(self, delay: int) -> None:
        """Has the reader polled again after a delay in milliseconds, however the wall clock is set meanwhile."""
        ...


class ReaderOutput(Protocol):
    """Where a reader puts what it read."""

    def collect(self, split_id: str, values: Sequence[Any], timestamps: Sequence[int] | None = None) -> None:
        """Emits records of one split, in order."""
        ...

    def emit_watermark(self, split_id: str, timestamp: int) -> None:
        """Reports the event time of a split, beside the watermarks of the watermark strategy."""
        ...

    def emit_side(self, tag: OutputTag, values: Sequence[Any]) -> None:
        """Emits records to a side output of the source; they are dropped if it has no consumer."""
        ...

    def release_split(self, split_id: str) -> None:
        """The split has ended: its watermark no longer counts."""
        ...


class SourceReader(ABC, Generic[SplitT]):
    """Reads splits in one subtask. Called from the mailbox thread only; never blocks.

    A snapshot is never taken during a poll. The position of a split must be past a record when ``output.collect``
    is called with it, so that it is right even if processing fails downstream.
    """

    can_pause_splits: ClassVar[bool] = False
    """Whether watermark alignment may pause single splits; if not, the reader as a whole waits."""

    def start(self) -> None:
        """Called once before the first poll."""

    @abstractmethod
    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits up to about max_records records that are there now."""

    @abstractmethod
    def add_splits(self, splits: Sequence[SplitT]) -> None:
        """Splits assigned by the enumerator or, before ``start``, restored: then possibly several at once,
        and other ones than this subtask had before."""

    @abstractmethod
    def notify_no_more_splits(self) -> None:
        """No split will be added any more."""

    @abstractmethod
    def snapshot_state(self, checkpoint_id: int) -> list[SplitT]:
        """The unfinished splits, each with its position."""

    def pause_or_resume_splits(self, to_pause: Collection[str], to_resume: Collection[str]) -> None:
        """Splits, by id, that are too far ahead in event time and must not be read on, and those that may be again."""
        raise NotImplementedError(f"{type(self).__name__} cannot pause splits")

    def handle_source_event(self, event: Any) -> None:
        """The enumerator has sent an event."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """A checkpoint is complete: positions up to it can be committed externally."""

    def available_at(self) -> float | None:
        """After NOTHING_AVAILABLE: the time.monotonic() at which to poll again, None if only a split helps."""
        return None

    def pending_records(self) -> int | None:
        """How many records of its splits are there and have not been read, as far as is known; None if it is not.

        Asked at the end of an epoch: the backlog is shown to users, and a reader with one has not read all there is
        even where a poll has just found nothing.
        """
        return None

    def close(self) -> None:
        """Releases what the reader holds; called exactly once, also after a failure."""


class Source(ABC, Generic[SplitT]):
    """Describes where records come from; picklable, opens nothing itself."""

    emits_own_records: bool = False
    """Whether a reader keeps none of the records it emits, and emits none twice. Else they are copied before a function
    gets them."""

    emits_columns: bool = False
    """Whether readers emit batches of columns: each ``values`` that they collect is a ColumnBatch."""

    @abstractmethod
    def get_boundedness(self) -> Boundedness:
        """Whether the source ends by itself."""

    def can_rewind(self) -> bool:
        """Whether records that were read before a failure can be read again; if not, some may be lost."""
        return True

    @abstractmethod
    def create_enumerator(self, context: SplitEnumeratorContext) -> SplitEnumerator[SplitT]:
        """A new enumerator."""

    def restore_enumerator(self, context: SplitEnumeratorContext, state: Any) -> SplitEnumerator[SplitT]:
        """An enumerator restored from a checkpoint."""
        raise NotImplementedError(f"{type(self).__name__} cannot restore its enumerator")

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader[SplitT]:
        """A new reader for one subtask."""
