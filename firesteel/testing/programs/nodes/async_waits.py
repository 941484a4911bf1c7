"""Async functions. Not in the grammar that programs are drawn from by default: their calls take real time.

``draw_program(seed, (*GRAMMAR, AsyncWait))`` draws programs with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from firesteel.common.time import Time
from firesteel.datastream.async_io.async_data_stream import AsyncDataStream
from firesteel.datastream.functions import AsyncFunction, AsyncRetryStrategy
from firesteel.testing.programs.nodes.stateless import _Simple
from firesteel.testing.programs.oracle.flow import copied
from firesteel.testing.programs.program import Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import MUTABLE_SHAPES, change, fields
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["AsyncWait", "Calls", "TryAgainError"]

_TIMEOUT = Time.minutes(10)
_MAX_ATTEMPTS = 10_000


class TryAgainError(Exception):
    """Raised by calls that are retried."""


@dataclass
class Calls(AsyncFunction[Any, Any]):
    """Returns v % modulus copies of a record after v % delays milliseconds."""

    modulus: int
    delays: int
    changes: bool = False
    """Changes the record, and what it returned for the one before."""
    fails: int = 0
    """Raises for every such v at first."""
    trip: Trip | None = None
    _last: list[Any] = field(default_factory=list, repr=False, compare=False)
    _failed: set[Any] = field(default_factory=set, repr=False, compare=False)

    async def async_invoke(self, value: Any) -> list[Any]:
        """Returns the copies."""
        step(self.trip)
        _, v, _, _ = fields(value)
        if self.fails and v % self.fails == 0 and v not in self._failed:
            self._failed.add(v)
            raise TryAgainError(v)
        self._failed.discard(v)
        await asyncio.sleep(v % self.delays / 1000)
        if self.changes:
            for each in self._last:
                change(each, -1)
            change(value, v + 1)
            self._last = [value]
        return [value] * (v % self.modulus)

    def results(self, value: Any) -> Iterator[Any]:
        """Yields what a call returns, as the oracle sees it."""
        _, v, _, _ = fields(value)
        if self.changes:
            change(value, v + 1)
        for _ in range(v % self.modulus):
            yield copied(value)


@dataclass(frozen=True, kw_only=True)
class AsyncWait(_Simple):
    """Calls AsyncDataStream.ordered_wait or unordered_wait, with or without retries."""

    weight: ClassVar[float] = 3.0

    capacity: int
    is_ordered: bool

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a function, a capacity and the order."""
        ref = sketch.pick(lambda kind: kind.settled)
        if ref is None:
            return None
        rng, kind = sketch.rng, sketch.types[ref]
        function = Calls(
            rng.choice((2, 3)),
            rng.choice((1, 2, 4)),
            changes=kind.shape in MUTABLE_SHAPES and rng.random() < 0.6,
            fails=rng.choice((0, 0, 3)),
        )
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=kind.width,
            chain=sketch.draw_chain(),
            function=function,
            capacity=rng.choice((1, 3, 10, 100)),
            is_ordered=rng.random() < 0.5,
        )

    @property
    def mutates(self) -> bool:
        """Whether it changes records and results."""
        return bool(self.function.changes)

    @property
    def takes_time(self) -> bool:
        """Calls take real time."""
        return True

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Keeps event time. After a restore with another parallelism, later records may be in another subtask."""
        kind = inputs[0].at(self.parallelism)
        if not kind.settled or (self.function.changes and kind.shape not in MUTABLE_SHAPES):
            raise Misfit("the function does not fit")
        volume = kind.volume * (self.function.modulus - 1)
        return {"": replace(kind, lane=False, ordered=False, ascending=False, disorder=None, volume=volume)}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls AsyncDataStream."""
        function: Any = self._armed(site)
        if not self.function.fails:
            wait = AsyncDataStream.ordered_wait if self.is_ordered else AsyncDataStream.unordered_wait
            return site.finish(wait(inputs[0], function, _TIMEOUT, self.capacity), self)
        strategy: AsyncRetryStrategy[Any] = AsyncRetryStrategy.fixed_delay(_MAX_ATTEMPTS, 1, None, _is_retried)
        if self.is_ordered:
            stream = AsyncDataStream.ordered_wait_with_retry(inputs[0], function, _TIMEOUT, strategy, self.capacity)
        else:
            stream = AsyncDataStream.unordered_wait_with_retry(inputs[0], function, _TIMEOUT, strategy, self.capacity)
        return site.finish(stream, self)

    def apply(self, value: Any) -> Iterator[Any]:
        """The results of one call."""
        yield from self.function.results(value)


def _is_retried(error: BaseException) -> bool:
    return isinstance(error, TryAgainError)
