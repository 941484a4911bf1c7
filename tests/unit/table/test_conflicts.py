"""INSERT with ON CONFLICT, against what Flink 2.3 has written and refused.

``scripts/record_flink_conflicts.py`` has recorded it: every row has a watermark behind it.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.types import RowKind
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.operators.checkpointed import StateInitializationContext
from firesteel.table import DataTypes, EnvironmentSettings, TableEnvironment
from firesteel.table.bound.errors import EvaluationError, ValidationError
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.sink import DynamicTableSink, SinkContext
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.plan.nodes import LogicalNode
from firesteel.table.plan.source_watermarks import SourceWatermark
from firesteel.table.plan.streaming import Sink
from firesteel.table.rules.optimizer import optimize
from firesteel.table.rules.options import OptimizerOptions
from firesteel.table.runtime.operators.ranks.compacting import CompactingMaterializeSpec, WatermarkStampsSpec
from firesteel.testing.clock import FakeClock
from firesteel.testing.operator_context import FAKE_RUNTIME, FakeOperatorContext
from firesteel.types.logical import RowType, TimestampKind, TimestampType
from tests.support.sql_harness import HarnessTable, QueryHarness
from tests.support.state.keyed_backends import Workbench

RECORDED = json.loads((Path(__file__).parent / "conflicts.json").read_text("utf-8"))
ROWTIME = TimestampType(3, TimestampKind.ROWTIME)
TYPE = RowType.of(
    ["id", "k", "v", "ts"], [DataTypes.INT(), DataTypes.STRING(), DataTypes.INT(), ROWTIME], nullable=False
)
PAIR = RowType.of(["k", "s"], [DataTypes.INT(), DataTypes.STRING()], nullable=False)
KINDS = {"c": (None, "+I"), "u": ("-U", "+U"), "d": ("-D", None)}


class Upserting(DynamicTableSink):
    """Takes upserts."""

    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        return ChangelogMode.upsert()

    def consume(self, stream: Any, context: SinkContext) -> Any:
        raise AssertionError("only its input runs")

    def as_summary_string(self) -> str:
        return "upserting"


class InsertHarness(QueryHarness):
    """The rows that an INSERT writes."""

    def __init__(self, sql: str, tables: dict[str, HarnessTable], key: int, clause: str | None) -> None:
        self._sink = Sink(None, None, Upserting(), (key,), clause)  # type: ignore[arg-type]
        super().__init__(sql, tables, {"table.exec.mini-batch.enabled": "false"})

    def _resolve(self, path: Any, options: Any) -> LogicalNode:
        return SourceWatermark(super()._resolve(path, options), TYPE, 3)

    def _optimized(self, query: LogicalNode, options: OptimizerOptions) -> LogicalNode:
        return optimize(replace(self._sink, input=query), replace(options, require_on_conflict=True)).inputs()[0]


def _table(name: str) -> HarnessTable:
    if name == "appended":
        return HarnessTable(name, TYPE)
    return HarnessTable(name, TYPE, ChangelogMode.all(), () if name == "keyless" else (0,))


def _run(case: dict[str, Any]) -> list[str]:
    query = InsertHarness(case["query"], {case["table"]: _table(case["table"])}, case["key"], case["clause"])
    watermark = -1
    for op, before, after in RECORDED["tables"][case["table"]]:
        for kind, row in zip(KINDS[op], (before, after), strict=True):
            if kind is not None:
                query.push(case["table"], [(kind, (*row[:3], row[3] * 1000))])
        if after is not None and after[3] * 1000 > watermark:
            watermark = after[3] * 1000
            query.watermark(watermark)
    query.watermark(MAX_WATERMARK)
    return [f"{kind}[{', '.join(map(str, row))}]" for kind, row in query.take()]


@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: f"{case['query']} {case['clause']}")
def test_recorded(case: dict[str, Any]) -> None:
    if "error" not in case:
        # rows before updates are left out before the sink
        assert [row for row in _run(case) if not row.startswith("-U")] == case["rows"]
        return
    with pytest.raises((ValidationError, EvaluationError)) as raised:
        _run(case)
    # Flink names the tables and columns of its stream, and has no word for no key
    expected = re.sub(r"upsert key: \.", "upsert key: none.", case["error"]).partition("'.")[2] or case["error"]
    assert expected in str(raised.value)


class Attempt:
    """A subtask before the exchange, and one behind it that has the state of the attempt before."""

    def __init__(self, context: FakeOperatorContext, restored: int | None, ttl_ms: int = 0) -> None:
        spec = CompactingMaterializeSpec((0,), (), False, PAIR, ttl_ms=ttl_ms)
        self._stamps = WatermarkStampsSpec().create(FAKE_RUNTIME)
        self._stamped = FakeOperatorContext(None)
        self._stamped.emit = lambda values, _: self._operator.process_columns(values)  # type: ignore[method-assign, assignment]
        self._stamps.open(self._stamped)
        self._operator = spec.create(FAKE_RUNTIME)
        self._operator.initialize_state(StateInitializationContext(context, restored))
        self._operator.open(context)
        context.emit = self._keep  # type: ignore[method-assign, assignment]
        self.written: list[tuple[int, tuple[Any, ...]]] = []

    def _keep(self, batch: ColumnBatch, _: Any) -> None:
        kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        self.written += zip(kinds, zip(*batch.data.to_pydict().values(), strict=True), strict=True)

    def push(self, kind: RowKind, row: tuple[Any, ...], stamp: int) -> None:
        self._stamps.fire_timers(stamp)
        self._stamps.process_columns(batch_of([row], PAIR, [kind]))

    def watermark(self, timestamp: int) -> list[tuple[int, tuple[Any, ...]]]:
        self._operator.process_watermark(timestamp)
        written, self.written = self.written, []
        return written


def test_restored_changes_are_applied_before_those_with_an_earlier_stamp() -> None:
    context = FakeOperatorContext(None)
    first = Attempt(context, None)
    first.push(RowKind.INSERT, (1, "a"), 10)
    assert first.watermark(10) == []
    context = FakeOperatorContext(None, backend=context.backend)
    second = Attempt(context, 3)
    assert second.watermark(4) == []  # that of the checkpoint: the smallest of all subtasks
    second.push(RowKind.DELETE, (1, "a"), 4)
    second.push(RowKind.INSERT, (1, "b"), 4)
    assert second.watermark(5) == [(0, (1, "b"))]
    second.push(RowKind.DELETE, (1, "b"), 5)
    assert second.watermark(5) == []
    assert second.watermark(6) == [(3, (1, "b"))]
    assert list(context.backend.keys("waiting")) == []  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["hashmap", "rocksdb"])
def test_changes_wait_across_another_parallelism(kind: str) -> None:
    bench = Workbench(kind, 8, FakeClock(1000))
    try:
        backend = bench.backend()
        first = Attempt(FakeOperatorContext(None, backend=backend), None)
        for key in range(20):
            first.push(RowKind.INSERT, (key, "a"), 10)
        assert len(first.watermark(11)) == 20
        for key in range(20):
            first.push(RowKind.DELETE, (key, "a"), 12)
            first.push(RowKind.INSERT, (key, "b"), 13)
        handle = bench.snapshot(backend, SnapshotKind.SAVEPOINT)
        found: dict[Any, Any] = {}
        for groups in (KeyGroupRange(0, 2), KeyGroupRange(3, 7)):
            part = bench.restore([handle], groups)
            held = set(part.keys("waiting"))
            second = Attempt(FakeOperatorContext(None, backend=part), 5)
            second.watermark(3)
            for key in held & {1, 2, 3, 4, 5}:
                second.push(RowKind.DELETE, (key, "b"), 3)
            changes = second.watermark(MAX_WATERMARK)
            assert {row[0] for _, row in changes} == held
            found.update({row[0]: (kind, row[1]) for kind, row in changes})
        assert found == {key: (3, "a") if key in range(1, 6) else (2, "b") for key in range(20)}
    finally:
        bench.close()


@pytest.mark.parametrize("kind", ["hashmap", "rocksdb"])
def test_rows_and_changes_expire_on_their_own(kind: str) -> None:
    clock = FakeClock(1000)
    bench = Workbench(kind, 8, clock)
    try:
        backend = bench.backend()
        first = Attempt(FakeOperatorContext(None, clock, backend), None, ttl_ms=60_000)
        first.push(RowKind.INSERT, (1, "a"), 10)
        assert first.watermark(11) == [(0, (1, "a"))]
        clock.advance(50_000)
        first.push(RowKind.INSERT, (2, "late"), 11)
        first.push(RowKind.DELETE, (1, "a"), 11)
        first.push(RowKind.INSERT, (1, "b"), 11)
        clock.advance(10_000)
        # the row was emitted a minute ago, the changes of its key came later
        assert sorted(first.watermark(12)) == [(0, (1, "b")), (0, (2, "late"))]
        first.push(RowKind.INSERT, (2, "x"), 12)
        clock.advance(64_999)
        first.push(RowKind.INSERT, (1, "c"), 12)
        clock.advance(1)
        # a change that waits is kept five seconds more than a row that was emitted
        assert first.watermark(13) == [(0, (1, "c"))]
        handle = bench.snapshot(backend, SnapshotKind.SAVEPOINT)
        clock.advance(59_999)
        second = Attempt(FakeOperatorContext(None, clock, bench.restore([handle])), 3, ttl_ms=60_000)
        second.push(RowKind.DELETE, (1, "c"), 20)
        assert second.watermark(MAX_WATERMARK) == [(3, (1, "c"))]
    finally:
        bench.close()


def test_blackhole_and_watermarks() -> None:
    table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table_env.execute_sql("CREATE TABLE s (k INT, n BIGINT) WITH ('connector' = 'datagen')")
    table_env.execute_sql(
        "CREATE TABLE b (n BIGINT, k INT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'blackhole')"
    )
    query = "INSERT INTO b SELECT COUNT(*), k FROM s GROUP BY k"
    with pytest.raises(ValidationError, match=r"Primary key: \[n\], upsert key: \[k\]\."):
        table_env.explain_sql(query)
    with pytest.raises(ValidationError, match=r"requires all source tables to define watermarks.*\.s\."):
        table_env.explain_sql(f"{query} ON CONFLICT DO ERROR")
    with pytest.raises(ValidationError, match="ON CONFLICT clause is only allowed for upsert sinks"):
        table_env.explain_sql("INSERT INTO b SELECT n, k FROM s ON CONFLICT DO NOTHING")
    table_env.get_config().set("table.exec.sink.require-on-conflict", "false")
    assert "UpsertMaterialize(key=[n])" in table_env.explain_sql(query)


def test_batch_mode_ignores_the_clause() -> None:
    table_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    table_env.execute_sql("CREATE TABLE b (n INT, PRIMARY KEY (n) NOT ENFORCED) WITH ('connector'='blackhole')")
    for clause in ("", " ON CONFLICT DO ERROR"):
        assert "Materialize" not in table_env.explain_sql(f"INSERT INTO b VALUES (1), (1){clause}")
