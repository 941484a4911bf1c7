"""The base class for sources that are read by iterators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from firesteel.connectors.base.iterator_enumerator import IteratorEnumeratorState, IteratorSourceEnumerator
from firesteel.connectors.base.iterator_reader import IteratorSourceReader
from firesteel.connectors.base.iterator_split import IteratorSourceSplit
from firesteel.spi.source import Boundedness, ReaderContext, Source, SplitEnumeratorContext

__all__ = ["IteratorSource"]


class IteratorSource(Source[IteratorSourceSplit]):
    """Base class of sources: a subclass defines the splits, and how one of them is read from a position on.

    The rest is done here: splits are assigned and, in a restored job, assigned again at any parallelism; records are
    emitted in batches; the position after the last record of each split is in every checkpoint; watermarks are made per
    split. A bounded source assigns a split to a reader that has none left, so that each has one open at a time; an
    unbounded one spreads its splits over the readers at once, and each of them reads all of its own side by side.

    The object is a description: it is pickled, and opens nothing before ``splits`` and ``read`` are called, in other
    processes. The settings are attributes of the class, or are set in ``__init__``.
    """

    emits_own_records = True

    boundedness: Boundedness = Boundedness.BOUNDED
    """Whether the source ends by itself."""

    blocking: bool = True
    """Whether ``read`` may wait, for instance for a server: each open split then has a thread of its own. Set it to
    False where records are at hand: that is faster."""

    poll_interval_ms: int = 100
    """How long to wait after a None of ``read``; 0 where ``read`` has waited itself."""

    discovery_interval_ms: int | None = None
    """How often an unbounded source looks for new splits; None is once, at the start."""

    queue_size: int = 4096
    """How many records a thread may read ahead of the job."""

    close_timeout_s: float = 10.0
    """How long a thread may take to notice that the job is over."""

    @property
    def name(self) -> str:
        """The operator's name: that of the class."""
        return type(self).__name__

    @abstractmethod
    def splits(self) -> Iterable[Any]:
        """All splits there are now: strings, or picklable objects with a ``split_id``.

        Called once per source, where the JobMaster runs, in a thread in which it may take its time. What was there
        before is known by its id and not handed out again.
        """

    @abstractmethod
    def read(self, split: Any, position: Any) -> Iterator[Any]:
        """Reads one split from a position on, or from its beginning if that is None: normally a generator.

        It yields pairs of a record and the position behind it, or triples with an event timestamp in milliseconds. A
        position is anything picklable but None: an offset, an id, a date. ``yield None`` signals that there is nothing
        now. Where the iterator ends the split ends, also in an unbounded source. With ``blocking`` it must not wait for
        long without yielding, so that the job can stop: let the client's call time out after a second, yield None.
        """

    def acknowledge(self, positions: Mapping[str, Any]) -> None:
        """Commits externally how far each split has been read, by split id; does nothing unless overridden.

        Called in a thread of each reader after a checkpoint is complete: what is before these positions will not be
        read again. Since a job may fail in between, it is not called for every checkpoint.
        """

    def get_boundedness(self) -> Boundedness:
        """The value of ``boundedness``."""
        return self.boundedness

    def create_enumerator(self, context: SplitEnumeratorContext) -> IteratorSourceEnumerator:
        """An enumerator that calls ``splits``."""
        return IteratorSourceEnumerator(context, self)

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: IteratorEnumeratorState | None
    ) -> IteratorSourceEnumerator:
        """An enumerator that knows the splits which were there before."""
        return IteratorSourceEnumerator(context, self, state)

    def create_reader(self, context: ReaderContext) -> IteratorSourceReader:
        """A reader that calls ``read``."""
        return IteratorSourceReader(context, self)
