"""Bundles: an operator holds one partial result per key until it has read enough records or some time has passed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.operators.aggregation.function import Aggregation
from firesteel.runtime.operators.inline import InlineOperator

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.operators.base import OperatorContext

__all__ = ["BundleOperator", "BundleSpec", "Entry"]

_MAX_KEYS_AT_ONCE = 1024
"""How many keys are flushed before the turn is looked at."""

Entry = tuple[Any, Any, int]
"""A key, its partial result and the largest timestamp of its records."""


@dataclass(frozen=True)
class BundleSpec(FunctionSpec):
    """An aggregation in bundles."""

    max_records: int | None
    """A bundle is flushed when it has so many records, if that is limited."""
    max_keys: int
    """A bundle is flushed when it has so many keys: this bounds its memory."""
    max_delay_ms: int
    """A bundle is flushed when its first record is so old."""


class BundleOperator(InlineOperator):
    """Aggregates records in a bundle, and flushes it.

    A bundle is flushed when it is full or old enough, before a watermark, a change of idleness and a barrier, and at
    the end of the input. So it is never in a checkpoint, and no result is emitted behind a watermark that its records
    were before. A flush because of size or age ends with the turn, and continues in the next one.
    """

    def __init__(self, spec: BundleSpec):
        self.aggregation = Aggregation(spec.function)
        self.method = "reduce" if self.aggregation.is_reduce else "add"
        super().__init__(spec.function)
        self.count = 0
        """Records since the last flush, if their number is limited."""
        self._max_records = spec.max_records
        self._max_keys = spec.max_keys
        self._max_delay = spec.max_delay_ms
        self._partials: dict[Any, list[Any]] = {}
        """By key: the partial result and its timestamp."""
        self._unhashable: list[Entry] = []
        """Of keys that cannot be in a dictionary: one for each record."""
        self._has_timestamps = False
        self._is_timed = False
        self._is_scheduled = False
        self._opened_at = 0

    def open(self, context: OperatorContext) -> None:
        """Opens the function."""
        super().open(context)
        # in a stage nothing leaves the task before its end, which flushes
        self._is_timed = context.execution.is_long_lived
        context.gauge("bundleSize", lambda: len(self._partials) + len(self._unhashable))

    @abstractmethod
    def emit_entries(self, entries: list[Entry], *, with_timestamps: bool) -> None:
        """Emits the results for partial results that were taken from the bundle."""

    # -- records --------------------------------------------------------------------------------------

    def write_bundle(self, writer: LoopWriter, key: str, value: str) -> None:
        """Writes the lines that add the record in a variable to the bundle."""
        aggregation = self.aggregation
        bundle = writer.bind("bundle", self)
        find, put = writer.bind("find", self._partials.get), writer.bind("put", self._put)
        refuse = writer.bind("refuse", aggregation.refuse_none)
        known, partial = writer.new_variable("p"), writer.new_variable("a")
        time = writer.timestamp if writer.with_timestamps else "0"
        writer.prologue(f"{bundle}.begin({writer.with_timestamps})")
        with writer.block("try:"):
            writer.line(f"{known} = {find}({key})", element=value, what="key_by")
        with writer.block("except TypeError:"):
            writer.line(f"{known} = None")
        with writer.block(f"if {known} is None:"):
            first = aggregation.write_first(writer, value)
            writer.line(f"{put}({key}, {first}, {time})", element=value, function=self.call)
        with writer.block("else:"):
            writer.line(f"{partial} = {known}[0]")
            writer.line(f"{partial} = {aggregation.write_add(writer, partial, value)}", element=value)
            with writer.block(f"if {partial} is None:"):
                writer.line(f"{refuse}()", element=value, function=self.call)
            writer.line(f"{known}[0] = {partial}")
            if writer.with_timestamps:
                with writer.block(f"if {time} > {known}[1]:"):
                    writer.line(f"{known}[1] = {time}")
        if self._max_records is not None:
            writer.line(f"{bundle}.count += 1")
            with writer.block(f"if {bundle}.count >= {self._max_records}:"):
                writer.line(f"{writer.bind('flush', self.flush_in_turn)}()")

    def begin(self, with_timestamps: bool) -> None:
        """Sets whether the records to come have timestamps; a bundle holds one kind only."""
        if with_timestamps is not self._has_timestamps:
            self.flush()
            self._has_timestamps = with_timestamps

    def _put(self, key: Any, partial: Any, timestamp: int) -> None:
        """Adds the first record of a key."""
        self.aggregation.checked(partial)
        if not self._partials and not self._unhashable:
            self._begin_delay()
        try:
            self._partials[key] = [partial, timestamp]
        except TypeError:
            self._unhashable.append((key, partial, timestamp))
        if len(self._partials) + len(self._unhashable) >= self._max_keys:
            self.flush_in_turn()

    # -- flushing -------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Emits all that the bundle holds."""
        while not self.flush_in_turn():
            pass

    def flush_in_turn(self) -> bool:
        """Emits what the bundle holds while the turn lasts, at least a part of it; whether nothing is left."""
        while entries := self._take():
            self.emit_entries(entries, with_timestamps=self._has_timestamps)
            if self.context.turn.is_over and self._partials:
                # the next record, or the delay, continues the flush
                return False
        self.count = 0
        return True

    def _take(self) -> list[Entry]:
        partials = self._partials
        entries, self._unhashable = self._unhashable, []
        if len(partials) <= _MAX_KEYS_AT_ONCE:
            entries += [(key, partial, timestamp) for key, (partial, timestamp) in partials.items()]
            # the dictionary itself is bound to loops
            partials.clear()
        else:
            for _ in range(_MAX_KEYS_AT_ONCE):
                key, (partial, timestamp) = partials.popitem()
                entries.append((key, partial, timestamp))
        return entries

    def fire_timers(self, timestamp: int) -> bool:
        """Flushes before a watermark."""
        return self.flush_in_turn()

    def process_idle(self, idle: bool) -> None:
        """Flushes before the input counts as idle: what comes later would be late."""
        self.flush()
        super().process_idle(idle)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """Flushes, so that a checkpoint needs no bundle."""
        self.flush()

    def finish(self) -> None:
        """Flushes the last bundle."""
        self.flush()

    # -- age ------------------------------------------------------------------------------------------

    def _begin_delay(self) -> None:
        if self._is_timed:
            self._opened_at = self.context.monotonic_ms()
            self._schedule(self._max_delay)

    def _schedule(self, delay: int) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self.context.schedule_after(delay, self._on_delay)

    def _on_delay(self) -> None:
        self._is_scheduled = False
        if not self._partials and not self._unhashable:
            return
        left = self._opened_at + self._max_delay - self.context.monotonic_ms()
        if left > 0:
            # the bundle is a younger one than that for which the delay began
            self._schedule(left)
        elif not self.flush_in_turn():
            self._schedule(1)
