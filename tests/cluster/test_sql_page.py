"""The SQL page of the web UI, in a real browser, with a cluster in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.job_status import JobStatus
from firesteel.testing import eventually
from tests.support.rest.browser import WEB, Visit, open_browser, sync_api
from tests.support.rest.cluster_in_process import InProcessCluster

expect = sync_api.expect
SCRIPT = """-- numbers that do not end
CREATE TABLE numbers (a BIGINT, name STRING) WITH (
  'connector' = 'datagen', 'rows-per-second' = '20', 'fields.a.kind' = 'sequence',
  'fields.a.start' = '1', 'fields.a.end' = '1000000', 'fields.name.length' = '3'
);
SELECT a % 3 AS remainder, COUNT(*) AS n FROM numbers GROUP BY a % 3;
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    with Visit(browser) as visit:
        yield visit
        assert visit.problems == []


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[InProcessCluster]:
    settings = {"execution.buffer-timeout.interval": "10 ms"}
    with InProcessCluster(tmp_path / "cluster", settings, WEB) as a_cluster:
        yield a_cluster


def enter(page: Any, text: str) -> None:
    field = page.get_by_label("SQL statements")
    field.fill(text)
    field.press("Escape")


def test_statements_from_the_editor(cluster: InProcessCluster, visit: Visit) -> None:
    visit.expect_problems("500")  # the browser writes down that a statement has failed
    page = visit.page
    token = cluster.token_file.read_text().strip()
    page.add_init_script(f"sessionStorage.setItem('firesteel.token', {json.dumps(token)})")
    page.goto(f"{cluster.url}/#/sql")
    expect(page.get_by_text("There are none yet.")).to_be_visible()

    # both statements, one after the other; the second does not end
    enter(page, SCRIPT)
    page.get_by_label("SQL statements").press("Control+a")
    page.get_by_label("SQL statements").press("Control+Enter")
    expect(page.locator(".sql-keyword").get_by_text("SELECT", exact=True)).to_be_attached()
    result = page.get_by_label("Result", exact=True)
    expect(result.get_by_text("RUNNING")).to_be_visible()
    rows = result.locator("tbody tr")
    expect(rows).to_have_count(3)  # the changes are applied, and do not pile up

    def counted() -> int:
        return sum(int(row.locator("td").nth(1).inner_text()) for row in rows.all())

    first = counted()
    eventually(lambda: counted() > first, timeout=60)
    result.get_by_role("button", name="Changelog").click()
    expect(result.get_by_text("-U").first).to_be_visible()
    result.get_by_role("button", name="Table").click()
    page.get_by_role("button", name="Cancel").click()
    expect(result.get_by_text("CANCELLED")).to_be_visible()
    eventually(lambda: all(job.status is JobStatus.CANCELED for job in cluster.dispatcher.jobs()))

    # the tables of the session
    page.get_by_role("button", name="numbers").click()
    expect(page.get_by_label("Tables").get_by_text("BIGINT")).to_be_visible()

    # completion
    enter(page, "SELECT na FROM numbers")
    field = page.get_by_label("SQL statements")
    field.evaluate("field => field.setSelectionRange(9, 9)")
    field.press("Control+Space")
    expect(page.get_by_role("option", name="name", exact=True)).to_be_visible()
    field.press("Enter")
    expect(field).to_have_value("SELECT name FROM numbers")

    # the plan
    page.get_by_role("button", name="Explain").click()
    expect(result.get_by_text("== Abstract Syntax Tree ==")).to_be_visible()

    # an error, with its place
    enter(page, "SELECT a,\n       nope\nFROM numbers")
    page.get_by_role("button", name="Run").click()
    expect(result.get_by_text("Column 'nope' not found.")).to_be_visible()
    assert "       nope\n       ^" in result.locator("pre").inner_text()
    expect(page.locator(".sql-error")).to_have_text("nope")

    # a session that is gone
    gateway = cluster.gateway.handlers()._gateway
    for session in gateway.sessions():
        gateway.close_session(session.handle)
    field.fill("SHOW CATALOGS")  # Escape would close the message
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("The SQL session has ended")).to_be_visible()
    expect(result.get_by_text("default_catalog")).to_be_visible()
    expect(page.get_by_text("There are none yet.")).to_be_visible()
