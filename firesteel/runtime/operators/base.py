"""What every operator that works on whole batches implements, and what its task gives it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.common.output_tag import OutputTag

if TYPE_CHECKING:
    from firesteel.runtime.metrics import Counter, Gauge
    from firesteel.runtime.state.backend import KeyedStateBackend
    from firesteel.runtime.time.timers import InternalTimerService, Triggerable

__all__ = ["OperatorContext", "StreamOperator"]


class OperatorContext(Protocol):
    """What a task gives to one of its operators."""

    key_selectors: tuple[Callable[[Any], Any], ...]
    """The key of a record, per input; empty where the stream is not keyed."""

    backend: KeyedStateBackend | None
    """The operator's keyed state; its ``key`` is the current key. None where the stream is not keyed."""

    runtime_context: Any
    """The RuntimeContext that user functions are opened with."""

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        """Hands records to the operators downstream; takes over the lists."""
        ...

    def emit_side(self, tag: OutputTag, values: list[Any], timestamps: list[int] | None) -> None:
        """Hands records to a side output; dropped where nobody reads it."""
        ...

    def emit_watermark(self, timestamp: int) -> None:
        """Sends a watermark downstream."""
        ...

    def emit_idle(self, idle: bool) -> None:
        """Tells downstream whether this operator's watermark counts."""
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

    def counter(self, name: str) -> Counter:
        """The operator's counter of that name."""
        ...

    def gauge(self, name: str, read: Callable[[], Any]) -> Gauge:
        """Registers a gauge."""
        ...


class StreamOperator(ABC):
    """An operator that works on whole batches. All calls come from the mailbox thread, in this order:
    open, then process_batch and process_watermark, then finish (only if the input ended), then close."""

    def open(self, context: OperatorContext) -> None:
        """Gets ready; the context stays valid until close."""
        self.context = context

    @abstractmethod
    def process_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Processes records in order."""

    def process_watermark(self, timestamp: int) -> None:
        """Event time has reached the timestamp; the default sends the watermark on after timers fired."""
        self.context.emit_watermark(timestamp)

    def process_idle(self, idle: bool) -> None:
        """The input became idle or active."""
        self.context.emit_idle(idle)

    def finish(self) -> None:  # noqa: B027 - optional
        """The input has ended: emit what is left."""

    def close(self) -> None:  # noqa: B027 - optional
        """Releases what the operator holds; called exactly once, also after a failure."""
