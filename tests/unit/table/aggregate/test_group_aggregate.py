"""Group aggregates on drawn batches against a model in plain Python."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.columns.batch import concat_batches
from firesteel.runtime.columns.exchange import own_rows
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.table.bound.errors import ValidationError
from firesteel.table.runtime.operators.aggregate.group_aggregate import GlobalGroupAggregateSpec, GroupAggregateSpec
from firesteel.table.runtime.operators.aggregate.local_aggregate import LocalGroupAggregateSpec
from firesteel.table.values.bitmap import from_integers
from firesteel.testing.operator_context import FakeClock
from firesteel.types import logical as t
from tests.support.aggregate_model import (
    AFTER,
    AT,
    BEFORE,
    CALLS,
    DAY,
    DELETE,
    FLAG,
    INPUT,
    INSERT,
    NAME,
    NUMBER,
    PRICE,
    B,
    History,
    K,
    RunningOperator,
    Table,
    X,
    batch_of,
    call,
    changes_of,
    tables,
)
from tests.support.state.keyed_backends import Workbench

GROUPINGS = [(), (K,), (NAME,), (PRICE,), (DAY,), (AT,), (FLAG,), (X,), (NUMBER,), (NAME, K), (FLAG, DAY, B)]


@pytest.fixture(params=["hashmap", "rocksdb"])
def workbench(request: Any) -> Iterator[Workbench]:
    made = Workbench(request.param, 128, FakeClock())
    yield made
    made.close()


def _spec(grouping: tuple[int, ...], **options: Any) -> GroupAggregateSpec:
    return GroupAggregateSpec(INPUT, grouping, tuple(each for each, _ in CALLS), **options)


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_results_after_each_batch_are_those_of_the_rows_that_are_there(
    grouping: tuple[int, ...], retracts: bool, workbench: Workbench
) -> None:
    running = RunningOperator(_spec(grouping, consumes_retractions=retracts), workbench.backend())
    table, history = Table(len(grouping)), History((grouping, retracts), retracts)
    for size in (1, 40, 3, 60):
        batch = history.draw(size)
        table.apply(running.process(batch))
        assert table.rows == tables(history.changes, grouping)


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("retracts", [False, True])
def test_without_update_before_rows_come_when_something_changed(retracts: bool, per_row: bool) -> None:
    running = RunningOperator(_spec((K,), consumes_retractions=retracts, generate_update_before=False, per_row=per_row))
    table, history = Table(1, has_before=False), History(5, retracts)
    for size in (1, 40, 100):
        batch = history.draw(size)
        changes = running.process(batch)
        assert BEFORE not in [kind for kind, _ in changes]
        table.apply(changes)
        assert table.rows == tables(history.changes, (K,))


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("grouping", [(), (K,), (NAME, K)])
@pytest.mark.parametrize("runs", [False, True])
def test_row_by_row_each_row_has_the_changes_of_a_batch_of_its_own(
    grouping: tuple[int, ...], retracts: bool, runs: bool, workbench: Workbench
) -> None:
    options: Any = {"consumes_retractions": retracts}
    calls = tuple(each for each, _ in CALLS)
    if runs:
        # other functions have no accumulators of which there is one for each row
        calls = tuple(each for each in calls if GroupAggregateSpec(INPUT, (), (each,), **options).create_handler().runs)
        assert {each.function for each in calls} >= {"COUNT", "SUM", "AVG", "MIN", "MAX"}
    spec = GroupAggregateSpec(INPUT, grouping, calls, per_row=True, **options)
    assert spec.create_handler().runs == runs
    whole = RunningOperator(spec, workbench.backend())
    single = RunningOperator(GroupAggregateSpec(INPUT, grouping, calls, **options))
    history = History(7, retracts)
    for _ in range(3):
        batch = history.draw(25)
        one_by_one = []
        for index in range(len(batch)):
            one_by_one += single.process(batch.slice(index, 1))
        assert whole.process(batch) == one_by_one


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("grouping", [(), (K,), (NAME,), (NAME, K)])
def test_partial_results_of_several_subtasks_are_merged(grouping: tuple[int, ...], retracts: bool) -> None:
    split = [pair for pair in CALLS if is_splittable(pair[0], retracts)]
    assert len(split) >= len(CALLS) - 4
    calls = tuple(each for each, _ in split)
    local = RunningOperator(LocalGroupAggregateSpec(INPUT, grouping, calls, retracts))
    running = RunningOperator(GlobalGroupAggregateSpec(INPUT, grouping, calls, consumes_retractions=retracts))
    table, history = Table(len(grouping)), History(5, retracts)
    for size in (1, 40, 60):
        batch = history.draw(size)
        local.process(batch)
        (partial,) = local.batches
        table.apply(running.process(partial))
        assert table.rows == tables(history.changes, grouping, split)


def test_batches_with_few_equal_keys_are_not_grouped_locally() -> None:
    calls = (call("COUNT"), call("SUM", B), call("MAX", B))
    local = RunningOperator(LocalGroupAggregateSpec(INPUT, (K,), calls))
    running = RunningOperator(GlobalGroupAggregateSpec(INPUT, (K,), calls))
    table = Table(1)
    sizes = []
    history = [(INSERT, _row(k=key, b=key)) for key in range(600)]
    history += [(INSERT, _row(k=key % 300, b=-key)) for key in range(600)]
    for start in (0, 600):
        local.process(batch_of([row for _, row in history[start : start + 600]]))
        sizes += map(len, local.batches)
        for partial in list(local.batches):
            table.apply(running.process(partial))
    assert sizes == [600, 600]
    each = [(calls[0], len), (calls[1], sum), (calls[2], max)]
    assert table.rows == tables(history, (K,), each)


def is_splittable(each: Any, retracts: bool) -> bool:
    return GroupAggregateSpec(INPUT, (), (each,), consumes_retractions=retracts).create_handler().is_splittable


def test_what_depends_on_the_order_has_no_local_phase() -> None:
    assert not is_splittable(call("FIRST_VALUE", B), False)
    assert is_splittable(call("LISTAGG", NAME, type=t.VarCharType()), True)
    with pytest.raises(ValidationError, match="no local phase"):
        RunningOperator(LocalGroupAggregateSpec(INPUT, (K,), (call("LAST_VALUE", B),)))


def test_one_batch_may_have_several_partial_results_of_a_key() -> None:
    calls = (call("COUNT"), call("SUM", B), call("COUNT", NAME, distinct=True))
    local = RunningOperator(LocalGroupAggregateSpec(INPUT, (K,), calls))
    running = RunningOperator(GlobalGroupAggregateSpec(INPUT, (K,), calls))
    parts = []
    for names in ("ab", "bc", "c"):
        local.process(batch_of([_row(k=1, name=name, b=10) for name in names]))
        parts += local.batches
    assert running.process(concat_batches(parts)) == [(INSERT, (1, 5, 50, 3))]


def _row(k: Any = 1, name: Any = None, b: Any = None, x: Any = None, flag: Any = None) -> tuple[Any, ...]:
    return (k, name, None, None, None, flag, x, b, 0, None)


# -- changelogs --------------------------------------------------------------------------------------------


def test_equal_results_are_not_emitted() -> None:
    running = RunningOperator(GroupAggregateSpec(INPUT, (K,), (call("MAX", B),)))
    assert running.process(batch_of([_row(b=5)])) == [(INSERT, (1, 5))]
    assert running.process(batch_of([_row(b=4), _row(k=2)])) == [(INSERT, (2, None))]
    assert running.process(batch_of([_row(b=6)])) == [(BEFORE, (1, 5)), (AFTER, (1, 6))]


def test_equal_results_are_emitted_with_time_to_live() -> None:
    running = RunningOperator(GroupAggregateSpec(INPUT, (K,), (call("MAX", B),), ttl_ms=1000))
    running.process(batch_of([_row(b=5)]))
    assert running.process(batch_of([_row(b=4)])) == [(BEFORE, (1, 5)), (AFTER, (1, 5))]


def test_grouping_alone_emits_each_key_once() -> None:
    running = RunningOperator(GroupAggregateSpec(INPUT, (NAME,), ()))
    assert running.process(batch_of([_row(name="a"), _row(name="a"), _row()])) == [(INSERT, ("a",)), (INSERT, (None,))]
    assert running.process(batch_of([_row(name="a"), _row(name="b")])) == [(INSERT, ("b",))]


def test_retractions_of_a_group_that_is_not_there_are_dropped() -> None:
    spec = GroupAggregateSpec(INPUT, (K,), (call("COUNT"), call("SUM", B)), consumes_retractions=True)
    running = RunningOperator(spec)
    assert running.process(batch_of([_row(b=1)], [DELETE])) == []
    rows = [_row(b=1), _row(b=5), _row(b=2), _row(b=2), _row(k=2, b=7)]
    assert running.process(batch_of(rows, [DELETE, INSERT, INSERT, BEFORE, DELETE])) == [(INSERT, (1, 1, 5))]


def test_a_group_that_comes_and_goes_within_a_batch_is_not_seen() -> None:
    running = RunningOperator(GroupAggregateSpec(INPUT, (K,), (call("COUNT"),), consumes_retractions=True))
    assert running.process(batch_of([_row(), _row()], [INSERT, DELETE])) == []
    assert running.process(batch_of([_row()], [INSERT])) == [(INSERT, (1, 1))]
    assert running.process(batch_of([_row()], [DELETE])) == [(DELETE, (1, 1))]
    assert len(running.operator._state) == 0


def test_an_input_of_insertions_refuses_retractions() -> None:
    running = RunningOperator(GroupAggregateSpec(INPUT, (K,), (call("COUNT"),)))
    with pytest.raises(InvalidProgramError, match="insertions only"):
        running.process(batch_of([_row()], [DELETE]))


def test_a_function_that_cannot_be_aggregated_is_refused() -> None:
    with pytest.raises(ValidationError, match="ROW_NUMBER"):
        GroupAggregateSpec(INPUT, (K,), (call("ROW_NUMBER"),)).create_handler()


def test_floats_are_compared_one_after_the_other() -> None:
    nan = float("nan")
    calls = (call("MIN", X, type=t.DoubleType()), call("MAX", X, type=t.DoubleType()))

    def result(*values: float) -> str:
        running = RunningOperator(GroupAggregateSpec(INPUT, (K,), calls))
        ((_, row),) = running.process(batch_of([_row(x=value) for value in values]))
        return str(row[1:])

    assert result(1.0, nan, 2.0) == "(1.0, 2.0)"
    assert result(nan, 1.0) == "(nan, nan)"
    assert result(0.0, -0.0) == "(0.0, 0.0)"
    assert result(-0.0, 0.0) == "(-0.0, -0.0)"


def test_a_nan_that_leaves_is_found() -> None:
    calls = (call("MAX", X, type=t.DoubleType()), call("COUNT", X, distinct=True))
    running = RunningOperator(GroupAggregateSpec(INPUT, (K,), calls, consumes_retractions=True))
    running.process(batch_of([_row(x=1.0), _row(x=float("nan")), _row(x=-0.0)], [0, 0, 0]))
    ((_, before), (_, after)) = running.process(batch_of([_row(x=float("nan"))], [DELETE]))
    assert (str(before), str(after)) == ("(1, nan, 3)", "(1, 1.0, 2)")


def test_floats_are_keys_by_their_bits() -> None:
    running = RunningOperator(GroupAggregateSpec(INPUT, (X,), (call("COUNT"),)))
    values = [0.0, -0.0, float("nan"), -float("nan"), 0.0]
    found = running.process(batch_of([_row(x=value) for value in values]))
    assert sorted(str(row) for _, row in found) == ["(-0.0, 1)", "(0.0, 2)", "(nan, 2)"]


# -- state -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("grouping", [(), (K,), (NAME, K), (X,)])
@pytest.mark.parametrize("kinds", [("hashmap", "rocksdb"), ("rocksdb", "hashmap"), ("hashmap-full", "hashmap")])
def test_a_savepoint_is_taken_up_by_several_subtasks_of_another_backend(
    kinds: tuple[str, str], grouping: tuple[int, ...], retracts: bool
) -> None:
    bench = Workbench(kinds[0], 128, FakeClock())
    try:
        spec = _spec(grouping, consumes_retractions=retracts)
        backend = bench.backend()
        running = RunningOperator(spec, backend)
        table, history = Table(len(grouping)), History(5, retracts)
        for _ in range(2):
            batch = history.draw(50)
            table.apply(running.process(batch))
        handle = bench.snapshot(backend, SnapshotKind.SAVEPOINT)
        ranges = (KeyGroupRange(0, 40), KeyGroupRange(41, 127))
        halves = [bench.restore([handle], groups, kind=kinds[1]) for groups in ranges]
        subtasks = [RunningOperator(spec, half) for half in halves]
        batch = history.draw(80)
        for subtask, groups in zip(subtasks, ranges, strict=True):
            own = own_rows(batch, ColumnKeySelector(grouping), 128, groups)
            if len(own):
                table.apply(subtask.process(own))
        assert table.rows == tables(history.changes, grouping)
    finally:
        bench.close()


@pytest.mark.parametrize("grouping", [(K,), (NAME,)])
def test_incremental_checkpoints_have_what_changed_and_what_is_gone(grouping: tuple[int, ...]) -> None:
    bench = Workbench("hashmap", 128, FakeClock())
    spec = _spec(grouping, consumes_retractions=True)
    backend = bench.backend()
    running = RunningOperator(spec, backend)
    table, history = Table(1), History(13, True)
    for number in range(6):
        batch = history.draw(30)
        table.apply(running.process(batch))
        handle = bench.snapshot(backend)
        backend.notify_checkpoint_complete(bench.number)
        restored = RunningOperator(spec, bench.restore([handle], reusable=True))
        assert len(restored.operator._state) == len(table.rows)
        if number % 2:
            running, backend = restored, restored.context.backend
            backend.restore
        batch = history.draw(10)
        table.apply(running.process(batch))
        assert table.rows == tables(history.changes, grouping)
    bench.close()


def test_a_delta_is_small() -> None:
    bench = Workbench("hashmap", 128, FakeClock())
    backend = bench.backend()
    running = RunningOperator(GroupAggregateSpec(INPUT, (K,), (call("COUNT"), call("SUM", B))), backend)
    running.process(batch_of([_row(k=key, b=key) for key in range(20_000)]))
    bench.snapshot(backend)
    backend.notify_checkpoint_complete(bench.number)
    whole = bench.bytes_written
    running.process(batch_of([_row(k=key, b=key) for key in range(0, 20_000, 100)]))
    bench.snapshot(backend)
    assert bench.bytes_written < whole / 20
    bench.close()


def test_the_state_of_a_key_is_a_tuple_for_those_who_read_it() -> None:
    bench = Workbench("hashmap", 128, FakeClock())
    backend = bench.backend()
    running = RunningOperator(GroupAggregateSpec(INPUT, (K,), (call("COUNT"), call("SUM", B))), backend)
    running.process(batch_of([_row(k=7, b=3), _row(k=7, b=4), _row(k=None)]))
    entries = {key: stored for _, key, stored in backend.entries("group-aggregate")}
    assert entries == {7: (2, 2, 7), (None,): (1, 0, 0)}
    assert backend.stored("group-aggregate", 7) == {None: (2, 2, 7)}
    assert list(backend.keys("group-aggregate")) == [7, (None,)]
    bench.close()


@pytest.mark.parametrize(("kind", "other"), [("hashmap", "rocksdb"), ("rocksdb", "hashmap")])
def test_bitmaps_are_restored_with_the_counts_of_their_integers(kind: str, other: str) -> None:
    bench = Workbench(kind, 128, FakeClock())
    backend = bench.backend()
    calls = (call("BITMAP_BUILD_AGG", B, type=t.BitmapType()),)
    spec = GroupAggregateSpec(INPUT, (K,), calls, consumes_retractions=True)
    RunningOperator(spec, backend).process(
        batch_of([_row(b=5), _row(b=5), _row(b=5), _row(b=None), _row(b=6)], [0] * 5)
    )
    restored = RunningOperator(spec, bench.restore([bench.snapshot(backend, SnapshotKind.SAVEPOINT)], kind=other))
    changes = restored.process(batch_of([_row(b=5), _row(b=6)], [DELETE, DELETE]))
    assert changes == [(BEFORE, (1, from_integers([5, 6]))), (AFTER, (1, from_integers([5])))]
    assert restored.process(batch_of([_row(b=5), _row(b=5)], [DELETE, DELETE]))[-1] == (AFTER, (1, None))
    bench.close()


@pytest.mark.parametrize(("kind", "other"), [("hashmap", "rocksdb"), ("rocksdb", "hashmap")])
def test_distinct_values_are_a_map_state_with_an_entry_for_null(kind: str, other: str) -> None:
    bench = Workbench(kind, 128, FakeClock())
    backend = bench.backend()
    calls = (call("ARRAY_AGG", B, type=t.ArrayType(t.BigIntType()), distinct=True),)
    spec = GroupAggregateSpec(INPUT, (K,), calls, consumes_retractions=True)
    running = RunningOperator(spec, backend)
    running.process(batch_of([_row(b=5), _row(b=5), _row(b=None), _row(b=6)], [0, 0, 0, 0]))
    handle = bench.snapshot(backend, SnapshotKind.SAVEPOINT)
    (maps,) = [meta.name for meta in handle.states if meta.kind == "map"]
    assert {key: dict(stored) for _, key, stored in backend.entries(maps)} == {1: {5: 2, (None,): 1, 6: 1}}
    restored = RunningOperator(spec, bench.restore([handle], kind=other))
    changes = restored.process(batch_of([_row(b=5), _row(b=None), _row(b=6)], [DELETE, DELETE, DELETE]))
    assert changes[-1] == (AFTER, (1, [5]))
    bench.close()


@pytest.mark.parametrize("kind", ["hashmap", "rocksdb"])
def test_groups_expire_after_their_last_row(kind: str) -> None:
    clock = FakeClock()
    bench = Workbench(kind, 128, clock)
    backend = bench.backend()
    spec = GroupAggregateSpec(INPUT, (K,), (call("COUNT"),), ttl_ms=1000)
    running = RunningOperator(spec, backend, clock)
    assert running.process(batch_of([_row(1), _row(2)])) == [(INSERT, (1, 1)), (INSERT, (2, 1))]
    clock.advance(600)
    assert running.process(batch_of([_row(2)])) == [(BEFORE, (2, 1)), (AFTER, (2, 2))]
    clock.advance(600)
    assert running.process(batch_of([_row(1), _row(2)])) == [(INSERT, (1, 1)), (BEFORE, (2, 2)), (AFTER, (2, 3))]
    handle = bench.snapshot(backend, SnapshotKind.SAVEPOINT)
    clock.advance(600)
    restored = RunningOperator(spec, bench.restore([handle]), clock)
    assert restored.process(batch_of([_row(1)])) == [(BEFORE, (1, 1)), (AFTER, (1, 2))]
    clock.advance(1000)
    assert restored.process(batch_of([_row(1)])) == [(INSERT, (1, 1))]
    bench.close()


def test_what_has_expired_is_removed_although_it_is_not_read() -> None:
    clock = FakeClock()
    running = RunningOperator(GroupAggregateSpec(INPUT, (K,), (call("COUNT"),), ttl_ms=1000), clock=clock)
    running.process(batch_of([_row(key) for key in range(100)]))
    clock.advance(5000)
    running.process(batch_of([_row(1000)]))
    assert len(running.operator._state) == 1


def test_specs_are_picklable_and_comparable() -> None:
    spec = GroupAggregateSpec(INPUT, (K,), (call("COUNT"),))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert changes_of(batch_of([_row(k=1)]))[0][0] == INSERT
