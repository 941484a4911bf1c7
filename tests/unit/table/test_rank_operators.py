"""Operators of Top-N, deduplication, OVER and sorts: restored midway, split by key groups, with expiring state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import KeyGroups
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.operator_spec import OperatorSpec
from firesteel.table.connectors.in_memory import batch_of
from firesteel.table.plan.nodes import SortKey
from firesteel.table.plan.over import Bound, BoundKind, Frame, OverCall, OverGroup
from firesteel.table.runtime.operators.over.proctime import ProctimeOverSpec
from firesteel.table.runtime.operators.over.rowtime import RowtimeOverSpec
from firesteel.table.runtime.operators.over.temporal_sort import TemporalSortSpec
from firesteel.table.runtime.operators.ranks.deduplicate import KeepFirstSpec, KeepLastSpec
from firesteel.table.runtime.operators.ranks.keep_first_by_time import EarliestRowSpec
from firesteel.table.runtime.operators.ranks.retractable import RetractableTopNSpec
from firesteel.table.runtime.operators.ranks.top_n import AppendOnlyTopNSpec
from firesteel.table.runtime.operators.ranks.updatable import UpdatableTopNSpec
from firesteel.testing.operator_context import FakeClock
from firesteel.types.logical import BigIntType, RowField, RowType, TimestampKind, TimestampType, VarCharType
from tests.support.aggregate_model import RunningOperator
from tests.support.state.keyed_backends import Workbench

TYPE = RowType.of(
    ["k", "v", "s", "ts"],
    [VarCharType(), BigIntType(), VarCharType(), TimestampType(3, kind=TimestampKind.ROWTIME)],
    nullable=False,
)
NUMBERED = RowType([*TYPE.fields, RowField("n", BigIntType(nullable=False))], nullable=False)
BY_VALUE = (SortKey(1, True, True), SortKey(2))
MILLION = 10**6


def _over(kind: BoundKind, rows: bool = True) -> OverGroup:
    frame = Frame(rows, Bound(kind, 2), Bound(BoundKind.CURRENT_ROW))
    return OverGroup((0,), (SortKey(3),), frame, (OverCall("SUM", (1,), BigIntType(), "n"),))


def _top(kind: Any, with_number: bool, **options: Any) -> OperatorSpec:
    output = NUMBERED if with_number else TYPE
    return kind((0,), TYPE, output, BY_VALUE, 1, 3, None, True, **options)


SPECS: dict[str, OperatorSpec] = {
    "first rows": KeepFirstSpec((0,), 2),
    "last row": KeepLastSpec((0,), TYPE, None, True),
    "last row by time": KeepLastSpec((0,), TYPE, 3, False),
    "earliest row": EarliestRowSpec((0,), TYPE, 3),
    "top n": _top(AppendOnlyTopNSpec, False),
    "top n with numbers": _top(AppendOnlyTopNSpec, True, per_row=True),
    "retractable": _top(RetractableTopNSpec, True),
    "updatable": _top(UpdatableTopNSpec, True, update_key=(0, 2)),
    "over rows": RowtimeOverSpec(_over(BoundKind.PRECEDING), TYPE, NUMBERED),
    "over all": RowtimeOverSpec(_over(BoundKind.UNBOUNDED_PRECEDING, rows=False), TYPE, NUMBERED),
    "over by processing time": ProctimeOverSpec(_over(BoundKind.PRECEDING), TYPE, NUMBERED),
}


def batches(name: str, count: int = 6, size: int = 20) -> list[ColumnBatch]:
    draw = random.Random(name)
    made = []
    for number in range(count):
        rows = [
            (
                draw.choice(["a", "b", "c", None]),
                draw.choice([None, 1, 2, 3, 4, 5, 6]),
                draw.choice("xyz"),
                (number * 10 + draw.randrange(15)) * MILLION,
            )
            for _ in range(size)
        ]
        made.append(batch_of(rows, TYPE))
    return made


def feed(running: RunningOperator, batch: ColumnBatch, watermark: int) -> list[Any]:
    changes = running.process(batch) if len(batch) else []
    running.batches.clear()
    running.operator.process_watermark(watermark)
    fired = list(running.batches)
    running.batches.clear()
    return [*changes, *(change for made in fired for change in _changes(made))]


def _changes(batch: ColumnBatch) -> list[Any]:
    from tests.support.aggregate_model import changes_of

    return changes_of(batch)


@pytest.fixture(params=["hashmap", "rocksdb"])
def workbench(request: Any) -> Iterator[Workbench]:
    made = Workbench(request.param, 128, FakeClock())
    yield made
    made.close()


@pytest.mark.parametrize("name", SPECS)
def test_restored_and_split_by_key_groups(name: str, workbench: Workbench) -> None:
    spec, input_batches = SPECS[name], batches(name)
    whole = RunningOperator(spec)
    expected = [feed(whole, batch, number * 10) for number, batch in enumerate(input_batches)]
    backend = workbench.backend()
    running = RunningOperator(spec, backend)
    for number, batch in enumerate(input_batches[:3]):
        assert feed(running, batch, number * 10) == expected[number]
    handle = workbench.snapshot(backend)
    parts = []
    for groups in (KeyGroupRange(0, 63), KeyGroupRange(64, 127)):
        restored = RunningOperator(spec, workbench.restore([handle], groups))
        restored.operator.process_watermark(20)
        parts.append((groups, restored))
    router = KeyGroups((0,), 128)
    for number, batch in enumerate(input_batches[3:], 3):
        group_of = router.of(batch)
        changes = []
        for groups, part in parts:
            own = np.flatnonzero((group_of >= groups.start) & (group_of <= groups.end))
            changes += feed(part, batch.take(own), number * 10)
        assert sorted(changes, key=_by_key) == sorted(expected[number], key=_by_key)


def _by_key(change: Any) -> str:
    """Changes of one key keep their order."""
    return repr(change[1][0])


def test_expired_rows_are_forgotten() -> None:
    clock = FakeClock()
    running = RunningOperator(KeepFirstSpec((0,), ttl_ms=1000), clock=clock)
    batch = batch_of([("a", 1, "x", 0)], TYPE)
    assert len(running.process(batch)) == 1
    clock.advance(900)
    assert running.process(batch) == []
    clock.advance(200)
    assert len(running.process(batch)) == 1


def test_sort_by_time_is_restored(workbench: Workbench) -> None:
    spec = TemporalSortSpec(TYPE, (SortKey(3), SortKey(1)), True)
    input_batches = batches("sort")
    whole = RunningOperator(spec)
    expected = [feed(whole, batch, number * 10) for number, batch in enumerate(input_batches)]
    backend = workbench.backend()
    running = RunningOperator(spec, backend)
    for number, batch in enumerate(input_batches[:3]):
        assert feed(running, batch, number * 10) == expected[number]
    restored = RunningOperator(spec, workbench.restore([workbench.snapshot(backend)]))
    for number, batch in enumerate(input_batches[3:], 3):
        assert feed(restored, batch, number * 10) == expected[number]
    times = [change[1][3] for changes in expected for change in changes]
    assert times == sorted(times)
    assert len(times) > 50
