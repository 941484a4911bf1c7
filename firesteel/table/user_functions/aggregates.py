"""Aggregate functions of users as bodies of aggregates."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.types import named_rows
from firesteel.table.bound.nodes import Call
from firesteel.table.bound.session import Session
from firesteel.table.functions.aggregates.body import AggregateBody
from firesteel.table.user_functions.base import ImperativeAggregateFunction, UserDefinedFunction
from firesteel.table.user_functions.batches import to_batch_argument
from firesteel.table.user_functions.conversion import Convert, to_external, to_internal
from firesteel.table.user_functions.failures import UserFunctionError, failed_call, failed_result
from firesteel.table.user_functions.scalar import field_name
from firesteel.table.user_functions.scope import opened
from firesteel.table.user_functions.tables import emitted_rows, row_values
from firesteel.types.internal import to_column

__all__ = ["aggregate_body", "is_overridden", "supports_merge", "supports_retract"]


def is_overridden(function: Any, method: str) -> bool:
    """Whether a class has a method of its own."""
    return getattr(type(function), method, None) is not getattr(ImperativeAggregateFunction, method)


def supports_merge(wrapper: Any) -> bool:
    """Whether accumulators can be merged; those of functions of whole columns are lists of rows."""
    return wrapper._func_type != "general" or is_overridden(wrapper._func, "merge")


def supports_retract(wrapper: Any) -> bool:
    """Whether rows can leave an accumulator."""
    return wrapper._func_type != "general" or is_overridden(wrapper._func, "retract")


def aggregate_body(call: Call, session: Session) -> AggregateBody:
    """The body of a call."""
    wrapper = call.definition.wrapper
    return _column_body(call, session) if wrapper._func_type != "general" else _row_body(call, session)


def _function(wrapper: Any, session: Session) -> Any:
    # plans make bodies too, to know what they can do
    return wrapper._func if session.scope is None else opened(wrapper._func, session.scope)


class _Arguments:
    """Makes of the values that rows hold what a function takes."""

    def __init__(self, call: Call, session: Session) -> None:
        zone = session.local_time_zone
        self._converts = [to_external(argument.type, zone) for argument in call.arguments]
        self.are_same = not any(self._converts) and not call.definition.takes_row
        self._names = tuple(field_name(argument, index) for index, argument in enumerate(call.arguments))
        self._takes_row = call.definition.takes_row

    def of(self, values: Sequence[Any]) -> Sequence[Any]:
        """The arguments of a row."""
        found = [
            value if value is None or convert is None else convert(value)
            for value, convert in zip(values, self._converts, strict=True)
        ]
        return named_rows(self._names, (found,)) if self._takes_row else found


def result_writer(call: Call, session: Session) -> Convert:
    """What makes of the result of a function what rows hold."""
    convert = to_internal(call.type, session.local_time_zone)

    def write(result: Any) -> Any:
        if result is None:
            return None
        try:
            return convert(result)
        except (TypeError, ValueError, OverflowError) as error:
            type_ = call.type.as_summary_string()
            raise failed_result(call.definition.name, call.place, result, type_, str(error), None) from error

    return write


def _guarded(call: Call, method: Callable[..., Any], arguments: _Arguments) -> Callable[..., None]:
    if arguments.are_same:

        def change(accumulator: list[Any], *values: Any) -> None:
            try:
                method(accumulator[0], *values)
            except Exception as error:
                raise failed_call(call.definition.name, call.place, error, values) from error

        return change

    def convert_and_change(accumulator: list[Any], *values: Any) -> None:
        found = arguments.of(values)
        try:
            method(accumulator[0], *found)
        except Exception as error:
            raise failed_call(call.definition.name, call.place, error, found) from error

    return convert_and_change


def _row_body(call: Call, session: Session) -> AggregateBody:
    """An accumulator is a list with that of the user."""
    wrapper = call.definition.wrapper
    function = _function(wrapper, session)
    arguments = _Arguments(call, session)
    write = result_writer(call, session)
    merges = supports_merge(wrapper)
    is_table = wrapper._is_table_aggregate

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        try:
            if not merges and pickle.dumps(accumulator[0]) == pickle.dumps(function.create_accumulator()):
                accumulator[0] = other[0]
            else:
                function.merge(accumulator[0], [other[0]])
        except Exception as error:
            raise failed_call(call.definition.name, call.place, error, None) from error

    def result(accumulator: list[Any]) -> Any:
        try:
            if is_table:
                found = [tuple(row_values(row)) for row in emitted_rows(function.emit_value(accumulator[0]))]
            else:
                found = function.get_value(accumulator[0])
        except Exception as error:
            raise failed_call(call.definition.name, call.place, error, None) from error
        return write(found)

    return AggregateBody(
        lambda: [function.create_accumulator()],
        _guarded(call, function.accumulate, arguments),
        _guarded(call, function.retract, arguments) if supports_retract(wrapper) else None,
        merge,
        result,
        takes_null=True,
    )


def _column_body(call: Call, session: Session) -> AggregateBody:
    """An accumulator has all rows, of which columns are made for the result."""
    wrapper = call.definition.wrapper
    kind = wrapper._func_type
    function = _function(wrapper, session)
    types = [argument.type for argument in call.arguments]
    zone = session.local_time_zone
    write = result_writer(call, session)
    is_object = isinstance(function, UserDefinedFunction)

    def accumulate(accumulator: list[Any], *values: Any) -> None:
        accumulator[0].append(values)

    def retract(accumulator: list[Any], *values: Any) -> None:
        if values in accumulator[0]:
            accumulator[0].remove(values)
        else:
            accumulator[1].append(values)

    def merge(accumulator: list[Any], other: list[Any]) -> None:
        for values in other[1]:
            retract(accumulator, *values)
        accumulator[0].extend(other[0])

    def result(accumulator: list[Any]) -> Any:
        rows = accumulator[0]
        if not rows:
            return None
        columns = list(zip(*rows, strict=True))
        given = [
            to_batch_argument(kind, to_column(column, type_), type_, len(rows), zone)
            for column, type_ in zip(columns, types, strict=True)
        ]
        try:
            if is_object:
                own = function.create_accumulator()
                function.accumulate(own, *given)
                found = function.get_value(own)
            else:
                found = function(*given)
        except UserFunctionError:
            raise
        except Exception as error:
            raise failed_call(call.definition.name, call.place, error, None) from error
        return write(_plain(found))

    return AggregateBody(lambda: [[], []], accumulate, retract, merge, result, takes_null=True)


def _plain(value: Any) -> Any:
    """A number of numpy or Arrow as one of Python; not a number that stands for nothing is None."""
    if hasattr(value, "as_py"):
        value = value.as_py()
    elif hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    elif hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    return None if isinstance(value, float) and value != value else value
