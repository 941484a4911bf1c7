"""Process table functions: calls for rows and timers, with state for each partition."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.errors import FiresteelError
from firesteel.common.types import named_rows
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.runtime.operators.base import OperatorContext
from firesteel.table.bound.errors import Position
from firesteel.table.bound.nodes import Expression
from firesteel.table.bound.session import Session
from firesteel.table.evaluation.row_codegen import evaluate_constant
from firesteel.table.runtime.operators.ranks.keyed import KeyedColumnOperator
from firesteel.table.runtime.operators.rows import RowCodec
from firesteel.table.user_functions.conversion import to_external, to_internal
from firesteel.table.user_functions.failures import failed_call, failed_result
from firesteel.table.user_functions.process import ProcessContext, TimeContext
from firesteel.table.user_functions.scope import opened, scoped
from firesteel.table.user_functions.tables import emitted_rows, row_values
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.runtime.model.operator_spec import OperatorRuntime

__all__ = ["ProcessTableOperator", "ProcessTableSpec"]

_KEYS, _STATES, _NAMED, _UNNAMED = range(4)


@dataclass(frozen=True)
class ProcessTableSpec(OperatorSpec):
    """Calls a process table function for each row of a stream; keyed by its partition if there is one."""

    definition: Any
    input_type: RowType
    row_type: RowType
    partition: tuple[int, ...] | None
    scalars: tuple[tuple[str, Expression], ...]
    time: int | None
    rowtime: int | None
    ttl_ms: int
    session: Session
    place: Position | None = None

    def create(self, runtime: OperatorRuntime) -> ProcessTableOperator:
        """Returns a new operator for one subtask."""
        return ProcessTableOperator(self)


class ProcessTableOperator(KeyedColumnOperator):
    """Calls the function row by row.

    State of a partition: the values of its columns, the states of the function, its timers by name, and the times of
    those without a name.
    """

    def __init__(self, spec: ProcessTableSpec) -> None:
        super().__init__(spec.partition or (), "process-table", spec.ttl_ms)
        self._spec = spec
        self._codec = RowCodec(spec.input_type)
        self._results = RowCodec(spec.row_type)
        self._rows: list[tuple[Any, ...]] = []
        self._function = opened(spec.definition.wrapper._func, scoped(self, spec.session).scope)
        zone = spec.session.local_time_zone
        self._to_external = [to_external(part.type, zone) for part in spec.input_type.fields]
        self._to_internal = [to_internal(part.type, zone) for part in spec.definition.columns.fields]
        self._names = tuple(spec.input_type.field_names)
        self._arguments = self._call_arguments(zone)
        self._factories: dict[str, Callable[[], Any]] = spec.definition.wrapper._states

    def _call_arguments(self, zone: str) -> list[Any]:
        """The arguments in order; that of the table is None."""
        values: dict[str, Any] = {}
        for name, expression in self._spec.scalars:
            value = evaluate_constant(expression, self._spec.session)
            convert = to_external(expression.type, zone)
            values[name] = value if value is None or convert is None else convert(value)
        wrapper = self._spec.definition.wrapper
        self._table_place = list(wrapper._arguments).index(wrapper._table)
        return [values.get(name) for name in wrapper._arguments]

    def open(self, context: OperatorContext) -> None:
        if self._spec.partition is None:
            super(KeyedColumnOperator, self).open(context)
            return
        super().open(context)
        assert context.backend is not None
        self._backend = context.backend
        self._timers = context.timer_service("process-table", self)

    # -- rows --------------------------------------------------------------------------------------------------

    def process_columns(self, batch: ColumnBatch) -> None:
        rows = self._codec.decode(batch.data)
        if self._spec.partition is None:
            for row in rows:
                self._call(row, None)
        else:
            codes, keys = self._keys_of(batch)
            states = self._objects.load(keys)
            for row, code in zip(rows, codes.tolist(), strict=True):
                if states[code] is None:
                    states[code] = [tuple([row[column] for column in self._columns]), {}, {}, set()]
                self._backend.key = keys[code]
                self._call(row, states[code])
            for code, key in enumerate(keys):
                self._objects.store(key, states[code] if any(states[code][1:]) else None)
        self._flush()

    def _call(self, row: tuple[Any, ...], state: list[Any] | None) -> None:
        time = None if self._spec.time is None else row[self._spec.time]
        context = _Context(self, state, time)
        found = [
            value if value is None or convert is None else convert(value)
            for value, convert in zip(row, self._to_external, strict=True)
        ]
        arguments = list(self._arguments)
        arguments[self._table_place] = named_rows(self._names, (found,))[0]
        self._emit_results(self._function.eval, context, arguments, state, time)

    def _emit_results(
        self, method: Any, context: _Context, arguments: Sequence[Any], state: list[Any] | None, time: Any
    ) -> None:
        name, place = self._spec.definition.name, self._spec.place
        states: list[Any] = []
        if state is not None:
            kept = state[_STATES]
            states = [
                kept[key] if key in kept else kept.setdefault(key, make()) for key, make in self._factories.items()
            ]
        keys = () if state is None else state[_KEYS]
        try:
            for row in emitted_rows(method(context, *states, *arguments)):
                self._add(keys, row_values(row), time)
        except FiresteelError:
            raise
        except Exception as error:
            raise failed_call(name, place, error, arguments) from error
        context.clear_states()

    def _add(self, keys: tuple[Any, ...], values: Sequence[Any], time: Any) -> None:
        name, place = self._spec.definition.name, self._spec.place
        if len(values) != len(self._to_internal):
            problem = f"it has {len(values)} values, but there are {len(self._to_internal)} columns"
            raise failed_result(name, place, tuple(values), "a row", problem, None)
        found = []
        for value, convert, part in zip(values, self._to_internal, self._spec.definition.columns.fields, strict=True):
            try:
                found.append(None if value is None else convert(value))
            except (TypeError, ValueError, OverflowError) as error:
                type_ = f"column '{part.name}' of type {part.type.as_summary_string()}"
                raise failed_result(name, place, value, type_, str(error), None) from error
        self._rows.append((*keys, *found) if self._spec.time is None else (*keys, *found, time))

    def _flush(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self.emit(ColumnBatch(self._results.encode(rows), None, self._spec.rowtime))

    # -- timers ------------------------------------------------------------------------------------------------

    def fire_timers(self, timestamp: int) -> bool:
        """Fires the timers that are due."""
        if self._spec.partition is None:
            return True
        done = self._timers.advance_watermark(timestamp)
        self._flush()
        return done

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """A timer of a partition fires."""
        (state,) = self._objects.load([key])
        if state is None:
            return
        if namespace is None:
            state[_UNNAMED].discard(timestamp)
        else:
            state[_NAMED].pop(namespace, None)
        context = _Context(self, state, timestamp * 10**6, namespace)
        self._emit_results(self._function.on_timer, context, (), state, timestamp * 10**6)
        self._objects.store(key, state if any(state[1:]) else None)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        """There are no such timers."""


class _Context(ProcessContext, TimeContext):
    """The context of one call. Times are nanoseconds, as rows hold them."""

    def __init__(
        self, operator: ProcessTableOperator, state: list[Any] | None, time: int | None, timer: str | None = None
    ) -> None:
        self._operator = operator
        self._state = state
        self._time = time
        self._timer = timer
        self._cleared: list[str] = []

    def time_context(self) -> TimeContext:
        if self._operator._spec.time is None:
            raise RuntimeError("The call has no time: on_time => DESCRIPTOR(ts) is missing.")
        if self._state is None:
            raise RuntimeError("Timers need a table argument with set semantics.")
        return self

    def current_timer(self) -> str | None:
        return self._timer

    def clear_state(self, state_name: str) -> None:
        if state_name not in self._operator._factories:
            raise KeyError(f"There is no state '{state_name}'.")
        self._cleared.append(state_name)

    def clear_all_state(self) -> None:
        self._cleared += self._operator._factories

    def clear_all(self) -> None:
        self.clear_all_state()
        if self._state is not None:
            self.clear_all_timers()

    def clear_states(self) -> None:
        """Removes the states that the call has cleared."""
        for name in self._cleared if self._state is not None else ():
            self._state[_STATES].pop(name, None)  # type: ignore[index]

    # -- time --------------------------------------------------------------------------------------------------

    def time(self) -> dt.datetime:
        spec = self._operator._spec
        assert spec.time is not None
        convert = to_external(spec.input_type.fields[spec.time].type, spec.session.local_time_zone)
        assert convert is not None
        found: dt.datetime = convert(self._time)
        return found

    def current_watermark(self) -> int | None:
        found = self._operator._timers.current_watermark
        return None if found <= -(2**63) + 1 else found

    def register_on_time(self, time: dt.datetime | int, name: str | None = None) -> None:
        assert self._state is not None
        millis = self._millis(time)
        if name is None:
            self._state[_UNNAMED].add(millis)
        else:
            self.clear_timer(name)
            self._state[_NAMED][name] = millis
        self._operator._timers.register_event_time_timer(name, millis)

    def clear_timer(self, time_or_name: dt.datetime | int | str) -> None:
        assert self._state is not None
        timers = self._operator._timers
        if isinstance(time_or_name, str):
            millis = self._state[_NAMED].pop(time_or_name, None)
            if millis is not None:
                timers.delete_event_time_timer(time_or_name, millis)
            return
        millis = self._millis(time_or_name)
        self._state[_UNNAMED].discard(millis)
        timers.delete_event_time_timer(None, millis)

    def clear_all_timers(self) -> None:
        assert self._state is not None
        for name in list(self._state[_NAMED]):
            self.clear_timer(name)
        for millis in list(self._state[_UNNAMED]):
            self.clear_timer(millis)

    def _millis(self, time: dt.datetime | int) -> int:
        if isinstance(time, int):
            return time
        spec = self._operator._spec
        assert spec.time is not None
        convert = to_internal(spec.input_type.fields[spec.time].type, spec.session.local_time_zone)
        return int(convert(time) // 10**6)
