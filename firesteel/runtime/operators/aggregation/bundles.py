"""Bundles: an operator holds one partial result per key until it has read enough records or some time has passed."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.operators.aggregation.function import Aggregation
from firesteel.runtime.operators.aggregation.layouts import PartialLayout, layout_of
from firesteel.runtime.operators.inline import InlineOperator

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.operators.base import OperatorContext

__all__ = ["BundleOperator", "BundleSpec", "Pair"]

_MAX_KEYS_AT_ONCE = 1024
"""How many keys are flushed before the turn is looked at."""

Pair = tuple[Any, Any]
"""A key and its partial result."""


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
        self._partials: dict[Any, Any] = {}
        """By key: what holds the partial result."""
        self._layout: PartialLayout | None = None
        self._unhashable: list[Pair] = []
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
    def emit_partials(self, pairs: list[Pair], timestamps: list[int] | None) -> None:
        """Emits the results for partial results that were taken from the bundle; takes over the lists."""

    # -- records --------------------------------------------------------------------------------------

    def write_bundle(self, writer: LoopWriter, key: str, value: str) -> None:
        """Writes the lines that add the record in a variable to the bundle."""
        aggregation, with_timestamps = self.aggregation, writer.with_timestamps
        bundle, partials = writer.bind("bundle", self), writer.bind("partials", self._partials)
        find, full = writer.bind("find", self._partials.get), writer.bind("full", self._flush_full)
        known = writer.new_variable("p")
        if self._layout is None:
            self._layout = layout_of(aggregation)
        layout = self._layout
        writer.prologue(f"{bundle}.begin({with_timestamps})")
        with writer.block("try:"):
            writer.line(f"{known} = {find}({key})", element=value, what="key_by")
        with writer.block("except TypeError:"):
            first = aggregation.write_first(writer, value)
            apart = writer.bind("apart", self._unhashable)
            writer.line(f"{apart}.append(({key}, {layout.held(writer, first)}))")
            with writer.block(f"if len({apart}) >= {self._max_keys}:"):
                writer.line(f"{full}()")
        with writer.block("else:"):
            with writer.block(f"if {known} is None:"):
                first = aggregation.write_first(writer, value)
                writer.line(f"{partials}[{key}] = {layout.held(writer, first)}")
                if self._max_records is None or self._max_keys < self._max_records:
                    with writer.block(f"if len({partials}) >= {self._max_keys}:"):
                        writer.line(f"{full}()")
            with writer.block("else:"):
                layout.write_add(writer, partials, key, known, value)
        if self._max_records is not None:
            count = writer.new_variable("c")
            writer.prologue(f"{count} = {bundle}.count")
            writer.line(f"{count} += 1")
            with writer.block(f"if {count} >= {self._max_records}:"):
                writer.line(f"{count} = {full}()")
            writer.epilogue(f"{bundle}.count = {count}")

    def begin(self, with_timestamps: bool) -> None:
        """Begins a batch of records, which have timestamps or not; a bundle holds one kind only."""
        if with_timestamps is not self._has_timestamps:
            self.flush()
            self._has_timestamps = with_timestamps
        if not self._partials and not self._unhashable:
            self._begin_delay()

    # -- flushing -------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Emits all that the bundle holds."""
        while not self.flush_in_turn():
            pass

    def flush_in_turn(self) -> bool:
        """Emits what the bundle holds while the turn lasts, at least a part of it; whether nothing is left."""
        while entries := self._take():
            assert self._layout is not None
            self.emit_partials(*self._layout.partials(entries, with_timestamps=self._has_timestamps))
            if self.context.turn.is_over and self._partials:
                # the next record, or the delay, continues the flush
                return False
        self.count = 0
        return True

    def _flush_full(self) -> int:
        """Flushes a bundle that is full, in the middle of a batch; returns how many records it counts then."""
        if not self.flush_in_turn():
            return self._max_records or 0
        self._begin_delay()
        return 0

    def _take(self) -> list[Pair]:
        # the dictionary and the list are bound to loops
        partials, entries = self._partials, self._unhashable.copy()
        self._unhashable.clear()
        if len(partials) <= _MAX_KEYS_AT_ONCE:
            entries += partials.items()
            partials.clear()
        else:
            entries += [partials.popitem() for _ in range(_MAX_KEYS_AT_ONCE)]
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
