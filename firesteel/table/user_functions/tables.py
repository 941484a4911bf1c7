"""Kernels that call table functions: the rows of each call as a list of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import GeneratorType
from typing import Any

import pyarrow as pa

from firesteel.common.types import Row
from firesteel.table.bound.nodes import Call
from firesteel.table.bound.session import Session
from firesteel.table.user_functions.conversion import write_column
from firesteel.table.user_functions.failures import failed_call, failed_result
from firesteel.table.user_functions.scalar import Arguments, callable_of
from firesteel.types.internal import columns_schema
from firesteel.types.logical import ArrayType, FieldsType, RowType

__all__ = ["emitted_rows", "row_values", "rows_writer", "table_kernel"]


def table_kernel(call: Call, session: Session) -> Callable[..., Any]:
    """Calls a table function; its column has the list of the rows of each call."""
    assert isinstance(call.type, ArrayType)
    function = callable_of(call.definition.wrapper, session)
    arguments = Arguments(call, session, call.definition.takes_row)
    write = rows_writer(call, call.type.element_type, session)  # type: ignore[arg-type]

    def evaluate(length: int, *arrays: Any) -> Any:
        iterators = arguments.iterators(length, arrays)
        given = zip(*iterators, strict=True) if iterators else [()] * length
        rows: list[Sequence[Any]] = []
        ends = [0]
        row: tuple[Any, ...] = ()
        try:
            for row in given:
                rows.extend(map(row_values, emitted_rows(function(*row))))
                ends.append(len(rows))
        except Exception as error:
            raise failed_call(call.function, call.place, error, row) from error
        struct = write(rows)
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), struct)

    return evaluate


def emitted_rows(result: Any) -> Iterable[Any]:
    """The rows of what a function has returned: lists, ranges and generators have some, None has none."""
    if result is None:
        return ()
    if isinstance(result, (list, range, GeneratorType)) or hasattr(result, "__next__"):
        return result  # type: ignore[no-any-return]
    return (result,)


def row_values(row: Any) -> Sequence[Any]:
    """The values of a row: a tuple, a Row, or one value alone."""
    if isinstance(row, tuple):
        return row
    return row._values if isinstance(row, Row) else (row,)


def rows_writer(call: Call, row_type: FieldsType, session: Session) -> Callable[[Sequence[Sequence[Any]]], Any]:
    """What makes a StructArray of rows."""
    parts = row_type.fields
    schema = columns_schema(RowType(parts))
    zone = session.local_time_zone

    def write(rows: Sequence[Sequence[Any]]) -> Any:
        for row in rows:
            if len(row) != len(parts):
                problem = f"it has {len(row)} values, but there are {len(parts)} columns"
                raise failed_result(call.function, call.place, tuple(row), "a row", problem, None)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(parts)
        arrays = []
        for part, values in zip(parts, columns, strict=True):
            try:
                arrays.append(write_column(values, part.type, zone))
            except (TypeError, ValueError, OverflowError) as error:
                type_ = f"column '{part.name}' of type {part.type.as_summary_string()}"
                value = _first_unfit(values, part.type, zone)
                raise failed_result(call.function, call.place, value, type_, str(error), None) from error
        return pa.StructArray.from_arrays(arrays, fields=list(schema))

    return write


def _first_unfit(values: Sequence[Any], type_: Any, zone: str) -> Any:
    for value in values:
        try:
            write_column([value], type_, zone)
        except (TypeError, ValueError, OverflowError):
            return value
    return values
