"""``firesteel sql``: scripts, their output, errors with their place, and exit codes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.cli.main import main
from firesteel.datastream.executor import execution_context
from firesteel.testing.in_process import InProcessExecutor

SCRIPT = """\
-- semicolons in strings and comments; do not end statements
CREATE TABLE target (a INT, b STRING) WITH ('connector' = 'print');
INSERT INTO target VALUES (1, 'x;y');
SELECT a.x + 1 AS y
FROM (VALUES (1), (2)) AS a(x);
SHOW TABLES;
"""


@pytest.fixture(autouse=True)
def in_process() -> Iterator[None]:
    """Jobs run in process."""
    with execution_context(None, InProcessExecutor()):
        yield


def test_a_script(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "script.sql"
    file.write_text(SCRIPT, "utf-8")
    assert main(["sql", "-f", str(file), "-e", "SHOW VIEWS"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "[INFO] Execute statement succeeded."
    assert lines[1] == "[INFO] Submitting SQL update statement to the cluster..."
    start = lines.index("+----+-------------+")
    assert lines[start + 6].startswith("Received a total of 2 rows (")
    assert lines[start:] == [
        "+----+-------------+",
        "| op |           y |",
        "+----+-------------+",
        "| +I |           2 |",
        "| +I |           3 |",
        "+----+-------------+",
        lines[start + 6],
        "+------------+",
        "| table name |",
        "+------------+",
        "|     target |",
        "+------------+",
        "1 row in set",
        "Empty set",
    ]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SHOW TABLES;\nSELEC 1", 'SQL parse failed at line 2, column 1: Unexpected "SELEC"'),
        ("SHOW TABLES;\nSELECT *\n FROM nope", "Object 'nope' not found (line 3, column 7)\n FROM nope;\n      ^"),
        ("SELECT 1;\nSELECT 1 + X'00'", "(line 2, column 8)\nSELECT 1 + X'00';\n       ^"),
        ("BEGIN STATEMENT SET;\nSELECT 1", "Only INSERT statements are allowed in a statement set."),
        ("BEGIN STATEMENT SET", "The statement set has no END."),
    ],
)
def test_the_first_error_ends_the_script(sql: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-e", f"{sql};\nSHOW CATALOGS" if "has no END" not in message else sql]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert "catalog name" not in captured.out


def test_statement_sets(capfd: pytest.CaptureFixture[str]) -> None:
    sql = """
    CREATE TABLE a (x INT) WITH ('connector' = 'print', 'print-identifier' = 'a');
    CREATE TABLE b (x INT) WITH ('connector' = 'print', 'print-identifier' = 'b');
    BEGIN STATEMENT SET;
    INSERT INTO a VALUES (1);
    INSERT INTO b VALUES (2);
    END;
    """
    assert main(["sql", "-e", sql]) == 0
    out = capfd.readouterr().out
    assert out.count("Job ID") == 1
    assert out.count("[INFO] Execute statement succeeded.") == 5
    assert out.count("[INFO] Complete execution of the SQL update statement.") == 1


def test_options_are_set(capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SET 'execution.runtime-mode' = 'batch'; SET 'table.display.max-column-width' = '5'; SELECT 'longer than' a"
    assert main(["sql", "-e", sql]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:-1] == ["+-------+", "|     a |", "+-------+", "| lo... |", "+-------+"]
    assert lines[-1].startswith("1 row in set (")


def test_no_statements() -> None:
    assert main(["sql"]) == 2
    assert main(["sql", "-f", "does-not-exist.sql"]) == 2


def test_warnings_have_no_line_of_code(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["sql", "-e", "SET 'table.exec.state.ttll' = '1 d'; SELECT 1"]) == 0
    message = "'table.exec.state.ttll' is not a configuration key. Did you mean 'table.exec.state.ttl'?"
    assert capsys.readouterr().err == f"firesteel: warning: {message}\n"


def test_the_nearest_option_of_a_connector(capsys: pytest.CaptureFixture[str]) -> None:
    table = "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'rows-per-secnd' = '1')"
    assert main(["sql", "-e", f"{table}; SELECT * FROM t"]) == 1
    assert "Did you mean 'rows-per-second'?" in capsys.readouterr().err


def test_the_plan_of_a_job_has_what_operators_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "-e", "EXPLAIN JSON_EXECUTION_PLAN SELECT x + 1 AS y FROM (VALUES (1), (2)) AS a(x)"]) == 0
    assert '"contents": "Calc(select=[PLUS(EXPR$0, 1) AS y])"' in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_one_query_as_a_stream_and_as_a_batch(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(__file__).parents[3] / "examples" / "kappa.sql"
    assert main(["sql", "-D", f"execution.runtime-mode={mode}", "-f", str(file)]) == 0
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("| ") and "customer" not in line
    ]
    if mode == "streaming":
        final: dict[str, list[str]] = {}
        for kind, *row in rows:
            if kind in ("+I", "+U"):
                final[row[0]] = row
        rows = list(final.values())
    assert sorted(rows) == [["0", "33", "1683"], ["1", "34", "1717"], ["2", "33", "1650"]]


def test_the_tables_of_the_auctions(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(__file__).parents[3] / "examples" / "auctions.sql"
    insert = (
        "INSERT INTO bids SELECT bid.auction, bid.bidder, bid.price, bid.`dateTime` FROM events WHERE event_type = 2"
    )
    sql = f"EXPLAIN {insert}; EXPLAIN SELECT * FROM hottest_auctions"
    assert main(["sql", "-i", str(file), "-e", sql]) == 0
    assert "Rank(" in capsys.readouterr().out
