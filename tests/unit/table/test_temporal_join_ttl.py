"""``table.exec.state.ttl`` of temporal joins: a key is dropped as by Flink's operator, which has two retention times.

A key is there for the time-to-live after its last row or join at least, and half as long again at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.operator_spec import OperatorRuntime
from firesteel.spi.execution_traits import PIPELINED
from firesteel.table.bound.session import Session
from firesteel.table.runtime.operators.joins.temporal import TemporalJoinSpec
from firesteel.testing.clock import FakeClock
from firesteel.testing.operator_context import FakeOperatorContext
from firesteel.types import logical as t
from firesteel.types.internal import to_column
from firesteel.types.logical import RowType
from tests.support.aggregate_model import changes_of
from tests.support.state.keyed_backends import Workbench

ROWTIME = t.TimestampType(3, t.TimestampKind.ROWTIME)
TYPE = RowType.of(["k", "v", "ts"], [t.IntType(), t.VarCharType(9), ROWTIME], nullable=False)
BOTH = RowType.of([f"r{index}" for index in range(6)], [part.type for part in (*TYPE.fields, *TYPE.fields)])
TTL = 1000


class Join:
    """A LEFT join on a backend, whose results are the values of both sides."""

    def __init__(self, backend: str):
        self.clock = FakeClock(50_000)
        self.bench = Workbench(backend, 8, self.clock)
        self.open(self.bench.backend())

    def open(self, backend: Any, ttl_ms: int = TTL) -> None:
        self._backend = backend
        context: Any = FakeOperatorContext(None, self.clock, backend)
        self._results: list[Any] = []
        context.emit = lambda batch, _: self._results.extend(changes_of(batch))
        spec = TemporalJoinSpec(TYPE, TYPE, ((0,), (0,)), (2, 2), True, None, BOTH, None, Session(), ttl_ms)
        self._operator: Any = spec.create(OperatorRuntime(PIPELINED, 200, self.bench.kind == "hashmap"))
        self._operator.open(context)

    def rows(self, side: int, *rows: tuple[int, str, int]) -> None:
        columns = zip(*((key, value, time * 10**6) for key, value, time in rows), strict=True)
        arrays = [to_column(values, part.type) for values, part in zip(columns, TYPE.fields, strict=True)]
        batch = ColumnBatch(pa.RecordBatch.from_arrays(arrays, TYPE.field_names), None, 2)
        (self._operator.process_columns, self._operator.process_second_columns)[side](batch)

    def watermark(self, time: int) -> list[tuple[Any, Any]]:
        self._operator.process_watermark(time)
        found = sorted((row[1], row[4]) for _, row in self._results)
        self._results.clear()
        return found

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)

    def restore(self, ttl_ms: int = TTL) -> None:
        handle = self.bench.snapshot(self._backend, SnapshotKind.SAVEPOINT)
        self.open(self.bench.restore([handle], reusable=False), ttl_ms)


@pytest.fixture(params=["hashmap", "rocksdb"])
def join(request: pytest.FixtureRequest) -> Iterator[Join]:
    made = Join(request.param)
    yield made
    made.bench.close()


def test_a_key_is_dropped_after_one_and_a_half_times(join: Join) -> None:
    join.rows(1, (1, "x", 5), (2, "y", 5))
    join.rows(0, (1, "waits", 900))
    assert join.watermark(6) == []
    join.advance(TTL * 3 // 2 - 1)
    join.rows(0, (2, "b", 7))
    join.advance(1)  # nothing has come of the first key, neither was anything joined
    join.rows(0, (1, "a", 8))
    assert join.watermark(1000) == [("a", None), ("b", "y")]


def test_rows_and_joins_put_it_off_once_the_time_is_short(join: Join) -> None:
    join.rows(1, (1, "x", 5))
    join.advance(TTL // 2)
    # there is still the whole time left, so it stays as it is
    join.rows(0, (1, "a", 6))
    assert join.watermark(6) == [("a", "x")]
    join.advance(TTL // 2 + 1)
    join.rows(0, (1, "b", 7))
    join.advance(TTL - 2)
    assert join.watermark(7) == [("b", "x")]
    join.advance(TTL)
    join.rows(0, (1, "c", 8))
    assert join.watermark(8) == [("c", "x")]
    join.advance(TTL * 3 // 2)
    join.rows(0, (1, "d", 9))
    assert join.watermark(9) == [("d", None)]


def test_the_time_is_part_of_savepoints(join: Join) -> None:
    join.rows(1, (1, "x", 5), (2, "y", 5))
    join.advance(1200)
    join.rows(0, (2, "b", 6))
    join.restore()
    join.advance(300)
    join.rows(0, (1, "a", 7))
    assert join.watermark(7) == [("a", None), ("b", "y")]


def test_a_job_gets_and_loses_its_time_to_live(join: Join) -> None:
    join.restore(ttl_ms=0)
    join.rows(1, (1, "x", 5), (2, "y", 5))
    join.advance(10 * TTL)
    join.restore()
    # a key without a time gets one with its next row
    join.rows(0, (1, "a", 6))
    join.advance(TTL * 3 // 2)
    join.rows(0, (1, "b", 7), (2, "c", 7))
    assert join.watermark(7) == [("b", None), ("c", "y")]
    join.restore(ttl_ms=0)
    join.advance(10 * TTL)
    join.rows(0, (2, "d", 8))
    assert join.watermark(8) == [("d", "y")]
