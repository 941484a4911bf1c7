"""Operators of windows: windows of the clock, rows that leave, and rows that come too late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.model.elements import MAX_WATERMARK
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.runtime.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.table.bound.session import Session
from firesteel.table.plan.nodes import AggregateCall
from firesteel.table.plan.window_kinds import AlignedWindow, CumulativeWindow, HoppingWindow, TumblingWindow
from firesteel.table.plan.windows import WindowColumn
from firesteel.table.runtime.operators.windows.aggregate import WindowAggregateSpec
from firesteel.table.runtime.operators.windows.session_operator import SessionAggregateSpec
from firesteel.types.internal import columns_schema
from firesteel.types.logical import BigIntType, LocalZonedTimestampType, RowType, TimestampKind, TimestampType

ROWTIME = TimestampType(3, TimestampKind.ROWTIME, nullable=False)
PROCTIME = LocalZonedTimestampType(3, TimestampKind.PROCTIME, nullable=False)
BOUND = TimestampType(3, nullable=False)
CALLS = (
    AggregateCall("COUNT", (), BigIntType(nullable=False), "c"),
    AggregateCall("SUM", (1,), BigIntType(), "s"),
)
GROUPING = (0, WindowColumn.START, WindowColumn.END)
RESULT = RowType.of(
    ["k", "window_start", "window_end", "c", "s"], [BigIntType(), BOUND, BOUND, BigIntType(), BigIntType()]
)


class FakeCounter:
    def __init__(self) -> None:
        self.count = 0

    def inc(self, number: int = 1) -> None:
        self.count += number


class FakeContext:
    """What the operators use of their context; timers fire when the clock is moved."""

    runtime_context = None

    def __init__(self) -> None:
        self.backend = HashMapKeyedStateBackend(KeyGroupRange(0, 127), 128, lambda: self.now)
        self.now = 0
        self.late = FakeCounter()
        self.rows: list[Any] = []
        self._timers: list[tuple[int, Callable[[int], None]]] = []

    def counter(self, name: str) -> FakeCounter:
        assert name == "numLateRecordsDropped"
        return self.late

    def emit(self, batch: ColumnBatch, timestamps: None) -> None:
        columns = [column.cast(pa.int64()).to_pylist() for column in batch.data.columns]
        self.rows += zip(*columns, strict=True)

    def emit_watermark(self, timestamp: int) -> None:
        """Results are all that is looked at."""

    def processing_time(self) -> int:
        return self.now

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        self._timers.append((timestamp, callback))

    def advance(self, now: int) -> None:
        self.now = now
        due = [timer for timer in self._timers if timer[0] <= now]
        self._timers = [timer for timer in self._timers if timer[0] > now]
        for timestamp, callback in due:
            callback(max(timestamp, now))


def input_type(time: Any) -> RowType:
    return RowType.of(["k", "v", "ts"], [BigIntType(), BigIntType(), time], nullable=False)


def batch(rows: Sequence[tuple[int | None, int, int]], time: Any, kinds: Sequence[int] | None = None) -> ColumnBatch:
    schema = columns_schema(input_type(time))
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, pa.int64()).cast(part.type) for column, part in zip(columns, schema, strict=True)]
    data = pa.RecordBatch.from_arrays(arrays, schema=schema)
    return ColumnBatch(data, None if kinds is None else np.array(kinds, np.int8), 2)


def opened(window: AlignedWindow, time: Any, retracts: bool = False) -> tuple[Any, FakeContext]:
    spec = WindowAggregateSpec(
        window, input_type(time), RESULT, time, GROUPING, CALLS, 2, None, retracts, Session(local_time_zone="UTC")
    )
    operator, context = spec.create(None), FakeContext()  # type: ignore[arg-type]
    operator.open(context)  # type: ignore[arg-type]
    return operator, context


def test_windows_of_the_clock_end_by_the_clock() -> None:
    operator, context = opened(HoppingWindow(10, 0, 5), PROCTIME)
    context.advance(2)
    operator.process_columns(batch([(1, 10, 0), (2, 20, 0)], PROCTIME))
    context.advance(7)
    operator.process_columns(batch([(1, 30, 0)], PROCTIME))
    assert sorted(context.rows) == [(1, -5, 5, 1, 10), (2, -5, 5, 1, 20)]
    context.rows.clear()
    context.advance(14)
    assert sorted(context.rows) == [(1, 0, 10, 2, 40), (1, 5, 15, 1, 30), (2, 0, 10, 1, 20)]


def test_sessions_of_the_clock() -> None:
    spec = SessionAggregateSpec(
        5, input_type(PROCTIME), RESULT, PROCTIME, (0,), 2, Session(), None, GROUPING, CALLS, False
    )
    operator, context = spec.create(None), FakeContext()  # type: ignore[arg-type]
    operator.open(context)  # type: ignore[arg-type]
    for now, rows in ((1, [(1, 10, 0)]), (4, [(1, 20, 0), (2, 5, 0)]), (7, [(1, 30, 0)])):
        context.advance(now)
        operator.process_columns(batch(rows, PROCTIME))
    context.advance(30)
    assert sorted(context.rows) == [(1, 1, 12, 3, 60), (2, 4, 9, 1, 5)]


def test_a_snapshot_after_the_end_of_the_input_has_no_sessions() -> None:
    spec = SessionAggregateSpec(
        5, input_type(ROWTIME), RESULT, ROWTIME, (0,), 2, Session(), None, GROUPING, CALLS, False
    )
    operator, context = spec.create(None), FakeContext()  # type: ignore[arg-type]
    operator.open(context)  # type: ignore[arg-type]
    operator.user_function, state = None, OperatorStateBackend()
    operator.process_columns(batch([(1, 10, 1), (2, 20, 3)], ROWTIME))
    operator.snapshot_state(1, state, 0)
    assert {end for end, _, _ in context.backend.entries("sessions")} == {6, 8}
    operator.process_watermark(MAX_WATERMARK)
    operator.finish()
    # a task that has ended emits nothing more, so it does not prepare its snapshots
    operator.snapshot_state(2, state, 0)
    assert list(context.backend.entries("sessions")) == []


def test_rows_that_leave() -> None:
    operator, context = opened(TumblingWindow(10), ROWTIME, retracts=True)
    rows = [(1, 10, 1), (2, 20, 2), (1, 10, 1), (1, 30, 3), (2, 20, 2)]
    operator.process_columns(batch(rows, ROWTIME, [0, 0, 1, 2, 3]))
    operator.process_watermark(9)
    assert context.rows == [(1, 0, 10, 1, 30)]


def test_late_rows_count_for_windows_that_are_open() -> None:
    operator, context = opened(HoppingWindow(10, 0, 5), ROWTIME)
    operator.process_watermark(7)
    operator.process_columns(batch([(1, 10, 3), (1, 20, -1), (None, 30, 8)], ROWTIME))
    assert context.late.count == 1
    operator.process_watermark(100)
    assert sorted(context.rows, key=str) == [(1, 0, 10, 1, 10), (None, 0, 10, 1, 30), (None, 5, 15, 1, 30)]


def test_state_of_windows_that_are_over_is_gone() -> None:
    operator, context = opened(HoppingWindow(10, 0, 5), ROWTIME)
    for start in range(0, 100, 10):
        operator.process_columns(batch([(key, 1, start) for key in range(3)], ROWTIME))
        operator.store_windows()
        operator.process_watermark(start)
    assert len(list(context.backend.entries("windows"))) <= 6
    operator.process_watermark(1000)
    assert list(context.backend.entries("windows")) == []
    assert operator._table.slices() == []


def test_no_window_is_left_out_when_the_watermark_jumps() -> None:
    rows = [(1, 10, 1), (2, 20, 17)]
    operator, context = opened(CumulativeWindow(20, 0, 5), ROWTIME)
    operator.process_columns(batch(rows, ROWTIME))
    operator.process_watermark(1000)
    first = [(1, 0, end, 1, 10) for end in (5, 10, 15, 20)]
    assert context.rows == [*first, (2, 0, 20, 1, 20)]
    operator, context = opened(HoppingWindow(20, 0, 5), ROWTIME)
    operator.process_columns(batch(rows, ROWTIME))
    operator.process_watermark(1000)
    first = [(1, end - 20, end, 1, 10) for end in (5, 10, 15, 20)]
    second = [(2, end - 20, end, 1, 20) for end in (20, 25, 30, 35)]
    assert context.rows == [*first, *second]
