"""Finds which lines of a CSV file belong to one row."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import NamedTuple

from firesteel.formats.csv.line_parser import READS_NUL, is_comment
from firesteel.formats.csv.messages import CsvSchema

__all__ = ["RowEnds"]


class _Within(NamedTuple):
    """Where in a row a line ends that is not its last."""

    is_quoted: bool


class RowEnds:
    """Goes through lines, without their ends, and finds those that end a row.

    A row continues in the next line if a quote is open, or if the line end is escaped. A comment is a row of its own,
    even with quotes. Without an escape character the standard library decides.
    """

    def __init__(self, schema: CsvSchema) -> None:
        assert schema.quote_char is not None
        self._schema = schema
        self._allows_comments = schema.allow_comments
        escape = schema.escape_char
        if escape is not None:
            self._in_quotes = re.compile(f"[{re.escape(schema.quote_char + escape)}]")
            self._outside = re.compile(f"[{re.escape(schema.column_separator + escape)}]")

    def may_span_lines(self, lines: list[str]) -> bool:
        """False if every line is a row; then there is nothing to look for."""
        quote, escape = self._schema.quote_char, self._schema.escape_char
        assert quote is not None
        if escape is not None:
            return any(quote in line or line.endswith(escape) for line in lines)
        return any(line.count(quote) & 1 for line in lines)

    def find(self, lines: list[str], begin: int) -> Iterator[int]:
        """The number of the line behind each complete row, from a line on."""
        return self._by_csv(lines, begin) if self._schema.escape_char is None else self._by_scanning(lines, begin)

    def _by_csv(self, lines: list[str], begin: int) -> Iterator[int]:
        while begin < len(lines):
            feed = _Feed(lines, begin, self._allows_comments)
            reader = csv.reader(
                feed, delimiter=self._schema.column_separator, quotechar=self._schema.quote_char, strict=True
            )
            end = begin
            try:
                for _ in reader:
                    end = begin + reader.line_num
                    feed.is_new_row = True
                    yield end
                begin = len(lines)
            except csv.Error as error:
                if "unexpected end of data" in str(error):
                    return
                # a line that is no CSV, which ends where it ends
                begin = max(begin + reader.line_num, end + 1)
                yield begin

    def _by_scanning(self, lines: list[str], begin: int) -> Iterator[int]:
        within: _Within | None = None
        for number, line in enumerate(lines[begin:], begin + 1):
            if within is not None or not (self._allows_comments and is_comment(line)):
                within = self._scan(line, within)
            if within is None:
                yield number

    def _scan(self, line: str, within: _Within | None) -> _Within | None:
        """Where the row is at the end of a line; None if it ends there."""
        quote, escape = self._schema.quote_char, self._schema.escape_char
        assert quote is not None
        assert escape is not None
        if within is None and quote not in line and not line.endswith(escape):
            return None
        at, end = 0, len(line)
        is_quoted = within is not None and within.is_quoted
        begins_column = within is None
        while True:
            if begins_column and line[at : at + 1] == quote:
                is_quoted, at = True, at + 1
            begins_column = False
            found = (self._in_quotes if is_quoted else self._outside).search(line, at)
            if found is None:
                return _Within(is_quoted) if is_quoted else None
            at = found.end()
            if found[0] == escape:
                if at == end:
                    return _Within(is_quoted)
                at += 1
            elif not is_quoted:
                begins_column = True
            elif line[at : at + 1] == quote:
                at += 1
            else:
                is_quoted = False


class _Feed:
    """The lines as the standard library is given them: of a comment only its sign, and no NUL where it reads none."""

    def __init__(self, lines: list[str], begin: int, allows_comments: bool) -> None:
        self._lines = iter(lines[begin:])
        self._allows_comments = allows_comments
        self.is_new_row = True
        """Whether the next line begins a row, set by whoever takes the rows."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        is_new_row, self.is_new_row = self.is_new_row, False
        if is_new_row and self._allows_comments and is_comment(line):
            return "#\n"
        return (line if READS_NUL else line.replace("\0", " ")) + "\n"
