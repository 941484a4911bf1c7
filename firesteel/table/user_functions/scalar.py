"""Kernels that call scalar functions for all rows of a batch: row by row, with pandas Series, or with Arrow arrays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

from firesteel.common.types import named_rows
from firesteel.table.bound.nodes import Call, InputRef, Literal
from firesteel.table.bound.session import Session
from firesteel.table.user_functions.batches import from_batch_result, to_batch_argument
from firesteel.table.user_functions.conversion import read_column, to_external, write_column
from firesteel.table.user_functions.failures import UserFunctionError, failed_call, failed_result
from firesteel.table.user_functions.scope import opened
from firesteel.types.internal import from_column, to_column

__all__ = ["Arguments", "async_kernel", "callable_of", "field_name", "kernel", "row_body", "write_results"]

MAX_CONCURRENT = 100
"""Calls of an asynchronous function that run at the same time."""

Kernel = Callable[..., Any]
"""From the length of a batch and the columns of arguments to the column of results."""


class Arguments:
    """The arguments of a call: columns become values of Python, literals are there once."""

    def __init__(self, call: Call, session: Session, takes_row: bool = False) -> None:
        self._zone = session.local_time_zone
        self._types = [argument.type for argument in call.arguments]
        self._constants: list[tuple[Any] | None] = [
            (_external(argument, self._zone),) if isinstance(argument, Literal) else None for argument in call.arguments
        ]
        self._names = tuple(field_name(argument, index) for index, argument in enumerate(call.arguments))
        self._takes_row = takes_row

    def iterators(self, length: int, arrays: Sequence[Any]) -> list[Iterator[Any]]:
        """An iterator for each argument of the function."""
        columns = [
            read_column(array, type_, self._zone) if constant is None else repeat(constant[0], length)
            for array, type_, constant in zip(arrays, self._types, self._constants, strict=True)
        ]
        if self._takes_row:
            rows = zip(*columns, strict=True) if columns else repeat((), length)
            return [iter(named_rows(self._names, rows))]
        return [iter(column) for column in columns]

    def at(self, row: int, length: int, arrays: Sequence[Any]) -> list[Any]:
        """The arguments of a row, for errors."""
        return [next(_skipped(found, row)) for found in self.iterators(length, arrays)]


def _skipped(iterator: Iterator[Any], count: int) -> Iterator[Any]:
    for _ in range(count):
        next(iterator)
    return iterator


def field_name(argument: Any, index: int) -> str:
    """The name that an argument has as a field of a row."""
    return argument.name if isinstance(argument, InputRef) else f"f{index}"


def _external(literal: Literal, zone: str) -> Any:
    convert = to_external(literal.type, zone)
    return literal.value if literal.value is None or convert is None else convert(literal.value)


def callable_of(wrapper: Any, session: Session) -> Callable[..., Any]:
    """What to call with arguments."""
    function = opened(wrapper._func, session.scope)
    return getattr(function, "eval", function)  # type: ignore[no-any-return]


def kernel(call: Call, session: Session) -> Kernel:
    """Calls a scalar function."""
    wrapper = call.definition.wrapper
    if wrapper._func_type != "general":
        return _batch_kernel(call, session)
    function = callable_of(wrapper, session)
    arguments = Arguments(call, session, call.definition.takes_row)
    write = write_results(call, session)

    def evaluate(length: int, *arrays: Any) -> Any:
        iterators = arguments.iterators(length, arrays)
        try:
            results = list(map(function, *iterators)) if iterators else [function() for _ in range(length)]
        except Exception as error:
            # the iterators know how many rows have been read
            row = length - iterators[0].__length_hint__() - 1 if iterators else 0  # type: ignore[attr-defined]
            raise failed_call(call.function, call.place, error, arguments.at(row, length, arrays)) from error
        return write(results, lambda row: arguments.at(row, length, arrays))

    return evaluate


def write_results(call: Call, session: Session) -> Callable[[list[Any], Callable[[int], list[Any]]], Any]:
    """What makes a column of results; the second argument gives the arguments of a row, for errors."""
    zone = session.local_time_zone

    def write(results: list[Any], arguments_of: Callable[[int], list[Any]]) -> Any:
        try:
            return write_column(results, call.type, zone)
        except (TypeError, ValueError, OverflowError) as error:
            for row, result in enumerate(results):
                try:
                    write_column([result], call.type, zone)
                except (TypeError, ValueError, OverflowError) as problem:
                    type_ = call.type.as_summary_string()
                    found = arguments_of(row)
                    raise failed_result(call.function, call.place, result, type_, str(problem), found) from None
            raise failed_call(call.function, call.place, error, None) from error

    return write


def async_kernel(call: Call, session: Session) -> Kernel:
    """Calls an asynchronous function for many rows at the same time; results keep the order of the rows."""
    function = callable_of(call.definition.wrapper, session)
    arguments = Arguments(call, session, call.definition.takes_row)
    write = write_results(call, session)

    async def call_all(rows: list[tuple[Any, ...]]) -> list[Any]:
        limit = asyncio.Semaphore(MAX_CONCURRENT)

        async def call_one(row: tuple[Any, ...]) -> Any:
            async with limit:
                try:
                    return await function(*row)
                except Exception as error:
                    raise failed_call(call.function, call.place, error, row) from error

        return list(await asyncio.gather(*map(call_one, rows)))

    def evaluate(length: int, *arrays: Any) -> Any:
        iterators = arguments.iterators(length, arrays)
        rows = list(zip(*iterators, strict=True)) if iterators else [()] * length
        return write(asyncio.run(call_all(rows)), lambda row: list(rows[row]))

    return evaluate


def _batch_kernel(call: Call, session: Session) -> Kernel:
    """Calls a function once with pandas Series or Arrow arrays of all rows."""
    wrapper = call.definition.wrapper
    kind = wrapper._func_type
    function = callable_of(wrapper, session)
    types = [argument.type for argument in call.arguments]
    zone = session.local_time_zone
    takes_row = call.definition.takes_row
    names = [field_name(argument, index) for index, argument in enumerate(call.arguments)]

    def evaluate(length: int, *arrays: Any) -> Any:
        given = [
            to_batch_argument(kind, array, type_, length, zone) for array, type_ in zip(arrays, types, strict=True)
        ]
        if takes_row:
            given = [_frame(kind, names, given)]
        try:
            result = function(*given)
            return from_batch_result(kind, result, call.type, length, zone)
        except UserFunctionError:
            raise
        except Exception as error:
            raise failed_call(call.function, call.place, error, None) from error

    return evaluate


def _frame(kind: str, names: Sequence[str], columns: Sequence[Any]) -> Any:
    if kind == "arrow":
        import pyarrow as pa

        return pa.RecordBatch.from_arrays(list(columns), list(names))
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    return pd.concat(columns, axis=1, keys=list(names)) if columns else pd.DataFrame()


def row_body(call: Call, session: Session) -> Callable[..., Any]:
    """Calls a scalar function for one row, with the values that rows hold."""
    run = call.definition.batch.make(call, session)
    types = [argument.type for argument in call.arguments]

    def evaluate(*values: Any) -> Any:
        arrays = [to_column([value], type_) for value, type_ in zip(values, types, strict=True)]
        return from_column(run(1, *arrays), call.type)[0]

    return evaluate
