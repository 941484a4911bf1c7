"""The automaton: processes events and time on the state of one key, and returns matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.cep.nfa.compiler import CompiledPattern
from firesteel.cep.nfa.predicates import Edge, compile_states
from firesteel.cep.nfa.priority_queue import discard, pop, push
from firesteel.cep.nfa.shared_buffer import (
    NEVER,
    NO_START,
    UNKNOWN,
    Computation,
    Entry,
    NFAState,
    events_of,
    matched_events,
    matched_ids,
)
from firesteel.cep.nfa.states import StateType
from firesteel.common.errors import FiresteelError, StateIncompatibleError

__all__ = ["NFA", "EventContext", "Match", "PartialMatchLimitError"]

Match = dict[str, list[Any]]
"""The events of a match by stage."""


class PartialMatchLimitError(FiresteelError):
    """A key has more partial matches than are allowed."""


class EventContext:
    """The context of conditions: the event's timestamp, and the partial match that it is offered to."""

    __slots__ = ("_clock", "event_timestamp", "last")

    def __init__(self, clock: Callable[[], int]):
        self._clock = clock
        self.event_timestamp = 0
        self.last: Entry | None = None

    def get_events_for_pattern(self, name: str) -> list[Any]:
        """Returns the events that the partial match has taken for a stage, in their order."""
        return events_of(self.last, name)

    def timestamp(self) -> int:
        """Returns the timestamp of the event."""
        return self.event_timestamp

    def current_processing_time(self) -> int:
        """Returns the processing time in milliseconds."""
        return self._clock()


