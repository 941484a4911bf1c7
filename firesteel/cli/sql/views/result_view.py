"""A result on the whole screen: pages, a selected row, and how often it is refreshed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from firesteel.cli.sql.execution.feed import Feed
from firesteel.cli.sql.execution.result import NULL, StatementResult
from firesteel.cli.sql.views.materialized import ChangeLog, MaterializedTable
from firesteel.cli.sql.views.row_view import PageInput, RowView
from firesteel.cli.sql.views.text import Line, centered, fit, help_lines, spread
from firesteel.table.environment.results.tableau import column_width

__all__ = ["ChangelogView", "ResultView", "TableView"]

_REFRESHES = (
    ("Fastest", 0.0),
    ("100 ms", 0.1),
    ("500 ms", 0.5),
    ("1 s", 1.0),
    ("5 s", 5.0),
    ("10 s", 10.0),
    ("1 min", 60.0),
    ("-", None),
)
_HEADER, _FOOTER = 4, 2
_MAX_CHANGES = 1000
_MAX_BATCHES_AT_ONCE = 200


class ResultView:
    """What the views of tables and changelogs have in common.

    ``tick`` takes the rows that have come, ``press`` a key, ``lines`` is what the screen shows. The view is over when
    ``is_closed``; then ``error`` is what the job failed with.
    """

    title = ""
    smallest_refresh = 0
    keys: tuple[tuple[str, str], ...] = ()

    def __init__(
        self,
        result: StatementResult,
        feed: Feed,
        store: MaterializedTable | ChangeLog,
        max_width: int,
        clock: Callable[[], float],
    ) -> None:
        fields = result.row_type.fields
        self._names = list(result.row_type.field_names)
        self._types = [part.type.as_summary_string() for part in fields]
        self._widths = [column_width(part.name, part.type, max_width, NULL) for part in fields]
        self._feed = feed
        self._store = store
        self._clock = clock
        self._refreshed: float | None = None
        self._updated = "Unknown"
        self._refresh = 3
        self._count = 0
        self._rows: list[Sequence[str]] = []
        self._selected: int | None = None
        self._offset = 0
        self._height, self._width = 24, 80
        self._dialog: RowView | PageInput | None = None
        self.is_finished = False
        self.is_closed = False
        self.error: BaseException | None = None

    def tick(self) -> None:
        """Takes the rows that have come; the screen shows them when it is time to."""
        if not self.is_finished:
            try:
                for _ in range(_MAX_BATCHES_AT_ONCE):
                    batch = self._feed.take()
                    if batch is None:
                        self.is_finished = True
                        break
                    if not batch:
                        break
                    self._store.apply(batch)
            except BaseException as error:  # noqa: BLE001 - the shell prints it
                self.error, self.is_closed = error, True
                return
            if self.is_finished:
                self.refresh()
        interval = _REFRESHES[self._refresh][1]
        if self.is_finished or interval is None:
            return
        if self._refreshed is None or self._clock() - self._refreshed >= interval:
            self.refresh()

    def refresh(self) -> None:
        """Shows the rows as they are now."""
        self._refreshed = self._clock()
        self._updated = time.strftime("%H:%M:%S")
        self._count = len(self._store)
        self._show()

    def press(self, key: str) -> None:
        """Does what a key stands for."""
        if self._dialog is not None:
            self._dialog.press(key)
            if self._dialog.is_closed:
                dialog, self._dialog = self._dialog, None
                if isinstance(dialog, PageInput) and dialog.page is not None:
                    self.go_to(dialog.page)
            return
        match key.lower():
            case "q" | "c-c" | "c-d" | "escape":
                self.is_closed = True
            case "r":
                self.refresh()
            case "+":
                self._refresh = min(self._refresh + 1, len(_REFRESHES) - 1)
            case "-":
                self._refresh = max(self._refresh - 1, self.smallest_refresh)
            case "up":
                self._select(-1)
            case "down":
                self._select(1)
            case "left":
                self._offset = max(0, self._offset - 1)
            case "right":
                self._offset = min(len(self._names) - 1, self._offset + 1)
            case "o" | "enter":
                self._open()
            case other:
                self.press_other(other)

    def press_other(self, key: str) -> None:
        """Does what a key stands for in this kind of view."""

    def go_to(self, page: int) -> None:
        """Shows a page."""

    def lines(self, width: int, height: int) -> list[Line]:
        """The screen."""
        if (width, height) != (self._width, self._height):
            self._width, self._height = width, height
            self._show()
        if self._dialog is not None:
            return self._dialog.lines(width, height)
        left = "Table program finished." if self.is_finished else f"Refresh: {_REFRESHES[self._refresh][0]}"
        head = [
            centered(f"SQL Query Result ({self.title})", width, "reverse"),
            spread(left, self.position(), f"Updated: {self._updated}", width, "reverse"),
            [("", "")],
            self._line(self._header(), "bold"),
        ]
        body = [self._line(row, "reverse" if index == self._selected else "") for index, row in enumerate(self._rows)]
        if not body:
            body = [[("", "")], centered("No rows." if self.is_finished else "Waiting for rows…", width)]
        blank: list[Line] = [[("", "")] for _ in range(max(0, height - _HEADER - _FOOTER - len(body)))]
        return [*head, *body, *blank, *help_lines(self.keys, width)]

    def position(self) -> str:
        """Which part of the result is shown."""
        return ""

    def _visible(self) -> int:
        return max(1, self._height - _HEADER - _FOOTER)

    def _header(self) -> Sequence[str]:
        return self._names

    def _column_widths(self) -> Sequence[int]:
        return self._widths

    def _values(self, row: Sequence[str]) -> Sequence[str]:
        return row

    def _show(self) -> None:
        raise NotImplementedError

    def _select(self, step: int) -> None:
        if self._rows:
            first = -1 if step > 0 else len(self._rows)
            chosen = (first if self._selected is None else self._selected) + step
            self._selected = max(0, min(len(self._rows) - 1, chosen))

    def _open(self) -> None:
        if self._rows:
            row = self._rows[len(self._rows) - 1 if self._selected is None else self._selected]
            self._dialog = RowView(self._names, self._types, self._values(row))

    def _line(self, row: Sequence[str], style: str) -> Line:
        cells = [fit(value, width) for value, width in zip(row, self._column_widths(), strict=True)]
        text = " " + " ".join(cells[self._offset :])
        return [(style, text[: self._width])]


class TableView(ResultView):
    """The rows as they are now, page by page; it stays on the last page unless another one is chosen."""

    title = "Table"
    smallest_refresh = 1
    keys = (
        ("Q", "Quit"),
        ("R", "Refresh"),
        ("+", "Inc Refresh"),
        ("-", "Dec Refresh"),
        ("G", "Goto Page"),
        ("L", "Last Page"),
        ("N", "Next Page"),
        ("P", "Prev Page"),
        ("O", "Open Row"),
    )

    def __init__(
        self,
        result: StatementResult,
        feed: Feed,
        max_rows: int,
        max_width: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(result, feed, MaterializedTable(max_rows), max_width, clock)
        self._page: int | None = None

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self._count // self._visible()))

    def press_other(self, key: str) -> None:
        """Turns the pages."""
        current = self.pages if self._page is None else self._page
        match key:
            case "g":
                self._dialog = PageInput(self.pages)
            case "l" | "end":
                self._page = None
                self._show()
            case "n" | "pagedown" | " ":
                self.go_to(current + 1)
            case "p" | "pageup":
                self.go_to(current - 1)
            case "home":
                self.go_to(1)

    def go_to(self, page: int) -> None:
        """Shows a page."""
        self._page = max(1, min(self.pages, page))
        self._selected = None
        self._show()

    def position(self) -> str:
        """The page."""
        shown = "Last" if self._page is None or self._page >= self.pages else str(self._page)
        return f"Page: {shown} of {self.pages}"

    def _show(self) -> None:
        visible, page = self._visible(), min(self.pages, self._page or self.pages)
        self._rows = self._store.rows((page - 1) * visible, page * visible)
        if self._selected is not None:
            self._selected = min(self._selected, len(self._rows) - 1) if self._rows else None


class ChangelogView(ResultView):
    """The latest changes."""

    title = "Changelog"
    keys = (
        ("Q", "Quit"),
        ("R", "Refresh"),
        ("+", "Inc Refresh"),
        ("-", "Dec Refresh"),
        ("O", "Open Row"),
    )

    def __init__(
        self,
        result: StatementResult,
        feed: Feed,
        max_width: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(result, feed, ChangeLog(_MAX_CHANGES), max_width, clock)
        self._refresh = 0
        self._back = 0

    def press_other(self, key: str) -> None:
        """Scrolls."""
        match key:
            case "pageup" | "p":
                self._back = min(self._back + self._visible(), max(0, len(self._store) - self._visible()))
            case "pagedown" | "n" | " ":
                self._back = max(0, self._back - self._visible())
            case "l" | "end":
                self._back = 0
        self._show()

    def _header(self) -> Sequence[str]:
        return ["op", *self._names]

    def _column_widths(self) -> Sequence[int]:
        return [2, *self._widths]

    def _values(self, row: Sequence[str]) -> Sequence[str]:
        return row[1:]

    def _show(self) -> None:
        stop = max(0, len(self._store) - self._back)
        self._rows = self._store.rows(max(0, stop - self._visible()), stop)
        if self._selected is not None:
            self._selected = min(self._selected, len(self._rows) - 1) if self._rows else None
