"""Operators on columns: calc, watermarks, and the borders to records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from firesteel.common import Duration, Row, RowKind, WatermarkStrategy
from firesteel.common.errors import FiresteelError, InvalidProgramError
from firesteel.datastream import KeyedStream, ProcessFunction, StreamExecutionEnvironment
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.runtime.columns.keys import ColumnKeySelector
from firesteel.runtime.columns.rowtime import latest_rowtime, rowtime_millis
from firesteel.runtime.model.operator_spec import OperatorRuntime, OperatorSpec
from firesteel.runtime.model.partitioner import KeyGroupPartitioner
from firesteel.runtime.operators.columns.borders import ColumnsToRowsSpec, RowsToColumnsSpec
from firesteel.runtime.operators.columns.calc import CalcSpec
from firesteel.runtime.operators.columns.operator import ColumnOperator, TwoInputColumnOperator
from firesteel.runtime.operators.columns.watermarks import ColumnWatermarksSpec, RowtimeAssigner
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.watermark_generation import WatermarkAssigner
from firesteel.testing import FakeClock, test_environment
from firesteel.types.logical import BigIntType, RowType, TimestampType, VarCharType

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of a column without a zone
TYPE = RowType.of(["word", "number"], [VarCharType(), BigIntType()])


def _columns(env: StreamExecutionEnvironment, records: list[Any], **options: Any) -> Any:
    stream = env.from_collection(records)
    return stream._transform("RowsToColumns", RowsToColumnsSpec(**{"row_type": TYPE, **options}), None)


def _collect(stream: Any, **options: Any) -> list[Any]:
    rows = stream._transform("ColumnsToRows", ColumnsToRowsSpec(**options), None)
    return list(rows.execute_and_collect())


def test_rows_come_back_with_their_names_and_kinds() -> None:
    rows = [
        Row(word="a", number=1),
        Row.of_kind(RowKind.UPDATE_BEFORE, word="b", number=None),
        Row.of_kind(RowKind.UPDATE_AFTER, word=None, number=3),
        Row.of_kind(RowKind.DELETE, word="d", number=4),
    ]
    assert _collect(_columns(test_environment(1), rows)) == rows


def test_any_record_with_the_fields_becomes_a_row_of_columns() -> None:
    stream = _columns(test_environment(1), [("a", 1), {"number": 2, "word": "b"}, Row(number=3, word="c")])
    assert _collect(stream, as_tuples=True) == [("a", 1), ("b", 2), ("c", 3)]


def test_a_record_that_does_not_fit_is_named() -> None:
    with pytest.raises(FiresteelError) as caught:
        _collect(_columns(test_environment(1), [("a", 1), ("b", "two")]))
    assert "('b', 'two')" in str(caught.value)
    assert "number" in str(caught.value)


def test_calc_filters_with_kinds_and_projects() -> None:
    rows = [Row.of_kind(kind, word=str(kind), number=kind.value) for kind in RowKind]
    stream = _columns(test_environment(1), rows)._transform(
        "Calc",
        CalcSpec(lambda data: data.select(["word"]), lambda data: pc.greater(data.column("number"), 1)),
        None,
    )
    assert _collect(stream) == [Row.of_kind(kind, word=str(kind)) for kind in RowKind if kind.value > 1]


def test_a_projection_keeps_the_number_of_rows() -> None:
    stream = _columns(test_environment(1), [("a", 1), ("b", 2)])._transform(
        "Calc", CalcSpec(lambda data: data.slice(0, data.num_rows - 1)), None
    )
    with pytest.raises(FiresteelError, match="A projection made"):
        _collect(stream)


def test_two_consumers_of_one_operator_share_its_batches() -> None:
    env = test_environment(1)
    stream = _columns(env, [("a", 1), ("b", 2)])
    one = stream._transform("Calc", CalcSpec(lambda data: data), None)
    other = stream._transform("Calc", CalcSpec(lambda data: data, lambda data: pc.equal(data.column(1), 2)), None)
    rows = [each._transform("ColumnsToRows", ColumnsToRowsSpec(as_tuples=True), None) for each in (one, other)]
    assert sorted(rows[0].union(rows[1]).execute_and_collect()) == [("a", 1), ("b", 2), ("b", 2)]


def test_records_that_become_columns_come_in_batches_from_the_first_one_on() -> None:
    def sized(data: pa.RecordBatch) -> pa.RecordBatch:
        return data.set_column(1, "number", pa.array([data.num_rows] * data.num_rows, pa.int64()))

    stream = _columns(test_environment(1), [("a", 1)] * 500)._transform("Calc", CalcSpec(sized), None)
    assert _collect(stream, as_tuples=True) == [("a", 500)] * 500


@dataclass(frozen=True)
class SemiJoinSpec(OperatorSpec):
    def create(self, runtime: OperatorRuntime) -> ColumnOperator:
        return SemiJoin()


class SemiJoin(TwoInputColumnOperator):
    """Emits rows of the first input whose word has come in the second one, when both have ended."""

    def __init__(self) -> None:
        self.rows: list[ColumnBatch] = []
        self.words: set[str] = set()

    def process_columns(self, batch: ColumnBatch) -> None:
        self.rows.append(batch)

    def process_second_columns(self, batch: ColumnBatch) -> None:
        self.words.update(batch.data.column("word").to_pylist())

    def finish(self) -> None:
        for batch in self.rows:
            self.emit(batch.filter(pc.is_in(batch.data.column("word"), pa.array(sorted(self.words)))))


@pytest.mark.parametrize("parallelism", [1, 2])
def test_an_operator_reads_columns_of_two_inputs(parallelism: int) -> None:
    env = test_environment(parallelism)
    keys = ColumnKeySelector((0,))
    left, right = (
        KeyedStream(env, columns._partition(KeyGroupPartitioner(keys)), keys, None, columns)
        for columns in (_columns(env, [(word, 1) for word in "abcd"]), _columns(env, [("b", 2), ("d", 3), ("d", 4)]))
    )
    joined = left.connect(right)._transform("SemiJoin", SemiJoinSpec(), None)
    assert sorted(_collect(joined, as_tuples=True)) == [("b", 1), ("d", 1)]


@pytest.mark.parametrize("partition", ["rebalance", "broadcast", "shuffle", "rescale", "forward"])
def test_columns_are_partitioned(partition: str) -> None:
    env = test_environment(3)
    records = [(str(number), number) for number in range(100)]
    stream = _columns(env, records).set_parallelism(3)
    moved = getattr(stream, partition)()._transform("Calc", CalcSpec(lambda data: data), None)
    expected = sorted(records * (3 if partition == "broadcast" else 1))
    assert sorted(_collect(moved.disable_chaining(), as_tuples=True)) == expected


def test_an_operator_on_records_refuses_columns_and_the_other_way_round() -> None:
    for build in (
        lambda env: _columns(env, [("a", 1)]).map(lambda value: value),
        lambda env: _columns(env, [("a", 1)]).rebalance().map(lambda value: value),
        lambda env: env.from_collection([1])._transform("Calc", CalcSpec(lambda data: data), None),
        lambda env: _columns(env, [("a", 1)]).key_by(lambda value: value).map(lambda value: value),
    ):
        with pytest.raises(FiresteelError, match="columns") as caught:
            list(build(test_environment(2)).execute_and_collect())
        assert "ToRows" in str(caught.value) or "ToColumns" in str(caught.value) or "Column" in str(caught.value)


TIMED = RowType.of(["word", "time"], [VarCharType(), TimestampType(3)])
STRATEGY = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2)).with_timestamp_assigner(
    RowtimeAssigner(1)
)


class Timestamps(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value.word, ctx.timestamp()


def test_rows_have_the_timestamps_of_the_rowtime_column() -> None:
    records = [(str(second), EPOCH + timedelta(seconds=second)) for second in (5, 3, 9)]
    stream = _columns(test_environment(1), records, row_type=TIMED, rowtime=1)
    stream = stream._transform("Watermarks", ColumnWatermarksSpec(STRATEGY), None)
    rows = stream._transform("ColumnsToRows", ColumnsToRowsSpec(), None)
    results = rows.process(Timestamps()).execute_and_collect()
    assert list(results) == [("5", 5000), ("3", 3000), ("9", 9000)]


def test_watermarks_follow_the_rowtime_column_of_each_split() -> None:
    emitted: list[Any] = []
    assigner = WatermarkAssigner(
        STRATEGY,
        InputClock(FakeClock(0).monotonic_ms),
        lambda values, _times: emitted.append(values) or 0,  # type: ignore[func-returns-value]
        lambda values, _times: emitted.append(values),
        emitted.append,
        emitted.append,
    )
    batches = {
        split: ColumnBatch(pa.record_batch({"word": ["a", "b"], "time": pa.array(times, pa.timestamp("ms"))}))
        for split, times in {"one": [7000, 5000], "other": [9000, 4000]}.items()
    }
    for split, batch in batches.items():
        assigner.add_split(split)
        assert assigner.process(split, batch, None) == 0
    assigner.periodic()
    assert emitted == [batches["one"], batches["other"], 7000 - 2000 - 1]


@pytest.mark.parametrize(("unit", "number"), [("s", 2), ("ms", 2_500), ("us", 2_500_999), ("ns", 2_500_999_999)])
def test_rowtime_in_milliseconds(unit: str, number: int) -> None:
    column = pa.array([1, None, number], pa.timestamp(unit))
    batch = ColumnBatch(pa.record_batch({"time": column}), None, 0)
    expected = 2_000 if unit == "s" else 2_500
    assert latest_rowtime(batch, 0) == expected
    assert rowtime_millis(batch[2:]).tolist() == [expected]
    assert latest_rowtime(batch[1:2], 0) is None
    with pytest.raises(InvalidProgramError, match="null in 1 rows"):
        rowtime_millis(batch)
    early = ColumnBatch(pa.record_batch({"time": pa.array([-1], pa.timestamp(unit))}), None, 0)
    assert latest_rowtime(early, 0) == (-1000 if unit == "s" else -1)