class NFA:
    """The automaton of one pattern, for any number of keys.

    ``process`` and ``advance_time`` change the state that they are given. They give the matches of Flink's NFA in
    the same order.
    """

    def __init__(
        self,
        pattern: CompiledPattern,
        *,
        handles_timeouts: bool = False,
        clock: Callable[[], int] = lambda: 0,
        max_partial_matches: int | None = None,
    ):
        self.pattern = pattern
        self.window_time = pattern.window_time
        self._handles_timeouts = handles_timeouts
        self._max_partial_matches = max_partial_matches
        self._window_times = pattern.window_times
        self._has_times = bool(pattern.window_time or pattern.window_times)
        self._strategy = pattern.strategy
        self._edges, self.begins = compile_states(pattern.states, pattern.start)
        self._types = {state.name: state.state_type for state in pattern.states}
        self._context = EventContext(clock)
        self._initial_context = EventContext(clock)
        start = pattern.start.name
        self._start = Computation(NO_START, start, None, -1, -1)

    def initial_state(self) -> NFAState:
        """Returns the state of a key without partial matches."""
        return NFAState([self._start])

    def is_initial(self, state: NFAState) -> bool:
        """Whether a state is that of a key without partial matches, and so need not be kept."""
        return len(state.partial) == 1 and not state.completed and state.partial[0][1] == self._start[1]

    def end_of_first(self, state: NFAState) -> int | None:
        """Returns when the first partial match times out, if there is a time between first and last event."""
        first = state.partial[0]
        return None if not self.window_time or first[0] == NO_START else first[3] + self.window_time

    def initial_context(self, timestamp: int) -> EventContext:
        """Returns the context for ``begins``: whether an event of that timestamp begins a match or a partial match.

        If not, it does not change an initial state.
        """
        self._initial_context.event_timestamp = timestamp
        return self._initial_context

    def process(self, state: NFAState, event: Any, timestamp: int) -> Sequence[Match]:
        """Processes an event; returns the matches that are complete with it."""
        context = self._context
        context.event_timestamp = timestamp
        edges_of, start = self._edges, self._start
        partial: list[Computation] | None = None
        """None as long as all partial matches are as before; then they are in order, and need not be sorted in."""
        completed: list[Computation] = []
        for position, computation in enumerate(state.partial):
            name = computation[1]
            find = edges_of.get(name)
            if find is None:
                raise self._unknown_state(name)
            context.last = computation[2]
            edges = find(event, context)
            if name == start[1]:
                if edges and _has_take(edges):
                    if partial is None:
                        partial = state.partial[:position]
                    state.has_new_start = True
                    self._follow(edges, start, event, timestamp, state.next_number, partial, completed)
                kept = start
            elif len(edges) == 1 and edges[0][4] == name:
                kept = computation
            else:
                if partial is None:
                    partial = state.partial[:position]
                if edges:
                    self._follow(edges, computation, event, timestamp, state.next_number, partial, completed)
                continue
            if partial is not None:
                push(partial, kept)
        if partial is None:
            return ()
        state.is_changed = True
        state.end = UNKNOWN
        state.next_number += 1
        state.partial = partial
        matches = self._take_completed(state, completed) if completed or state.completed else ()
        count = len(state.partial) + len(state.completed)
        if self._max_partial_matches is not None and count > self._max_partial_matches:
            raise self._too_many(count)
        return matches

    def advance_time(self, state: NFAState, timestamp: int) -> tuple[Sequence[Match], Sequence[tuple[Match, int]]]:
        """Discards partial matches whose time has passed: there will be no events before the timestamp.

        Returns the matches that are complete with that, and the events of partial matches with their time's end.
        """
        if not self._has_times:
            state.end = NEVER
            return (), ()
        window_time, window_times = self.window_time, self._window_times
        if not window_times:
            # the first of them began first
            first = state.partial[0]
            state.end = NEVER if first[0] == NO_START else first[3] + window_time
            if timestamp < state.end:
                return (), ()
            state.end = UNKNOWN
        timed_out: list[tuple[Match, int]] = []
        partial: list[Computation] = []
        completed: list[Computation] = []
        for computation in state.partial:
            end = None
            if computation[0] != NO_START:
                since_previous = window_times.get(computation[1])
                if since_previous is not None and 0 < since_previous <= timestamp - computation[4]:
                    end = computation[4] + since_previous
                elif 0 < window_time <= timestamp - computation[3]:
                    end = computation[3] + window_time
            if end is None:
                partial.append(computation)
            elif self._types.get(computation[1]) is StateType.PENDING:
                push(completed, computation)
            elif self._handles_timeouts:
                timed_out.append((matched_events(computation.last), end))
        if len(partial) != len(state.partial):
            state.is_changed = True
            state.partial = []
            for computation in partial:
                push(state.partial, computation)
        matches = self._take_completed(state, completed) if completed or state.completed else ()
        return matches, timed_out

    def _follow(
        self,
        edges: Sequence[Edge],
        computation: Computation,
        event: Any,
        timestamp: int,
        number: int,
        partial: list[Computation],
        completed: list[Computation],
    ) -> None:
        """Adds what becomes of a partial match; nothing stays if one of its ways reaches a stop state."""
        start, _, last, start_timestamp, previous_timestamp = computation
        is_start = start == NO_START
        retained = []
        is_stopped = False
        for edge in edges:
            target = edge.target
            if edge.takes:
                entry = Entry(edge.stage, event, number, last)
                first, first_timestamp = (number, timestamp) if is_start else (start, start_timestamp)
                following = Computation(first, target.name, entry, first_timestamp, timestamp)
                ended = following if edge.is_end is not None and edge.is_end(event, self._context) else None
            elif is_start:
                continue
            else:
                following = Computation(start, target.name, last, start_timestamp, previous_timestamp)
                ended = None
            if target.is_final:
                push(completed, following)
            elif target.is_stop:
                is_stopped = True
            else:
                retained.append(following)
            if ended is not None:
                push(completed, ended)
        if not is_stopped:
            for each in retained:
                push(partial, each)

    def _take_completed(self, state: NFAState, completed: list[Computation]) -> list[Match]:
        """Adds complete matches, and removes and returns those that need not wait, after which it skips."""
        for computation in completed:
            push(state.completed, computation)
        strategy = self._strategy
        matches = []
        while state.completed:
            if strategy.skips and state.partial and state.completed[0][0] > state.partial[0][0]:
                break
            state.is_changed = True
            match = pop(state.completed)
            if strategy.skips:
                kept = strategy.first_kept(matched_ids(match.last))
                if kept is not None:
                    discard(state.partial, lambda each, kept=kept: each[0] < kept)  # type: ignore[misc]
                    discard(state.completed, lambda each, kept=kept: each[0] < kept)  # type: ignore[misc]
            matches.append(matched_events(match.last))
        return matches

    def _too_many(self, count: int) -> PartialMatchLimitError:
        return PartialMatchLimitError(
            f"There are {count} partial matches of the pattern {self.pattern.text}; at most "
            f"{self._max_partial_matches} are allowed.",
            hint="Limit the pattern with within or until, use a strategy that skips after a match, or raise the limit.",
        )

    def _unknown_state(self, name: str) -> StateIncompatibleError:
        return StateIncompatibleError(
            f"The restored state has a partial match in the state {name!r}, which the pattern {self.pattern.text} "
            "does not have.",
            hint="Restore with the pattern that the savepoint was taken with, or give the operator another uid.",
        )


def _has_take(edges: Sequence[Edge]) -> bool:
    """Whether one of the edges takes the event: a partial match does not begin with an event that it ignores."""
    for edge in edges:  # noqa: SIM110 - once per event
        if edge.takes:
            return True
    return False
