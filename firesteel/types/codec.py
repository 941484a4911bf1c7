"""Row codecs: generated functions that read or write many rows of a type at once.

A format gives the lines that fetch and convert the fields ``v0``, ``v1``, … of one row, and the functions that these
lines call. A value that is of its field's type already costs a comparison, which :func:`type_test` writes::

    for item in items:
        v0, v1 = item["name"], item["age"]
        if not (v0.__class__ is str):
            v0 = convert0(v0)
        if not (v1.__class__ is int and -2147483648 <= v1 <= 2147483647):
            v1 = convert1(v1)
        row = …

All else, null included, goes to the field's converter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from firesteel.common.errors import RecordSerializationError
from firesteel.common.types import Row, RowKind, named_rows, values_by_name
from firesteel.types.logical import MAX_LENGTH, DecimalType, FieldsType, LogicalType, LogicalTypeRoot, VarCharType
from firesteel.types.python import RANGES

__all__ = [
    "Converter",
    "SchemaMismatchError",
    "compile_reader",
    "compile_writer",
    "describe",
    "join_path",
    "type_test",
    "values_of",
]

Converter = Callable[[Any], Any]

_CLASSES = {LogicalTypeRoot.BOOLEAN: "bool", LogicalTypeRoot.FLOAT: "float", LogicalTypeRoot.DOUBLE: "float"}
_serial = itertools.count(1)


class SchemaMismatchError(RecordSerializationError):
    """A value that is not of the type its field has; ``field`` is the field's path, ``expected`` what it holds."""

    def __init__(self, field: str, expected: str, came: str):
        where = f"Field '{field}': expected" if field else "Expected"
        super().__init__(f"{where} {expected}, got {came}.")
        self.field = field
        self.expected = expected


def describe(value: Any) -> str:
    """A value with its type, short."""
    text = repr(value)
    if len(text) > 80:
        text = f"{text[:80]}…"
    return "null" if value is None else f"{type(value).__name__} {text}"


def join_path(path: str, name: str) -> str:
    """The path of a field within a path."""
    return f"{path}.{name}" if path else name


def type_test(type_: LogicalType, v: str, *, finite: bool = False) -> str | None:
    """An expression: whether a variable has a value of the type, of its usual class; None if that takes a function.

    With ``finite`` a float that is NaN or infinite has none.
    """
    root = type_.root
    if root in RANGES:
        low, high = RANGES[root]
        return f"{v}.__class__ is int and {low} <= {v} <= {high}"
    if isinstance(type_, VarCharType) and type_.length == MAX_LENGTH:
        return f"{v}.__class__ is str"
    if isinstance(type_, DecimalType):
        return f"{v}.__class__ is {'int' if type_.is_integer else 'Decimal'}"
    if root not in _CLASSES:
        return None
    test = f"{v}.__class__ is {_CLASSES[root]}"
    return f"{test} and {v} - {v} == 0.0" if finite and root is not LogicalTypeRoot.BOOLEAN else test


def compile_reader(
    names: Sequence[str], lines: Iterable[str], values: Iterable[str], scope: Mapping[str, Any]
) -> Callable[[Any], list[Any]]:
    """A function that makes rows with these names of items.

    ``lines`` are statements for one ``item``, ``values`` the expressions of the fields, ``scope`` what both refer to.
    """
    text = [
        "def read(items):",
        "    rows = []",
        "    add = rows.append",
        "    for item in items:",
        *(f"        {line}" for line in lines),
        # without a call per field
        "        row = allocate(Row); row._fields = names; row._row_kind = insert",
        f"        row._values = [{', '.join(values)}]",
        "        add(row)",
        "    return rows",
    ]
    return _compile("read", names, text, scope)


def compile_writer(
    type_: FieldsType, path: str, result: str, scope: Mapping[str, Any]
) -> Callable[[Iterable[Any]], list[Any]]:
    """A function that makes of each record what an expression over its fields gives.

    Records are Rows, tuples, lists, dicts or objects with the fields of the type.
    """
    names = type_.field_names
    text = [
        "def write(records):",
        "    results = []",
        "    add = results.append",
        "    for record in records:",
        "        if record.__class__ is Row and record._fields is names:",
        "            values = record._values",
        "        elif record.__class__ is dict:",
        "            get = record.get",
        f"            values = [{', '.join(f'get({name!r})' for name in names)}]",
        "        else:",
        "            values = values_of(record)",
        f"        [{', '.join(f'v{i}' for i in range(len(names)))}] = values",
        f"        add({result})",
        "    return results",
    ]
    return _compile("write", names, text, {"values_of": values_of(type_, path), **scope})


def _compile(name: str, names: Sequence[str], lines: Sequence[str], scope: Mapping[str, Any]) -> Callable[..., Any]:
    known = {
        "Row": Row,
        "allocate": Row.__new__,
        "insert": RowKind.INSERT,
        "Decimal": Decimal,
        "booleans": ("false", "true"),
        # the one tuple that all rows with these names hold
        "names": named_rows(tuple(names), [[]])[0]._fields,
        **scope,
    }
    exec(compile("\n".join(lines), f"<firesteel codec {name} {next(_serial)}>", "exec"), known)  # noqa: S102 - our own text
    function: Callable[..., Any] = known[name]
    return function


def values_of(type_: FieldsType, path: str = "") -> Callable[[Any], Sequence[Any]]:
    """The function that gives the values of a Row, tuple, list, dict or object, in the order of the type's fields."""
    names = type_.field_names

    def values(record: Any) -> Sequence[Any]:
        try:
            found = None if record is None or isinstance(record, type) else values_by_name(record, names)
        except ValueError as error:
            raise SchemaMismatchError(path, str(type_), f"{describe(record)}: {error}") from None
        if found is None:
            raise SchemaMismatchError(path, f"a row, tuple or dict for {type_}", describe(record))
        if len(found) != len(names):
            raise SchemaMismatchError(path, f"{len(names)} fields for {type_}", f"{len(found)}: {describe(record)}")
        return found

    return values
