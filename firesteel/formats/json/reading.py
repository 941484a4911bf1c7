"""Makes rows of parsed JSON: one function per row type, generated once, with the conversion of each field in line.

For ``Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])`` the generated function is, in essence::

    for value in values:
        v0, v1 = value["name"], value["age"]
        if v0.__class__ is not str:
            v0 = convert0(v0)
        if v1.__class__ is not int or not -2147483648 <= v1 <= 2147483647:
            v1 = convert1(v1)
        row = …

So a field that has its type already costs a comparison. All else, null included, goes to the field's converter.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from firesteel.common.typeinfo import MapTypeInfo, PrimitiveArrayTypeInfo, RowTypeInfo, TypeInformation
from firesteel.formats.field_types import (
    RANGES,
    Kind,
    SchemaMismatchError,
    describe,
    kind_of,
    mismatch,
    parser_of,
)
from firesteel.formats.json.library import JsonCodec, JsonNumber, verbatim_text
from firesteel.formats.row_conversion import ROW_SCOPE, compile_function, new_row, shared_names

__all__ = ["NumberIsTextError", "RowReader", "needs_exact_numbers"]

Converter = Callable[[Any], Any]

_TEXT = JsonCodec(library="json")

_CLASSES = {
    Kind.STRING: "str",
    Kind.BOOLEAN: "bool",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "float",
    Kind.BIG_INT: "int",
    Kind.BIG_DEC: "Decimal",
}


class NumberIsTextError(Exception):
    """A number that may have lost digits is to be read as text: the message has to be parsed again, verbatim."""


def needs_exact_numbers(type_info: TypeInformation) -> bool:
    """Whether the type has a part whose numbers must not pass through a float."""
    kind = kind_of(type_info, "", "JSON")
    if kind is Kind.ROW:
        assert isinstance(type_info, RowTypeInfo)
        return any(map(needs_exact_numbers, type_info.get_field_types()))
    if kind is Kind.MAP:
        assert isinstance(type_info, MapTypeInfo)
        return needs_exact_numbers(type_info.get_value_type())
    if kind is Kind.ARRAY:
        return needs_exact_numbers(element_type(type_info))
    return kind in (Kind.BIG_INT, Kind.BIG_DEC)


def element_type(type_info: Any) -> TypeInformation:
    """The type of an array's elements."""
    found: TypeInformation = type_info.get_element_type()
    return found


class RowReader:
    """Makes the function that turns parsed JSON values into rows of a type.

    ``fail_on_missing_field``: an object without a field is an error; else the field is None. ``ignore_parse_errors``:
    a value that does not fit its field becomes None. ``read`` raises a NumberIsTextError where a number with a fraction
    or one beyond 64 bits stands in a field of type STRING, unless the values were parsed ``verbatim``.
    """

    def __init__(
        self,
        row_type: RowTypeInfo,
        *,
        fail_on_missing_field: bool,
        ignore_parse_errors: bool,
        verbatim: bool = False,
    ) -> None:
        self._fail_on_missing_field = fail_on_missing_field
        self._ignore_parse_errors = ignore_parse_errors
        self._to_string = verbatim_text if verbatim else _text_without_fractions
        # what a field without type gets must not depend on the other fields of its message
        self._plain = partial(_plain, exact=needs_exact_numbers(row_type)) if verbatim else None
        self.read: Callable[[list[Any]], list[Any]] = self._row_function(row_type, "")
        """Rows of the values; None for null."""

    def _row_function(self, row_type: RowTypeInfo, path: str) -> Callable[[list[Any]], list[Any]]:
        names = row_type.get_field_names()
        scope: dict[str, Any] = {**ROW_SCOPE, "Decimal": Decimal, "names": shared_names(row_type)}
        scope["fields_of"] = self._fields_function(row_type, path)
        lines = ["def read(values):", "    rows = []", "    add = rows.append", "    for value in values:"]
        lines += _fetch(names)
        for i, (name, field_type) in enumerate(zip(names, row_type.get_field_types(), strict=True)):
            field_path = f"{path}.{name}" if path else name
            lines += self._field(i, kind_of(field_type, field_path, "JSON"))
            scope[f"convert{i}"] = self._converter(field_type, field_path)
        variables = ", ".join(f"v{i}" for i in range(len(names)))
        lines += [f"        {new_row(variables)}", "        add(row)", "    return rows"]
        return compile_function("read", lines, scope)

    def _field(self, i: int, kind: Kind) -> list[str]:
        v = f"v{i}"
        if kind is Kind.ANY and self._plain is None:
            return []
        if kind in RANGES:
            low, high = RANGES[kind]
            test = f"if {v}.__class__ is not int or not {low} <= {v} <= {high}:"
        elif kind in _CLASSES:
            test = f"if {v}.__class__ is not {_CLASSES[kind]}:"
        else:
            test = f"if {v} is not None:"
        return [f"        {test}", f"            {v} = convert{i}({v})"]

    def _fields_function(self, row_type: RowTypeInfo, path: str) -> Callable[[Any], list[Any] | None]:
        """For a value that is no object with all the fields: its fields in order, None for null."""
        names = row_type.get_field_names()
        positional = not row_type._named
        fail = self._fail_on_missing_field

        def fields(value: Any) -> list[Any] | None:
            if value is None:
                return None
            if positional and isinstance(value, list) and len(value) == len(names):
                return value
            if not isinstance(value, dict):
                raise SchemaMismatchError(path, f"an object with the fields {', '.join(names)}", describe(value))
            if fail:
                for name in names:
                    if name not in value:
                        where = f"{path}.{name}" if path else name
                        raise SchemaMismatchError(where, "a value", f"an object without it: {describe(value)}")
            return [value.get(name) for name in names]

        return fields

    def _converter(self, type_info: TypeInformation, path: str) -> Converter:
        convert = self._strict_converter(type_info, path)
        if not self._ignore_parse_errors:
            return lambda value: None if value is None else convert(value)

        def convert_or_none(value: Any) -> Any:
            try:
                return None if value is None else convert(value)
            except SchemaMismatchError:
                return None

        return convert_or_none

    def _strict_converter(self, type_info: TypeInformation, path: str) -> Converter:
        kind = kind_of(type_info, path, "JSON")
        if kind is Kind.ROW:
            assert isinstance(type_info, RowTypeInfo)
            read = self._row_function(type_info, path)
            return lambda value: read([value])[0]
        if kind is Kind.ARRAY:
            return self._array_converter(type_info, path)
        if kind is Kind.MAP:
            assert isinstance(type_info, MapTypeInfo)
            return self._map_converter(type_info, path)
        if kind is Kind.STRING:
            return self._string_converter()
        if kind is Kind.ANY and self._plain is not None:
            return self._plain
        return _scalar_converter(kind, path)

    def _array_converter(self, type_info: TypeInformation, path: str) -> Converter:
        element = self._converter(element_type(type_info), f"{path}[]")
        takes_null = not isinstance(type_info, PrimitiveArrayTypeInfo)

        def convert(value: Any) -> list[Any]:
            if value.__class__ is not list:
                raise mismatch(path, Kind.ARRAY, value)
            items = [element(item) for item in value]
            if not takes_null and None in items:
                raise SchemaMismatchError(f"{path}[]", "a value", "null")
            return items

        return convert

    def _map_converter(self, type_info: MapTypeInfo, path: str) -> Converter:
        key = self._strict_converter(type_info.get_key_type(), f"{path}{{key}}")
        item = self._converter(type_info.get_value_type(), f"{path}{{}}")

        def convert(value: Any) -> dict[Any, Any]:
            if value.__class__ is not dict:
                raise mismatch(path, Kind.MAP, value)
            return {key(name): item(found) for name, found in value.items()}

        return convert

    def _string_converter(self) -> Converter:
        """Strings take all of JSON, as in Flink: what is no string is its text."""
        text_of = self._to_string
        return lambda value: value if isinstance(value, str) else text_of(value)


