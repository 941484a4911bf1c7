"""Local aggregation for windows: partial results per key and slice of time, before the exchange.

A slice is a span of time in which every timestamp belongs to the same windows. A partial result is sent before the
first of its windows can fire, that is before a watermark that reaches its end. So it is never late, and the window
operator emits what it would emit for the records. A record that may be late, as one of its windows ends before the
watermark of this subtask, is not aggregated: the window operator decides, whose watermark may be an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING, Any

from firesteel.runtime.codegen.functions import method_of
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.model.operator_spec import FunctionSpec
from firesteel.runtime.operators.aggregation.function import Aggregation, neutral_function
from firesteel.runtime.operators.inline import InlineOperator
from firesteel.runtime.operators.window.aligned import WindowAlignment
from firesteel.runtime.operators.window.partials import unaggregated
from firesteel.types.copying import copy_value

if TYPE_CHECKING:
    from firesteel.runtime.codegen.loops import LoopWriter
    from firesteel.runtime.model.operator_spec import OperatorRuntime
    from firesteel.runtime.operators.base import OperatorContext

__all__ = ["LocalWindowAggregateOperator", "LocalWindowAggregateSpec"]

_MAX_KEYS_AT_ONCE = 1024
"""How many partial results are emitted before the turn is looked at."""

_Slice = tuple[int, int, dict[Any, Any] | None, Callable[[Any], Any] | None]
"""Begin, end, and partial results by key with their ``get``; None if records of the slice are not aggregated."""


@dataclass(frozen=True)
class LocalWindowAggregateSpec(FunctionSpec):
    """Emits elements for a window operator with a PartialAggregate of the same function."""

    key_selector: Any
    windows: WindowAlignment
    max_keys: int
    """Partial results are sent when there are so many: this bounds their memory."""

    def create(self, runtime: OperatorRuntime) -> LocalWindowAggregateOperator:
        """Returns a new operator for one subtask."""
        return LocalWindowAggregateOperator(self)

    def without_user_functions(self) -> LocalWindowAggregateSpec:
        """Returns an aggregation that can be opened anywhere."""
        return replace(self, function=neutral_function(self.function), key_selector=None)


class LocalWindowAggregateOperator(InlineOperator):
    """Aggregates the records of this subtask by slice and key. What it holds is sent before a barrier."""

    def __init__(self, spec: LocalWindowAggregateSpec):
        self.aggregation = Aggregation(spec.function)
        self.method = "reduce" if self.aggregation.is_reduce else "add"
        super().__init__(spec.function)
        self._key_selector = spec.key_selector
        self._select = None if spec.key_selector is None else method_of(spec.key_selector, "get_key")
        self._windows = spec.windows
        self._slice = gcd(spec.windows.size, spec.windows.slide)
        self._max_keys = spec.max_keys
        self._slices: dict[int, dict[Any, Any]] = {}
        """By begin of a slice: the partial result of each key."""
        self._ends: dict[int, int] = {}
        """By begin of a slice: the last timestamp of the first of its windows that ends."""
        self._watermark = MIN_TIMESTAMP
        self._may_be_behind = False
        """Whether the input was idle: event time may have advanced without it."""
        self.count = 0
        """Partial results that are held, outside of a loop."""

    def open(self, context: OperatorContext) -> None:
        """Opens the key selector; functions of windows are not opened."""
        self.context = context
        if self._select is not self._key_selector and hasattr(self._key_selector, "open"):
            self._key_selector.open(context.runtime_context)
        context.gauge("bundleSize", lambda: sum(map(len, list(self._slices.values()))))

    def close(self) -> None:
        """Closes the key selector."""
        if self._select is not self._key_selector and hasattr(self._key_selector, "close"):
            self._key_selector.close()

    # -- records --------------------------------------------------------------------------------------

    def write(self, writer: LoopWriter, value: str) -> None:
        """Adds the record to the partial result of its slice and key, or passes it on."""
        assert self._select is not None
        key = writer.new_variable("k")
        writer.line(f"{key} = {writer.call(self._select, value)}", element=value, what="key_by")
        if not writer.with_timestamps:
            # the window operator refuses it
            self._write_unaggregated(writer, key, value)
            return
        begin, end, partials, find = (writer.new_variable(prefix) for prefix in "bepf")
        known, count, time = writer.new_variable("p"), writer.new_variable("c"), writer.timestamp
        operator = writer.bind("local", self)
        writer.prologue(f"{begin} = {end} = 0; {count} = {operator}.count")
        with writer.block(f"if not {begin} <= {time} < {end}:"):
            writer.line(f"{begin}, {end}, {partials}, {find} = {writer.bind('slice', self._slice_of)}({time})")
        with writer.block(f"if {partials} is None:"):
            self._write_unaggregated(writer, key, value)
        with writer.block("else:"):
            with writer.block("try:"):
                writer.line(f"{known} = {find}({key})", element=value, what="key_by")
            with writer.block("except TypeError:"):
                self._write_unaggregated(writer, key, value)  # a key that cannot be hashed
            with writer.block("else:"):
                with writer.block(f"if {known} is None:"):
                    first = self.aggregation.write_first(writer, value)
                    writer.line(f"{partials}[{key}] = {first}")
                    writer.line(f"{count} += 1")
                    with writer.block(f"if {count} >= {self._max_keys}:"):
                        writer.line(f"{count} = {writer.bind('full', self._flush_full)}()")
                        writer.line(f"{begin} = {end} = 0")
                with writer.block("else:"):
                    self.aggregation.write_add(writer, known, value)
                    writer.line(f"{partials}[{key}] = {known}")
        writer.epilogue(f"{operator}.count = {count}")

    def _write_unaggregated(self, writer: LoopWriter, key: str, value: str) -> None:
        element = writer.new_variable("v")
        writer.line(f"{element} = {unaggregated(key, value)}")
        writer.collect(element, self._emit, "")

    def _slice_of(self, timestamp: int) -> _Slice:
        """The slice of a timestamp, with its partial results if none of its windows can have fired."""
        size, slide, offset = self._windows
        begin = timestamp - (timestamp - offset) % self._slice
        end = begin + self._slice
        latest = begin - (begin - offset) % slide
        starts = range(latest, begin - size, -slide)
        first_end = min(starts[-1] + size - 1, MAX_WATERMARK) if starts else MIN_TIMESTAMP
        if timestamp == MIN_TIMESTAMP or first_end <= self._watermark or self._may_be_behind:
            return begin, end, None, None
        partials = self._slices.get(begin)
        if partials is None:
            partials = self._slices[begin] = {}
            self._ends[begin] = first_end
        return begin, end, partials, partials.get

    # -- flushing -------------------------------------------------------------------------------------

    def fire_timers(self, timestamp: int) -> bool:
        """Flushes slices of windows that fire with the watermark."""
        self._watermark = max(timestamp, self._watermark)
        self._may_be_behind = False
        return self._flush_in_turn(timestamp)

    def process_idle(self, idle: bool) -> None:
        """Flushes before the input counts as idle: event time does not wait for it then."""
        self.flush()
        self._may_be_behind = True
        super().process_idle(idle)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """Flushes, so that a checkpoint needs no partial results."""
        self.flush()

    def finish(self) -> None:
        """Flushes what is left."""
        self.flush()

    def flush(self) -> None:
        """Emits all partial results."""
        while not self._flush_in_turn(MAX_WATERMARK):
            pass

    def _flush_full(self) -> int:
        """Flushes because there are too many partial results; returns how many are left at the end of the turn."""
        self._flush_in_turn(MAX_WATERMARK)
        return sum(map(len, self._slices.values()))

    def _flush_in_turn(self, timestamp: int) -> bool:
        """Emits slices of windows that end by a time while the turn lasts, at least a part; whether none is left."""
        turn = self.context.turn
        while due := [begin for begin, end in self._ends.items() if end <= timestamp]:
            self._emit_some(due)
            if turn.is_over and min(self._ends.values(), default=MAX_WATERMARK) <= timestamp:
                return False
        return True

    def _emit_some(self, begins: list[int]) -> None:
        """Emits partial results of slices, and removes them."""
        pairs: list[tuple[Any, Any]] = []
        timestamps: list[int] = []
        for begin in begins:
            partials = self._slices[begin]
            count = min(len(partials), _MAX_KEYS_AT_ONCE - len(pairs))
            pairs += [partials.popitem() for _ in range(count)]
            timestamps += [begin + self._slice - 1] * count
            if partials:
                break
            del self._slices[begin], self._ends[begin]
        self.count -= len(pairs)
        if self.context.copies_results:
            pairs = [(key, copy_value(partial)) for key, partial in pairs]
        self._emit(pairs, timestamps)

    def _emit(self, elements: list[Any], timestamps: list[int] | None) -> None:
        self.context.emit(elements, timestamps)
