"""A source whose records are a function of their index, at a rate."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.base.rate_limiter import Clock, RateLimiter, RateLimiterStrategy
from firesteel.connectors.base.split_enumerators import OwnedSplitEnumerator
from firesteel.spi.source import (
    Boundedness,
    InputStatus,
    ReaderContext,
    ReaderOutput,
    Source,
    SourceReader,
    SplitEnumeratorContext,
)
from firesteel.types.copying import copy_value

__all__ = ["DataGeneratorReader", "DataGeneratorSource", "DataGeneratorSplit", "GeneratorFunction"]


class GeneratorFunction:
    """Makes the record of an index: the same record for the same index, so that it can be read again."""

    def open(self, reader_context: ReaderContext) -> None:
        """Called once per reader, before the first record."""

    def map(self, value: int) -> Any:
        """The record of one index."""
        raise NotImplementedError(f"{type(self).__name__} must implement map(value)")

    def close(self) -> None:
        """Called once per reader, at the end."""


@dataclass(frozen=True)
class DataGeneratorSplit:
    """Every ``step``-th index from ``position`` on, below ``count`` if there is one."""

    split_id: str
    position: int
    step: int
    count: int | None


class DataGeneratorSource(Source[DataGeneratorSplit]):
    """Emits ``generator_function(index)`` for the indexes 0 to ``count`` - 1, without end if that is None.

    Reader i of n makes the indexes i, i + n, i + 2n, …, so that event times derived from the index advance alike in all
    readers. (Flink gives each reader one contiguous part.) The rate is that of all readers together. A restored job
    continues at the next index of each split; with more readers than splits were made at first, some have nothing to
    do, and the others no more than their share of the rate.
    """

    name: ClassVar[str] = "Data Generator Source"
    emits_own_records = True

    def __init__(
        self,
        generator_function: Callable[[int], Any] | GeneratorFunction,
        count: int | None = None,
        rate_limiter_strategy: RateLimiterStrategy | None = None,
        type_info: Any = None,
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        if not isinstance(generator_function, GeneratorFunction) and not callable(generator_function):
            raise InvalidProgramError(
                f"DataGeneratorSource: {generator_function!r} is neither a GeneratorFunction nor callable.",
                hint="Give a function of the index: DataGeneratorSource(lambda i: f'record {i}', count=100).",
            )
        if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
            raise InvalidProgramError(
                f"DataGeneratorSource: count must be an int of at least 0, or None for no end, not {count!r}."
            )
        self.generator_function = generator_function
        self.count = count
        self.rate_limiter_strategy = rate_limiter_strategy or RateLimiterStrategy.no_op()
        self.type_info = type_info
        self.clock = clock

    def __repr__(self) -> str:
        function = self.generator_function
        label = getattr(function, "__name__", type(function).__name__)
        count = "unbounded" if self.count is None else f"count={self.count}"
        return f"DataGeneratorSource({label}, {count}, {self.rate_limiter_strategy!r})"

    def get_boundedness(self) -> Boundedness:
        """Bounded if there is a count."""
        return Boundedness.CONTINUOUS_UNBOUNDED if self.count is None else Boundedness.BOUNDED

    def create_enumerator(self, context: SplitEnumeratorContext) -> OwnedSplitEnumerator[DataGeneratorSplit]:
        """One split for each reader, as long as there are indexes enough."""
        readers = context.current_parallelism()
        used = readers if self.count is None else min(readers, self.count)
        return OwnedSplitEnumerator(context, [DataGeneratorSplit(str(i), i, readers, self.count) for i in range(used)])

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: list[DataGeneratorSplit]
    ) -> OwnedSplitEnumerator[DataGeneratorSplit]:
        """Continues with the splits that no reader had."""
        return OwnedSplitEnumerator(context, state)

    def create_reader(self, context: ReaderContext) -> DataGeneratorReader:
        """A reader with its share of the rate."""
        strategy = self.rate_limiter_strategy
        catches_up = context.execution.has_idle_gaps
        limiter = strategy.create_rate_limiter(context.parallelism, self.clock, catches_up=catches_up)
        return DataGeneratorReader(context, self.generator_function, limiter, self.clock)


class DataGeneratorReader(SourceReader[DataGeneratorSplit]):
    """Generates as many records as the rate permits now.

    A restored job with fewer readers has several splits in one: it continues with the one that is behind, since none of
    them need have an end.
    """

    copies_records = True
    """Whether the generator function may change a record it has given, or give it again."""

    def __init__(
        self,
        context: ReaderContext,
        function: Callable[[int], Any] | GeneratorFunction,
        limiter: RateLimiter,
        clock: Clock,
    ) -> None:
        self._context = context
        self._function = function if isinstance(function, GeneratorFunction) else None
        self._generate = function.map if isinstance(function, GeneratorFunction) else function
        self._opened = False
        self._limiter = limiter
        self._clock = clock
        self._splits: list[DataGeneratorSplit] = []
        self._no_more_splits = False

    def start(self) -> None:
        """Opens the generator function; asks for splits unless some were restored."""
        if self._function is not None:
            self._function.open(self._context)
            self._opened = True
        if not self._splits:
            self._context.send_split_request()

    def add_splits(self, splits: Sequence[DataGeneratorSplit]) -> None:
        """Splits to read side by side."""
        self._splits += splits

    def notify_no_more_splits(self) -> None:
        """The reader ends after the splits it has."""
        self._no_more_splits = True

    def poll_next(self, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits the records that are due."""
        if not self._splits:
            return InputStatus.END_OF_INPUT if self._no_more_splits else InputStatus.NOTHING_AVAILABLE
        return self.read_split(0 if len(self._splits) == 1 else self._furthest_behind(), output, max_records)

    def read_split(self, index: int, output: ReaderOutput, max_records: int) -> InputStatus:
        """Emits the records of one split that are due."""
        split = self._splits[index]
        begin, step = split.position, split.step
        wanted = max_records
        if split.count is not None:
            wanted = min(wanted, max((split.count - begin + step - 1) // step, 0))
        permitted = self._limiter.acquire(wanted) if wanted else 0
        end = begin + permitted * step
        if permitted:
            records = self.generate(range(begin, end, step))
            self._splits[index] = replace(split, position=end)
            output.collect(split.split_id, records)
        if split.count is not None and end >= split.count:
            return self._end_split(index, output)
        if self._limiter.available_at() <= self._clock():
            return InputStatus.MORE_AVAILABLE
        return InputStatus.NOTHING_AVAILABLE

    def generate(self, indexes: range) -> Sequence[Any]:
        """The records of indexes."""
        if self.copies_records and not self._context.reuses_objects:
            # one by one: the function may change what it gave before
            return [copy_value(self._generate(index)) for index in indexes]
        return list(map(self._generate, indexes))

    def snapshot_state(self, checkpoint_id: int) -> list[DataGeneratorSplit]:
        """The splits, each from its next index on."""
        return list(self._splits)

    def available_at(self) -> float | None:
        """When the next record is due."""
        return self._limiter.available_at() if self._splits else None

    def close(self) -> None:
        """Closes the generator function."""
        if self._function is not None and self._opened:
            self._function.close()

    def _furthest_behind(self) -> int:
        return min(range(len(self._splits)), key=lambda index: self._splits[index].position)

    def _end_split(self, index: int, output: ReaderOutput) -> InputStatus:
        split = self._splits.pop(index)
        output.release_split(split.split_id)
        if self._splits:
            return InputStatus.MORE_AVAILABLE
        if not self._no_more_splits:
            self._context.send_split_request()
        return InputStatus.END_OF_INPUT if self._no_more_splits else InputStatus.NOTHING_AVAILABLE
