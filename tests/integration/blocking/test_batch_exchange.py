"""Keyed exchanges of a batch: what goes in comes out, key by key and in order, with little in memory at any time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.execution.batch import bucket_split, columns, grouped_input, grouping_output
from firesteel.execution.stages import row_spool
from firesteel.execution.stages.errors import StageTaskError
from firesteel.execution.stages.exchange_rows import GROUPS, unpack_row
from firesteel.execution.stages.row_order import REPORT_ORDER, bucket_order, record_order
from tests.support.epochs.driven_batches import DrivenBatch, given, graph_of

KEYS = st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b", ""]), st.tuples(st.booleans(), st.integers(0, 1)))
VALUES = st.one_of(st.integers(), st.text(max_size=3), st.none(), st.floats(allow_nan=False))


class Contiguous(KeyedProcessFunction):
    """Emits every record with the number it has within its key; fails where a key comes a second time."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", None))
        self.seen: set[Any] = set()

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        number = self.count.value() or 0
        key = ctx.get_current_key()
        assert (number == 0) == (key not in self.seen)
        self.seen.add(key)
        self.count.update(number + 1)
        yield key, number, value


def keyed(*lists: list[Any], timestamps: bool = False, readers: int = 1) -> Any:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        records = given(env, *lists, timestamps=timestamps).key_by(lambda value: value[0])
        return records.process(Contiguous()).set_parallelism(readers)

    return build


