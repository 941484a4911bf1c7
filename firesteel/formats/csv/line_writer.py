"""Writes rows as lines of CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any

from firesteel.formats.csv.line_parser import BYTE_ORDER_MARK, is_comment
from firesteel.formats.csv.schema import CsvSchema
from firesteel.types.codec import Converter, SchemaMismatchError, compile_writer, describe, type_test, values_of
from firesteel.types.java_text import to_java_double, to_java_float
from firesteel.types.logical import ArrayType, DecimalType, LogicalType, LogicalTypeRoot, RowType
from firesteel.types.python import RANGES, to_single
from firesteel.types.text import SQL_TEXT, mismatch, text_value

__all__ = ["CsvWriter"]

_MAX_CHECKED_LENGTH = 24
"""Longer texts are quoted without a look at their characters, as Jackson does it."""


class CsvWriter:
    """Turns rows into lines of CSV, each with its line end, as Jackson writes them in Flink.

    A text is quoted if it is long, or has a character that does not come after the separator and the quote in Unicode:
    with a comma and double quotes these are blanks and most punctuation. Numbers, booleans and null are not quoted.
    Beyond that, what cannot be written so that it is read again is an error: a separator without quotes, or one within
    an element of an array; an array or a row of which the column would be empty.

    ``strips_zeros`` leaves out the zeros at the end of decimals, as Flink does in files but not in messages.
    """

    def __init__(self, schema: CsvSchema, *, strips_zeros: bool = False) -> None:
        self._schema = schema
        self._strips_zeros = strips_zeros
        unsafe = {schema.column_separator, schema.quote_char, schema.escape_char} - {None}
        last = max((char for char in (schema.column_separator, schema.quote_char) if char is not None), default="")
        others = "".join(re.escape(char) for char in unsafe if char is not None)
        self._has_unsafe = re.compile(f"[\\0-{re.escape(last)}{others}]").search
        self._columns = self._compile()

    def write(self, records: Iterable[Any]) -> list[str]:
        """The line of each record."""
        return self._join(self._columns(records))

    def header(self) -> str:
        """The line that names the columns."""
        names = self._schema.column_names
        return self._join([[self.text_writer(name)(name) for name in names]])[0]

    def _join(self, rows: Iterable[Sequence[str]]) -> list[str]:
        schema = self._schema
        join, end, quote = schema.column_separator.join, schema.line_separator, schema.quote_char
        lines = [join(row) + end for row in rows]
        if len(schema.column_names) == 1 and quote is not None:
            empty = quote * 2 + end  # not an empty line, which is no record
            lines = [line if line != end else empty for line in lines]
        for i, line in enumerate(lines):
            if line[:1] == BYTE_ORDER_MARK or (schema.allow_comments and line[:1] in "# " and is_comment(line)):
                lines[i] = self._begun_with_quotes(line)
        return lines

    def _begun_with_quotes(self, line: str) -> str:
        """A line that would be read as a comment or without its first character."""
        schema = self._schema
        first, separator, rest = line.removesuffix(schema.line_separator).partition(schema.column_separator)
        if schema.quote_char is None and schema.escape_char is None:
            raise SchemaMismatchError(
                schema.column_names[0], "text that needs no quotes, for there are none", describe(first)
            )
        begun = schema.escape_char + first if schema.quote_char is None else self._quote(first)  # type: ignore[operator]
        return begun + separator + rest + schema.line_separator

    def text_writer(self, name: str) -> Callable[[str], str]:
        """What writes the texts of a column."""
        schema, has_unsafe, quote = self._schema, self._has_unsafe, self._quote
        if schema.quote_char is not None:
            return lambda text: quote(text) if len(text) > _MAX_CHECKED_LENGTH or has_unsafe(text) else text
        if schema.escape_char is not None:
            return self._escape

        def write_unquoted(text: str) -> str:
            if any(char in text for char in (schema.column_separator, "\n", "\r")):
                raise SchemaMismatchError(name, "text that needs no quotes, for there are none", describe(text))
            return text

        return write_unquoted

    def _quote(self, text: str) -> str:
        quote, escape = self._schema.quote_char, self._schema.escape_char
        assert quote is not None
        if escape is not None:
            text = text.replace(escape, escape + escape)
        return f"{quote}{text.replace(quote, quote + quote)}{quote}"

    def _escape(self, text: str) -> str:
        schema = self._schema
        escape = schema.escape_char
        assert escape is not None
        text = text.replace(escape, escape + escape)
        for char, letter in (("\n", "n"), ("\r", "r"), (schema.column_separator, schema.column_separator)):
            text = text.replace(char, escape + letter)
        return text

    def _compile(self) -> Callable[[Iterable[Any]], list[tuple[Any, ...]]]:
        schema = self._schema
        scope: dict[str, Any] = {}
        columns = []
        for i, part in enumerate(schema.logical_type.fields):
            write = _column_writer(schema, i, part.name, part.type)
            shown = _unquoted_text(part.type, part.name, self._strips_zeros) or self.text_writer(part.name)
            scope[f"write{i}"] = _nullable(_composed(shown, write), schema.null_value or "")
            scope[f"show{i}"] = shown
            columns.append(_code(part.type, f"v{i}", f"show{i}", f"write{i}(v{i})"))
        return compile_writer(schema.logical_type, "", f"({''.join(f'{column}, ' for column in columns)})", scope)


def _code(type_: LogicalType, v: str, show: str, otherwise: str) -> str:
    """An expression: the text of a variable's value."""
    test = type_test(type_, v, finite=True)
    if test is None or (isinstance(type_, DecimalType) and not type_.is_integer):
        return otherwise
    if type_.root is LogicalTypeRoot.BOOLEAN:
        return f"('true' if {v} else 'false') if {test} else {otherwise}"
    shown = f"str({v})" if type_.root in RANGES else f"{show}({v})"
    return f"{shown} if {test} else {otherwise}"


