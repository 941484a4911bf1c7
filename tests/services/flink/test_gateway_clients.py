"""Flink's own SQL client and JDBC driver on the SQL Gateway."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.testing.eventually import eventually
from tests.support.rest.cluster_in_process import InProcessCluster

CLIENTS = Path(__file__).parents[2] / "support" / "gateway_clients"
JAVA = ("java", "-Xmx400m", "-XX:TieredStopAtLevel=1")
OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util")]
TIMEOUT_S = 300
SCRIPT = """
SET 'sql-client.execution.result-mode' = 'tableau';
CREATE TABLE numbers (a BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH (
  'connector' = 'datagen', 'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '3'
);
DESCRIBE numbers;
SELECT a, a * 2 AS doubled, CAST(NULL AS INT) AS nothing FROM numbers;
SELECT k, COUNT(*) AS n FROM (VALUES 'x', 'x') AS t(k) GROUP BY k;
SELECT MAP[1, 'x'] AS m, TIMESTAMP '2020-01-01 00:00:00' AS ts;
CREATE TABLE hole (a BIGINT) WITH ('connector' = 'blackhole');
BEGIN STATEMENT SET;
INSERT INTO hole SELECT a FROM numbers;
INSERT INTO hole VALUES 4;
END;
SELECT nope FROM numbers;
"""


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("clients")
    copy = (
        "mvn",
        "-q",
        "-f",
        str(CLIENTS / "pom.xml"),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={directory}",
    )
    subprocess.run(copy, check=True)
    return f"{directory}/*"


def run(cluster: InProcessCluster, jars: str, arguments: Sequence[str], home: Path) -> str:
    token = cluster.token_file.read_text().strip()
    environment = {
        **os.environ,
        "FLINK_REST_CLIENT_HEADERS": f"Authorization:Bearer {token}",
        "FLINK_CONF_DIR": str(home),
    }
    command = [*JAVA, f"-Duser.home={home}", *OPENED, "-cp", jars, *arguments]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)


def test_the_clients_of_flink(jars: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").touch()
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT)
    with InProcessCluster(tmp_path / "cluster") as cluster:
        client = ["org.apache.flink.table.client.SqlClient", "gateway", "-e", cluster.address, "-f", str(script)]
        shown = run(cluster, jars, client, home)
        for line in (
            "|    a | BIGINT | FALSE | PRI(a) |        |           |",
            "| +I |                    3 |                    6 |      <NULL> |",
            "| +U |                              x |                    2 |",
            "| +I |                          {1=x} | 2020-01-01 00:00:00 |",
            "org.apache.flink.table.api.ValidationException: Column 'nope' not found. (line 1, column 8)",
        ):
            assert line in shown, shown
        assert "End of exception" not in shown
        job_id = re.search(r"Job ID: ([0-9a-f]{32})", shown)
        assert job_id is not None, shown
        eventually(lambda: cluster.dispatcher.job(job_id[1]).status is JobStatus.FINISHED)

        queries = (
            "SELECT 1 AS a, CAST(1.5 AS DECIMAL(5, 2)) b, TIMESTAMP '2020-01-02 03:04:05' AS c, CAST(NULL AS INT) d",
            "CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole')",
            "SHOW TABLES",
            "SELECT nope",
        )
        program = [str(CLIENTS / "JdbcQueries.java"), f"jdbc:flink://{cluster.address}", *queries]
        # a JVM says which options it has from its environment
        noise = ("SLF4J", "NOTE: Picked up")
        lines = [line for line in run(cluster, jars, program, home).splitlines() if not line.startswith(noise)]
        assert lines == [
            "default_catalog.default_database",
            "a INT NOT NULL,b DECIMAL(5, 2) NOT NULL,c TIMESTAMP(0) NOT NULL,d INT,",
            "1,1.50,2020-01-02 03:04:05.0,null,",
            "no rows",
            "table name STRING,",
            "hole,",
            "failed: org.apache.flink.table.api.ValidationException: Column 'nope' not found. (line 1, column 8)",
        ]
        assert cluster.gateway.handlers()._gateway.sessions() == [], "the clients close their sessions"
