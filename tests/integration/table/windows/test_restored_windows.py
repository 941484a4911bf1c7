"""Queries of windows that are stopped with a savepoint and go on at another parallelism, on the other backend."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.state.registry import BACKENDS
from firesteel.testing.eventually import eventually
from tests.support.jobs.checkpointed_jobs import DEADLINE_S, checkpointed
from tests.support.sql_windows.running import comparable, stream_of
from tests.support.sql_windows.tables import RECORDED

RESULTS: dict[str, Any] = json.loads((RECORDED / "results.json").read_text("utf-8"))
OTHER = dict(zip(BACKENDS, [*BACKENDS][1:] + [*BACKENDS][:1], strict=True))
PARTS = (
    "COUNT(DISTINCT item) AS d, COUNT(DISTINCT bidder) FILTER",
    "AVG(amount) AS s FROM TABLE(HOP(",
    "SUM(price) AS s FROM TABLE(CUMULATE(",
    "COUNT(DISTINCT bidder) AS c, SUM(amount) AS s, MAX(cost) AS m FROM TABLE(SESSION(",
    "window_time FROM TABLE(SESSION(",
    "FULL JOIN (SELECT * FROM TABLE(HOP(",
    "ORDER BY price DESC) AS rn FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND))) WHERE rn <= 2",
    "WITH w AS (SELECT item, window_time AS rt, COUNT(*) AS c FROM TABLE(HOP(",
)


@pytest.mark.parametrize("backend", sorted(OTHER))
@pytest.mark.parametrize("part", PARTS)
def test_restored(part: str, backend: str, in_process_env: Any, tmp_path: Path) -> None:
    (query,) = (query for query in RESULTS if part in query)
    first = checkpointed(in_process_env(2), tmp_path, state__backend__type=backend)
    client, channel = start(query, first)
    handle = client._handle
    eventually(lambda: handle.checkpoint_statistics()["counts"]["completed"] >= 1, DEADLINE_S)
    stopped = client.stop_with_savepoint(False, str(tmp_path / "savepoints"))
    rows = list(handle.collect_iterator(channel))
    client.get_job_execution_result().result(DEADLINE_S)
    path = stopped.result(DEADLINE_S)
    settings = {"state__backend__type": OTHER[backend], "execution__state_recovery__path": path}
    client, channel = start(query, checkpointed(in_process_env(3), tmp_path, **settings))
    more = list(client._handle.collect_iterator(channel))
    client.get_job_execution_result().result(DEADLINE_S)
    assert sorted(map(comparable, [*rows, *more]), key=json.dumps) == RESULTS[query]["rows"]


def start(query: str, env: StreamExecutionEnvironment) -> tuple[Any, str]:
    channel = f"collect-{uuid.uuid4().hex}"
    stream_of(query, env).sink_to(CollectSink(channel))
    return env.execute_async("windows"), channel
