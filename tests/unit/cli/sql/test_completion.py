"""What the SQL shell offers at the cursor, and when a text is complete."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from firesteel.cli.sql.editing.completion import complete
from firesteel.cli.sql.editing.highlighting import spans
from firesteel.cli.sql.editing.names import SessionNames
from firesteel.cli.sql.editing.statements import command_of, is_complete
from firesteel.common.errors import FiresteelError

ROWS: dict[str, list[Sequence[str]]] = {
    "SHOW CATALOGS": [("default_catalog",), ("lake",)],
    "SHOW DATABASES": [("default_database",), ("shop",)],
    "SHOW DATABASES FROM `lake`": [("bronze",)],
    "SHOW TABLES": [("orders",), ("order lines",), ("people",)],
    "SHOW TABLES FROM `shop`": [("prices",)],
    "SHOW TABLES FROM `lake`.`bronze`": [("events",)],
    "DESCRIBE `orders`": [("id", "INT"), ("amount", "DOUBLE"), ("user", "STRING")],
    "DESCRIBE `people`": [("name", "STRING")],
    "SHOW FUNCTIONS": [("upper",), ("sum",), ("+",)],
    "SHOW JOBS": [("0123456789abcdef0123456789abcdef", "job", "RUNNING", "")],
}
asked: list[str] = []


def _ask(sql: str) -> list[Sequence[str]]:
    asked.append(sql)
    if sql not in ROWS:
        raise FiresteelError("There is no such object.")
    return ROWS[sql]


def _offered(text: str) -> list[str]:
    """The candidates at the bar."""
    before, _, after = text.partition("|")
    return [candidate.text for candidate in complete(before, after, SessionNames(_ask))]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("sel|", ["select"]),
        ("SHOW TABLES; SEL|", ["SELECT"]),
        ("SELECT * FROM |", ["orders", "`order lines`", "people", "default_database", "shop", "default_catalog"]),
        ("SELECT * FROM orders, p|", ["people"]),
        ("SELECT | FROM orders", ["id", "amount", "`user`", "orders"]),
        ("SELECT am| FROM orders AS o", ["amount"]),
        ("SELECT o.| FROM orders AS o", ["id", "amount", "`user`"]),
        ("SELECT o.| FROM orders o JOIN people p ON ", ["id", "amount", "`user`"]),
        ("SELECT * FROM orders o JOIN people p ON p.|", ["name"]),
        ("SELECT * FROM shop.|", ["prices"]),
        ("SELECT * FROM lake.|", ["bronze"]),
        ("SELECT * FROM lake.bronze.e|", ["events"]),
        ("SELECT nothing.|", []),
        ("SELECT 'it''s FROM' AS x, up| FROM orders", ["upper"]),
        ("USE CATALOG |", ["default_catalog", "lake"]),
        ("SET 'sql-client.execution.res|", ["sql-client.execution.result-mode"]),
        ("SET 'sql-client.execution.result-mode' = '|", ["TABLE", "CHANGELOG", "TABLEAU"]),
        ("SET 'table.dml-sync' = 't|", ["true"]),
        ("SET sql-client.verb|", []),
        ("STOP JOB '|", ["0123456789abcdef0123456789abcdef"]),
        ("STOP JOB |", ["'0123456789abcdef0123456789abcdef'"]),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'dat|", ["datagen"]),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'rows|", ["rows-per-second"]),
        ("CREATE TABLE t (a INT) WITH ('conn|", ["connector"]),
        ("SELECT * FROM orders WHERE x = '|", []),
        ("CREATE TABLE t (a BIGI|", ["BIGINT"]),
        ("SHOW T|", ["TABLES"]),
        ("DROP T|", ["TABLE", "TEMPORARY"]),
    ],
)
def test_candidates(text: str, first: list[str]) -> None:
    assert _offered(text)[: max(1, len(first))] == first


def test_names_are_asked_for_once_until_a_statement_may_have_changed_them() -> None:
    names = SessionNames(_ask)
    asked.clear()
    for _ in range(2):
        complete("SELECT * FROM ", "", names)
        complete("SELECT up", "", names)
    assert asked.count("SHOW TABLES") == 1
    names.forget()
    complete("SELECT * FROM ", "", names)
    complete("SELECT up", "", names)
    assert asked.count("SHOW TABLES") == 2
    assert asked.count("SHOW FUNCTIONS") == 1


@pytest.mark.parametrize(
    ("text", "is_done"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; SELECT 2", False),
        ("SELECT ';", False),
        ("SELECT ';';", True),
        ("SELECT 1 -- one;", False),
        ("SELECT 1; -- one", True),
        ("-- only this", True),
        ("SELECT /* ;", False),
        ('SELECT "x";', True),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1;", False),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; END;", True),
        ("quit", True),
        (" Help ;", True),
    ],
)
def test_complete_texts(text: str, is_done: bool) -> None:
    assert is_complete(text) is is_done


def test_commands_of_the_shell() -> None:
    assert command_of("exit;") == "QUIT"
    assert command_of("/* bye */ QUIT ;") == "QUIT"
    assert command_of("SELECT quit") is None


def test_colors_of_what_is_not_finished() -> None:
    assert spans("select name, 'a")[-1] == ("string", "'a")
    assert ("keyword", "select") in spans("select name, 'a")
    assert ("keyword", "name") not in spans("select name, 'a")
    assert spans("/*+ OPTIONS") == [("hint", "/*+ OPTIONS")]
    for text in ("SELECT `a b`, 1.5e3 FROM x -- end\nWHERE y", "/* a\nb */ SELECT 'x\ny'"):
        assert "".join(part for _, part in spans(text)) == text
