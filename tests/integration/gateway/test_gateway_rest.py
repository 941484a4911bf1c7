"""The REST API of the SQL Gateway, with the answers that Flink 2.3 gives."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.gateway.results import MAX_ROWS
from firesteel.testing.eventually import eventually
from tests.support.rest.cluster_in_process import InProcessCluster
from tests.support.rest.gateway_client import GatewayClient, GatewayRefusal

NUMBERS = (
    "CREATE TABLE numbers (a BIGINT) WITH ('connector' = 'datagen', 'fields.a.kind' = 'sequence', "
    "'fields.a.start' = '1', 'fields.a.end' = '{end}', 'rows-per-second' = '1000000')"
)
ENDLESS = "CREATE TABLE endless (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '100000')"
STRING = {"type": "VARCHAR", "nullable": True, "length": 2147483647}
ALL_TYPES = """SELECT TRUE, CAST(1 AS TINYINT), CAST(2 AS SMALLINT), 3, CAST(4 AS BIGINT), CAST(1.5 AS FLOAT), 2.5E0,
  CAST(12.30 AS DECIMAL(10, 2)), CAST('x' AS CHAR(3)), CAST('vv' AS VARCHAR(5)), CAST('s' AS STRING), X'0aff',
  CAST(X'0102' AS BYTES), DATE '2020-01-02', TIME '10:11:12', TIMESTAMP '2020-01-02 03:04:05.123',
  CAST(TIMESTAMP '2020-01-02 03:04:05.123' AS TIMESTAMP_LTZ(3)), ARRAY[1, 2, CAST(NULL AS INT)], MAP['a', 1, 'b', 2],
  CAST(ROW(1, ROW('y', 1.50)) AS ROW<f INT, g ROW<h STRING, i DECIMAL(5, 2)>>), CAST(NULL AS INT),
  INTERVAL '1' YEAR, INTERVAL '2' DAY, CAST('NaN' AS DOUBLE), CAST(1230000 AS DECIMAL(20, 0))"""


def status_of(client: GatewayClient, operation: str) -> str:
    status: str = client.call("GET", f"{operation}/status")["status"]
    return status


def job_of(cluster: InProcessCluster, page: dict[str, Any]) -> Any:
    return cluster.dispatcher.job(page["jobID"])


def test_versions(client: GatewayClient) -> None:
    assert client.call("GET", "/api_versions") == {"versions": ["V1", "V2", "V3", "V4"]}
    assert client.call("GET", "/v1/info")["productName"] == "Firesteel"
    for path in ("/v5/info", "/v1/jobs/overview/x", "/v2/jobs/overview"):
        with pytest.raises(GatewayRefusal) as refusal:
            client.call("GET", path)
        assert refusal.value.status == 404


def test_a_request_without_the_token(cluster: InProcessCluster) -> None:
    with pytest.raises(GatewayRefusal) as refusal:
        GatewayClient(cluster.url, "another").open_session()
    assert refusal.value.status == 401


def test_a_statement_without_a_job(client: GatewayClient, session: str) -> None:
    client.call("POST", f"/sessions/{session}/configure-session", {"statement": NUMBERS.format(end=3)})
    client.version = "/v3"
    operation = client.execute(session, "SHOW TABLES;")
    shared = {"isQueryResult": False, "resultKind": "SUCCESS_WITH_CONTENT"}
    results = {"columns": [{"name": "table name", "logicalType": STRING, "comment": None}], "rowFormat": "JSON"}
    first, last = client.pages(operation)
    assert first == {
        "resultType": "PAYLOAD",
        **shared,
        "results": {**results, "data": [{"kind": "INSERT", "fields": ["numbers"]}]},
        "nextResultUri": f"/v3{operation}/result/1?rowFormat=JSON",
    }
    assert last == {"resultType": "EOS", **shared, "results": {**results, "data": []}}
    assert status_of(client, operation) == "FINISHED"


def test_version_1_has_no_row_format_in_its_uris(client: GatewayClient, session: str) -> None:
    client.version = "/v1"
    operation = client.execute(session, "USE CATALOG default_catalog")
    first, _ = client.pages(operation)
    assert first["nextResultUri"] == f"/v1{operation}/result/1"
    assert first["resultKind"] == "SUCCESS"
    assert first["results"]["data"] == [{"kind": "INSERT", "fields": ["OK"]}]
    with pytest.raises(GatewayRefusal) as refusal:
        client.call("POST", f"/sessions/{session}/configure-session", {"statement": "RESET"})
    assert refusal.value.status == 404


def test_values_of_all_types(client: GatewayClient, session: str) -> None:
    # as Flink 2.3 answers them
    assert client.rows(session, ALL_TYPES) == [
        [
            *(True, 1, 2, 3, 4, 1.5, 2.5, 12.3, "x  ", "vv", "s", "Cv8=", "AQI=", "2020-01-02", "10:11:12"),
            *("2020-01-02T03:04:05.123", "2020-01-02T03:04:05.123Z", [1, 2, None], {"a": 1, "b": 2}),
            *({"f": 1, "g": {"h": "y", "i": 1.5}}, None, 12, 172800000, "NaN", 1230000),
        ]
    ]
    assert client.rows(session, ALL_TYPES, "PLAIN_TEXT") == [
        [
            *("TRUE", "1", "2", "3", "4", "1.5", "2.5", "12.30", "x  ", "vv", "s", "x'0aff'", "x'0102'", "2020-01-02"),
            *("10:11:12", "2020-01-02 03:04:05.123", "2020-01-02 03:04:05.123", "[1, 2, NULL]", "{a=1, b=2}"),
            *("(1, (y, 1.50))", None, "+1-00", "+2 00:00:00.000", "NaN", "1230000"),
        ]
    ]
    page = client.pages(client.execute(session, ALL_TYPES))[0]
    types = [column["logicalType"] for column in page["results"]["columns"]]
    assert types[7] == {"type": "DECIMAL", "nullable": False, "precision": 10, "scale": 2}
    assert types[17] == {"type": "ARRAY", "nullable": False, "elementType": {"type": "INTEGER", "nullable": True}}
    assert types[19]["fields"][1]["fieldType"]["fields"][0] == {"name": "h", "fieldType": STRING}
    assert types[22] == {
        "type": "INTERVAL_DAY_TIME",
        "nullable": False,
        "precision": 2,
        "fractionalPrecision": 3,
        "resolution": "SECOND",
    }


def test_values_that_have_no_json(client: GatewayClient, session: str) -> None:
    assert client.rows(session, "SELECT MAP[1, 'x']", "PLAIN_TEXT") == [["{1=x}"]]
    with pytest.raises(GatewayRefusal, match="Could not map response to JSON"):
        client.rows(session, "SELECT MAP[1, 'x']")


def test_a_changelog(client: GatewayClient, session: str) -> None:
    sql = "SELECT a, COUNT(*) FROM (VALUES 1, 1, 2) AS t(a) GROUP BY a"
    found = client.rows(session, sql)
    assert sorted(row for row in found if isinstance(row, list)) == [[1, 1], [2, 1]]
    assert [row for row in found if isinstance(row, tuple)] == [("UPDATE_BEFORE", [1, 1]), ("UPDATE_AFTER", [1, 2])]


def test_pages_of_many_rows(client: GatewayClient, session: str) -> None:
    client.rows(session, NUMBERS.format(end=3 * MAX_ROWS))
    pages = client.pages(client.execute(session, "SELECT a FROM numbers"))
    assert max(len(page["results"]["data"]) for page in pages) <= MAX_ROWS
    values = [row["fields"][0] for page in pages for row in page["results"]["data"]]
    assert values == list(range(1, 3 * MAX_ROWS + 1))


def test_tokens(client: GatewayClient, session: str) -> None:
    client.rows(session, NUMBERS.format(end=2))
    operation = client.execute(session, "SELECT a FROM numbers")
    pages = client.pages(operation)
    last = len(pages) - 1
    # the answer may have been lost
    assert client.call("GET", f"{operation}/result/{last}")["resultType"] == "EOS"
    assert client.call("GET", f"{operation}/result/{last}")["results"]["data"] == []
    for token, message in ((last + 3, "Expecting token to be"), (-1, "Expecting token to be")):
        with pytest.raises(GatewayRefusal, match=message) as refusal:
            client.call("GET", f"{operation}/result/{token}")
        assert refusal.value.status == 500
    for uri in (f"{operation}/result/x", f"{operation}/result/0?rowFormat=XML"):
        with pytest.raises(GatewayRefusal, match="Cannot resolve") as refusal:
            client.call("GET", uri)
        assert refusal.value.status == 400


def test_a_client_that_does_not_fetch(client: GatewayClient, session: str, cluster: InProcessCluster) -> None:
    client.rows(session, ENDLESS)
    operation = client.execute(session, "SELECT a FROM endless")
    eventually(lambda: status_of(client, operation) == "FINISHED")
    kept = cluster.gateway.handlers()._gateway.session(session).operations.get(operation.rpartition("/")[2])._pages
    assert kept is not None
    eventually(lambda: kept._waiting_rows >= MAX_ROWS)
    page = client.call("GET", f"{operation}/result/0?rowFormat=JSON")
    job = job_of(cluster, page)
    assert job.status is JobStatus.RUNNING
    assert len(page["results"]["data"]) == MAX_ROWS
    # its rows wait in the job, not here
    assert client.call("GET", f"{operation}/result/0?rowFormat=JSON") == page
    assert client.call("DELETE", f"{operation}/close") == {"status": "CLOSED"}
    eventually(lambda: job.status is JobStatus.CANCELED)
    with pytest.raises(GatewayRefusal, match="Can not find the submitted operation"):
        status_of(client, operation)


def test_a_query_that_fails(client: GatewayClient, session: str) -> None:
    with pytest.raises(GatewayRefusal, match="Cannot cast 'x' to DOUBLE"):
        client.rows(session, "SELECT CAST(a AS DOUBLE) FROM (VALUES 'x') AS t(a)")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nope FROM (VALUES 1) AS t(a)", r"org\.apache\.flink\.table\.api\.ValidationException: .*nope"),
        ("SELECT 1 +", r"org\.apache\.flink\.table\.api\.SqlParserException: .*\nSELECT 1 \+\n +\^"),
        ("SELECT 1; SELECT 2", "SqlParserException"),
        ("", "statement is empty"),
        ("END", "no statement set"),
    ],
)
def test_a_statement_that_is_wrong(client: GatewayClient, session: str, sql: str, message: str) -> None:
    operation = client.execute(session, sql)
    with pytest.raises(GatewayRefusal, match=message) as refusal:
        client.pages(operation)
    assert refusal.value.status == 500
    assert status_of(client, operation) == "ERROR"


def test_inserts(client: GatewayClient, session: str, cluster: InProcessCluster) -> None:
    client.rows(session, "CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole')")
    page, _ = client.pages(client.execute(session, "INSERT INTO hole VALUES 1"))
    assert page["results"]["columns"] == [{"name": "job id", "logicalType": STRING, "comment": None}]
    assert page["results"]["data"] == [{"kind": "INSERT", "fields": [page["jobID"]]}]
    eventually(lambda: job_of(cluster, page).status is JobStatus.FINISHED)
    for sql in ("BEGIN STATEMENT SET", "INSERT INTO hole VALUES 1", "INSERT INTO hole VALUES 2"):
        assert client.rows(session, sql) == [["OK"]]
    with pytest.raises(GatewayRefusal, match="Only INSERT"):
        client.rows(session, "SHOW TABLES")
    sync = {"executionConfig": {"table.dml-sync": "true"}}
    page, _ = client.pages(client.execute(session, "END", **sync))
    assert job_of(cluster, page).status is JobStatus.FINISHED
    assert "table.dml-sync" not in client.call("GET", f"/sessions/{session}")["properties"]


def test_cancelling_an_insert_that_is_waited_for(
    client: GatewayClient, session: str, cluster: InProcessCluster
) -> None:
    client.rows(session, ENDLESS)
    client.rows(session, "CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole')")
    known = {job.job_id for job in cluster.dispatcher.jobs()}
    sync = {"executionConfig": {"table.dml-sync": "true"}}
    operation = client.execute(session, "INSERT INTO hole SELECT a FROM endless", **sync)
    waiting = client.execute(session, "SHOW TABLES")
    started = eventually(lambda: [job for job in cluster.dispatcher.jobs() if job.job_id not in known])
    assert status_of(client, waiting) == "PENDING"
    assert client.call("GET", f"{waiting}/result/0")["resultType"] == "NOT_READY"
    assert client.call("POST", f"{operation}/cancel") == {"status": "CANCELED"}
    eventually(lambda: started[0].status is JobStatus.CANCELED)
    assert status_of(client, operation) == "CANCELED"
    with pytest.raises(GatewayRefusal, match="in CANCELED status"):
        client.call("GET", f"{operation}/result/0")
    with pytest.raises(GatewayRefusal, match="from CANCELED to CANCELED"):
        client.call("POST", f"{operation}/cancel")
    # the next one had to wait for it
    assert client.pages(waiting)[0]["results"]["data"]


def test_closing_a_session(client: GatewayClient, cluster: InProcessCluster) -> None:
    session = client.open_session(**{"pipeline.name": "mine", "s3.secret-key": "hidden"})
    properties = client.call("GET", f"/sessions/{session}")["properties"]
    assert properties["pipeline.name"] == "mine"
    assert properties["s3.secret-key"] == "******"
    assert client.call("POST", f"/sessions/{session}/heartbeat") == {}
    client.rows(session, ENDLESS)
    client.rows(session, "CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole')")
    page, _ = client.pages(client.execute(session, "INSERT INTO hole SELECT a FROM endless"))
    operation = client.execute(session, "SELECT a FROM endless")
    query = eventually(lambda: client.call("GET", f"{operation}/result/0").get("jobID"))
    assert client.call("DELETE", f"/sessions/{session}") == {"status": "CLOSED"}
    eventually(lambda: cluster.dispatcher.job(query).status is JobStatus.CANCELED)
    insert = job_of(cluster, page)
    assert insert.status is JobStatus.RUNNING, "the job of an INSERT outlives its session"
    other = client.open_session()
    shown = {row[0]: row for row in client.rows(other, "SHOW JOBS")}
    assert shown[page["jobID"]][2] == "RUNNING"
    assert client.rows(other, f"STOP JOB '{page['jobID']}'") == [["OK"]]
    eventually(lambda: insert.status is JobStatus.CANCELED)


def test_sessions_do_not_see_each_other(client: GatewayClient, session: str) -> None:
    client.rows(session, "CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole')")
    other = client.open_session()
    assert client.rows(other, "SHOW TABLES") == []
    client.call("DELETE", f"/sessions/{other}")


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/sessions/{unknown}", "Session '{unknown}' does not exist."),
        ("DELETE", "/sessions/{unknown}", "Session '{unknown}' does not exist."),
        ("POST", "/sessions/{unknown}/heartbeat", "Session '{unknown}' does not exist."),
        ("POST", "/sessions/{unknown}/statements", "Session '{unknown}' does not exist."),
        ("GET", "/sessions/{session}/operations/{unknown}/status", "with the {unknown}."),
        ("GET", "/sessions/{session}/operations/{unknown}/result/0", "with the {unknown}."),
        ("POST", "/sessions/{session}/operations/{unknown}/cancel", "with the {unknown}."),
    ],
)
def test_unknown_handles(client: GatewayClient, session: str, method: str, path: str, message: str) -> None:
    unknown = str(uuid.uuid4())
    with pytest.raises(GatewayRefusal) as refusal:
        client.call(method, path.format(unknown=unknown, session=session), {} if method == "POST" else None)
    assert refusal.value.status == 500
    assert message.format(unknown=unknown) in str(refusal.value)


def test_a_handle_that_is_none(client: GatewayClient) -> None:
    with pytest.raises(GatewayRefusal, match="session_handle") as refusal:
        client.call("GET", "/sessions/mine")
    assert refusal.value.status == 400


def test_statements_for_configuring_only(client: GatewayClient, session: str) -> None:
    path = f"/sessions/{session}/configure-session"
    assert client.call("POST", path, {"statement": "SET 'pipeline.name' = 'x'"}) == {}
    with pytest.raises(GatewayRefusal, match="Unsupported statement for configuring session: SELECT 1"):
        client.call("POST", path, {"statement": "SELECT 1"})
    with pytest.raises(GatewayRefusal, match="doesn't support timeout"):
        client.execute(session, "SELECT 1", executionTimeout=10)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SHOW TA", ["TABLES"]),
        ("SELECT * FROM nu", ["numbers"]),
        ("SELECT * FROM default_catalog.default_database.", ["default_catalog.default_database.numbers"]),
        ("SELECT |first FROM numbers", ["first_", "numbers", "default_catalog"]),
        ("SELECT UNIX_T| FROM numbers", ["UNIX_TIMESTAMP"]),
        ("INS", ["INSERT INTO"]),
        ("SELECT 1 FROM nothing WHERE x", []),
        ("USE d", ["default_database"]),
    ],
)
def test_completion(client: GatewayClient, session: str, statement: str, expected: list[str]) -> None:
    client.rows(session, "CREATE TABLE numbers (first_ INT) WITH ('connector' = 'blackhole')")
    text, _, rest = statement.partition("|")
    body = {"statement": text + rest, "position": len(text)}
    found = client.call("POST", f"/sessions/{session}/complete-statement", body)["candidates"]
    if expected:
        assert found[: len(expected)] == expected
    assert client.call("GET", f"/sessions/{session}/complete-statement", body)["candidates"] == found