def by_key(results: list[Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for key, number, value in results:
        assert number == len(groups[key])
        groups[key].append(value)
    return groups


def in_order(records: list[Any]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for value in records:
        groups[value[0]].append(value)
    return groups


@settings(max_examples=60, deadline=None)
@drawn(
    lists=st.lists(st.lists(st.tuples(KEYS, VALUES), max_size=40), min_size=1, max_size=3),
    readers=st.integers(1, 3),
    buckets=st.sampled_from(["1", "3", "1024"]),
    seed=st.integers(0, 5),
)
def test_every_key_gets_its_records_in_order(lists: list[list[Any]], readers: int, buckets: str, seed: int) -> None:
    job = graph_of(keyed(*lists, readers=readers), len(lists), {"execution.batch.key-buckets": buckets})
    results = DrivenBatch(job, seed=seed).run()
    assert by_key(results) == in_order([record for records in lists for record in records])


@settings(max_examples=40, deadline=None)
@drawn(
    lists=st.lists(
        st.lists(st.tuples(st.tuples(KEYS, VALUES), st.integers(-5, 5)), max_size=40), min_size=1, max_size=3
    ),
    seed=st.integers(0, 5),
)
def test_every_key_gets_its_records_by_time(lists: list[list[Any]], seed: int) -> None:
    results = DrivenBatch(graph_of(keyed(*lists, timestamps=True), len(lists)), seed=seed).run()
    records = sorted((record for records in lists for record in records), key=lambda record: record[1])
    assert by_key(results) == in_order([value for value, _ in records])


NUMBERS = st.one_of(
    st.integers(-3, 3), st.floats(allow_nan=False), st.sampled_from([2**63 - 1, -(2**63), 2**63, 10**30])
)
PAIRS = st.one_of(st.tuples(st.integers(-3, 3), NUMBERS), st.tuples(st.integers(-3, 3), st.booleans()))


@settings(max_examples=80, deadline=None)
@drawn(
    lists=st.lists(
        st.one_of(
            st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=30),
            st.lists(st.tuples(st.integers(-3, 3), st.floats(allow_nan=False), st.integers()), max_size=30),
            st.lists(PAIRS, max_size=30),
        ),
        min_size=1,
        max_size=3,
    ),
    with_timestamps=st.booleans(),
    seed=st.integers(0, 5),
)
def test_numbers_come_out_as_they_went_in(lists: list[list[Any]], with_timestamps: bool, seed: int) -> None:
    """Whether or not they cross the exchange as columns: 1 is not True, and 1.0 is neither."""
    stamped = [[(value, value[0]) for value in values] for values in lists] if with_timestamps else lists
    job = graph_of(keyed(*stamped, timestamps=with_timestamps), len(lists))
    results = by_key(DrivenBatch(job, seed=seed).run())
    assert repr(sorted(results.items())) == repr(sorted(in_order([v for values in lists for v in values]).items()))


@pytest.mark.parametrize("key", [lambda value: value % 3, lambda value: value])
def test_bare_numbers_cross_as_columns(key: Any) -> None:
    numbers = list(range(1000))

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, numbers).key_by(key).process(Contiguous())

    batch = DrivenBatch(graph_of(build))
    assert sorted(value for _, _, value in batch.run()) == numbers
    rows = [unpack_row(row) for _, order, row in batch.rows[batch.stages[0].id] if order != REPORT_ORDER]
    assert all(columns.are_columns(frame) for row in rows for _, frame in grouped_input.frames_of(row))


def test_groups_longer_than_a_chunk_of_columns() -> None:
    records = [(number % 2, number) for number in range(20_000)]
    assert by_key(DrivenBatch(graph_of(keyed(records))).run()) == in_order(records)


def test_records_change_from_columns_to_objects_and_back() -> None:
    """Each key keeps its order all the same."""
    records = [(number % 5, number if number % 9000 < 6000 else f"{number}") for number in range(30_000)]
    assert by_key(DrivenBatch(graph_of(keyed(records))).run()) == in_order(records)


@pytest.mark.parametrize("bad", [None, [1]])
def test_a_key_that_is_none_is_refused_with_its_record(bad: Any) -> None:
    with pytest.raises(StageTaskError) as raised:
        DrivenBatch(graph_of(keyed([(1, 1), (bad, 2)]))).run()
    assert raised.value.messages[-1].failure.element == repr((bad, 2))


def test_records_of_a_bucket_are_few_rows_and_little_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    after_batch = grouping_output.BucketedPartition.after_batch

    def watched(self: grouping_output.BucketedPartition) -> None:
        after_batch(self)
        held.append(self.held_records)

    monkeypatch.setattr(grouping_output.BucketedPartition, "after_batch", watched)
    records = [(f"{number % 997}", number) for number in range(200_000)]
    batch = DrivenBatch(graph_of(keyed(records), options={"execution.batch.key-buckets": "64"}))
    assert len(batch.run()) == len(records)
    assert max(held) < 64 * 256
    rows = batch.records(batch.stages[0].id)
    assert {kind for *_, kind in rows} == {GROUPS}
    assert len(rows) < 200


def test_large_records_are_not_held() -> None:
    partition = grouping_output.BucketedPartition(0, 0, [0], 4)
    partition.begin(False, gathers=False)
    for number in range(200):
        partition.buckets[number % 4].values.append(b"x" * 100_000)
        partition.after_batch()
        assert partition.held_records == 0
    rows = list(partition.take())
    assert max(map(len, rows)) < 2 * grouping_output._ROW_BYTES
    assert len(rows) > 50


def test_all_keys_are_different() -> None:
    records = [(f"key-{number}", number) for number in range(50_000)]
    results = DrivenBatch(graph_of(keyed(records[::2], records[1::2], readers=2), 2)).run()
    assert sorted(value for _, _, value in results) == sorted(records)


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Buckets of more than 1000 records are divided on disk; gives the sizes of what is grouped in memory."""
    monkeypatch.setattr(bucket_split, "_MAX_RECORDS", 1000)
    monkeypatch.setattr(bucket_split, "_COUNTED_FROM", 0)
    sizes: list[int] = []
    clear = grouped_input.Grouping.clear

    def watched(self: grouped_input.Grouping) -> None:
        sizes.append(sum(map(len, self.plain.values())) + sum(len(group[2]) for group in self.stamped.values()))
        clear(self)

    monkeypatch.setattr(grouped_input.Grouping, "clear", watched)
    return sizes


def test_a_bucket_that_is_too_large_is_divided(small_memory: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping_output, "_ROW_BYTES", 4096)
    records = [(f"{number % 300}", number) for number in range(20_000)]
    batch = DrivenBatch(graph_of(keyed(records[:9000], records[9000:]), 2, {"execution.batch.key-buckets": "1"}))
    assert by_key(batch.run()) == in_order(records)
    assert max(small_memory) < 2000


def test_a_key_with_very_many_records_is_read_in_parts(
    small_memory: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping_output, "_ROW_BYTES", 4096)
    records = [("hot" if number % 4 else f"cold-{number % 40}", number) for number in range(20_000)]
    batch = DrivenBatch(graph_of(keyed(records[:9000], records[9000:]), 2, {"execution.batch.key-buckets": "1"}))
    assert by_key(batch.run()) == in_order(records)
    assert max(small_memory) < 2000


def test_a_large_bucket_with_timestamps_is_sorted(small_memory: list[int]) -> None:
    records = [((f"{number % 7}", number), -number) for number in range(5000)]
    batch = DrivenBatch(graph_of(keyed(records, timestamps=True), 1, {"execution.batch.key-buckets": "1"}))
    assert by_key(batch.run()) == in_order([value for value, _ in reversed(records)])
    assert len(small_memory) > 2


def test_rows_wait_on_disk_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping_output, "_ROW_BYTES", 1024)
    monkeypatch.setattr(row_spool.RowSpool.__init__, "__defaults__", (2048,))
    records = [(f"{number % 5}", number) for number in range(5000)]
    batch = DrivenBatch(graph_of(keyed(records[:2000], records[2000:]), 2, {"execution.batch.key-buckets": "1"}))
    assert by_key(batch.run()) == in_order(records)


def test_a_record_that_cannot_be_pickled_is_named() -> None:
    class Unpicklable:
        def __reduce__(self) -> Any:
            raise TypeError("never")

    def failing(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, [1]).map(lambda value: (value, Unpicklable())).key_by(lambda v: v[0]).map(lambda v: v[0])

    with pytest.raises(StageTaskError, match="never"):
        DrivenBatch(graph_of(failing)).run()


def test_equal_keys_meet_whatever_their_types() -> None:
    results = DrivenBatch(graph_of(keyed([(1, "a"), (True, "b")], [(1.0, "c")], readers=3), 2)).run()
    assert [(number, value[1]) for _, number, value in results] == [(0, "a"), (1, "b"), (2, "c")]


def test_orders_of_rows_do_not_meet() -> None:
    assert 0 < bucket_order(0) < bucket_order(1 << 20) < REPORT_ORDER
    assert 0 < record_order(0, 0) < record_order(0, 1) < record_order(1, 0) < record_order(1 << 20, 1 << 20)
    assert record_order(1 << 20, 1 << 40) < REPORT_ORDER


def test_rows_say_where_they_come_from() -> None:
    batch = DrivenBatch(graph_of(keyed([(1, 1)], [(1, 2)]), 2))
    batch.run()
    rows = [unpack_row(row) for _, order, row in batch.rows[batch.stages[0].id] if order != REPORT_ORDER]
    assert sorted(row.producer for row in rows) == [0, 1]
    assert len({row.edge for row in rows}) == 1
