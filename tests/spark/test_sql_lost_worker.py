"""Two SQL jobs at once on embedded Spark: their workers are killed, and what is left is right."""

from __future__ import annotations

import datetime as dt
import os
import signal
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.common.types import RowKind
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.connectors.client.collect_sink import CollectSink
from firesteel.datastream import MapFunction, RuntimeContext
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.table import Schema, StreamTableEnvironment

ROWS = 360
TYPE = Types.ROW_NAMED(["id", "k", "v"], [Types.LONG(), Types.INT(), Types.LONG()])
BEST = """
SELECT g.grp, COUNT(*) AS n, COUNT(DISTINCT b.k) AS ks, MIN(b.total) AS low, MAX(o.n) AS orders_
FROM (SELECT k, total FROM (
    SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC, k) AS place FROM (
        SELECT k, SUM(v) AS total FROM t WHERE k IS NOT NULL GROUP BY k)) WHERE place <= 5) b
LEFT JOIN (SELECT k, MIN(MOD(k, 2)) AS grp FROM t GROUP BY k) g ON b.k = g.k
LEFT JOIN (SELECT k, COUNT(*) AS n FROM t GROUP BY k) o ON b.k = o.k
GROUP BY g.grp HAVING COUNT(*) > 0"""
SESSIONS = """
SELECT k, CAST(window_start AS STRING) AS began, COUNT(*) AS n, SUM(v) AS total
FROM TABLE(SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '4' SECOND)) GROUP BY k, window_start, window_end"""


def _row(index: int) -> Row:
    return Row(index, None if index % 11 == 5 else index * 7 % 9, index * 37 % 101)


class _Seconds(TimestampAssigner):
    def extract_timestamp(self, value: Row, record_timestamp: int) -> int:
        # rows of a key come every nine seconds, or four
        return (int(value[0]) // 2 * 2 + int(value[0]) // 40 * 7) * 1000


class _WithAttempt(MapFunction):
    """The kind and the values of a row, and the attempt and the process that emitted it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value: Row) -> Any:
        return value.get_row_kind().value, tuple(value), self.attempt, os.getpid()


def _start(env: Any, query: str, channel: str) -> tuple[Any, Any]:
    source = DataGeneratorSource(_row, ROWS, RateLimiterStrategy.per_second(60), TYPE)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Seconds())
    stream = env.from_source(source, strategy, "rows", TYPE).set_parallelism(1)
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set_local_timezone("UTC")
    schema = Schema.new_builder().column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "rowtime")
    schema = schema.watermark("ts", "SOURCE_WATERMARK()")
    t_env.create_temporary_view("t", t_env.from_data_stream(stream, schema.build()))
    changes = t_env.to_changelog_stream(t_env.sql_query(query))
    changes.map(_WithAttempt()).sink_to(CollectSink(channel))
    client = env.execute_async(channel)
    return client, client._handle.collect_iterator(channel)


def _killed_twice(rows: Any) -> Counter[tuple[Any, ...]]:
    """The rows that are left; in each of the first two attempts, the process of the first row is killed."""
    left: Counter[tuple[Any, ...]] = Counter()
    killed: set[int] = set()
    for kind, values, attempt, pid in rows:
        left[values] += 1 if RowKind(kind) in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1
        if attempt not in killed and len(killed) < 2:
            os.kill(pid, signal.SIGKILL)
            killed.add(attempt)
    assert len(killed) == 2
    return Counter({row: count for row, count in left.items() if count})


def _best() -> Counter[tuple[Any, ...]]:
    totals: Counter[int] = Counter()
    counts: Counter[int] = Counter()
    for _, k, v in map(_row, range(ROWS)):
        if k is not None:
            totals[k] += v
            counts[k] += 1
    first = sorted(totals, key=lambda k: (-totals[k], k))[:5]
    groups = {k % 2 for k in first}
    return Counter(
        (
            group,
            len(members := [k for k in first if k % 2 == group]),
            len(members),
            min(totals[k] for k in members),
            max(counts[k] for k in members),
        )
        for group in groups
    )


def _sessions() -> Counter[tuple[Any, ...]]:
    by_key: dict[Any, list[tuple[int, int]]] = {}
    for row in map(_row, range(ROWS)):
        by_key.setdefault(row[1], []).append((_Seconds().extract_timestamp(row, 0), row[2]))
    found = []
    for k, members in by_key.items():
        sessions: list[list[tuple[int, int]]] = []
        for time, v in sorted(members):
            if sessions and time <= sessions[-1][-1][0] + 4000:
                sessions[-1].append((time, v))
            else:
                sessions.append([(time, v)])
        for session in sessions:
            began = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=session[0][0])  # noqa: DTZ001
            found.append((k, f"{began}.000", len(session), sum(v for _, v in session)))
    return Counter(found)


def test_two_sql_jobs_whose_workers_are_killed(spark_env: Any, tmp_path: Path) -> None:
    settings = {
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": str(tmp_path),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "10",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    best, best_rows = _start(spark_env(2, settings), BEST, "best")
    sessions, session_rows = _start(spark_env(2, settings), SESSIONS, "sessions")
    with ThreadPoolExecutor(2) as threads:
        found = threads.map(_killed_twice, (best_rows, session_rows))
    assert list(found) == [_best(), _sessions()]
    for client in (best, sessions):
        client.get_job_execution_result().result(120)
        assert len(client._handle.snapshot.exception_history) >= 2
