"""What happens to other partial matches when a match is found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from firesteel.common.errors import FiresteelError

__all__ = ["AfterMatchSkipStrategy", "NoSkipStrategy", "SkipToElementStrategy"]

MatchedIds = Mapping[str, Sequence[int]]
"""The numbers of the events of a match by stage; later events have greater numbers."""


class AfterMatchSkipStrategy(ABC):
    """Selects the partial matches that are discarded after a match: those that began before a certain event."""

    skips = True
    """Whether anything is discarded. If so, a match waits for partial matches that began earlier."""

    pattern_name: str | None = None
    """The stage that is skipped to, if any."""

    @abstractmethod
    def first_kept(self, match: MatchedIds) -> int | None:
        """Returns the number of the first event with which a partial match that is kept may begin; None: any."""

    @staticmethod
    def no_skip() -> AfterMatchSkipStrategy:
        """Every match is emitted."""
        return NoSkipStrategy()

    @staticmethod
    def skip_to_next() -> AfterMatchSkipStrategy:
        """Discards partial matches that began with the same event as the match."""
        return _SkipToNextStrategy()

    @staticmethod
    def skip_past_last_event() -> AfterMatchSkipStrategy:
        """Discards partial matches that began before the match ended."""
        return _SkipPastLastStrategy()

    @staticmethod
    def skip_to_first(pattern_name: str) -> SkipToElementStrategy:
        """Discards partial matches that began before the first event of a stage."""
        return SkipToElementStrategy(pattern_name, 0)

    @staticmethod
    def skip_to_last(pattern_name: str) -> SkipToElementStrategy:
        """Discards partial matches that began before the last event of a stage."""
        return SkipToElementStrategy(pattern_name, -1)


class NoSkipStrategy(AfterMatchSkipStrategy):
    """Discards nothing."""

    skips = False

    def first_kept(self, match: MatchedIds) -> int | None:
        return None


class _SkipToNextStrategy(AfterMatchSkipStrategy):
    def first_kept(self, match: MatchedIds) -> int | None:
        return min(ids[0] for ids in match.values()) + 1


class _SkipPastLastStrategy(AfterMatchSkipStrategy):
    def first_kept(self, match: MatchedIds) -> int | None:
        return max(ids[-1] for ids in match.values()) + 1


class SkipToElementStrategy(AfterMatchSkipStrategy):
    """Discards partial matches that began before an event of a stage."""

    def __init__(self, pattern_name: str, position: int, fails_on_miss: bool = False):
        self.pattern_name = pattern_name
        self._position = position
        self._fails_on_miss = fails_on_miss

    def throw_exception_on_miss(self) -> SkipToElementStrategy:
        """Returns a strategy that fails the job if the match has no such event, or begins with it."""
        assert self.pattern_name is not None
        return SkipToElementStrategy(self.pattern_name, self._position, fails_on_miss=True)

    def first_kept(self, match: MatchedIds) -> int | None:
        assert self.pattern_name is not None
        ids = match.get(self.pattern_name)
        first = ids[self._position] if ids else None
        if self._fails_on_miss:
            if first is None:
                raise FiresteelError(
                    f"Cannot skip to {self.pattern_name!r}: the match has events of {', '.join(match)} only.",
                    hint="Remove throw_exception_on_miss, or skip to a stage that is not optional.",
                )
            if first == min(ids[0] for ids in match.values()):
                raise FiresteelError(
                    f"Cannot skip to {self.pattern_name!r}: the match begins with that event, so it would be found "
                    "again for ever.",
                    hint="Skip to a later stage, or use skip_to_next.",
                )
        return first
