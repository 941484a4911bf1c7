"""Prints results and messages as Flink's SQL client does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from firesteel.cli.sql.execution.feed import Feed
from firesteel.cli.sql.execution.result import NULL, ResultRow, StatementResult
from firesteel.table.environment.results.tableau import border_of, column_width, display_width, line_of

__all__ = ["Printer", "Progress"]

_RED, _BLUE, _YELLOW, _PLAIN = "\x1b[31;1m", "\x1b[34;1m", "\x1b[33;1m", "\x1b[0m"
_POLL_S = 0.1
_FIRST_PROGRESS_S = 0.5


class Progress:
    """A line that tells how far a query is; on a terminal only, and gone afterwards."""

    def __init__(self, output: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._started = clock()
        self._shown = ""

    def show(self, tasks: tuple[int, int] | None = None, rows: int = 0) -> None:
        """Updates the line, once the query has taken a moment."""
        seconds = self._clock() - self._started
        if seconds < _FIRST_PROGRESS_S or not self._output.isatty():
            return
        parts = ["Running…"]
        if tasks is not None:
            done, total = tasks
            parts.append(f"{_bar(done, total)} {done}/{total} tasks")
        if rows:
            parts.append(f"{rows:,} row{'' if rows == 1 else 's'}")
        parts.append(f"{seconds:.0f} s")
        line = "  ".join(parts) + "   (Ctrl-C cancels)"
        if line != self._shown:
            self._output.write(f"\r\x1b[2K{line}")
            self._output.flush()
            self._shown = line

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            self._output.write("\r\x1b[2K")
            self._output.flush()
            self._shown = ""


def _bar(done: int, total: int, width: int = 20) -> str:
    filled = width * done // total if total else 0
    return "━" * filled + "┄" * (width - filled)


class Printer:
    """Writes to a terminal or a file; colors and progress are for terminals."""

    def __init__(self, output: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.output = sys.stdout if output is None else output
        self._clock = clock

    def write(self, text: str) -> None:
        """Writes a text at once."""
        self.output.write(text)
        self.output.flush()

    def info(self, message: str) -> None:
        """Prints a line that begins with [INFO]."""
        self.write(self._colored(f"[INFO] {message}", _BLUE) + "\n")

    def warning(self, message: str) -> None:
        """Prints a line that begins with [WARNING]."""
        self.write(self._colored(f"[WARNING] {message}", _YELLOW) + "\n")

    def error(self, reason: str) -> None:
        """Prints why a statement failed."""
        text = f"[ERROR] Could not execute SQL statement. Reason:\n{reason}"
        self.write(self._colored(text, _RED) + "\n")

    def progress(self) -> Progress:
        """A progress line of a statement that begins now."""
        return Progress(self.output, self._clock)

    def content(self, result: StatementResult) -> None:
        """Prints rows that are there: a text as it is, others as a table that is as wide as they are."""
        rows = [row for batch in result.rows.batches() for _, row in batch]
        names = result.row_type.field_names
        if names == ("result",) and any("\n" in row[0] for row in rows):
            self.write("".join(f"{row[0].rstrip()}\n" for row in rows))
            return
        self._table(names, rows)

    def now(self) -> float:
        """The time by which durations are measured."""
        return self._clock()

    def query(self, result: StatementResult, max_width: int, started: float | None) -> None:
        """Prints the rows of a query as they come, or all at the end if it is a batch. Ctrl-C cancels it.

        With the time at which the statement began, the duration is printed too.
        """
        feed = Feed(result.rows)

        def took() -> str:
            return "" if started is None else f" ({self._clock() - started:.2f} seconds)"

        try:
            if result.is_streaming:
                self._changes(result, feed, max_width, took)
            else:
                self._batch(result, feed, max_width, took)
        except KeyboardInterrupt:
            feed.cancel()
            if not result.is_streaming:
                self.write(f"Query terminated{took()}\n")
            raise
        except BaseException:
            feed.cancel()
            raise

    def _changes(self, result: StatementResult, feed: Feed, max_width: int, took: Callable[[], str]) -> None:
        fields = result.row_type.fields
        widths = [2, *(column_width(part.name, part.type, max_width, NULL) for part in fields)]
        border, count = border_of(widths), 0
        progress = self.progress()
        is_begun = False
        try:
            while (batch := feed.take(_POLL_S)) is not None:
                if not batch and not is_begun:
                    progress.show()
                    continue
                progress.clear()
                if not is_begun:
                    self.write(f"{border}\n{line_of(['op', *result.row_type.field_names], widths)}\n{border}\n")
                    is_begun = True
                if batch:
                    self.write("".join(f"{line_of([kind, *row], widths)}\n" for kind, row in batch))
                    count += len(batch)
        except KeyboardInterrupt:
            progress.clear()
            self.write(f"Query terminated, received a total of {_rows(count)}{took()}\n")
            raise
        except BaseException:
            progress.clear()
            raise
        progress.clear()
        if not is_begun:
            self.write(f"{border}\n{line_of(['op', *result.row_type.field_names], widths)}\n{border}\n")
        else:
            self.write(f"{border}\n")
        self.write(f"Received a total of {_rows(count)}{took()}\n")

    def _batch(self, result: StatementResult, feed: Feed, max_width: int, took: Callable[[], str]) -> None:
        rows: list[ResultRow] = []
        progress = self.progress()
        try:
            while (batch := feed.take(_POLL_S)) is not None:
                rows += batch
                progress.show(feed.progress() if not batch else None, len(rows))
        finally:
            progress.clear()
        self._table(result.row_type.field_names, [row for _, row in rows], took(), max_width)

    def _table(
        self, names: Sequence[str], rows: Sequence[Sequence[str]], took: str = "", max_width: int | None = None
    ) -> None:
        if not rows:
            self.write(f"Empty set{took}\n")
            return
        widths = [max(map(display_width, column)) for column in zip(names, *rows, strict=True)]
        if max_width is not None:
            widths = [min(width, max_width) for width in widths]
        border = border_of(widths)
        lines = [border, line_of(names, widths), border, *(line_of(row, widths) for row in rows), border]
        self.write("\n".join(lines) + f"\n{len(rows)} row{'' if len(rows) == 1 else 's'} in set{took}\n")

    def _colored(self, text: str, color: str) -> str:
        return f"{color}{text}{_PLAIN}" if self.output.isatty() else text


def _rows(count: int) -> str:
    return f"{count} row{'' if count <= 1 else 's'}"
