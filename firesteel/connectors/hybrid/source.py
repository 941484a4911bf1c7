"""HybridSource: reads one source to its end and continues with the next, such as files, then Kafka."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.hybrid.enumerator import HybridSourceEnumerator, HybridSourceEnumeratorState
from firesteel.connectors.hybrid.reader import HybridSourceReader
from firesteel.connectors.hybrid.split import HybridSourceSplit
from firesteel.spi.source import Boundedness, ReaderContext, Source, SplitEnumerator, SplitEnumeratorContext

__all__ = ["HybridSource", "HybridSourceBuilder", "SourceFactory", "SourceSwitchContext"]


@dataclass(frozen=True)
class SourceSwitchContext:
    """What is known when the next source is made."""

    previous_enumerator: SplitEnumerator[Any]

    def get_previous_enumerator(self) -> SplitEnumerator[Any]:
        """The enumerator of the source that has just been read, not closed yet: it may know where that ended."""
        return self.previous_enumerator


SourceFactory: TypeAlias = Callable[[SourceSwitchContext], Source[Any]]
"""Makes a source when the one before it has been read."""


class HybridSource(Source[HybridSourceSplit]):
    """Reads several sources one after the other; all but the last are bounded.

    The next source begins when every reader has finished the present one, so no record of it comes before one of the
    source before. A checkpoint may be taken at any time, and restored at any parallelism. In a batch, where the sources
    are bounded, each reader has its splits of all sources from the start and reads them in the sources' order.

    A source may be made only when its turn comes, from what is known then; what was made is kept in checkpoints, so a
    job that fails continues with the same one.
    """

    name: ClassVar[str] = "Hybrid Source"

    def __init__(self, sources: list[tuple[Source[Any] | SourceFactory, Boundedness]]) -> None:
        self.sources = list(sources)
        self.emits_own_records = all(isinstance(s, Source) and s.emits_own_records for s, _ in self.sources)

    def __repr__(self) -> str:
        return f"HybridSource({', '.join(_describe(source) for source, _ in self.sources)})"

    @staticmethod
    def builder(first_source: Source[Any]) -> HybridSourceBuilder:
        """Begins with the source that is read first."""
        return HybridSourceBuilder(first_source)

    def get_boundedness(self) -> Boundedness:
        """That of the last source."""
        return self.sources[-1][1]

    def can_rewind(self) -> bool:
        """Whether all of them can; one that is yet to be made is trusted to."""
        return all(source.can_rewind() for source, _ in self.sources if isinstance(source, Source))

    def create_enumerator(self, context: SplitEnumeratorContext) -> HybridSourceEnumerator:
        """An enumerator that begins with the first source."""
        return HybridSourceEnumerator(context, self._creators())

    def restore_enumerator(
        self, context: SplitEnumeratorContext, state: HybridSourceEnumeratorState
    ) -> HybridSourceEnumerator:
        """An enumerator that continues with the source that was being read."""
        return HybridSourceEnumerator(context, self._creators(), state)

    def create_reader(self, context: ReaderContext) -> HybridSourceReader:
        """A reader that reads the source which the enumerator names."""
        given = [source if isinstance(source, Source) else None for source, _ in self.sources]
        return HybridSourceReader(context, given)

    def _creators(self) -> list[Source[Any] | Callable[[SplitEnumerator[Any]], Source[Any]]]:
        return [
            source if isinstance(source, Source) else _Creator(source, boundedness)
            for source, boundedness in self.sources
        ]


class _Creator:
    """Makes a source, and sees that it is one."""

    def __init__(self, factory: SourceFactory, boundedness: Boundedness) -> None:
        self._factory = factory
        self._boundedness = boundedness

    def __call__(self, previous: SplitEnumerator[Any]) -> Source[Any]:
        source = self._factory(SourceSwitchContext(previous))
        if not isinstance(source, Source):
            raise InvalidProgramError(f"HybridSource: {_describe(self._factory)} must return a Source, not {source!r}.")
        if source.get_boundedness() is not self._boundedness:
            raise InvalidProgramError(
                f"HybridSource: {_describe(self._factory)} was added as {self._boundedness.name}, but the source it "
                f"has made ({source!r}) is {source.get_boundedness().name}.",
                hint="Specify it with add_source(factory, boundedness).",
            )
        return source


class HybridSourceBuilder:
    """Lists the sources in the order in which they are read."""

    def __init__(self, first_source: Source[Any]) -> None:
        self._sources: list[tuple[Source[Any] | SourceFactory, Boundedness]] = []
        if not isinstance(first_source, Source):
            raise InvalidProgramError(
                f"HybridSource: the first source must be a Source, not {first_source!r}.",
                hint="Only a source that follows another one can be made later, by a function.",
            )
        self.add_source(first_source)

    def add_source(
        self, source: Source[Any] | SourceFactory, boundedness: Boundedness | None = None
    ) -> HybridSourceBuilder:
        """Adds a source, or a function that makes it when its turn comes.

        The function is given a :class:`SourceSwitchContext` with the enumerator of the source before. It needs
        ``boundedness`` to be set here, since the program must know before it runs.
        """
        if self._sources and self._sources[-1][1] is not Boundedness.BOUNDED:
            raise InvalidProgramError(
                f"HybridSource: {_describe(self._sources[-1][0])} never ends, so nothing can be read after it.",
                hint="Every source but the last must be bounded.",
            )
        if isinstance(source, Source):
            if boundedness not in (None, source.get_boundedness()):
                raise InvalidProgramError(f"HybridSource: {source!r} is {source.get_boundedness().name}.")
            self._sources.append((source, source.get_boundedness()))
        elif not callable(source):
            raise InvalidProgramError(f"HybridSource: {source!r} is neither a Source nor a function that makes one.")
        elif boundedness is None:
            raise InvalidProgramError(
                f"HybridSource: the boundedness of the source created by {_describe(source)} is not known.",
                hint="add_source(factory, Boundedness.CONTINUOUS_UNBOUNDED), or Boundedness.BOUNDED.",
            )
        else:
            self._sources.append((source, boundedness))
        return self

    def build(self) -> HybridSource:
        """The source."""
        return HybridSource(self._sources)


def _describe(source: Any) -> str:
    return repr(source) if isinstance(source, Source) else f"{getattr(source, '__name__', repr(source))}()"
