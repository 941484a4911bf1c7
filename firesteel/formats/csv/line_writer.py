"""Writes rows as lines of CSV."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from firesteel.formats.csv.line_parser import BYTE_ORDER_MARK, is_comment
from firesteel.formats.csv.schema import CsvSchema
from firesteel.types.codec import Converter, SchemaMismatchError, compile_writer, describe, values_of
from firesteel.types.logical import ArrayType, LogicalType, RowType
from firesteel.types.text import SQL_TEXT, mismatch, text_code, text_value

__all__ = ["CsvWriter"]

_MISTAKEN = ("#", " ", BYTE_ORDER_MARK)
"""How a line may begin that is not read as it was written."""


def _is_mistaken(line: str) -> bool:
    return line[:1] == BYTE_ORDER_MARK or is_comment(line)


class _Lines(list[str]):
    """What csv.writer writes to: it hands over one line at a time."""

    write = list.append


class CsvWriter:
    """Turns rows into lines of CSV, each with its line end.

    A column is quoted if it holds a separator, a quote or a line end, or would be read as a comment or as a byte order
    mark at the beginning of a line. What cannot be written so that it is read again is an error: a separator without
    quotes, or one within an element of an array; an array or a row of which the column would be empty.
    """

    def __init__(self, schema: CsvSchema) -> None:
        self._schema = schema
        self._columns = self._compile()
        self._lines = _Lines()
        self._writer = csv.writer(
            self._lines,
            delimiter=schema.column_separator,
            quotechar=schema.quote_char,
            quoting=csv.QUOTE_MINIMAL if schema.quote_char else csv.QUOTE_NONE,
            lineterminator="\r\n",  # has both characters quoted; cut off again
        )

    def write(self, records: Iterable[Any]) -> list[str]:
        """The line of each record."""
        return self._write_rows(self._columns(records))

    def header(self) -> str:
        """The line that names the columns."""
        return self._write_rows([self._schema.column_names])[0]

    def _write_rows(self, rows: Sequence[Sequence[Any]]) -> list[str]:
        end = self._schema.line_separator
        if self._schema.escape_char is not None:
            return [self._write_slowly(row) + end for row in rows]
        try:
            self._writer.writerows(rows)
            lines = [line[:-2] + end for line in self._lines]
        except csv.Error:
            return [self._write_slowly(row) + end for row in rows]
        finally:
            self._lines.clear()
        for i, line in enumerate(lines):
            if line[:1] in _MISTAKEN and _is_mistaken(line):
                lines[i] = self._write_slowly(rows[i]) + end
        return lines

    def _write_slowly(self, row: Sequence[Any]) -> str:
        """A line with an escape character, without quotes, or that would look like a comment."""
        schema = self._schema
        texts = [value if isinstance(value, str) else str(value) for value in row]
        if schema.quote_char is None and schema.escape_char is None:
            written = schema.column_separator.join(map(self._unquoted, schema.column_names, texts))
            if written[:1] == BYTE_ORDER_MARK or (schema.allow_comments and is_comment(written)):
                raise SchemaMismatchError(
                    schema.column_names[0], "text that needs no quotes, for there are none", describe(texts[0])
                )
            return written
        written = schema.column_separator.join(self._quoted(text, i == 0) for i, text in enumerate(texts))
        return written or f"{schema.quote_char or ''}" * 2

    def _unquoted(self, name: str, text: str) -> str:
        if any(char in text for char in (self._schema.column_separator, "\n", "\r")):
            raise SchemaMismatchError(name, "text that needs no quotes, for there are none", describe(text))
        return text

    def _quoted(self, text: str, first: bool) -> str:
        schema = self._schema
        quote, escape = schema.quote_char, schema.escape_char
        special = {schema.column_separator, quote, escape, "\n", "\r"} - {None}
        mistaken = first and _is_mistaken(text)
        if not mistaken and not any(char in text for char in special if char):
            return text
        if escape is not None:
            text = text.replace(escape, escape + escape)
        if quote is not None:
            return f"{quote}{text.replace(quote, quote + quote)}{quote}"
        assert escape is not None
        for char, letter in (("\n", "n"), ("\r", "r"), (schema.column_separator, schema.column_separator)):
            text = text.replace(char, escape + letter)
        return escape + text if mistaken else text

    def _compile(self) -> Callable[[Iterable[Any]], list[tuple[Any, ...]]]:
        schema = self._schema
        scope: dict[str, Any] = {}
        columns = []
        for i, part in enumerate(schema.logical_type.fields):
            scope[f"write{i}"] = _nullable(_column_writer(schema, i, part.name, part.type), schema.null_value or "")
            columns.append(text_code(part.type, f"v{i}", f"write{i}(v{i})"))
        return compile_writer(schema.logical_type, "", f"({''.join(f'{column}, ' for column in columns)})", scope)


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