def _text_without_fractions(value: Any) -> str:
    if value.__class__ is int:
        return str(value)
    if _has_fractions(value):
        raise NumberIsTextError
    return _TEXT.dumps(value).decode("utf-8")


def _has_fractions(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_fractions, value.values()))
    if isinstance(value, list):
        return any(map(_has_fractions, value))
    return isinstance(value, (float, Decimal))


def _plain(value: Any, exact: bool) -> Any:
    """A value that was parsed verbatim as it is when it is not."""
    if isinstance(value, JsonNumber):
        return Decimal(value) if exact else float(value)
    if isinstance(value, dict):
        return {key: _plain(item, exact) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, exact) for item in value]
    if not exact and value.__class__ is int and not -(1 << 63) <= value < 1 << 64:
        return float(value)
    return value


def _fetch(names: list[str]) -> list[str]:
    fetches = [f"            v{i} = value[{name!r}]" for i, name in enumerate(names)]
    targets = ", ".join(f"v{i}" for i in range(len(names)))
    return [
        "        try:",
        *(fetches or ["            value.items"]),
        "        except (KeyError, TypeError, IndexError, AttributeError):",
        "            found = fields_of(value)",
        "            if found is None:",
        "                add(None)",
        "                continue",
        f"            [{targets}] = found",
    ]


def _scalar_converter(kind: Kind, path: str) -> Converter:
    parse = parser_of(kind)
    from_number = _FROM_NUMBER.get(kind, _FROM_INTEGRAL if kind in RANGES else None)
    low, high = RANGES.get(kind, (None, None))

    def convert(value: Any) -> Any:
        try:
            if isinstance(value, str):
                return parse(value)
            if from_number is not None and isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
                number = from_number(value)
                if low is None or low <= number <= high:
                    return number
            elif kind is Kind.BOOLEAN and isinstance(value, bool):
                return value
        except (ValueError, OverflowError):
            pass
        raise mismatch(path, kind, value)

    return convert


def _integral(value: Any) -> int:
    number = int(value)
    if number != value:
        raise ValueError("a fraction")
    return number


def _decimal(value: Any) -> Decimal:
    return Decimal(value if isinstance(value, (Decimal, int)) else repr(value))


_FROM_INTEGRAL: Converter = _integral
_FROM_NUMBER: dict[Kind, Converter] = {
    Kind.BIG_INT: _integral,
    Kind.FLOAT: float,
    Kind.DOUBLE: float,
    Kind.BIG_DEC: _decimal,
}
