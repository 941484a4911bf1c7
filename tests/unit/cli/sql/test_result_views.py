"""Results on the whole screen, without a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from firesteel.cli.sql.execution.feed import Feed
from firesteel.cli.sql.execution.result import ResultKind, ResultRow, StatementResult
from firesteel.cli.sql.views.materialized import MaterializedTable
from firesteel.cli.sql.views.result_view import ChangelogView, ResultView, TableView
from firesteel.cli.sql.views.text import fit, plain
from firesteel.testing import FakeClock, eventually
from firesteel.types.logical import IntType, RowField, RowType, VarCharType

TYPE = RowType([RowField("number", IntType()), RowField("name", VarCharType())])


class Rows:
    """Rows that a test gives."""

    def __init__(self, *batches: list[ResultRow], is_endless: bool = False, error: Exception | None = None) -> None:
        self._batches = batches
        self._error = error
        self.ended = threading.Event()
        if not is_endless:
            self.ended.set()

    def batches(self) -> Iterator[list[ResultRow]]:
        yield from self._batches
        self.ended.wait()
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        self.ended.set()

    def progress(self) -> tuple[int, int] | None:
        return None


def _result(rows: Rows) -> StatementResult:
    return StatementResult(ResultKind.QUERY, TYPE, rows)


def _inserts(*numbers: int) -> list[ResultRow]:
    return [("+I", (str(number), f"n{number}")) for number in numbers]


def _screen(view: ResultView, width: int = 60, height: int = 12) -> list[str]:
    return plain(view.lines(width, height))


def _finished(view: ResultView) -> ResultView:
    def tick() -> bool:
        view.tick()
        return view.is_finished or view.is_closed

    eventually(tick)
    return view


def test_updates_stay_where_they_are() -> None:
    table = MaterializedTable(100)
    table.apply(_inserts(1, 2, 3, 2))
    table.apply([("-U", ("1", "n1")), ("+U", ("1", "new")), ("-D", ("2", "n2"))])
    assert table.rows() == [("1", "new"), ("2", "n2"), ("3", "n3")]
    table.apply([("-U", ("3", "n3")), ("-U", ("1", "new")), ("+U", ("4", "n4"))])
    assert table.rows() == [("4", "n4"), ("2", "n2")]
    table.apply([("-D", ("9", "never seen")), ("-U", ("2", "n2"))])
    assert table.rows() == [("4", "n4")]


def test_the_oldest_rows_are_forgotten() -> None:
    table = MaterializedTable(2)
    table.apply(_inserts(1, 2, 3))
    assert table.rows() == [("2", "n2"), ("3", "n3")]
    table.apply([("-D", ("1", "n1")), ("-D", ("3", "n3"))])
    assert table.rows() == [("2", "n2")]


def test_pages_of_a_table() -> None:
    empty = Rows()
    assert "No rows." in _screen(_finished(TableView(_result(empty), Feed(empty), 100, 10)))[5]
    rows = Rows(_inserts(*range(1, 15)))
    view = _finished(TableView(_result(rows), Feed(rows), 100, 10))
    assert _screen(view) == [
        "                  SQL Query Result (Table)",
        " Table program finished. Page: Last of 3  " + _screen(view)[1][-17:],
        "",
        "      number       name",
        "          13        n13",
        "          14        n14",
        "",
        "",
        "",
        "",
        "Q Quit      + Inc RefresG Goto Page N Next Page O Open Row",
        "R Refresh   - Dec RefresL Last Page P Prev Page",
    ]
    view.press("p")
    assert _screen(view)[4:7] == ["           7         n7", "           8         n8", "           9         n9"]
    assert "Page: 2 of 3" in _screen(view)[1]
    for key in "g1":
        view.press(key)
    assert " > 1" in _screen(view)
    view.press("enter")
    assert _screen(view)[4] == "           1         n1"
    for key in ("g", "7", "enter"):
        view.press(key)
    assert " The input is invalid please check it again." in _screen(view)
    view.press("escape")
    view.press("n")
    view.press("n")
    assert "Page: Last of 3" in _screen(view)[1]
    assert "Page: Last of 1" in _screen(view, height=40)[1]  # the terminal has grown


def test_a_row_is_opened() -> None:
    rows = Rows([("+I", ("1", "a long text that does not fit\nand another line"))])
    view = _finished(TableView(_result(rows), Feed(rows), 100, 10))
    assert _screen(view)[4] == "           1 a long te~"[:23]
    view.press("down")
    view.press("o")
    assert _screen(view)[2:8] == [
        " number (INT):",
        " 1",
        "",
        " name (STRING):",
        " a long text that does not fit",
        " and another line",
    ]
    view.press("q")
    assert not view.is_closed
    view.press("q")
    assert view.is_closed


def test_a_table_is_refreshed_when_it_is_time() -> None:
    clock = FakeClock(0)
    rows = Rows(_inserts(1), is_endless=True)
    view = TableView(_result(rows), feed := Feed(rows), 100, 10, lambda: clock.now / 1000)
    view.tick()
    eventually(lambda: (view.tick(), len(view._store) == 1)[1])
    if "n1" not in _screen(view)[4]:
        assert "Waiting for rows" in _screen(view)[5]
        clock.advance(1000)
        view.tick()
    assert _screen(view)[4] == "           1         n1"
    assert " Refresh: 1 s" in _screen(view)[1]
    view.press("+")
    assert " Refresh: 5 s" in _screen(view)[1]
    for _ in range(5):
        view.press("-")
    assert " Refresh: 100 ms" in _screen(view)[1]
    feed.cancel()
    feed.join()
    assert rows.ended.is_set()


def test_a_changelog() -> None:
    rows = Rows(_inserts(1), [("-U", ("1", "n1")), ("+U", ("1", "x"))])
    view = _finished(ChangelogView(_result(rows), Feed(rows), 10))
    assert _screen(view)[3:7] == [
        " op      number       name",
        " +I           1         n1",
        " -U           1         n1",
        " +U           1          x",
    ]
    view.press("right")
    assert _screen(view)[3] == "      number       name"


def test_the_error_of_a_job_closes_the_view() -> None:
    rows = Rows(_inserts(1), error=ValueError("broken"))
    view = _finished(TableView(_result(rows), Feed(rows), 100, 10))
    assert view.is_closed
    assert str(view.error) == "broken"


@pytest.mark.parametrize(
    ("text", "shown"), [("abc", "  abc"), ("abcdef", "abcd~"), ("日本語", "日本~"), ("a\nb", "  a b"), ("", "     ")]
)
def test_texts_fit_their_column(text: str, shown: str) -> None:
    assert fit(text, 5) == shown


def test_a_reader_that_is_too_slow_holds_up_the_rows() -> None:
    taken: list[Sequence[str]] = []
    many = Rows(*([("+I", (str(number), "x"))] for number in range(500)))
    feed = Feed(many)
    while (batch := feed.take(1.0)) is not None:
        taken += [row for _, row in batch]
    assert [row[0] for row in taken] == [str(number) for number in range(500)]
    slow = Feed(Rows(*([("+I", (str(number), "x"))] for number in range(500))))
    slow.cancel()
    slow.join()
