"""What the formats share that turn messages into rows and rows into messages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.typeinfo import RowTypeInfo
from firesteel.common.types import Row, RowKind, named_rows
from firesteel.formats.field_types import SchemaMismatchError, describe

__all__ = ["ROW_SCOPE", "compile_function", "new_row", "require_row_type", "shared_names", "unpack_record", "values_of"]

ROW_SCOPE = {"Row": Row, "allocate": Row.__new__, "insert": RowKind.INSERT}
"""What the text of :func:`new_row` refers to."""

_serial = itertools.count(1)


def require_row_type(type_info: Any, setting: str) -> RowTypeInfo:
    """The type if it is one of rows, else an error that names the setting it was given to."""
    if isinstance(type_info, RowTypeInfo):
        return type_info
    raise InvalidProgramError(
        f"{setting} needs the type of a row, got {type_info}.",
        hint='For example Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()]).',
    )


def shared_names(row_type: RowTypeInfo) -> tuple[str, ...]:
    """The row type's field names as the one tuple that all rows with these names hold."""
    names = named_rows(tuple(row_type.get_field_names()), [[]])[0]._fields
    assert names is not None
    return names


def new_row(values: str) -> str:
    """Statements that make a row with the names ``names`` of a list of values, without a call per field."""
    return f"row = allocate(Row); row._fields = names; row._values = [{values}]; row._row_kind = insert"


def unpack_record(names: Sequence[str]) -> list[str]:
    """Lines of a loop over ``records`` that take the values of a record apart into v0, v1, …"""
    return [
        "        if record.__class__ is Row and record._fields is names:",
        "            values = record._values",
        "        elif record.__class__ is dict:",
        "            get = record.get",
        f"            values = [{', '.join(f'get({name!r})' for name in names)}]",
        "        else:",
        "            values = values_of(record)",
        f"        [{', '.join(f'v{i}' for i in range(len(names)))}] = values",
    ]


def compile_function(name: str, lines: Sequence[str], scope: Mapping[str, Any]) -> Callable[..., Any]:
    """A function from generated text; the names the text refers to are those of the scope."""
    text = "\n".join(lines) + "\n"
    file_name = f"<firesteel format {name} {next(_serial)}>"
    names = dict(scope)
    exec(compile(text, file_name, "exec"), names)  # noqa: S102 - our own text
    function: Callable[..., Any] = names[name]
    return function


def values_of(row_type: RowTypeInfo, path: str = "") -> Callable[[Any], Sequence[Any]]:
    """The function that gives the values of a Row, tuple, list, dict or object, in the order of the type's fields."""
    arity = len(row_type.get_field_types())

    def values(record: Any) -> Sequence[Any]:
        try:
            found = None if record is None or isinstance(record, type) else row_type._values_of(record)
        except ValueError as error:
            raise SchemaMismatchError(path, str(row_type), f"{describe(record)}: {error}") from None
        if found is None:
            raise SchemaMismatchError(path, f"a row, tuple or dict for {row_type}", describe(record))
        if len(found) != arity:
            raise SchemaMismatchError(path, f"{arity} fields for {row_type}", f"{len(found)}: {describe(record)}")
        return found

    return values
