"""The operator that matches a pattern, per key, and its spec.

In event time events wait until the watermark has passed them. They are then processed in the order of their timestamps.

Where state is in Python objects, the events of all keys wait in lists by timestamp. A snapshot moves those that wait
at that time into the state of their keys. With other state backends they are in state at once. A key with waiting
events in state has a timer for the earliest, not one for each: when it fires, all events that the watermark has passed
are processed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from itertools import repeat
from operator import itemgetter
from typing import Any

from firesteel.api.output_tag import OutputTag
from firesteel.api.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.cep.functions import Match, PatternProcessFunction, TimedOutPartialMatchHandler
from firesteel.cep.nfa.compiler import compile_pattern
from firesteel.cep.nfa.nfa import NFA, PartialMatchLimitError
from firesteel.cep.nfa.shared_buffer import NFAState
from firesteel.cep.pattern.pattern import Pattern, conditions_of
from firesteel.cep.waiting_events import WaitingEvents
from firesteel.common.errors import FiresteelError
from firesteel.runtime.codegen.at_work import MATCH_FUNCTION, handles_results_of
from firesteel.runtime.codegen.functions import direct_call, method_of
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.operators.base import OperatorContext, StreamOperator
from firesteel.runtime.operators.contexts import Collector
from firesteel.runtime.state.api.backend import VOID_NAMESPACE, ObjectStateBackend
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.types.copying import copy_value

__all__ = ["CepOperator", "CepSpec"]

WAITING_EVENTS = "_cep_events"
PARTIAL_MATCHES = "_cep_partial_matches"
TIMERS = "_cep_timers"

_AT_ONCE = 1_000
"""How many events are processed before the end of the turn is looked at."""

_timestamp_of = itemgetter(0)
TimedEvent = tuple[int, Any]


@dataclass(frozen=True)
class CepSpec(OperatorSpec):
    """Matches a pattern on a keyed stream."""

    pattern: Pattern | None
    """None: there is none yet."""
    function: PatternProcessFunction
    is_event_time: bool = True
    comparator: Any = None
    """Orders events of the same timestamp: a function of two events, or an object with such a method ``compare``."""
    late_tag: OutputTag | None = None
    max_partial_matches: int | None = None

    def create(self, runtime: OperatorRuntime) -> StreamOperator:
        """Returns a new operator for one subtask."""
        return CepOperator(self)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Returns the function that is called with matches."""
        return {MATCH_FUNCTION: getattr(self.function, "call", self.function.process_match)}

    def user_function(self) -> Any:
        return self.function

    def without_user_functions(self) -> CepSpec:
        """Returns a spec with the same states."""
        return replace(self, pattern=Pattern.begin("event"), function=_NoMatches())


class _NoMatches(PatternProcessFunction):
    def process_match(self, match: Match, ctx: Any) -> None:
        return None


class _Context:
    """The context of a PatternProcessFunction."""

    __slots__ = ("_clock", "_output", "output_time", "time")

    def __init__(self, clock: Callable[[], int], output: Collector):
        self._clock = clock
        self._output = output
        self.time = 0
        self.output_time: int | None = 0

    def timestamp(self) -> int:
        """Returns the timestamp of the match."""
        return self.time

    def current_processing_time(self) -> int:
        """Returns the processing time in milliseconds."""
        return self._clock()

    def output(self, output_tag: OutputTag, value: Any) -> None:
        """Emits a record to a side output."""
        if not isinstance(output_tag, OutputTag):
            raise TypeError(f"output needs an OutputTag, got {output_tag!r}.")
        self._output.collect(((output_tag, value),), self.output_time)


