"""Matches of a pattern by enumeration, for patterns whose meaning needs no automaton.

A match is a sequence of events in the order of time. Each event of it belongs to a stage. What may lie between two of
them follows from the contiguity of the later one. All ways to choose events are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["NEGATIVE", "PatternOracle", "Stage", "Taken", "TimedValue"]

NEGATIVE = ("not_next", "not_followed_by")


@dataclass(frozen=True)
class Stage:
    """A stage of a pattern: which events it takes, and how many."""

    contiguity: str
    """The method of the pattern that adds the stage: ``next``, ``followed_by``, ``not_next`` and so on."""
    modulus: int
    remainders: tuple[int, ...]
    """v of an event leaves one of these remainders."""
    rising: bool = False
    """v of an event is greater than that of the first event of the match."""
    least: int = 1
    most: int | None = 1
    """None: any number."""
    inner: str = "followed_by"
    """The contiguity of two events of the stage."""
    optional: bool = False

    @property
    def is_negative(self) -> bool:
        """Whether no event may fit."""
        return self.contiguity in NEGATIVE

    @property
    def is_fixed(self) -> bool:
        """Whether the number of its events is fixed."""
        return not self.optional and self.least == self.most

    def fits(self, v: int, first: int | None) -> bool:
        """Whether an event fits; ``first`` is v of the first event of the match, None for that event itself."""
        return v % self.modulus in self.remainders and (not self.rising or first is None or v > first)


class TimedValue(NamedTuple):
    """What matters of an event."""

    time: int
    v: int


Taken = tuple[tuple[int, int], ...]
"""Numbers of stages and of the events that they have taken."""


class _Way(NamedTuple):
    """A stage that may take the next event, and what must not lie before it."""

    stage: int
    contiguity: str
    not_next: tuple[Stage, ...]
    not_between: tuple[Stage, ...]


class PatternOracle:
    """Finds the matches of one key, whose events are in order."""

    def __init__(
        self,
        stages: Sequence[Stage],
        within: int | None,
        skip: str,
        skip_to: int,
        events: Sequence[TimedValue],
        end: int,
    ):
        self._stages = stages
        self._within = within
        self._skip = skip
        self._skip_to = skip_to
        self._events = events
        self._end = end
        """The last watermark."""
        self._matches: list[tuple[Taken, int]] = []
        self._timed_out: list[tuple[Taken, int]] = []
        self._is_open = False

    def run(self) -> tuple[list[tuple[Taken, int]], list[tuple[Taken, int]]]:
        """Returns matches, and partial matches whose time has passed, with the time at which they are known."""
        kept = 0
        for start in range(len(self._events)):
            if start < kept:
                continue
            before = len(self._matches)
            self._is_open = False
            self._begin(start)
            found = self._matches[before:]
            if self._skip == "no_skip":
                continue
            if found:
                kept = self._first_kept(found[0][0])
            elif self._is_open:
                break  # later matches wait for this one
        return self._matches, self._timed_out

    def _first_kept(self, match: Taken) -> int:
        of_stage = [event for stage, event in match if stage == self._skip_to]
        return {
            "skip_to_next": match[0][1] + 1,
            "skip_past_last_event": match[-1][1] + 1,
            "skip_to_first": of_stage[0] if of_stage else 0,
            "skip_to_last": of_stage[-1] if of_stage else 0,
        }[self._skip]

    def _begin(self, start: int) -> None:
        todo: list[Taken] = []
        for number, stage in enumerate(self._stages):
            if stage.fits(self._events[start].v, None):
                todo.append(((number, start),))
            if not stage.optional:
                break
        while todo:
            taken = todo.pop()
            if self._is_complete(taken):
                self._matches.append((taken, self._events[taken[-1][1]].time))
            self._complete_by_absence(taken)
            for way in self._ways(taken):
                todo += ((*taken, (way.stage, event)) for event in self._take(taken, way))

    def _ways(self, taken: Taken) -> Iterator[_Way]:
        number, count = taken[-1][0], sum(1 for stage, _ in taken if stage == taken[-1][0])
        stage = self._stages[number]
        if stage.most is None or count < stage.most:
            yield _Way(number, stage.inner, (), ())
        if count < stage.least:
            return
        absent: dict[str, list[Stage]] = {kind: [] for kind in NEGATIVE}
        for following in range(number + 1, len(self._stages)):
            stage = self._stages[following]
            if stage.is_negative:
                absent[stage.contiguity].append(stage)
                continue
            yield _Way(following, stage.contiguity, tuple(absent["not_next"]), tuple(absent["not_followed_by"]))
            if not stage.optional:
                return

    def _window(self, taken: Taken) -> Iterator[int]:
        """Yields the events after the last one, as long as the time of the match lasts."""
        begin = self._events[taken[0][1]].time
        for event in range(taken[-1][1] + 1, len(self._events)):
            if self._within is not None and self._events[event].time - begin >= self._within:
                return
            yield event

    def _take(self, taken: Taken, way: _Way) -> Iterator[int]:
        """Yields the events that may be next; a partial match that still waits for one then times out."""
        first = self._events[taken[0][1]].v
        stage = self._stages[way.stage]
        for position, event in enumerate(self._window(taken)):
            v = self._events[event].v
            if position == 0 and any(absent.fits(v, first) for absent in way.not_next):
                return
            fits = stage.fits(v, first)
            if fits:
                yield event
            if way.contiguity == "next" or (way.contiguity == "followed_by" and fits):
                return
            if any(absent.fits(v, first) for absent in way.not_between):
                return
        self._leave_open(taken)

    def _leave_open(self, taken: Taken) -> None:
        end = None if self._within is None else self._events[taken[0][1]].time + self._within
        if end is None or end > self._end:
            self._is_open = True
        else:
            self._timed_out.append((taken, end))

    def _is_complete(self, taken: Taken) -> bool:
        number = taken[-1][0]
        count = sum(1 for stage, _ in taken if stage == number)
        return count >= self._stages[number].least and all(stage.optional for stage in self._stages[number + 1 :])

    def _complete_by_absence(self, taken: Taken) -> None:
        """Finds whether an event does not come with which the pattern ends."""
        last = self._stages[-1]
        if not last.is_negative or taken[-1][0] != len(self._stages) - 2:
            return
        if sum(1 for stage, _ in taken if stage == taken[-1][0]) < self._stages[-2].least:
            return
        first = self._events[taken[0][1]].v
        following = list(self._window(taken))
        if last.contiguity == "not_followed_by":
            assert self._within is not None
            end = self._events[taken[0][1]].time + self._within
            if end <= self._end and not any(last.fits(self._events[event].v, first) for event in following):
                self._matches.append((taken, end))
        elif not following:
            self._leave_open(taken)
        elif not last.fits(self._events[following[0]].v, first):
            self._matches.append((taken, self._events[following[0]].time))
