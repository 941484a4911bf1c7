"""The operator of MATCH_RECOGNIZE: the automaton of the pattern per key, fed in the order of rows.

Rows of event time wait as columns until the watermark has passed them. Conditions on the current row alone are
evaluated on whole batches when these arrive; the automaton reads the results. A snapshot puts the rows that wait into
the state of their keys, from where a restored operator fetches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from firesteel.cep.nfa.compiler import compile_pattern
from firesteel.cep.nfa.nfa import NFA
from firesteel.cep.nfa.shared_buffer import NFAState
from firesteel.cep.pattern.conditions import Condition, FieldCondition, to_condition
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.rowtime import rowtime_millis
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.operators.base import OperatorContext
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.table.bound.errors import EvaluationError
from firesteel.table.evaluation.vector_codegen import compile_vector
from firesteel.table.runtime.operators.match.rows import compile_condition, compile_measures, is_of_current_row
from firesteel.table.runtime.operators.match.spec import MatchSpec, cep_pattern
from firesteel.table.runtime.operators.match.waiting import Rows, WaitingRows
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator, objects_of
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.table.runtime.operators.sort_keys import SortKeys
from firesteel.table.user_functions.scope import FunctionScope
from firesteel.types.internal import from_column

__all__ = ["MatchOperator", "ProctimeMatchOperator"]

PARTIAL_MATCHES, WAITING_ROWS = "match", "match-rows"


class MatchOperator(KeyedColumnOperator):
    """Matches rows in event time; those behind the watermark are dropped."""

    def __init__(self, spec: MatchSpec) -> None:
        super().__init__(spec.partition, PARTIAL_MATCHES, 0)
        self._spec = spec
        self._types = [part.type for part in spec.row_type.fields]
        self._codec = RowCodec(spec.row_type)
        self._output = RowCodec(spec.output_type)
        self._order = SortKeys(spec.row_type, spec.order[1:]) if len(spec.order) > 1 else None
        self._time = spec.order[0].index
        self._results: list[tuple[Any, ...]] = []
        self._waiting = WaitingRows()
        self._watermark = MIN_TIMESTAMP
        self._ends: list[tuple[float, int, Any]] = []
        """When partial matches time out, with their keys; ends that are no longer those of a key are void."""
        self._numbers = count()

    def open(self, context: OperatorContext) -> None:
        """Compiles the pattern and fetches what was restored."""
        super().open(context)
        spec = self._spec
        self._functions = FunctionScope()
        self._functions.attach(context.runtime_context)
        self._session = replace(spec.session, scope=self._functions)
        self._current = {name: one for name, one in spec.definitions if is_of_current_row(one)}
        self._flags = compile_vector(list(self._current.values()), self._session) if self._current else None
        self._measure = compile_measures(spec.measures, spec.partition, self._session)
        self._compile()
        self._dropped = context.counter("numLateRecordsDropped")
        self._stored = objects_of(context, WAITING_ROWS, 0)
        self._stored_keys = list(self._stored.keys())
        rows = [row for found in self._stored.load(self._stored_keys) for row in found]
        if rows:
            self._add(self._codec.encode(rows))
        if spec.within_ms is not None:
            keys = list(self._objects.keys())
            for key, state in zip(keys, self._objects.load(keys), strict=True):
                self._register_end(key, state)

    def close(self) -> None:
        """Closes the functions of the user."""
        self._functions.close()

    def _compile(self) -> None:
        """Makes the automaton; without flags, all conditions are evaluated row by row."""
        spec, width = self._spec, len(self._types)
        conditions: dict[str, Condition] = {}
        places = {name: width + place for place, name in enumerate(self._current)} if self._flags else {}
        for name, condition in spec.definitions:
            if name in places:
                conditions[name] = FieldCondition(places[name])
            else:
                conditions[name] = to_condition(compile_condition(name, condition, width, self._session))
        self._nfa = NFA(compile_pattern(cep_pattern(spec, conditions)), clock=self.context.processing_time)
        self._first: list[int] | None = []
        """The flags of variables that may begin a match; None if there are others."""
        for term in spec.pattern:
            if self._first is not None:
                is_flag = term.variable in places
                self._first = [*self._first, places[term.variable] - width] if is_flag else None
            if term.least:
                break

    # -- rows --------------------------------------------------------------------------------------------------

    def process_columns(self, batch: ColumnBatch) -> None:
        """Lets rows wait for the watermark."""
        times = rowtime_millis(ColumnBatch(batch.data, None, self._time))
        on_time = times > self._watermark
        if not self._spec.is_bounded and not on_time.all():
            places = np.flatnonzero(on_time)
            self._dropped.inc(len(times) - len(places))
            batch = batch.take(places)
        if len(batch):
            self._add(batch.data)

    def _add(self, data: Any) -> None:
        flags = self._flags_of(data)  # which may replace what waits
        self._waiting.add(Rows(data, rowtime_millis(ColumnBatch(data, None, self._time)), flags))

    def _flags_of(self, data: Any) -> list[Any]:
        if self._flags is None:
            return []
        try:
            found = self._flags(data.columns, data.num_rows)
        except EvaluationError:
            # perhaps the automaton never asks for the row that fails
            self._evaluate_row_by_row()
            return []
        return [one.fill_null(False).to_numpy(zero_copy_only=False) for one in found]

    def _evaluate_row_by_row(self) -> None:
        self._flags = None
        self._compile()
        waiting, self._waiting = self._waiting, WaitingRows()
        for part in waiting.parts():
            self._waiting.add(part._replace(flags=[]))

    def fire_timers(self, timestamp: int) -> bool:
        """Matches the rows that the watermark has passed."""
        self._watermark = timestamp
        due = self._waiting.take_due(timestamp)
        if due is not None:
            self._process(due, timestamp)
        self._expire(timestamp)
        self._flush()
        return True

    def finish(self) -> None:
        """Matches rows of a bounded input that were not final before its end."""
        if self._spec.is_bounded:
            self.fire_timers(MAX_WATERMARK)

    def _sorted(self, rows: Rows, codes: Any) -> Any:
        """The places of rows by key, and those of a key in order."""
        if self._order is None:
            return np.lexsort((rows.times, codes))
        times, values = rows.times.tolist(), self._order.of(rows.data)
        by_time = np.array(sorted(range(len(times)), key=lambda place: (times[place], values[place])), np.int64)
        return by_time[np.argsort(codes[by_time], kind="stable")]

    def _process(self, rows: Rows, now: int) -> None:
        """Processes rows that are due; it is ``now`` after them."""
        codes, keys = self._keys_of(ColumnBatch(rows.data))
        order = self._sorted(rows, codes)
        rows, codes = rows.take(order), codes[order]
        columns = [from_column(rows.data.column(index), type_) for index, type_ in enumerate(self._types)]
        flags = [flag.tolist() for flag in rows.flags]
        events = list(zip(*columns, *flags, strict=True))
        begins = self._begins(rows, len(events))
        times = rows.times.tolist()
        starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]])).tolist()
        present = [keys[code] for code in codes[starts].tolist()]
        ends = [*starts[1:], len(events)]
        for key, before, start, end in zip(present, self._objects.load(present), starts, ends, strict=True):
            self._process_key(key, before, events, times, begins, start, end, now)

    def _begins(self, rows: Rows, length: int) -> list[bool] | None:
        """For each row whether it may begin a match; None if only the automaton knows."""
        if self._first is None or not rows.flags:
            return None
        found = np.zeros(length, bool)
        for place in self._first:
            found |= rows.flags[place]
        return found.tolist()  # type: ignore[no-any-return]

    def _process_key(
        self,
        key: Any,
        before: NFAState | None,
        events: list[Any],
        times: list[int],
        begins: list[bool] | None,
        start: int,
        end: int,
        now: int,
    ) -> None:
        nfa = self._nfa
        process, is_initial = nfa.process, nfa.is_initial
        state = before
        for place in range(start, end):
            time = times[place]
            if state is None:
                if begins is None:
                    if not nfa.begins(events[place], nfa.initial_context(time)):
                        continue
                elif not begins[place]:
                    continue
                state = nfa.initial_state()
            elif time >= state.end:
                self._advance(state, time)
            matches = process(state, events[place], time)
            if matches:
                self._emit(matches, time)
            if is_initial(state):
                state = None
        if state is not None:
            self._advance(state, now)
        self._store(key, before, state)

    def _store(self, key: Any, before: NFAState | None, state: NFAState | None) -> None:
        if state is None or self._nfa.is_initial(state):
            if before is not None:
                self._objects.store(key, None)
            return
        if state.is_changed or before is None:
            state.is_changed = state.has_new_start = False
            self._objects.store(key, state)
            self._register_end(key, state)

    # -- time --------------------------------------------------------------------------------------------------

    def _advance(self, state: NFAState, time: int) -> None:
        matches, _ = self._nfa.advance_time(state, time)
        if matches:
            self._emit(matches, time)

    def _register_end(self, key: Any, state: NFAState) -> None:
        end = self._nfa.end_of_first(state)
        if end is not None:
            heappush(self._ends, (end, next(self._numbers), key))

    def _expire(self, now: int) -> None:
        """Discards partial matches whose time has passed, of keys without rows that are due."""
        while self._ends and self._ends[0][0] <= now:
            end, _, key = heappop(self._ends)
            (state,) = self._objects.load([key])
            if state is not None and self._nfa.end_of_first(state) == end:
                self._advance(state, now)
                self._store(key, state, state)

    # -- results -----------------------------------------------------------------------------------------------

    def _emit(self, matches: Sequence[Any], time: int) -> None:
        for match in matches:
            self._results.append(self._measure(match, time))

    def _flush(self) -> None:
        if self._results:
            rows, self._results = self._results, []
            self.emit(ColumnBatch(self._output.encode(rows), None, self._spec.output_rowtime))

    # -- checkpoints -------------------------------------------------------------------------------------------

    def snapshot_state(
        self, checkpoint_id: int, operator_state: OperatorStateBackend, timestamp: int | None = None
    ) -> None:
        """Puts the rows that wait into the state of their keys."""
        super().snapshot_state(checkpoint_id, operator_state, timestamp)
        by_key: dict[Any, list[Any]] = {key: [] for key in self._stored_keys}
        for part in self._waiting.parts():
            codes, keys = self._keys_of(ColumnBatch(part.data))
            for code, row in zip(codes.tolist(), self._codec.decode(part.data), strict=True):
                by_key.setdefault(keys[code], []).append(row)
        self._stored.store_all(list(by_key), list(by_key.values()))
        self._stored_keys = [key for key, rows in by_key.items() if rows]


class ProctimeMatchOperator(MatchOperator):
    """Matches rows as they come; those of a batch have one time."""

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._timers = context.timer_service(PARTIAL_MATCHES, self)

    def process_columns(self, batch: ColumnBatch) -> None:
        """Matches the rows of a batch."""
        now = self._timers.current_processing_time()
        times = np.full(len(batch), now, np.int64)
        self._process(Rows(batch.data, times, self._flags_of(batch.data)), now)
        self._flush()

    def fire_timers(self, timestamp: int) -> bool:
        """Event time means nothing here."""
        return True

    def _register_end(self, key: Any, state: NFAState) -> None:
        end = self._nfa.end_of_first(state)
        if end is not None and hasattr(self, "_timers"):
            self._backend.key = key
            self._timers.register_processing_time_timer(None, end)

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Never called: there are no such timers."""

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """Discards partial matches whose time has passed."""
        (state,) = self._objects.load([key])
        if state is not None:
            self._advance(state, timestamp)
            self._store(key, state, state)
        self._flush()
