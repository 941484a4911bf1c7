"""Base class of operators that process whole batches, and the context that their task gives them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.api.output_tag import OutputTag
from firesteel.runtime.model.operator_spec import Operator
from firesteel.runtime.operators.checkpointed import (
    StateInitializationContext,
    initialize_function,
    notify_function,
    snapshot_function,
)
from firesteel.runtime.state.api.operator_state import OperatorStateBackend

if TYPE_CHECKING:
    from firesteel.process.event_loop import EventLoop
    from firesteel.runtime.model.metrics import Counter, Gauge
    from firesteel.runtime.state.api.backend import KeyedStateBackend
    from firesteel.runtime.time.input_clock import InputClock
    from firesteel.runtime.time.timers import InternalTimerService, Triggerable
    from firesteel.runtime.time.turns import Turn
    from firesteel.spi.execution_traits import ExecutionTraits

__all__ = ["CheckpointedOperator", "OperatorContext", "StateInitializationContext", "StreamOperator"]


class OperatorContext(Protocol):
    """What a task gives to one of its operators."""

    key_selectors: tuple[Callable[[Any], Any], ...]
    """The key of a record, per input; empty where the stream is not keyed."""

    backend: KeyedStateBackend | None
    """The operator's keyed state; its ``key`` is the current key. None where the stream is not keyed."""

    operator_state: OperatorStateBackend
    """The operator's state that belongs to no key."""

    checkpointing: bool
    """Whether checkpoints are taken: sinks then commit with them, not at the end of their input."""

    execution: ExecutionTraits
    """What holds because of how the job is executed."""

    reuses_objects: bool
    """Whether objects are handed on as they are: ``pipeline.object-reuse``."""

    copies_results: bool
    """Whether results must be copied as soon as a function gives them: it may change them before they are emitted."""

    turn: Turn
    """The turn of the task."""

    input_clock: InputClock
    """The time in which the task was free to read its input."""

    runtime_context: Any
    """The RuntimeContext that user functions are opened with."""

    @property
    def event_loop(self) -> EventLoop:
        """The event loop of the slot, for operators that call coroutines."""
        ...

    def wakeup(self) -> None:
        """Has the task look for results; may be called from any thread."""
        ...

    def wait_for_results(self) -> None:
        """Waits in the middle of a turn until the operator has room, or where tasks take no turns, for a wakeup."""
        ...

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        """Hands records to the operators downstream; takes over the lists."""
        ...

    def emit_in_turn(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> int:
        """Hands records to the operators downstream until the turn is over; returns how many of the last are left."""
        ...

    def emit_side(self, tag: OutputTag, values: list[Any], timestamps: list[int] | None) -> None:
        """Emits records to a side output; dropped if it has no consumer."""
        ...

    def emit_watermark(self, timestamp: int) -> None:
        """Sends a watermark downstream."""
        ...

    def emit_idle(self, idle: bool) -> None:
        """Signals downstream whether this operator's watermark counts."""
        ...

    def timer_service(self, name: str, triggerable: Triggerable) -> InternalTimerService:
        """The named timer service; its timers call back the triggerable with the key set."""
        ...

    def processing_time(self) -> int:
        """The wall clock in milliseconds (a fake one in tests)."""
        ...

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back in the mailbox once the wall clock (ms) reaches the timestamp."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that is never set, for delays (a fake one in tests)."""
        ...

    def schedule_after(self, delay: int, callback: Callable[[], None]) -> None:
        """Calls back in the mailbox after a delay in milliseconds, however the wall clock is set meanwhile."""
        ...

    def counter(self, name: str) -> Counter:
        """The operator's counter of that name."""
        ...

    def gauge(self, name: str, read: Callable[[], Any]) -> Gauge:
        """Registers a gauge."""
        ...


class CheckpointedOperator(Operator):
    """What every operator has to do with checkpoints: by itself nothing, except for its user function.

    All calls come from the mailbox thread, never while a record is processed. ``initialize_state`` is called once,
    before ``open``, also if there is nothing to restore.
    """

    user_function: Any = None
    """The function that takes part in checkpoints if it is a CheckpointedFunction or a CheckpointListener."""

    keeps_records = True
    """Whether the operator, or its function, may still have a record when it has been processed."""

    emits_own_records = False
    """Whether the operator keeps no reference to what it emits to its context."""

    is_one_to_one = False
    """Whether the operator emits exactly one record per input record."""

    emits_columns = False
    """Whether what the operator emits, also to side outputs, are ColumnBatches."""

    context: OperatorContext

    def initialize_state(self, context: StateInitializationContext) -> None:
        """Restores state, before the operator opens."""
        initialize_function(self.user_function, context)

    def fire_timers(self, timestamp: int) -> bool:
        """Event time is about to reach the timestamp: fires timers that are due while the task's turn lasts.

        False if some are left; then it is called again, at least once per turn, before anything else is processed.
        Snapshots may be taken in between.
        """
        return True

    def process_idle(self, idle: bool) -> None:
        """The input became idle or active."""
        self.context.emit_idle(idle)

    def finish(self) -> None:
        """The input has ended: emit what is left."""

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """The barrier is about to be sent on: the last chance to emit what belongs before it."""

    def snapshot_state(
        self, checkpoint_id: int, operator_state: OperatorStateBackend, timestamp: int | None = None
    ) -> None:
        """Puts into the operator state what a checkpoint needs; ``timestamp`` is when it was triggered."""
        clock = self.context.processing_time if timestamp is None else lambda: timestamp
        snapshot_function(self.user_function, checkpoint_id, clock)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The checkpoint exists, and with it everything that was prepared up to it; earlier ones are superseded."""
        notify_function(self.user_function, checkpoint_id, complete=True)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint will never exist; what was prepared for it belongs to the next one."""
        notify_function(self.user_function, checkpoint_id, complete=False)


class StreamOperator(CheckpointedOperator, ABC):
    """An operator that works on whole batches. All calls come from the mailbox thread, in this order:
    initialize_state, open, then process_batch, process_watermark and those of checkpoints, then finish (only if the
    input ended; checkpoints may follow), then close."""

    reads_iterators = False
    """Whether ``process_batch`` takes any iterable of records, and reads one after the other."""
    leaves_rest = False
    """Whether ``process_batch`` may end with the turn, with the records that are left in the turn."""
    record_function: Callable[[Any], None] | None = None
    """Once the operator is open: what to call with each record instead of ``process_batch``, if anything."""

    def open(self, context: OperatorContext) -> None:
        """Gets ready; the context stays valid until close."""
        self.context = context

    @abstractmethod
    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Processes records in order."""

    def process_watermark(self, timestamp: int) -> None:
        """Event time has reached the timestamp: fires all timers that are due, then sends the watermark on."""
        while not self.fire_timers(timestamp):
            pass
        self.context.emit_watermark(timestamp)

    def close(self) -> None:
        """Releases what the operator holds; called exactly once, also after a failure."""