def _composed(shown: Callable[[Any], str], write: Converter) -> Converter:
    return lambda value: shown(write(value))


def _stripped_text(value: Any) -> str:
    return str(Decimal(value).normalize(_ALL_DIGITS))


_ALL_DIGITS = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def _double_text(value: Any) -> str:
    return value if isinstance(value, str) else to_java_double(value)


def _single_text(type_: LogicalType, name: str) -> Callable[[Any], str]:
    def write_single(value: Any) -> str:
        if isinstance(value, str):
            return value
        try:
            return to_java_float(to_single(value))
        except OverflowError:
            raise mismatch(name, type_, value) from None

    return write_single


def _unquoted_text(type_: LogicalType, name: str, strips_zeros: bool) -> Callable[[Any], str] | None:
    """What writes values of a type that is not quoted."""
    if isinstance(type_, DecimalType):
        return _stripped_text if strips_zeros and not type_.is_integer else str
    if type_.root is LogicalTypeRoot.FLOAT:
        return _single_text(type_, name)
    return _TEXTS.get(type_.root)


_TEXTS: dict[LogicalTypeRoot, Callable[[Any], str]] = {
    **dict.fromkeys(RANGES, str),
    LogicalTypeRoot.BOOLEAN: str,
    LogicalTypeRoot.DOUBLE: _double_text,
}


def _nullable(write: Converter, null: str) -> Converter:
    return lambda value: null if value is None else write(value)


def _column_writer(schema: CsvSchema, index: int, name: str, type_: LogicalType) -> Converter:
    separator = schema.array_separator(index)
    null = schema.null_value or ""
    if isinstance(type_, RowType):
        values = values_of(type_, name)
        parts = [_nullable(text_value(part.type, f"{name}.{part.name}", SQL_TEXT), null) for part in type_.fields]
        return lambda row: _join([write(part) for write, part in zip(parts, values(row), strict=True)], separator, name)
    if not isinstance(type_, ArrayType):
        return text_value(type_, name, SQL_TEXT)
    element = _nullable(text_value(type_.element_type, f"{name}[]", SQL_TEXT), null)

    def write_array(value: Any) -> str:
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
            raise mismatch(name, type_, value)
        return _join([element(item) for item in value], separator, name)

    return write_array


def _join(parts: list[Any], separator: str, name: str) -> str:
    texts = [part if isinstance(part, str) else str(part) for part in parts]
    for text in texts:
        if (separator and separator in text) or (not separator and len(texts) > 1):
            raise SchemaMismatchError(name, f"parts without their separator {separator!r}", describe(parts))
    if texts == [""]:
        raise SchemaMismatchError(name, "no single part that is empty, which is read as none", describe(parts))
    return separator.join(texts)
