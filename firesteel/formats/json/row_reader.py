"""Conversion of parsed JSON to rows: one generated function per row type, with the type check of each field inline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from firesteel.formats.json.library import JsonCodec, JsonNumber, verbatim_text
from firesteel.types.codec import Converter, SchemaMismatchError, compile_reader, describe, join_path, type_test
from firesteel.types.logical import ArrayType, DecimalType, LogicalType, LogicalTypeRoot, MapType, RowType
from firesteel.types.python import RANGES
from firesteel.types.text import check_text_type, is_any, mismatch, parser_of

__all__ = ["NumberIsTextError", "RowReader", "needs_exact_numbers"]

_TEXT = JsonCodec(library="json")


class NumberIsTextError(Exception):
    """A number that may have lost digits is to be read as text: the message has to be parsed again, verbatim."""


def needs_exact_numbers(type_: LogicalType) -> bool:
    """Whether the type has a part whose numbers must not pass through a float."""
    parts = (type_.value_type,) if isinstance(type_, MapType) else type_.children()
    return isinstance(type_, DecimalType) or any(map(needs_exact_numbers, parts))


class RowReader:
    """Makes the function that turns parsed JSON values into rows of a type.

    ``fail_on_missing_field``: an object without a field is an error; else the field is None. ``ignore_parse_errors``:
    a value that does not fit its field becomes None. ``read`` raises a NumberIsTextError where a number with a fraction
    or one beyond 64 bits stands in a field of type STRING, unless the values were parsed ``verbatim``.
    """

    def __init__(
        self,
        row_type: RowType,
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

    def _row_function(self, row_type: RowType, path: str) -> Callable[[list[Any]], list[Any]]:
        names = row_type.field_names
        scope: dict[str, Any] = {"fields_of": self._fields_function(row_type, path)}
        lines = _fetch(names)
        for i, part in enumerate(row_type.fields):
            field_path = join_path(path, part.name)
            check_text_type(part.type, field_path, "JSON")
            if not is_any(part.type) or self._plain is not None:
                test = type_test(part.type, f"v{i}") or f"v{i} is None"
                lines += [f"if not ({test}):", f"    v{i} = convert{i}(v{i})"]
            scope[f"convert{i}"] = self._converter(part.type, field_path)
        return compile_reader(names, lines, [f"v{i}" for i in range(len(names))], scope)

    def _fields_function(self, row_type: RowType, path: str) -> Callable[[Any], list[Any] | None]:
        """For a value that is no object with all the fields: its fields in order, None for null."""
        names = row_type.field_names
        positional = row_type.is_positional
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
                        where = join_path(path, name)
                        raise SchemaMismatchError(where, "a value", f"an object without it: {describe(value)}")
            return [value.get(name) for name in names]

        return fields

    def _converter(self, type_: LogicalType, path: str) -> Converter:
        convert = self._strict_converter(type_, path)
        if not self._ignore_parse_errors:
            return lambda value: None if value is None else convert(value)

        def convert_or_none(value: Any) -> Any:
            try:
                return None if value is None else convert(value)
            except SchemaMismatchError:
                return None

        return convert_or_none

    def _strict_converter(self, type_: LogicalType, path: str) -> Converter:
        check_text_type(type_, path, "JSON")
        match type_:
            case RowType():
                read = self._row_function(type_, path)
                return lambda value: read([value])[0]
            case ArrayType():
                return self._array_converter(type_, path)
            case MapType():
                return self._map_converter(type_, path)
        if type_.root is LogicalTypeRoot.VARCHAR:
            return self._string_converter()
        if is_any(type_) and self._plain is not None:
            return self._plain
        return _scalar_converter(type_, path)

    def _array_converter(self, type_: ArrayType, path: str) -> Converter:
        element = self._converter(type_.element_type, f"{path}[]")
        takes_null = type_.element_type.nullable

        def convert(value: Any) -> list[Any]:
            if value.__class__ is not list:
                raise mismatch(path, type_, value)
            items = [element(item) for item in value]
            if not takes_null and None in items:
                raise SchemaMismatchError(f"{path}[]", "a value", "null")
            return items

        return convert

    def _map_converter(self, type_: MapType, path: str) -> Converter:
        key = self._strict_converter(type_.key_type, f"{path}{{key}}")
        item = self._converter(type_.value_type, f"{path}{{}}")

        def convert(value: Any) -> dict[Any, Any]:
            if value.__class__ is not dict:
                raise mismatch(path, type_, value)
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


def _fetch(names: Sequence[str]) -> list[str]:
    targets = ", ".join(f"v{i}" for i in range(len(names)))
    return [
        "try:",
        *([f"    v{i} = item[{name!r}]" for i, name in enumerate(names)] or ["    item.items"]),
        "except (KeyError, TypeError, IndexError, AttributeError):",
        "    found = fields_of(item)",
        "    if found is None:",
        "        add(None)",
        "        continue",
        f"    [{targets}] = found",
    ]


def _scalar_converter(type_: LogicalType, path: str) -> Converter:
    parse = parser_of(type_)
    from_number = _from_number(type_)
    low, high = RANGES.get(type_.root, (None, None))

    def convert(value: Any) -> Any:
        try:
            if isinstance(value, str):
                return parse(value)
            if from_number is not None and isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
                number = from_number(value)
                if low is None or low <= number <= high:
                    return number
            elif type_.root is LogicalTypeRoot.BOOLEAN and isinstance(value, bool):
                return value
        except (ValueError, OverflowError):
            pass
        raise mismatch(path, type_, value)

    return convert


def _from_number(type_: LogicalType) -> Converter | None:
    if isinstance(type_, DecimalType):
        return _integral if type_.is_integer else _decimal
    if type_.root in (LogicalTypeRoot.FLOAT, LogicalTypeRoot.DOUBLE):
        return float
    return _integral if type_.root in RANGES else None


def _integral(value: Any) -> int:
    number = int(value)
    if number != value:
        raise ValueError("a fraction")
    return number


def _decimal(value: Any) -> Decimal:
    return Decimal(value if isinstance(value, (Decimal, int)) else repr(value))
