"""Makes rows of CSV lines: the standard library splits many at once, a generated function per schema converts them."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.types import Row
from firesteel.formats.csv.schema import CsvSchema
from firesteel.formats.field_types import (
    RANGES,
    Kind,
    SchemaMismatchError,
    describe,
    kind_of,
    mismatch,
    parser_of,
)
from firesteel.formats.row_conversion import ROW_SCOPE, compile_function, new_row, shared_names

__all__ = ["BYTE_ORDER_MARK", "READS_NUL", "CsvParser", "is_comment"]

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
BYTE_ORDER_MARK = "\ufeff"
READS_NUL = sys.version_info >= (3, 11)
"""Whether the standard library reads lines with a NUL character."""


def is_comment(line: str) -> bool:
    """Whether a line is a comment, where these are allowed: blanks may come before the sign, as in Flink."""
    return line.lstrip(" ")[:1] == "#"


class CsvParser:
    """Turns lines of CSV into rows.

    A comment is passed over where comments are allowed. With ``ignore_parse_errors`` a value that does
    not fit its column becomes None, as do columns that are missing; a line that is not CSV is an error all the same.
    """

    def __init__(self, schema: CsvSchema, *, ignore_parse_errors: bool = False) -> None:
        csv.field_size_limit(sys.maxsize)  # 128 KiB otherwise; it is one limit for the whole process
        self._schema = schema
        self._ignore_parse_errors = ignore_parse_errors
        self._names = schema.column_names
        self._fields = [
            _field_parser(schema, i, name, type_info)
            for i, (name, type_info) in enumerate(zip(self._names, schema.row_type.get_field_types(), strict=True))
        ]
        self._convert = self._compile()
        self._settings: dict[str, Any] = {
            "delimiter": schema.column_separator,
            "quotechar": schema.quote_char,
            "quoting": csv.QUOTE_MINIMAL if schema.quote_char else csv.QUOTE_NONE,
            "strict": True,
        }

    def parse(self, lines: Sequence[str]) -> list[Row | None]:
        """The row of each line, None for a comment. Raises for all if one of them is bad: find it by ``parse_line``."""
        escape = self._schema.escape_char
        if (self._schema.allow_comments and any("#" in line for line in lines)) or (
            escape is not None and any(escape in line for line in lines)
        ):
            return [self.parse_line(line) for line in lines]
        try:
            columns = list(csv.reader(lines, **self._settings))
            # A line with an open quote swallows the next one: then there are fewer.
            if len(columns) == len(lines):
                return self._convert(columns)
        except csv.Error:
            pass
        return [self.parse_line(line) for line in lines]

    def parse_line(self, line: str) -> Row | None:
        """The row of one line, None for a comment; raises SchemaMismatchError."""
        if self._schema.allow_comments and is_comment(line):
            return None
        return self._convert([self.split(line)])[0]

    def split(self, line: str) -> list[str]:
        """The columns of one line as text."""
        try:
            escape = self._schema.escape_char
            if (escape is not None and escape in line) or (not READS_NUL and "\0" in line):
                return _split_by_hand(line, self._schema)
            rows = list(csv.reader([line], **self._settings))
        except csv.Error as error:
            raise SchemaMismatchError("", "a line of CSV", f"one that is not, {error}: {describe(line)}") from error
        if len(rows) > 1:
            wanted = f"one line with the columns {', '.join(self._names)}"
            raise SchemaMismatchError("", wanted, f"{len(rows)}: {describe(line)}")
        return rows[0] if rows else []

    def check_header(self, line: str) -> None:
        """Raises SchemaMismatchError if a file's header does not name the schema's columns, where it must."""
        if not self._schema.strict_headers:
            return
        found = [name.strip() for name in self.split(line.removeprefix(BYTE_ORDER_MARK))]
        for i, (wanted, name) in enumerate(zip(self._names, found, strict=False)):
            if wanted != name:
                raise SchemaMismatchError(wanted, f"this name as header of column {i + 1}", f"'{name}'")
        if len(found) != len(self._names):
            wanted = ", ".join(self._names)
            raise SchemaMismatchError("", f"a header with the columns {wanted}", f"{len(found)} columns: {line!r}")

    @property
    def lines_to_skip(self) -> int:
        """How many lines at the beginning of a file are no data."""
        return int(self._schema.use_header) + int(self._schema.skip_first_data_row)

    def _compile(self) -> Callable[[list[list[str]]], list[Row | None]]:
        schema = self._schema
        scope: dict[str, Any] = {**ROW_SCOPE, "names": shared_names(schema.row_type), "convert": self._convert_one}
        scope["null"] = schema.null_value
        variables = [f"v{i}" for i in range(len(self._names))]
        body: list[str] = []
        for i, (name, type_info) in enumerate(zip(self._names, schema.row_type.get_field_types(), strict=True)):
            scope[f"parse{i}"] = self._fields[i]
            body += _field_lines(f"v{i}", i, kind_of(type_info, name, "CSV"), schema.null_value is not None)
        lines = [
            "def read(columns):",
            "    rows = []",
            "    add = rows.append",
            "    for found in columns:",
            "        try:",
            f"            [{', '.join(variables)}] = found",
            *body,
            "        except ValueError:",
            "            add(convert(found))",
            "            continue",
            f"        {new_row(', '.join(variables))}",
            "        add(row)",
            "    return rows",
        ]
        return compile_function("read", lines, scope)

    def _convert_one(self, columns: list[str]) -> Row:
        """The row of columns that are too few or too many, or of which one does not fit."""
        names = self._names
        if len(columns) == len(names) + 1 and not columns[-1]:
            columns = columns[:-1]  # a separator behind the last column, as many programs write it
        if not 0 < len(columns) <= len(names) or (len(columns) < len(names) and not self._ignore_parse_errors):
            wanted = f"{len(names)} columns ({', '.join(names)})"
            raise SchemaMismatchError("", wanted, f"{len(columns)}: {describe(columns)}")
        values = [self._value(parse, text) for parse, text in zip(self._fields, columns, strict=False)]
        row = Row(*values, *[None] * (len(names) - len(values)))
        row.set_field_names(names)
        return row

    def _value(self, parse: Callable[[str], Any], text: str) -> Any:
        if text == self._schema.null_value:
            return None
        try:
            return parse(text)
        except SchemaMismatchError:
            if self._ignore_parse_errors:
                return None
            raise


def _field_lines(v: str, i: int, kind: Kind, has_null: bool) -> list[str]:
    indent = "            "
    if kind is Kind.STRING:
        return [f"{indent}if {v} == null: {v} = None"] if has_null else []
    if kind in RANGES:
        low, high = RANGES[kind]
        # int("1_0") is 10 in Python only
        work = f"if '_' in {v} or not {low} <= ({v} := int({v})) <= {high}: raise ValueError"
    elif kind in (Kind.FLOAT, Kind.DOUBLE):
        work = f"{v} = float({v}) if '_' not in {v} else parse{i}({v})"
    else:
        work = f"{v} = parse{i}({v})"
    if not has_null:
        return [f"{indent}{work}"]
    return [f"{indent}if {v} == null:", f"{indent}    {v} = None", f"{indent}else:", f"{indent}    {work}"]


def _field_parser(schema: CsvSchema, index: int, name: str, type_info: Any) -> Callable[[str], Any]:
    """The function that makes a column's value of its text; raises SchemaMismatchError."""
    kind = kind_of(type_info, name, "CSV")
    if kind is Kind.ROW:
        return _nested_row_parser(schema, index, name, type_info)
    if kind is Kind.ARRAY:
        element = _scalar_parser(kind_of(type_info.get_element_type(), name, "CSV"), f"{name}[]")
        separator = schema.array_separator(index)
        null = schema.null_value

        def parse_array(text: str) -> list[Any]:
            if not text:
                return []
            parts = text.split(separator) if separator else [text]
            return [None if part == null else element(part) for part in parts]

        return parse_array
    return _scalar_parser(kind, name)


