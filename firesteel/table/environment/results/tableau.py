"""Results as tables of text, as Flink's client prints them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from firesteel.common.types import RowKind
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.table.bound.session import Session
from firesteel.table.casts.text import text_function
from firesteel.types import logical as t
from firesteel.types.internal import from_column
from firesteel.types.logical import LogicalType, RowType

__all__ = ["TableauPrinter", "border_of", "column_width", "display_width", "line_of", "texts_of"]

_NULL = "<NULL>"
_KIND_COLUMN = "op"
_ELLIPSIS = "..."
_KINDS = [str(kind) for kind in RowKind]
_DIGITS: dict[type[LogicalType], int] = {
    t.TinyIntType: 4,
    t.SmallIntType: 6,
    t.IntType: 11,
    t.BigIntType: 20,
    t.BooleanType: 5,
    t.DateType: 10,
}
"""The widths of types whose values are not longer."""


class TableauPrinter:
    """Prints rows as they come.

    The widths of columns follow from their types, so that a result without end can be printed; with ``by_content`` they
    are those of the rows, which are then all read first.
    """

    def __init__(
        self,
        row_type: RowType,
        session: Session,
        *,
        with_kind: bool = False,
        by_content: bool = False,
        max_width: int = 30,
        null: str = _NULL,
    ) -> None:
        self._row_type = row_type
        self._session = session
        self._with_kind = with_kind
        self._by_content = by_content
        self._max_width = max_width
        self._null = null

    def print(self, batches: Iterable[ColumnBatch], write: Callable[[str], Any]) -> None:
        """Prints the rows, and how many there were."""
        rows = self._rows(batches)
        names = list(self._row_type.field_names)
        if self._by_content:
            held = list(rows)
            rows = iter(held)
            widths = [max(map(display_width, column)) for column in zip(names, *held, strict=True)]
        else:
            fields = self._row_type.fields
            widths = [column_width(part.name, part.type, self._max_width, self._null) for part in fields]
        if self._with_kind:
            names, widths = [_KIND_COLUMN, *names], [len(_KIND_COLUMN), *widths]
        border = border_of(widths)
        count = 0
        for row in rows:
            if not count:
                write(f"{border}\n{line_of(names, widths)}\n{border}\n")
            write(f"{line_of(row, widths)}\n")
            count += 1
        if not count:
            write("Empty set\n")
            return
        write(f"{border}\n{count} row{'' if count == 1 else 's'} in set\n")

    def _rows(self, batches: Iterable[ColumnBatch]) -> Iterator[Sequence[str]]:
        for batch in batches:
            columns = texts_of(batch, self._row_type, self._session, self._null)
            if self._with_kind:
                kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
                columns = [[_KINDS[kind] for kind in kinds], *columns]
            yield from zip(*columns, strict=True)


def column_width(name: str, type_: LogicalType, max_width: int, null: str = _NULL) -> int:
    """How wide the column of a name and a type is printed; a type without a longest value as wide as is allowed."""
    width = _DIGITS.get(type(type_), max_width)
    match type_:
        case t.DecimalType():
            width = (type_.precision or 38) + 2
        case t.TimeType():
            width = 8 if type_.precision == 0 else 9 + type_.precision
        case t.TimestampType() | t.LocalZonedTimestampType():
            width = 19 if type_.precision == 0 else 20 + type_.precision
    return max(width, len(null), display_width(name))


def border_of(widths: Sequence[int]) -> str:
    """The line between the rows of a table."""
    return "+" + "".join("-" * (width + 2) + "+" for width in widths)


def texts_of(batch: ColumnBatch, row_type: RowType, session: Session, null: str) -> list[list[str]]:
    """The columns of a batch as texts."""
    columns = []
    for array, part in zip(batch.data.columns, row_type.fields, strict=True):
        to_text = text_function(part.type, session, is_printing=True)
        values = from_column(array, part.type)
        columns.append([null if value is None else to_text(value) for value in values])
    return columns


def line_of(cells: Sequence[str], widths: Sequence[int]) -> str:
    """A row of a table; values that are too wide are cut."""
    parts = (_cell(cell, width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(parts)} |"


def _cell(text: str, width: int) -> str:
    shown = display_width(text)
    if shown > width:
        text = _cut(text, width - len(_ELLIPSIS)) + _ELLIPSIS
        shown = display_width(text)
    return " " * (width - shown) + text


def _cut(text: str, width: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _character_width(character)
        if used > width:
            return text[:index]
    return text


def display_width(text: str) -> int:
    """How many places of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_character_width, text))


def _character_width(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