class CepOperator(StreamOperator):
    """Keeps waiting events and partial matches per key, and emits what the function makes of matches."""

    reads_iterators = True
    emits_own_records = True
    is_open = False

    def __init__(self, spec: CepSpec):
        self.spec = spec
        self.user_function = spec.function
        self._event_time = spec.is_event_time
        self._order: Callable[[TimedEvent], Any] | None = None
        if spec.comparator is not None:
            by_event = cmp_to_key(method_of(spec.comparator, "compare"))
            self._order = lambda timed: by_event(timed[1])

    def open(self, context: OperatorContext) -> None:
        """Gets the state and the timers, and opens the conditions and the function."""
        super().open(context)
        backend = context.backend
        if backend is None or not context.key_selectors:
            raise FiresteelError("A pattern operator needs a keyed stream; CEP.pattern keys by a constant.")
        self._backend = backend
        self._key_selector = direct_call(context.key_selectors[0])
        self._timers = context.timer_service(TIMERS, self)
        self._events = backend.get_state(ListStateDescriptor(WAITING_EVENTS, None), internal=True)
        self._partial = backend.get_state(ValueStateDescriptor(PARTIAL_MATCHES, None), internal=True)
        self._waiting: WaitingEvents | None = None
        if self._event_time and isinstance(backend, ObjectStateBackend) and not context.execution.one_key_at_a_time:
            self._waiting = WaitingEvents()
            self._stored_events = backend.state_table(WAITING_EVENTS).namespaces[VOID_NAMESPACE]
            self._stored_partial = backend.state_table(PARTIAL_MATCHES).namespaces[VOID_NAMESPACE]
        self._output = Collector(context)
        self._context = _Context(context.processing_time, self._output)
        self._copies = not context.reuses_objects
        self._late = context.counter("numLateRecords")
        self._dropped = context.counter("numLateRecordsDropped")
        self._handler = self.spec.function if isinstance(self.spec.function, TimedOutPartialMatchHandler) else None
        self._conditions: list[Any] = []
        self._nfa: NFA | None = None
        self.is_open = True
        if self.spec.pattern is not None:
            self.set_pattern(self.spec.pattern)
        self.spec.function.open(context.runtime_context)

    def set_pattern(self, pattern: Pattern) -> None:
        """Compiles a pattern and opens its conditions, in place of those of the last one."""
        nfa = NFA(
            compile_pattern(pattern),
            handles_timeouts=self._handler is not None,
            clock=self.context.processing_time,
            max_partial_matches=self.spec.max_partial_matches,
        )
        # a timer in processing time, or with times between neighbours, may end partial matches besides its own
        self._registers_all = nfa.window_time > 0 and (bool(nfa.pattern.window_times) or not self._event_time)
        self._nfa = nfa
        self._close_conditions()
        for condition in conditions_of(pattern):
            condition.open(self.context.runtime_context)
            self._conditions.append(condition)

    def drop_partial_matches(self) -> None:
        """Removes the partial matches of all keys."""
        before = self._backend.key
        for key in list(self._backend.keys(PARTIAL_MATCHES)):
            self._backend.key = key
            self._partial.clear()
        self._backend.key = before

    def close(self) -> None:
        if self.is_open:
            self._close_conditions()
            self.spec.function.close()

    def _close_conditions(self) -> None:
        while self._conditions:
            self._conditions.pop().close()

    # records

    def process_batch(self, values: Iterable[Any], timestamps: Sequence[int] | None) -> None:
        if not self._event_time:
            backend, selector = self._backend, self._key_selector
            for value in values:
                backend.key = selector(value)
                self._process_now(value)
        else:
            self._add(values, timestamps)
        self._output.flush()

    def process_group(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Processes records of the current key; in event time all of them, as the end of the input comes next."""
        if not self._event_time:
            for value in values:
                self._process_now(value)
            return
        if timestamps is None or timestamps[0] == MIN_TIMESTAMP:
            raise _no_timestamp()
        events = list(zip(timestamps, values, strict=True))
        state = self._process_events(None, self._sorted(events))
        if state is not None:
            self._advance_time(state, MAX_WATERMARK)

    def process_record(self, value: Any, timestamp: int | None) -> None:
        """Processes a record of the current key."""
        if not self._event_time:
            self._process_now(value)
        else:
            self._add((value,), None if timestamp is None else (timestamp,))
        if not self.context.execution.one_key_at_a_time:
            self._output.flush()

    def end_groups(self) -> None:
        """Emits what was collected."""
        self._output.flush()

    def _add(self, values: Iterable[Any], timestamps: Sequence[int] | None) -> None:
        """Lets records wait for the watermark."""
        if self._waiting is None:
            self._add_to_state(values, timestamps)
            return
        selector, watermark = self._key_selector, self._timers.current_watermark
        times: Iterable[int] = repeat(MIN_TIMESTAMP) if timestamps is None else timestamps
        last = None
        keys: list[Any] = []
        events: list[Any] = []
        for value, timestamp in zip(values, times, strict=False):
            if timestamp != last:
                if timestamp <= watermark:
                    self._add_late(selector(value), value, timestamp)
                    continue
                keys, events = self._waiting.at(timestamp)
                last = timestamp
            keys.append(selector(value))
            events.append(value)

    def _add_to_state(self, values: Iterable[Any], timestamps: Sequence[int] | None) -> None:
        """Lets records wait in any state backend."""
        backend, selector = self._backend, self._key_selector
        watermark = self._timers.current_watermark
        times: Iterable[int] = repeat(MIN_TIMESTAMP) if timestamps is None else timestamps
        for value, timestamp in zip(values, times, strict=False):
            key = backend.key = selector(value)
            if timestamp <= watermark:
                self._add_late(key, value, timestamp)
            else:
                self._events.add((timestamp, value))
                self._timers.register_event_time_timer(None, timestamp)

    def _add_late(self, key: Any, value: Any, timestamp: int) -> None:
        if timestamp == MIN_TIMESTAMP:
            self._backend.key = key
            raise _no_timestamp()
        self._late.inc()
        if self.spec.late_tag is None:
            self._dropped.inc()
        else:
            self._output.collect(((self.spec.late_tag, value),), timestamp)

    def _process_now(self, value: Any) -> None:
        """Processes a record of the current key in processing time."""
        now = self._timers.current_processing_time()
        if self._order is not None:
            self._events.add((now, value))
            self._timers.register_processing_time_timer(None, now + 1)
            return
        before = self._partial.value()
        self._store(before, self._process_events(before, [(now, value)]))

    # time

    def fire_timers(self, timestamp: int) -> bool:
        self._timers.current_watermark = timestamp
        done = self._process_waiting(timestamp) and self._timers.advance_watermark(timestamp)
        self._output.flush()
        return done

    def _process_waiting(self, watermark: int) -> bool:
        """Processes waiting events that the watermark has passed; False if the turn of the task ended before."""
        waiting, turn = self._waiting, self.context.turn
        if waiting is None:
            return True
        if self._stored_events:
            self._fetch_stored(waiting, watermark)
        if self._order is not None or (self._nfa is not None and self._nfa.pattern.window_times):
            return self._process_by_key(waiting, watermark)
        while (due := waiting.pop_due(watermark)) is not None:
            timestamp, keys, events = due
            for start in range(0, len(keys), _AT_ONCE):
                end = start + _AT_ONCE
                self._process_at(timestamp, keys[start:end], events[start:end])
                if turn.is_over:
                    if end < len(keys):
                        waiting.put_before(timestamp, keys[end:], events[end:])
                    return False
        return True

    def _process_by_key(self, waiting: WaitingEvents, watermark: int) -> bool:
        """Processes the events of one key after the other, each up to the watermark."""
        by_key: dict[Any, list[TimedEvent]] = {}
        while (due := waiting.pop_due(watermark)) is not None:
            timestamp, keys, events = due
            for key, event in zip(keys, events, strict=True):
                by_key.setdefault(key, []).append((timestamp, event))
        while by_key:
            key = self._backend.key = next(iter(by_key))
            before = self._partial.value()
            state = self._process_events(before, self._sorted(by_key.pop(key)))
            if state is not None:
                self._advance_time(state, watermark)
            self._store(before, state)
            if self.context.turn.is_over and by_key:
                for key, left in by_key.items():
                    for timestamp, event in left:
                        waiting.put(timestamp, key, event)
                return False
        return True

    def _fetch_stored(self, waiting: WaitingEvents, watermark: int) -> None:
        """Fetches events that the watermark has passed out of state, where a snapshot has put them."""
        by_time: dict[int, tuple[list[Any], list[Any]]] = {}
        timers, others = self._timers.event, []
        while (timer := timers.pop_due(watermark)) is not None:
            key = self._backend.key = timer[1]
            for timestamp, event in self._take_due(watermark):
                keys, events = by_time.setdefault(timestamp, ([], []))
                keys.append(key)
                events.append(event)
            if key in self._stored_partial:
                others.append(timer)
        for timer in others:
            timers.add(*timer)
        for timestamp, (keys, events) in by_time.items():
            waiting.put_before(timestamp, keys, events)

    def store_waiting(self) -> None:
        """Moves waiting events into state, before a snapshot."""
        if self._waiting is None:
            return
        backend = self._backend
        with_timer: set[Any] = set()
        for timestamp, keys, events in self._waiting.pop_all():
            for key, event in zip(keys, events, strict=True):
                backend.key = key
                if key not in with_timer:
                    with_timer.add(key)
                    self._timers.register_event_time_timer(None, timestamp)
                self._events.add((timestamp, event))

    def snapshot_state(
        self, checkpoint_id: int, operator_state: OperatorStateBackend, timestamp: int | None = None
    ) -> None:
        """Moves waiting events into state."""
        super().snapshot_state(checkpoint_id, operator_state, timestamp)
        self.store_waiting()

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Processes the key's events that the watermark has passed."""
        watermark = self._timers.current_watermark
        due = self._take_due(watermark)
        before = self._partial.value()
        if due or before is not None:
            state = self._process_events(before, due)
            if state is not None:
                self._advance_time(state, watermark)
            self._store(before, state)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Processes the key's events that wait, and partial matches whose time has passed."""
        due = self._sorted(list(self._events.get()))
        if due:
            self._events.clear()
        before = self._partial.value()
        state = self._process_events(before, due)
        if state is not None:
            self._advance_time(state, self._timers.current_processing_time())
        self._store(before, state)
        if not self.context.execution.one_key_at_a_time:
            self._output.flush()

    def _take_due(self, watermark: int) -> list[TimedEvent]:
        """Removes and returns the key's events up to the watermark, in order; registers a timer for the others."""
        waiting = self._sorted(list(self._events.get()))
        position = bisect_right(waiting, watermark, key=_timestamp_of)
        if position == len(waiting):
            if waiting:
                self._events.clear()
            return waiting
        if position:
            self._events.update(waiting[position:])
        self._timers.register_event_time_timer(None, waiting[position][0])
        return waiting[:position]

    def _sorted(self, events: list[TimedEvent]) -> list[TimedEvent]:
        if len(events) > 1:
            if self._order is not None:
                events.sort(key=self._order)
            events.sort(key=_timestamp_of)
        return events

    # the automaton

    def _process_at(self, timestamp: int, keys: Sequence[Any], events: Sequence[Any]) -> None:
        """Processes events of one timestamp; most of them neither begin a match nor continue one."""
        nfa, backend, stored = self._nfa, self._backend, self._stored_partial
        if nfa is None:
            return
        begins, context = nfa.begins, nfa.initial_context(timestamp)
        process = nfa.process
        key = None
        try:
            for key, event in zip(keys, events, strict=True):
                backend.key = key
                state = before = stored.get(key)
                if state is None:
                    if not begins(event, context):
                        continue
                    state = nfa.initial_state()
                elif timestamp >= state.end:
                    self._advance_time(state, timestamp)
                matches = process(state, event, timestamp)
                if state.is_changed:
                    if matches:
                        self._emit(matches, timestamp)
                    self._store(before, state)
        except PartialMatchLimitError as error:
            raise PartialMatchLimitError(f"Key {key!r}: {error.message}", hint=error.hint) from None

    def _process_events(self, state: NFAState | None, events: Sequence[TimedEvent]) -> NFAState | None:
        """Processes events in order; None is the state of a key without partial matches."""
        nfa = self._nfa
        if nfa is None:
            return None
        begins = nfa.begins
        # as Flink does; otherwise a timer for the first partial match is enough
        registers_all = self._registers_all
        has_new_start = False
        time = None
        try:
            for timestamp, event in events:
                if state is None:
                    if not begins(event, nfa.initial_context(timestamp)):
                        continue
                    state = nfa.initial_state()
                elif timestamp != time:
                    self._advance_time(state, timestamp)
                time = timestamp
                matches = nfa.process(state, event, timestamp)
                if registers_all and (has_new_start := has_new_start or state.has_new_start):
                    self._register_end(timestamp + nfa.window_time)
                if matches:
                    self._emit(matches, timestamp)
                if nfa.is_initial(state):
                    state = None
        except PartialMatchLimitError as error:
            raise PartialMatchLimitError(f"Key {self._backend.key!r}: {error.message}", hint=error.hint) from None
        return state

    def _register_end(self, timestamp: int) -> None:
        if self._event_time:
            self._timers.register_event_time_timer(None, timestamp)
        else:
            self._timers.register_processing_time_timer(None, timestamp + 1)

    def _advance_time(self, state: NFAState, timestamp: int) -> None:
        assert self._nfa is not None
        matches, timed_out = self._nfa.advance_time(state, timestamp)
        if matches:
            self._emit(matches, timestamp)
        if timed_out:
            self._emit_timed_out(timed_out)

    def _store(self, before: NFAState | None, state: NFAState | None) -> None:
        if state is None or self._nfa is None or self._nfa.is_initial(state):
            if before is not None:
                self._partial.clear()
            return
        end = None if self._registers_all else self._nfa.end_of_first(state)
        if end is not None:
            self._register_end(end)
        if state.is_changed or before is None:
            state.is_changed = state.has_new_start = False
            self._partial.update(state)

    # results

    def _emit(self, matches: Sequence[Match], timestamp: int) -> None:
        context, process = self._context, self.spec.function.process_match
        context.time = timestamp
        context.output_time = timestamp if self._event_time else None
        for match in matches:
            self._collect(process(copy_value(match) if self._copies else match, context))

    @handles_results_of(MATCH_FUNCTION)
    def _collect(self, results: Any) -> None:
        if isinstance(results, (str, bytes)) or not (results is None or hasattr(results, "__iter__")):
            raise FiresteelError(
                f"A match function must return an iterable or None, but it returned a {type(results).__name__}.",
                hint="Write 'yield result', or return a list with the result in it.",
            )
        self._output.collect(results, self._context.output_time)

    def _emit_timed_out(self, timed_out: Sequence[tuple[Match, int]]) -> None:
        assert self._handler is not None
        context = self._context
        for match, timestamp in timed_out:
            context.time = timestamp
            context.output_time = timestamp if self._event_time else None
            results = self._handler.process_timed_out_match(copy_value(match) if self._copies else match, context)
            for result in () if results is None else results:
                if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag)):
                    raise FiresteelError(
                        "process_timed_out_match emits to side outputs only.", hint="Write 'yield tag, value'."
                    )
                context.output(*result)


def _no_timestamp() -> FiresteelError:
    return FiresteelError(
        "A record without a timestamp cannot be matched in event time.",
        hint="Call assign_timestamps_and_watermarks before CEP.pattern, or in_processing_time after it.",
    )
