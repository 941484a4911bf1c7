"""``firesteel sql`` with a SQL gateway."""

from __future__ import annotations

import re

import pytest

from firesteel.cli.main import main
from firesteel.cli.sql.editing.names import SessionNames
from firesteel.cli.sql.execution.feed import Feed
from firesteel.cli.sql.execution.gateway import GatewayExecutor
from firesteel.cli.sql.execution.result import ResultKind
from firesteel.common.errors import FiresteelError
from firesteel.table.parser.statements.base import Source
from firesteel.testing import eventually
from tests.support.rest.cluster_in_process import InProcessCluster

SCRIPT = """
CREATE TABLE nowhere (id INT, name STRING) WITH ('connector' = 'blackhole');
SET 'sql-client.display.print-time-cost' = 'false';
SELECT * FROM (VALUES (1, 'a'), (2, CAST(NULL AS STRING))) AS t(id, name);
SHOW TABLES;
INSERT INTO nowhere VALUES (1, 'a');
EXPLAIN SELECT 1 AS x;
SELECT x FROM (VALUES (1)) AS t(y);
"""


def test_a_script(cluster: InProcessCluster, capsys: pytest.CaptureFixture[str]) -> None:
    token = ["-D", f"rest.token-file={cluster.token_file}"]
    assert main(["sql", "gateway", "-e", cluster.url, *token, "-f", "does-not-exist.sql"]) == 2
    assert main(["sql", "--gateway", cluster.url, *token, "-e", SCRIPT]) == 1
    captured = capsys.readouterr()
    out = re.sub(r"Job ID: \w{32}", "Job ID: …", captured.out)
    assert out.startswith(
        "[INFO] Execute statement succeeded.\n"
        "[INFO] Execute statement succeeded.\n"
        "+----+-------------+--------------------------------+\n"
        "| op |          id |                           name |\n"
        "+----+-------------+--------------------------------+\n"
        "| +I |           1 |                              a |\n"
        "| +I |           2 |                         <NULL> |\n"
        "+----+-------------+--------------------------------+\n"
        "Received a total of 2 rows\n"
        "+------------+\n"
        "| table name |\n"
        "+------------+\n"
        "|    nowhere |\n"
        "+------------+\n"
        "1 row in set\n"
        "[INFO] Submitting SQL update statement to the cluster...\n"
        "Job ID: …\n"
        "[INFO] Complete execution of the SQL update statement.\n"
        "== Abstract Syntax Tree ==\n"
    )
    assert captured.err.splitlines()[1].startswith("firesteel: Column 'x' not found.")
    assert "server side" not in captured.err


def test_a_query_without_end(cluster: InProcessCluster) -> None:
    executor = GatewayExecutor.open(cluster.url, "test", {"rest.token-file": str(cluster.token_file)})
    try:
        create = "CREATE TABLE g (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')"
        assert executor.execute(_source(create)).kind is ResultKind.OK
        names = SessionNames(executor.ask)
        assert names.tables() == ["g"]
        assert names.columns(["g"]) == ["a"]
        result = executor.execute(_source("SELECT a FROM g"))
        assert result.kind is ResultKind.QUERY
        assert result.row_type.as_summary_string() == "ROW<`a` INT>"
        feed = Feed(result.rows)
        eventually(lambda: bool(feed.take(0.1)))
        feed.cancel()
        feed.join()
        assert feed.take() is None
        with pytest.raises(FiresteelError, match="not found"):
            executor.execute(_source("SELECT * FROM nothing"))
        executor.execute(_source("BEGIN STATEMENT SET"))
        assert executor.in_statement_set()
        assert executor.ask("SHOW TABLES") == []
    finally:
        executor.close()


def test_no_gateway() -> None:
    assert main(["sql", "gateway", "-e", "localhost:1", "-f", __file__]) == 3


def _source(sql: str) -> Source:
    return Source(sql, 0, len(sql))
