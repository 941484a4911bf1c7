"""Tasks of a batch: what they read, in which order, and what they tell at the end."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkGenerator, WatermarkStrategy
from firesteel.datastream import (
    BroadcastProcessFunction,
    CoMapFunction,
    DataStream,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import MapStateDescriptor
from firesteel.execution.batch.task import run_batch_task
from firesteel.execution.stages.errors import StageTaskError
from firesteel.execution.stages.exchange_rows import BATCH, REPORT, pack_row, unpack_row
from firesteel.runtime.model.elements import MAX_WATERMARK, MIN_TIMESTAMP
from firesteel.runtime.model.messages import TaskStateChanged
from firesteel.spi.sink import Committer, Sink, SinkWriter
from tests.support.epochs.driven_batches import DrivenBatch, Given, given, graph_of, results_of, run


def test_rows_of_other_exchanges_are_read_producer_by_producer() -> None:
    lists = [list(range(start, start + 20_000)) for start in (0, 100_000)]

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, *lists).rebalance().map(lambda value: value).set_parallelism(1)

    for seed in range(3):
        batch = DrivenBatch(graph_of(build, 2), seed=seed)
        assert batch.run() == lists[0] + lists[1]
        assert {kind for *_, kind in batch.records(batch.stages[0].id)} == {BATCH}


def test_both_inputs_of_a_connected_stream_are_read() -> None:
    class Sides(CoMapFunction):
        def map1(self, value: Any) -> Any:
            return "left", value

        def map2(self, value: Any) -> Any:
            return "right", value

    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, [1, 2]).connect(given(env, [3]).rebalance()).map(Sides())

    assert sorted(run(build)) == [("left", 1), ("left", 2), ("right", 3)]


RULES = MapStateDescriptor("rules", None, None)


def test_a_broadcast_side_comes_first_also_without_keys() -> None:
    class Ruled(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value, sorted(ctx.get_broadcast_state(RULES).keys())

        def process_broadcast_element(self, value: Any, ctx: Any) -> None:
            ctx.get_broadcast_state(RULES).put(value, True)

    def build(env: StreamExecutionEnvironment) -> DataStream:
        rules = given(env, ["x"], ["y"]).broadcast(RULES)
        return given(env, [1], [2]).rebalance().connect(rules).process(Ruled())

    assert sorted(run(build, 2)) == [(1, ["x", "y"]), (2, ["x", "y"])]


class Watermarks(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


class EveryRecord(WatermarkGenerator):
    def on_event(self, value: Any, timestamp: int, output: Any) -> None:
        output.emit_watermark(timestamp)

    def on_periodic_emit(self, output: Any) -> None:
        pass


class ValueAsTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


@pytest.mark.parametrize("at_source", [True, False])
def test_timestamps_are_assigned_but_no_watermarks_sent(at_source: bool) -> None:
    strategy = WatermarkStrategy.for_generator(EveryRecord).with_timestamp_assigner(ValueAsTime())

    def build(env: StreamExecutionEnvironment) -> DataStream:
        if at_source:
            return env.from_source(Given([5, 7]), strategy, "given").process(Watermarks())
        return given(env, [5, 7]).assign_timestamps_and_watermarks(strategy).process(Watermarks())

    assert run(build) == [(5, 5, MIN_TIMESTAMP), (7, 7, MIN_TIMESTAMP)]


class Files(Sink):
    """Prepares one committable of all it was given; commits and closing are noted."""

    committed: ClassVar[list[Any]] = []

    def create_writer(self, context: Any) -> SinkWriter[Any]:
        return FileWriter()

    def create_committer(self) -> Committer[Any]:
        return FileCommitter()


class FileWriter(SinkWriter[Any]):
    def __init__(self) -> None:
        self.values: list[Any] = []

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        self.values += values

    def prepare_commit(self) -> list[Any]:
        return [tuple(self.values)]


class FileCommitter(Committer[Any]):
    def commit(self, committables: Sequence[Any]) -> None:
        Files.committed += committables


class Counting(ProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_metrics_group().counter("seen")

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        self.seen.inc()
        yield value


def test_the_report_says_what_a_task_did_and_prepared() -> None:
    Files.committed.clear()

    def build(env: StreamExecutionEnvironment) -> None:
        given(env, [1, 2], [3]).process(Counting()).uid("count").rebalance().map(str).sink_to(Files()).uid("files")

    batch = DrivenBatch(graph_of(build, 2))
    assert batch.run() == []
    assert Files.committed == []
    assert len(batch.reports) == 4
    batch.reports.sort(key=lambda report: report.subtask)
    sources = [report for report in batch.reports if report.vertex_id == batch.stages[0].id]
    assert [report.accumulators["seen"] for report in sources] == [2, 1]
    assert [report.metrics[""]["numRecordsOut"] for report in sources] == [2, 1]
    prepared = [item for report in batch.reports for items in report.committables.values() for item in items]
    assert sorted(value for item in prepared for value in item) == ["1", "2", "3"]
    assert sum(report.metrics[""]["numRecordsIn"] for report in batch.reports if report not in sources) == 3


def test_running_a_task_again_gives_the_same_rows() -> None:
    def build(env: StreamExecutionEnvironment) -> DataStream:
        return given(env, [(number % 5, number) for number in range(1000)]).key_by(lambda value: value[0]).sum(1)

    batch = DrivenBatch(graph_of(build))
    batch.run()
    for stage in batch.stages[:2]:
        rows = batch.input_of(stage.id, 0)
        again = DrivenBatch.run_task(batch.command(stage.id, 0), rows)
        # reports, which are passed on to the last stage, tell how long things took
        assert [row for row in again if unpack_row(row[2]).kind != REPORT] == [
            row for row in batch.rows[stage.id] if unpack_row(row[2]).kind != REPORT
        ]


def test_reports_of_producers_are_passed_on() -> None:
    batch = DrivenBatch(graph_of(lambda env: given(env, [1]).rebalance().map(str)))
    middle = batch.stages[1]
    report = pack_row(REPORT, 0, 0, 0, pickle.dumps(["from before"]))
    rows = DrivenBatch.run_task(batch.command(middle.id, 0), [report])
    told = [pickle.loads(unpack_row(row).payload) for _, _, row in rows]
    assert told[0] == ["from before"]
    assert [unpack_row(row).kind for _, _, row in rows] == [REPORT, REPORT]


def test_what_functions_print_goes_with_the_report() -> None:
    class Lines:
        def take(self) -> list[tuple[str, list[str]]]:
            return [("stdout", ["one", "two"])]

    entered: list[str] = []

    @contextmanager
    def capture() -> Iterator[Lines]:
        entered.append("in")
        yield Lines()
        entered.append("out")

    batch = DrivenBatch(graph_of(lambda env: given(env, [1]).print()))
    batch.run(capture=capture)
    assert [report.printed for report in batch.reports] == [(("stdout", "one\ntwo\n"),)]
    assert entered == ["in", "out"]
    assert len(batch.reports[0].client_payloads) == 1


def test_a_failure_is_told_as_a_slot_would() -> None:
    batch = DrivenBatch(graph_of(lambda env: given(env, [1, 0]).map(lambda value: 1 // value).name("divide")))
    with pytest.raises(StageTaskError) as raised:
        batch.run()
    message = raised.value.messages[-1]
    assert isinstance(message, TaskStateChanged)
    assert (message.state, message.vertex_id, message.subtask) == ("FAILED", batch.stages[0].id, 0)
    assert message.failure is not None
    assert (message.failure.operator, message.failure.element) == ("divide", "0")


def test_functions_are_closed_also_when_nobody_reads_on() -> None:
    closed: list[str] = []

    class Closing(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value

        def close(self) -> None:
            closed.append("closed")

    batch = DrivenBatch(graph_of(lambda env: given(env, range(100_000)).process(Closing()).rebalance().map(str)))
    output = run_batch_task(batch.command(batch.stages[0].id, 0), ())
    next(output)
    assert closed == []
    output.close()  # type: ignore[attr-defined]
    assert closed == ["closed"]


def test_a_function_that_fails_to_close_fails_the_task() -> None:
    class Failing(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value

        def close(self) -> None:
            raise ValueError("not now")

    with pytest.raises(StageTaskError, match="not now"):
        run(lambda env: given(env, [1]).process(Failing()))


class Rows(Given):
    """A source whose records Spark has read: they come as rows of bytes."""

    def read_rows(self, rows: Iterable[bytes]) -> Iterator[tuple[list[Any], None]]:
        for row in rows:
            if row == b"bad":
                raise ValueError("what is this?")
            yield row.decode().split(), None


def rows_job(env: StreamExecutionEnvironment) -> DataStream:
    source = env.from_source(Rows(), WatermarkStrategy.no_watermarks(), "rows")
    return source.map(lambda value: f"<{value}>").rebalance().map(lambda value: value)


def test_a_source_may_read_rows_itself() -> None:
    batch = DrivenBatch(graph_of(rows_job))
    first = batch.stages[0].id
    batch.rows[first] = DrivenBatch.run_task(batch.command(first, 0), [b"a b", b"", b"c"])
    second = batch.stages[1].id
    rows = DrivenBatch.run_task(batch.command(second, 0), batch.input_of(second, 0))
    reports = [report for _, _, row in rows for report in pickle.loads(unpack_row(row).payload)]
    assert results_of(reports) == ["<a>", "<b>", "<c>"]
    assert [report.metrics[""]["numRecordsIn"] for report in reports] == [3, 3]


def test_rows_that_a_source_cannot_read_fail_it() -> None:
    batch = DrivenBatch(graph_of(rows_job))
    with pytest.raises(StageTaskError, match="what is this"):
        DrivenBatch.run_task(batch.command(batch.stages[0].id, 0), [b"bad"])


def test_the_last_watermark_reaches_the_end_of_the_chain() -> None:
    seen: list[int] = []

    class Noting(SinkWriter[Any]):
        def write_batch(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
            pass

    class NotingSink(Sink):
        def create_writer(self, context: Any) -> SinkWriter[Any]:
            return Noting()

    def build(env: StreamExecutionEnvironment) -> None:
        given(env, ["a"]).key_by(lambda value: value).map(lambda value: value).sink_to(NotingSink())

    from firesteel.runtime.operators.sink import SinkOperator

    class Watching(SinkOperator):
        def process_watermark(self, timestamp: int) -> None:
            seen.append(timestamp)

    batch = DrivenBatch(graph_of(build))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firesteel.runtime.operators.sink.SinkOperator", Watching)
        batch.run()
    assert seen == [MAX_WATERMARK]


def test_numbers_name_partitions_of_all_consumers() -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        numbers = given(env, range(10))
        numbers.rebalance().map(str).set_parallelism(2).print()
        numbers.key_by(lambda value: value).map(str).set_parallelism(3).print()

    batch = DrivenBatch(graph_of(build))
    batch.run()
    assert {partition for partition, _, _ in batch.records(batch.stages[0].id)} == {0, 1, 2, 3, 4}
