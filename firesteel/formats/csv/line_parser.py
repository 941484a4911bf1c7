"""CSV parser: the standard library splits many lines at once, a generated function per schema converts them to rows."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.types import Row
from firesteel.formats.csv.schema import CsvSchema
from firesteel.types.codec import SchemaMismatchError, compile_reader, describe
from firesteel.types.logical import ArrayType, FloatType, LogicalType, LogicalTypeRoot, RowType
from firesteel.types.python import RANGES, to_single
from firesteel.types.text import mismatch, parser_of

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
            _field_parser(schema, i, part.name, part.type) for i, part in enumerate(schema.logical_type.fields)
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
        columns = self.split_all(lines)
        return [self.parse_line(line) for line in lines] if columns is None else self._convert(columns)

    def split_all(self, lines: Sequence[str]) -> list[list[str]] | None:
        """The columns of each line as text; None if lines have to be split one by one: comments, escapes, bad ones."""
        escape = self._schema.escape_char
        if (self._schema.allow_comments and any("#" in line for line in lines)) or (
            escape is not None and any(escape in line for line in lines)
        ):
            return None
        try:
            columns = list(csv.reader(lines, **self._settings))
        except csv.Error:
            return None
        # A line with an open quote swallows the next one: then there are fewer.
        return columns if len(columns) == len(lines) else None

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
        scope: dict[str, Any] = {"convert": self._convert_one, "null": self._schema.null_value}
        variables = [f"v{i}" for i in range(len(self._names))]
        body: list[str] = []
        for i, type_ in enumerate(self._schema.logical_type.children()):
            scope[f"parse{i}"] = self._fields[i]
            body += _field_lines(f"v{i}", i, type_, self._schema.null_value is not None)
        lines = [
            "try:",
            f"    [{', '.join(variables)}] = item",
            *(f"    {line}" for line in body),
            "except ValueError:",
            "    add(convert(item))",
            "    continue",
        ]
        return compile_reader(self._names, lines, variables, scope)

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


def _field_lines(v: str, i: int, type_: LogicalType, has_null: bool) -> list[str]:
    if type_.root is LogicalTypeRoot.VARCHAR:
        return [f"if {v} == null: {v} = None"] if has_null else []
    if type_.root in RANGES:
        low, high = RANGES[type_.root]
        # int("1_0") is 10 in Python only
        work = f"if '_' in {v} or not {low} <= ({v} := int({v})) <= {high}: raise ValueError"
    elif type_.root is LogicalTypeRoot.DOUBLE:
        work = f"{v} = float({v}) if '_' not in {v} else parse{i}({v})"
    else:
        work = f"{v} = parse{i}({v})"
    if not has_null:
        return [work]
    return [f"if {v} == null:", f"    {v} = None", "else:", f"    {work}"]


def _field_parser(schema: CsvSchema, index: int, name: str, type_: LogicalType) -> Callable[[str], Any]:
    """The function that makes a column's value of its text; raises SchemaMismatchError."""
    if not isinstance(type_, (RowType, ArrayType)):
        return _scalar_parser(type_, name)
    separator, null = schema.array_separator(index), schema.null_value
    if isinstance(type_, RowType):
        return _nested_row_parser(type_, name, separator, null)
    element = _scalar_parser(type_.element_type, f"{name}[]")

    def parse_array(text: str) -> list[Any]:
        if not text:
            return []
        parts = text.split(separator) if separator else [text]
        return [None if part == null else element(part) for part in parts]

    return parse_array


def _nested_row_parser(type_: RowType, name: str, separator: str, null: str | None) -> Callable[[str], Any]:
    names = type_.field_names
    parsers = [_scalar_parser(part.type, f"{name}.{part.name}") for part in type_.fields]

    def parse(text: str) -> Row | None:
        if not text:
            return None
        parts = text.split(separator) if separator else [text]
        if len(parts) != len(names):
            raise SchemaMismatchError(name, f"{len(names)} parts ({', '.join(names)})", f"{len(parts)}: {text!r}")
        row = Row(*[None if part == null else read(part) for read, part in zip(parsers, parts, strict=True)])
        row.set_field_names(names)
        return row

    return parse


def _scalar_parser(type_: LogicalType, path: str) -> Callable[[str], Any]:
    parse = _parse_single if type_.root is LogicalTypeRoot.FLOAT else parser_of(type_)

    def parse_text(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, OverflowError):
            raise mismatch(path, type_, text) from None

    return parse_text


_parse_number = parser_of(FloatType())


def _parse_single(text: str) -> float:
    """The number of 32 bits for a text: what was written with the digits of 32 bits is the same number again."""
    number: float = _parse_number(text)
    try:
        return to_single(number)
    except OverflowError:
        return number


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
