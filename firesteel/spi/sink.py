"""The interfaces of a sink (Flink's Sink V2): writers prepare committables, and a committer makes them visible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from firesteel.spi.execution_traits import ExecutionTraits
from firesteel.spi.metrics import ConnectorMetrics

__all__ = ["Committer", "DeliveryGuarantee", "Sink", "SinkWriter", "WriterContext"]


class DeliveryGuarantee(Enum):
    """What a sink promises about each record after a failure."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    NONE = "none"

    @property
    def strength(self) -> int:
        """The higher, the more is promised."""
        return [DeliveryGuarantee.NONE, DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.EXACTLY_ONCE].index(self)

    def includes(self, other: DeliveryGuarantee) -> bool:
        """Whether who has this guarantee has the other one too."""
        return self.strength >= other.strength


CommittableT = TypeVar("CommittableT")


class WriterContext(Protocol):
    """What a sink writer can ask of its task."""

    @property
    def subtask_index(self) -> int:
        """Which of the parallel writers this is."""
        ...

    @property
    def parallelism(self) -> int:
        """How many writers there are."""
        ...

    @property
    def attempt_number(self) -> int:
        """How often the job was started before."""
        ...

    @property
    def sink_id(self) -> str:
        """Hex digits: the same in all subtasks and attempts of this sink in this job, and in no other sink or job."""
        ...

    @property
    def attempt_id(self) -> str:
        """Hex digits, drawn for this attempt: the same in all its subtasks, never used before."""
        ...

    @property
    def execution(self) -> ExecutionTraits:
        """What holds because of how the job is executed, such as who commits what the writer prepares."""
        ...

    def get_metrics_group(self) -> ConnectorMetrics:
        """The metrics of the sink operator."""
        ...

    def send_to_client(self, channel: str, payload: Any) -> None:
        """Hands a payload to the client that runs the job (print and collect)."""
        ...


class SinkWriter(ABC, Generic[CommittableT]):
    """Writes one subtask's records.

    A checkpoint calls ``flush``, ``prepare_commit`` and ``snapshot_state``, in this order and with no record between.
    """

    write_record: Callable[[Any], None] | None = None
    """Writes one record. A writer that may take long for each sets it: checkpoints then need not wait for a batch."""

    @abstractmethod
    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Writes records in order."""

    def has_room(self) -> bool:
        """False to hold back the task until there is room."""
        return True

    def flush(self, end_of_input: bool) -> None:
        """Called before a checkpoint and at the end of input; no record follows the latter, but checkpoints may."""

    def prepare_commit(self) -> list[CommittableT]:
        """What the committer commits once the checkpoint is complete; each is given once."""
        return []

    def prepare_commit_for(self, checkpoint_id: int | None) -> list[CommittableT]:
        """As ``prepare_commit``, which it calls unless overridden, with the checkpoint; None at the end of input."""
        return self.prepare_commit()

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any] | None:
        """What a checkpoint keeps of the writer, as items that are dealt out to the writers of a restored job."""
        return None

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """A checkpoint is complete, and what was prepared up to it is committed."""

    def close(self) -> None:
        """Releases what the writer holds; called exactly once, also after a failure."""


class Committer(ABC, Generic[CommittableT]):
    """Makes what the writers prepared visible; commits must be idempotent."""

    @abstractmethod
    def commit(self, committables: Sequence[CommittableT]) -> None:
        """Commits what the writers of this attempt prepared."""

    def recommit(self, committables: Sequence[CommittableT]) -> None:
        """Commits what was restored: all, some or nothing of it may have been committed before the failure."""
        self.commit(committables)

    def finish(self) -> None:
        """A batch, or a job in epochs, has ended, with all committed that counts: what else its writers left can go."""

    def close(self) -> None:
        """Called once at the end."""


class Sink(ABC):
    """Describes where records go; picklable, opens nothing itself."""

    shares_writer_state: ClassVar[bool] = False
    """Whether each writer of a restored job is given the state of all writers, instead of a part."""

    commits_globally: ClassVar[bool] = False
    """Whether one committer commits what all writers prepared for a checkpoint, as one committable
    (``combine_committables``). The writers are then stateless, and nothing but the records of the interval is lost with
    them."""

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter[Any]:
        """A new writer for one subtask."""

    def combine_committables(
        self, committables: Sequence[Any], context: WriterContext, checkpoint_id: int | None
    ) -> list[Any]:
        """What the global committer of a sink that ``commits_globally`` gets for a checkpoint; None: at the end."""
        return list(committables)

    def restore_writer(self, context: WriterContext, state: list[Any]) -> SinkWriter[Any]:
        """A writer restored from a checkpoint; ``state`` has the items assigned to this subtask, perhaps none."""
        return self.create_writer(context)

    def create_committer(self) -> Committer[Any] | None:
        """The committer, for sinks that write in two phases."""
        return None

    def get_delivery_guarantee(self) -> DeliveryGuarantee:
        """What this sink promises, if the job takes checkpoints; a program that asks for more is refused."""
        return DeliveryGuarantee.AT_LEAST_ONCE

    def needs_checkpoints(self) -> bool:
        """Whether the sink is refused in a stream without end that takes no checkpoints: nothing would be visible."""
        return False

    def with_text(self, to_text: Callable[[Any], str]) -> Sink:
        """Returns the sink for records of a declared type. If it writes text, ``to_text`` gives that of a record."""
        return self
