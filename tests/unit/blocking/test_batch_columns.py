"""Records of numbers as columns: where they go, what they are reduced to, and that nothing shows of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from firesteel.common.types import Row, RowKind
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import DataStream, KeyedProcessFunction, KeySelector, StreamExecutionEnvironment
from firesteel.datastream.streams.field_aggregation import AccumulateType, FieldAggregation
from firesteel.execution.batch import column_runs
from firesteel.execution.batch.column_runs import RECORD_ITSELF, ColumnRuns, KeyDivisions, field_of_key
from firesteel.execution.batch.columns import are_columns, decode_columns
from firesteel.execution.batch.grouped_input import count_records, frames_of
from firesteel.execution.batch.grouping_output import KeyBucketTable
from firesteel.execution.stages.exchange_rows import unpack_row
from firesteel.execution.stages.row_order import REPORT_ORDER
from firesteel.runtime.codegen.inlining import find_inline_expressions, register_inline_expressions
from firesteel.types.number_records import NumberRecords
from tests.support.epochs.driven_batches import DrivenBatch, Given, given, graph_of, run

LONGS = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=100, deadline=None)
@drawn(keys=st.lists(LONGS, min_size=1, max_size=50), parallelism=st.integers(1, 5), buckets=st.integers(1, 40))
def test_keys_are_divided_as_one_by_one(keys: list[int], parallelism: int, buckets: int) -> None:
    table = KeyBucketTable(list(range(parallelism * buckets)), parallelism, 128, lambda: 0)
    places = KeyDivisions(parallelism, 128, buckets).places_of(numpy.array(keys, dtype=numpy.int64))
    assert places.tolist() == [table[key] for key in keys]


def test_which_key_selectors_give_a_field() -> None:
    class Selector(KeySelector):
        def get_key(self, value: Any) -> Any:
            return value[0]

    selectors = [
        lambda value: value[0],
        lambda value: value["a"],
        lambda value: value.a,
        lambda value: value,
        lambda value: value[-1],
        lambda value: value[0] % 7,
        lambda value: value[0][1],
        lambda value: len(value),
    ]
    register_inline_expressions(find_inline_expressions(selectors))
    assert [field_of_key(selector) for selector in selectors] == [0, "a", "a", RECORD_ITSELF, None, None, None, None]
    assert field_of_key(itemgetter(2)) == 2
    assert field_of_key(itemgetter(0, 1)) is None
    assert field_of_key(Selector().get_key) is None


def frames(batch: DrivenBatch) -> list[memoryview]:
    rows = [unpack_row(row) for _, order, row in batch.rows[batch.stages[0].id] if order != REPORT_ORDER]
    return [frame for row in rows for _, frame in frames_of(row)]


class All(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), value


def by_field(key: Any, *lists: Sequence[Any]) -> DrivenBatch:
    return DrivenBatch(graph_of(lambda env: given(env, *lists).key_by(key).process(All()), len(lists)))


@pytest.mark.parametrize(
    ("key", "records"),
    [
        (lambda value: value["a"], [Row(a=number % 3, b=number / 2) for number in range(50)]),
        (lambda value: value.a, [Row(a=number % 3, b=number / 2) for number in range(50)]),
        (lambda value: value[1], [Row(number / 2, number % 3) for number in range(50)]),
        (lambda value: value[0], [(number % 3, number / 2, 2**62) for number in range(50)]),
        (lambda value: value[0] % 2, [(number % 3, number / 2) for number in range(50)]),
        (lambda value: int(value), [number / 2 for number in range(50)]),
        (lambda value: value, list(range(50))),
    ],
)
def test_records_of_numbers_cross_as_columns(key: Any, records: list[Any]) -> None:
    batch = by_field(key, records)
    assert sorted(batch.run(), key=repr) == sorted(((key(record), record) for record in records), key=repr)
    assert all(map(are_columns, frames(batch)))


@pytest.mark.parametrize(
    "records",
    [
        [(1, 2), (1, True)],
        [(1, 2), (1, None)],
        [(1, 2), (1, 2.5)],
        [(1, 2), (1, 2, 3)],
        [(1, 2), [1, 2]],
        [(1, 2**63)],
        [(1, "a")],
        [()],
        [Row(a=1), Row(b=1)],
        [Row(a=1), Row.of_kind(RowKind.DELETE, a=1)],
        [Row(a=1), (1,)],
        [numpy.int64(1)],
    ],
    ids=repr,
)
def test_all_others_are_pickled(records: list[Any]) -> None:
    batch = by_field(lambda value: 7, records)
    assert [repr(value) for _, value in batch.run()] == [repr(record) for record in records]
    assert not any(map(are_columns, frames(batch)))


class Numbers(Given):
    """Emits its records as columns."""

    def create_reader(self, context: Any) -> Any:
        reader = super().create_reader(context)
        poll = reader.poll_next

        class Output:
            def __init__(self, output: Any):
                self.output = output

            def collect(self, split: str, values: Sequence[Any], timestamps: Any = None) -> None:
                columns = [numpy.array(column) for column in zip(*values, strict=True)]
                self.output.collect(split, NumberRecords(columns, ("a", "b")), timestamps)

        reader.poll_next = lambda output, most: poll(Output(output), most)  # type: ignore[assignment, method-assign]
        return reader


@pytest.mark.parametrize("mapped", [False, True])
def test_a_source_of_columns(mapped: bool) -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        source = Numbers([(number % 3, number) for number in range(5000)])
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        if mapped:
            stream = stream.map(lambda row: Row(a=row.a, b=row.b + 1))
        return stream.key_by(lambda row: row["a"]).process(All())

    batch = DrivenBatch(graph_of(build))
    assert sorted(key for key, _ in batch.run()) == sorted(number % 3 for number in range(5000))
    assert all(map(are_columns, frames(batch)))
    assert (0, Row(a=0, b=int(mapped))) in run(build)


def test_number_records_are_a_sequence() -> None:
    records = NumberRecords([numpy.arange(5), numpy.arange(5) / 2], None)
    assert len(records) == 5
    assert list(records) == [(0, 0.0), (1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)]
    assert records[1:3] == [(1, 0.5), (2, 1.0)]
    assert records[-1] == (4, 2.0)
    assert records[::2].to_list() == [(0, 0.0), (2, 1.0), (4, 2.0)]
    with pytest.raises(IndexError, match="none at 5"):
        records[5]
    assert list(NumberRecords([numpy.arange(2)], ("a",))) == [Row(a=0), Row(a=1)]


# -- reductions ----------------------------------------------------------------------------------------------


def summed(kind: str, *lists: list[Any]) -> DrivenBatch:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        keyed = given(env, *lists).key_by(lambda value: value[0])
        result: DataStream = getattr(keyed, kind)(1)
        return result

    return DrivenBatch(graph_of(build, len(lists)))


@settings(max_examples=60, deadline=None)
@drawn(
    lists=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.one_of(st.integers(-5, 5), LONGS), LONGS), max_size=30),
        min_size=1,
        max_size=3,
    ),
    kind=st.sampled_from(["sum", "min", "max", "min_by", "max_by"]),
)
def test_reduced_before_the_exchange_or_not_is_the_same(lists: list[list[Any]], kind: str) -> None:
    function = FieldAggregation(1, AccumulateType[kind.upper()])
    expected: dict[int, Any] = {}
    for record in (record for records in lists for record in records):
        key = record[0]
        expected[key] = function.reduce(expected[key], record) if key in expected else record
    assert sorted(summed(kind, *lists).run()) == sorted(expected.values())


def test_sums_are_made_before_the_exchange() -> None:
    batch = summed("sum", [(number % 5, number) for number in range(10_000)])
    totals = Counter({key: sum(range(key, 10_000, 5)) for key in range(5)})
    assert dict(batch.run()) == totals
    rows = [unpack_row(row) for _, order, row in batch.rows[batch.stages[0].id] if order != REPORT_ORDER]
    assert sum(map(count_records, rows)) == 5


def test_sums_that_could_overflow_are_not() -> None:
    batch = summed("sum", [(1, 2**62)] * 10)
    assert batch.run() == [(1, 10 * 2**62)]


def test_the_other_fields_are_those_of_the_first_record() -> None:
    batch = summed("max", [(1, 5, 70), (1, 9, 80)] * 3, [(1, 7, 90)])
    assert batch.run() == [(1, 9, 70)]


def test_where_most_keys_differ_nothing_is_reduced() -> None:
    runs = ColumnRuns(KeyDivisions(1, 128, 1), 0, ("sum", 1))
    for records in ([(number, 1) for number in range(100)], [(0, 1)] * 100):
        columns = runs.to_columns(records, None, None)
        assert columns is not None
        runs.add(columns, len(records))
        assert sum(count for _, count, _ in runs.take()) == 100


def test_with_timestamps_nothing_is_reduced() -> None:
    runs = ColumnRuns(KeyDivisions(1, 128, 1), 0, ("sum", 1))
    columns = runs.to_columns([(0, 1), (0, 2)], [2, 1], None)
    assert columns is not None
    runs.add(columns, 2)
    ((_, count, frame),) = runs.take()
    assert count == 2
    assert decode_columns(memoryview(frame)).records(0, 2) == ([(0, 1), (0, 2)], [2, 1])


def test_runs_are_divided_when_they_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_runs, "_RUN_VALUES", 5000)
    records = [(number % 7, number) for number in range(20_000)]
    batch = by_field(lambda value: value[0], records)
    assert sorted(value for _, value in batch.run()) == sorted(records)
    assert len(frames(batch)) > 7


@pytest.mark.parametrize("values", [[("a", 1), ("a", 2)], [Row("a", 1), Row("a", 2)], [["a", 1], ["a", 2]]])
@pytest.mark.parametrize("kind", list(AccumulateType))
def test_reducing_all_is_reducing_one_by_one(values: Iterable[Any], kind: AccumulateType) -> None:
    function = FieldAggregation(1, kind)
    first, second = values
    assert function.reduce_all(None, [first, second]) == function.reduce(first, second)
    assert function.reduce_all(first, [second]) == function.reduce(first, second)
    assert function.reduce_all(None, [first]) == first
