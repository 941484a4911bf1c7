"""Runs an operator over the records of each key, with event-time timers."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from firesteel.testing.programs.oracle.flow import MAX_TIME, MIN_TIME, Flow, Mark, Mode, Record, copied

__all__ = ["KeyedOperator", "Timers", "run_keyed"]


class Timers:
    """The timers of an operator, for all its keys; what happens to be the watermark; and the current key."""

    def __init__(self) -> None:
        self.watermark = MIN_TIME
        self.key: Any = None
        self._heap: list[tuple[int, int, Any, Any]] = []
        self._live: set[tuple[int, Any, Any]] = set()
        self._numbers = itertools.count()

    def register(self, time: int, namespace: Any = None) -> None:
        """Registers an event-time timer for the current key; once, however often it is asked for."""
        timer = (time, self.key, namespace)
        if timer not in self._live:
            self._live.add(timer)
            heapq.heappush(self._heap, (time, next(self._numbers), self.key, namespace))

    def delete(self, time: int, namespace: Any = None) -> None:
        """Deletes a timer of the current key."""
        self._live.discard((time, self.key, namespace))

    def advance(self, watermark: int, fire: Callable[[int, Any], None]) -> None:
        """Fires all timers up to a watermark, in their order; also those that are registered meanwhile."""
        self.watermark = watermark
        while self._heap and self._heap[0][0] <= watermark:
            time, _, key, namespace = heapq.heappop(self._heap)
            if (time, key, namespace) in self._live:
                self._live.remove((time, key, namespace))
                self.key = key
                fire(time, namespace)


class KeyedOperator(Protocol):
    """What an operator does; the key is in its timers."""

    timers: Timers
    outputs: dict[str, Flow]

    def element(self, value: Any, time: int | None, side: int) -> None:
        """Processes a record of an input."""
        ...

    def timer(self, time: int, namespace: Any) -> None:
        """An event-time timer fires."""
        ...


Selector = Callable[[Any], Any]


def run_keyed(
    create: Callable[[], KeyedOperator], flows: Sequence[Flow], selectors: Sequence[Selector], mode: Mode
) -> dict[str, Flow]:
    """Runs an operator over its inputs and returns its outputs."""
    if mode is Mode.BATCH:
        return _run_batch(create, flows, selectors)
    operator = create()
    for side, item in _interleaved(flows):
        if isinstance(item, Mark):
            operator.timers.advance(item.time, operator.timer)
            for flow in operator.outputs.values():
                flow.mark(item.time)
        else:
            value = copied(item.value)
            operator.timers.key = selectors[side](value)
            operator.element(value, item.time, side)
    return operator.outputs


def _interleaved(flows: Sequence[Flow]) -> Iterable[tuple[int, Record | Mark]]:
    """One input as it is; of several, the records of one after the other, then their common watermark."""
    if len(flows) == 1:
        yield from ((0, item) for item in flows[0].items)
        return
    for side, flow in enumerate(flows):
        yield from ((side, record) for record in flow.records())
    yield 0, Mark(min(flow.watermark for flow in flows))


def _run_batch(
    create: Callable[[], KeyedOperator], flows: Sequence[Flow], selectors: Sequence[Selector]
) -> dict[str, Flow]:
    """One key after the other: its records by timestamp, then the end of event time."""
    by_key: dict[Any, list[tuple[int, Record]]] = {}
    for side, flow in enumerate(flows):
        for record in flow.records():
            by_key.setdefault(selectors[side](copied(record.value)), []).append((side, record))
    outputs: dict[str, Flow] = {tag: Flow() for tag in create().outputs}
    for key, records in by_key.items():
        operator = create()
        for side, record in sorted(records, key=lambda pair: MIN_TIME if pair[1].time is None else pair[1].time):
            operator.timers.key = key
            operator.element(record.value, record.time, side)
        operator.timers.advance(MAX_TIME, operator.timer)
        for tag, flow in operator.outputs.items():
            outputs[tag].items += flow.items  # no watermark comes before the end
    for flow in outputs.values():
        flow.mark(MAX_TIME)
    return outputs
