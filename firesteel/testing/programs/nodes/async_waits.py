"""Async functions: ordered and unordered, with capacities, timeouts and retries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from firesteel.common.time import Time
from firesteel.datastream.async_io.async_data_stream import AsyncDataStream
from firesteel.datastream.async_io.async_retry_predicates import empty_result_predicate
from firesteel.datastream.functions import AsyncFunction, AsyncRetryStrategy
from firesteel.testing.programs.keys import KEY_KINDS, KeyOf
from firesteel.testing.programs.nodes.stateless import _Simple
from firesteel.testing.programs.oracle.flow import copied
from firesteel.testing.programs.program import Misfit, Node, Sketch, StreamType
from firesteel.testing.programs.records import MUTABLE_SHAPES, change, fields
from firesteel.testing.programs.running.building import Site
from firesteel.testing.programs.running.faults import Trip, step

__all__ = ["AsyncWait", "Calls", "TryAgainError", "is_retried"]

_NO_TIMEOUT_MS = 600_000
_NEVER_S = 36_000.0
_MAX_UNITS = 1500
"""How long all calls of a subtask may take: in real time a unit is a millisecond."""


class TryAgainError(Exception):
    """Raised by calls that are retried."""


def is_retried(error: BaseException) -> bool:
    """The predicate of retries on errors."""
    return isinstance(error, TryAgainError)


@dataclass
class Calls(AsyncFunction[Any, Any]):
    """Returns v % modulus copies of a record after v % delays units of time.

    A call that takes longer than the timeout, on a busy machine, has the same results.
    """

    modulus: int
    delays: int
    changes: bool = False
    """Changes the record, and what it returned for the one before."""
    fails: int = 0
    """v % fails attempts of a call fail: they raise an error or have no result."""
    attempts: int = 0
    """How many attempts there are at most, if those that fail have no result; 0 if they raise an error."""
    hangs: int = 0
    """Calls for every such v never end: they time out, and the record is the result."""
    awaits: bool = False
    """Whether what is called after a timeout has to be awaited."""
    unit_ms: float = 1.0
    trip: Trip | None = None
    _last: list[Any] = field(default_factory=list, repr=False, compare=False)

    def open(self, runtime_context: Any) -> None:
        """Counts the attempts of each call, which are in one task of the event loop."""
        self._attempts: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    async def async_invoke(self, value: Any) -> list[Any]:
        """Returns the copies."""
        step(self.trip)
        _, v, _, _ = fields(value)
        call = asyncio.current_task()
        self._attempts[call] = attempt = self._attempts.get(call, 0) + 1
        if self.fails and attempt <= v % self.fails:
            if not self.attempts:
                raise TryAgainError(v)
            return []
        if self._never_ends(v):
            await asyncio.sleep(_NEVER_S)
            raise AssertionError("not cancelled")
        await asyncio.sleep(v % self.delays * self.unit_ms / 1000)
        if self.changes:
            for each in self._last:
                change(each, -1)
            change(value, v + 1)
            self._last = [value]
        return [value] * (v % self.modulus)

    def timeout(self, value: Any) -> Any:
        """Returns the record of a call that never ends; of others what they would have returned."""
        results = list(self.results(value))
        return self._later(results) if self.awaits else results

    async def _later(self, results: list[Any]) -> list[Any]:
        await asyncio.sleep(self.unit_ms / 1000)
        return results

    def _never_ends(self, v: int) -> bool:
        return self.hangs > 0 and v % self.hangs == 0

    def results(self, value: Any) -> Iterator[Any]:
        """Yields what a call returns, as the oracle sees it."""
        _, v, _, _ = fields(value)
        if self.attempts and self.fails and v % self.fails >= self.attempts:
            return
        if self._never_ends(v):
            yield value
            return
        if self.changes:
            change(value, v + 1)
        for _ in range(v % self.modulus):
            yield copied(value)


@dataclass(frozen=True, kw_only=True)
class AsyncWait(_Simple):
    """Calls AsyncDataStream.ordered_wait or unordered_wait, with or without retries."""

    weight: ClassVar[float] = 2.5

    key: KeyOf | None = None
    capacity: int
    is_ordered: bool
    timeout_ms: int = _NO_TIMEOUT_MS
    backs_off: bool = False
    """Whether the delays between retries grow."""

    @classmethod
    def draw(cls, sketch: Sketch) -> Node | None:
        """Draws a function, a capacity and the order."""
        ref = sketch.pick(lambda kind: kind.settled)
        if ref is None:
            return None
        rng, kind = sketch.rng, sketch.types[ref]
        fails = rng.choice((0, 0, 0, 2, 4))
        hangs = rng.choice((0, 0, 0, 7, 13))
        function = Calls(
            rng.choice((2, 3)),
            rng.choice((1, 2, 4)),
            changes=kind.shape in MUTABLE_SHAPES and rng.random() < 0.6,
            fails=fails,
            attempts=fails - 1 if fails > 2 and rng.random() < 0.5 else 0,
            hangs=hangs,
            awaits=hangs > 0 and rng.random() < 0.3,
        )
        key = KeyOf(rng.choice(KEY_KINDS)) if rng.random() < 0.4 else None
        return cls(
            id=sketch.next_id,
            inputs=(ref,),
            parallelism=kind.width if key is None else sketch.draw_width(),
            chain=sketch.draw_chain(),
            key=key,
            function=function,
            capacity=rng.choice((1, 2, 3, 10, 100)),
            is_ordered=rng.random() < 0.6,
            timeout_ms=rng.choice((8, 20)) if hangs else _NO_TIMEOUT_MS,
            backs_off=rng.random() < 0.5,
        )

    @property
    def kind(self) -> str:
        """Counted by the order, timeouts and retries."""
        retries = "+retry" if self.function.fails else ""
        timeouts = "+timeout" if self.function.hangs else ""
        keyed = "keyed " if self.key else ""
        return f"AsyncWait[{keyed}{'ordered' if self.is_ordered else 'unordered'}{retries}{timeouts}]"

    @property
    def functions(self) -> tuple[str, ...]:
        """The function and the key selector."""
        return ("",) if self.key is None else ("", "key")

    @property
    def mutates(self) -> bool:
        """Whether it changes records and results."""
        return bool(self.function.changes)

    @property
    def call_units(self) -> float:
        """How many units of time a record costs on average."""
        function = self.function
        timeouts = self.timeout_ms / function.unit_ms / function.hangs if function.hangs else 0.0
        return float((function.delays - 1) / 2 + function.fails + timeouts) / self.capacity

    def infer(self, inputs: Sequence[StreamType]) -> Mapping[str, StreamType]:
        """Watermarks keep their place between the records.

        Without a key, later records may be in another subtask than earlier ones that were in flight when the job was
        restored with another parallelism.
        """
        kind = inputs[0]
        if not kind.settled or (self.function.changes and kind.shape not in MUTABLE_SHAPES):
            raise Misfit("the function does not fit")
        if bool(self.function.hangs) is not (self.timeout_ms < _NO_TIMEOUT_MS):
            raise Misfit("calls that never end, or a timeout that none of them needs")
        if kind.volume * self.call_units > _MAX_UNITS:
            raise Misfit("calls would take too long")
        if self.key is not None:
            moved = kind.shuffled(self.parallelism, ordered=self.is_ordered)
        else:
            moved = kind.at(self.parallelism)
            if not self.is_ordered or self.parallelism is None:
                moved = replace(moved, lane=False, ordered=False, ascending=False, disorder=None)
        return {"": replace(moved, volume=kind.volume * (self.function.modulus - 1))}

    def build(self, inputs: Sequence[Any], site: Site) -> Any:
        """Calls AsyncDataStream."""
        stream = inputs[0] if self.key is None else inputs[0].key_by(site.arm(self, self.key, "key"))
        timeout = site.call(Time.milliseconds, self.timeout_ms)
        given = [stream, self._armed(site), timeout]
        if self.function.fails:
            wait: Any = AsyncDataStream.unordered_wait_with_retry
            if self.is_ordered:
                wait = AsyncDataStream.ordered_wait_with_retry
            given.append(self._strategy(site))
        else:
            wait = AsyncDataStream.ordered_wait if self.is_ordered else AsyncDataStream.unordered_wait
        return site.finish(site.call(wait, *given, self.capacity), self)

    def _strategy(self, site: Site) -> Any:
        attempts = self.function.attempts
        retries = attempts - 1 if attempts else self.function.fails
        on_result, on_error = (empty_result_predicate, None) if attempts else (None, is_retried)
        if self.backs_off:
            return site.call(AsyncRetryStrategy.exponential_backoff, retries, 1, 3, 2.0, on_result, on_error)
        return site.call(AsyncRetryStrategy.fixed_delay, retries, 1, on_result, on_error)

    def apply(self, value: Any) -> Iterator[Any]:
        """The results of one call."""
        yield from self.function.results(value)