def _nested_row_parser(schema: CsvSchema, index: int, name: str, type_info: Any) -> Callable[[str], Any]:
    names = type_info.get_field_names()
    separator = schema.array_separator(index)
    parsers = [
        _scalar_parser(kind_of(part, name, "CSV"), f"{name}.{part_name}")
        for part_name, part in zip(names, type_info.get_field_types(), strict=True)
    ]

    def parse(text: str) -> Row | None:
        if not text:
            return None
        parts = text.split(separator) if separator else [text]
        if len(parts) != len(names):
            raise SchemaMismatchError(name, f"{len(names)} parts ({', '.join(names)})", f"{len(parts)}: {text!r}")
        row = Row(
            *[None if part == schema.null_value else read(part) for read, part in zip(parsers, parts, strict=True)]
        )
        row.set_field_names(names)
        return row

    return parse


def _scalar_parser(kind: Kind, path: str) -> Callable[[str], Any]:
    parse = parser_of(kind)

    def parse_text(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, OverflowError):
            raise mismatch(path, kind, text) from None

    return parse_text


def _split_by_hand(line: str, schema: CsvSchema) -> list[str]:
    """Splits a line that the standard library cannot: it takes an escaped ``\\n`` for an n, and may refuse NUL."""
    columns: list[str] = []
    text = line.rstrip("\r\n")
    i, end = 0, len(text)
    while True:
        column: list[str] = []
        quoted = i < end and text[i] == schema.quote_char
        i += quoted
        while i < end:
            char = text[i]
            if char == schema.escape_char:
                if i + 1 == end:
                    raise csv.Error("nothing follows the escape character")
                column.append(_ESCAPES.get(text[i + 1], text[i + 1]))
                i += 2
                continue
            if quoted and char == schema.quote_char:
                i += 1
                if i < end and text[i] == char:
                    column.append(char)
                    i += 1
                    continue
                quoted = False
                if i < end and text[i] != schema.column_separator:
                    raise csv.Error(f"'{schema.column_separator}' expected after '{char}'")
                break
            if not quoted and char == schema.column_separator:
                break
            column.append(char)
            i += 1
        if quoted:
            raise csv.Error("unexpected end of data")
        columns.append("".join(column))
        if i >= end:
            return columns
        i += 1  # the separator
        if i == end:
            return [*columns, ""]
