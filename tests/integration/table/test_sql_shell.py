"""The SQL shell, driven by keys; its jobs run in process."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.output import DummyOutput

from firesteel.cli.sql.editing.names import SessionNames
from firesteel.cli.sql.editor import SqlCompleter
from firesteel.cli.sql.execution.embedded import EmbeddedExecutor
from firesteel.cli.sql.shell import Shell
from firesteel.datastream.executor import execution_context
from firesteel.testing import eventually
from firesteel.testing.in_process import InProcessExecutor

ENTER, INTERRUPT, END_OF_INPUT = "\r", "\x03", "\x04"


@pytest.fixture(autouse=True)
def in_process() -> Iterator[None]:
    """Jobs run in process."""
    with execution_context(None, InProcessExecutor()):
        yield


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    """The keyboard."""
    with create_pipe_input() as pipe:
        yield pipe


def _run(keys: PipeInput, typed: str, history: Path | None = None) -> str:
    """What the shell prints, after all keys were typed."""
    printed = io.StringIO()
    keys.send_text(typed)
    executor = EmbeddedExecutor({"table.local-time-zone": "UTC"})
    shell = Shell(lambda: executor, history, "in a test", input=keys, output=DummyOutput(), stdout=printed)
    assert shell.run() == 0
    return printed.getvalue()


def test_statements_of_several_lines(keys: PipeInput, tmp_path: Path) -> None:
    lines = ["CREATE VIEW v AS", "SELECT 1 AS x;", "SHOW VIEWS; DESCRIBE v;", "", "SELECT y FROM v;", "quit"]
    history = tmp_path / "of" / "shell"
    assert _run(keys, "".join(line + ENTER for line in lines), history) == (
        "[INFO] Execute statement succeeded.\n\n"
        "+-----------+\n"
        "| view name |\n"
        "+-----------+\n"
        "|         v |\n"
        "+-----------+\n"
        "1 row in set\n"
        "+------+------+-------+-----+--------+-----------+\n"
        "| name | type |  null | key | extras | watermark |\n"
        "+------+------+-------+-----+--------+-----------+\n"
        "|    x |  INT | FALSE |     |        |           |\n"
        "+------+------+-------+-----+--------+-----------+\n"
        "1 row in set\n\n"
        "[ERROR] Could not execute SQL statement. Reason:\n"
        "Column 'y' not found. (line 1, column 8)\n"
        "SELECT y FROM v;\n"
        "       ^\n"
        "Hint: The columns are x.\n\n"
    )
    assert "+CREATE VIEW v AS\n+SELECT 1 AS x;\n" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_names_are_completed() -> None:
    executor = EmbeddedExecutor({})
    executor.ask("CREATE VIEW customers AS SELECT 1 AS identity_")
    names = SessionNames(executor.ask)
    completer = SqlCompleter(lambda: names)
    for text, expected in (("DESCRIBE cust", "customers"), ("SELECT id FROM customers c WHERE c.", "identity_")):
        found = list(completer.get_completions(Document(text), CompleteEvent()))
        assert found[0].text == expected
    assert not list(SqlCompleter(lambda: None).get_completions(Document("SEL"), CompleteEvent()))


def test_a_query_is_printed(keys: PipeInput) -> None:
    typed = "SET 'sql-client.execution.result-mode' = 'tableau';" + ENTER
    typed += "SET 'sql-client.display.print-time-cost' = 'false';" + ENTER
    typed += "SELECT * FROM (VALUES (1, 'a'), (2, CAST(NULL AS STRING))) AS t(id, name);" + ENTER + END_OF_INPUT
    assert _run(keys, typed).splitlines()[4:-1] == [
        "+----+-------------+--------------------------------+",
        "| op |          id |                           name |",
        "+----+-------------+--------------------------------+",
        "| +I |           1 |                              a |",
        "| +I |           2 |                         <NULL> |",
        "+----+-------------+--------------------------------+",
        "Received a total of 2 rows",
    ]


@pytest.mark.parametrize("mode", ["table", "changelog"])
def test_a_query_on_the_whole_screen(keys: PipeInput, mode: str) -> None:
    typed = f"SET 'sql-client.execution.result-mode' = '{mode}';" + ENTER
    typed += "CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');" + ENTER
    typed += "SELECT * FROM g;" + ENTER + "q" + "SHOW JOBS;" + ENTER + END_OF_INPUT
    out = _run(keys, typed)
    assert "[INFO] Result retrieval cancelled.\n" in out
    assert re.search(r"\| +collect \| CANCEL", out)


def test_inserts_run_in_the_background(keys: PipeInput) -> None:
    typed = "CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');" + ENTER
    typed += "CREATE TABLE nowhere (a INT) WITH ('connector' = 'blackhole');" + ENTER
    typed += "BEGIN STATEMENT SET;" + ENTER + "INSERT INTO nowhere SELECT * FROM g;" + ENTER + "SELECT 1;" + ENTER
    typed += "END;" + ENTER + "SHOW JOBS;" + ENTER + "DESCRIBE JOB 'x';" + ENTER + "QUIT;" + ENTER
    out = _run(keys, typed)
    assert "Only INSERT statements are allowed in a statement set." in out
    job = re.search(
        r"\[INFO\] Submitting SQL update statement to the cluster...\n"
        r"\[INFO\] SQL update statement has been successfully submitted to the cluster:\nJob ID: (\w{32})\n",
        out,
    )
    assert job is not None
    assert f"| {job[1]} | insert-into_default_catalog.default_database.nowhere |" in out
    assert "'x' is not a job id." in out
    assert out.endswith(f"[INFO] Cancelling jobs that run in this process: {job[1]}\n")


def test_jobs_are_stopped(keys: PipeInput) -> None:
    printed = io.StringIO()
    executor = EmbeddedExecutor({})
    keys.send_text("CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1');" + ENTER)
    keys.send_text("CREATE TABLE nowhere (a INT) WITH ('connector' = 'blackhole');" + ENTER)
    keys.send_text("INSERT INTO nowhere SELECT * FROM g;" + ENTER + END_OF_INPUT)
    close = executor.close
    executor.close = lambda: None  # type: ignore[method-assign]
    shell = Shell(lambda: executor, None, "", input=keys, output=DummyOutput(), stdout=printed)
    assert shell.run() == 0
    try:
        (job_id,) = executor.jobs_that_end()
        eventually(lambda: executor.ask(f"DESCRIBE JOB '{job_id}'")[0][2] == "RUNNING")
        executor.ask(f"STOP JOB '{job_id}'")
        eventually(lambda: executor.ask("SHOW JOBS")[0][2] == "CANCELED")
    finally:
        close()


def test_the_plan_is_drawn(keys: PipeInput) -> None:
    typed = "EXPLAIN SELECT x, COUNT(*) AS n FROM (VALUES (1), (2)) AS t(x) GROUP BY x;" + ENTER + END_OF_INPUT
    out = _run(keys, typed)
    assert out.startswith("== Optimized Execution Plan ==\n")
    assert "└── Exchange\n" in out
    assert "│   distribution: hash[x]\n" in out


def test_keys_that_end_things(keys: PipeInput) -> None:
    typed = "SELECT nonsense" + INTERRUPT + "BEGIN STATEMENT SET;" + ENTER + INTERRUPT
    out = _run(keys, typed + "SHOW CURRENT DATABASE;" + ENTER + END_OF_INPUT)
    assert "[ERROR]" not in out
    assert "The statement set is forgotten." in out
    assert "default_database" in out
