"""What goes wrong in an epoch, and what is kept, sent and committed then."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.errors import JobExecutionError, TaskFailure
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors import CollectSink
from firesteel.datastream import KeyedProcessFunction, MapFunction
from firesteel.execution.epochs.task import run_epoch_task
from firesteel.execution.stages.errors import MAX_ENCODED, StageTaskError, decode_messages
from firesteel.execution.stages.exchange_rows import BATCH, REPORT, unpack_row
from firesteel.execution.stages.stage_task import ROW_CONFIG
from firesteel.process import fault_points
from firesteel.runtime.model import messages
from firesteel.runtime.model.assigned_state import TaskRestore
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions, SnapshotKind
from firesteel.runtime.model.elements import Watermark
from firesteel.runtime.model.serialization import deserialize_batch, serialize_records
from firesteel.runtime.model.state_handles import ChannelStateHandle, InlineBytes
from firesteel.runtime.network.partition import OVERDRAFT_BUFFERS
from firesteel.runtime.operators.sink import COMMITTABLES
from firesteel.spi.sink import Committer, Sink, SinkWriter
from firesteel.spi.source import InputStatus, SourceReader
from firesteel.testing import TestingSource, test_environment
from tests.support.epochs.driven import DrivenEpochs, graph_of

NO_WATERMARKS = WatermarkStrategy.no_watermarks()


@pytest.fixture
def driven(tmp_path: Path):
    all_driven = []

    def drive(build: Any, parallelism: int = 1, **settings: Any) -> DrivenEpochs:
        driven = DrivenEpochs(graph_of(build, parallelism), tmp_path / str(len(all_driven)), **settings)
        all_driven.append(driven)
        return driven

    yield drive
    for each in all_driven:
        each.close()


class Picky(MapFunction):
    closed = 0

    def map(self, value):
        print(f"looks at {value}")
        return 10 // value

    def close(self):
        Picky.closed += 1


def picky(env: Any, items: Any = (5, 2, 0, 1)) -> None:
    source = TestingSource(list(items), bounded=False)
    env.from_source(source, NO_WATERMARKS, "numbers").rebalance().map(Picky()).name("picky").sink_to(CollectSink("c"))


class TestFailure:
    def test_is_told_as_a_slot_tells_it(self, driven):
        env = test_environment()
        picky(env)
        with pytest.raises(JobExecutionError) as streaming:
            env.execute()
        epochs = driven(picky)
        epochs.add_splits()
        with pytest.raises(StageTaskError) as raised:
            epochs.run()
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        failed = raised.value.messages[-1]
        assert (failed.vertex_id, failed.subtask, failed.state) == (*epochs.key("1"), "FAILED")
        told, expected = failed.failure, streaming.value.failure
        assert replace(told, traceback="") == replace(expected, traceback="", cause=None)
        assert told.element == "0"

    def test_survives_as_text(self, driven):
        epochs = driven(picky)
        epochs.add_splits()
        with pytest.raises(StageTaskError) as raised:
            epochs.run()
        text = f"org.apache.spark.SparkException: Traceback …\n{raised.value}\n\tat java.lang.Thread"
        assert decode_messages(text) == raised.value.messages
        assert decode_messages("anything else") is None
        assert decode_messages("[firesteel-messages:AAAA]") is None
        assert pickle.loads(pickle.dumps(raised.value)).messages == raised.value.messages

    def test_is_told_however_much_else_there_is(self):
        failure = replace(TaskFailure("boom"), traceback="x" * MAX_ENCODED)
        printed = messages.ClientPayload(0, "print#stdout", 0, 0, b"y" * MAX_ENCODED)
        error = StageTaskError([printed, messages.TaskStateChanged(0, "v", 0, "FAILED", failure)])
        assert len(str(error)) < 2 * MAX_ENCODED
        (decoded,) = decode_messages(str(error))
        assert (decoded.state, decoded.failure.message) == ("FAILED", "boom")

    def test_leaves_nothing_in_the_cache_and_nothing_open(self, driven):
        epochs = driven(picky)
        epochs.add_splits()
        before = Picky.closed
        with pytest.raises(StageTaskError):
            epochs.run()
        assert len(epochs.cache(0)) == 1  # the source has been through the epoch
        assert Picky.closed == before + 1

    def test_of_a_constructor(self, driven):
        epochs = driven(picky)
        key = epochs.key("1")
        descriptor = epochs.descriptors[key]
        broken = replace(descriptor.task, operators=(replace(descriptor.task.operators[0], spec=None),))
        epochs.descriptors[key] = replace(descriptor, task=broken)
        with pytest.raises(StageTaskError) as raised:
            epochs.run()
        assert raised.value.messages[-1].state == "FAILED"

    @pytest.mark.parametrize("point", ["epoch.begin", "epoch.processed"])
    def test_of_the_process_is_nobodys_fault_and_keeps_nothing(self, driven, point):
        epochs = driven(lambda env: picky(env, [5, 2]))
        epochs.add_splits()
        fault_points.arm(f"{point}=raise")
        try:
            with pytest.raises(OSError, match="fault injected"):
                epochs.run()
        finally:
            fault_points.arm("")
        assert len(epochs.cache(0)) == 0

    def test_after_the_end_of_an_epoch_finds_the_task_kept(self, driven):
        epochs = driven(lambda env: picky(env, [5, 2]))
        epochs.add_splits()
        fault_points.arm("epoch.end=raise")
        try:
            with pytest.raises(OSError, match="fault injected"):
                epochs.run()
        finally:
            fault_points.arm("")
        assert len(epochs.cache(0)) == 1

    def test_to_write_state_declines_the_checkpoint(self, driven):
        epochs = driven(lambda env: picky(env, [5, 2]))
        epochs.add_splits()
        fault_points.arm("checkpoint.write=raise")
        try:
            epoch = epochs.run()
        finally:
            fault_points.arm("")
        assert len(epoch.of(messages.DeclineCheckpoint)) == 2
        assert epoch.of(messages.AcknowledgeCheckpoint) == []
        assert len(epochs.run().of(messages.AcknowledgeCheckpoint)) == 2


class TestCache:
    def test_a_task_that_is_broken_off_is_closed(self, driven):
        epochs = driven(lambda env: picky(env, [5, 2]))
        epochs.add_splits()
        epochs.run()
        epochs.complete()
        command = epochs.command(epochs.key("1"), None)
        before = Picky.closed
        (report,) = [row for _, row in epochs.last[0].rows["0", 0] if unpack_row(row).kind == REPORT]
        rows = run_epoch_task(command, [report], epochs.cache(0))
        next(rows)
        rows.close()
        assert Picky.closed == before + 1
        assert len(epochs.cache(0)) == 1

    def test_tasks_of_an_older_attempt_are_closed(self, driven):
        epochs = driven(lambda env: picky(env, [5, 2]))
        epochs.add_splits()
        epochs.run()
        restore = epochs.complete()
        before = Picky.closed
        later = DrivenEpochs(epochs.graph, epochs.directory, attempt=1, restore=restore, first=5)
        later.caches = epochs.caches
        assert later.run().report("1").reloaded
        assert Picky.closed == before + 1
        assert len(epochs.cache(0)) == 2

    def test_the_state_of_another_run_is_not_kept(self, driven):
        epochs = driven(lambda env: picky(env, [5, 2]))
        epochs.add_splits()
        run = epochs.run().report("1").run
        key = (epochs.graph.job_id, *epochs.key("1"))
        before = Picky.closed
        assert epochs.cache(0).keep_only(key, run)
        assert not epochs.cache(0).keep_only(key, "another")
        assert Picky.closed == before + 1
        assert len(epochs.cache(0)) == 1

    def test_a_job_is_closed_alone(self, driven):
        first, second = driven(lambda env: picky(env, [5])), driven(lambda env: picky(env, [5]))
        second.caches = first.caches
        first.run()
        second.run()
        assert len(first.cache(0)) == 4
        first.cache(0).close(first.graph.job_id, job_is_over=True)
        assert len(first.cache(0)) == 2
        assert second.run().report("1").reloaded is False
        second.caches = {}


class Shelf(Sink):
    """Prepares what it wrote; what becomes of it is noted down in this process."""

    story: list[Any]

    def create_writer(self, context):
        return ShelfWriter()

    def create_committer(self):
        return ShelfCommitter()


class ShelfWriter(SinkWriter):
    def __init__(self):
        self.written = []

    def write_batch(self, values, timestamps):
        self.written += values

    def prepare_commit(self):
        written, self.written = self.written, []
        return [tuple(written)] if written else []


class ShelfCommitter(Committer):
    def commit(self, committables):
        Shelf.story.append(("commit", list(committables)))

    def recommit(self, committables):
        Shelf.story.append(("recommit", list(committables)))


def to_shelf(env: Any) -> None:
    source = TestingSource([1, 2, 3, 4], bounded=True)
    env.from_source(source, NO_WATERMARKS, "numbers").rebalance().sink_to(Shelf())


class TestSinks:
    @pytest.fixture(autouse=True)
    def story(self):
        Shelf.story = []

    def _prepared(self, epoch: Any, epochs: DrivenEpochs) -> list[Any]:
        """What a checkpoint has of committables."""
        (acknowledged,) = epoch.of(messages.AcknowledgeCheckpoint, "1")
        (state,) = acknowledged.state.operators.values()
        return [
            pickle.loads(item)
            for handle in state.operator
            if handle.name == COMMITTABLES
            for item in pickle.loads(handle.data.data)
        ]

    def test_a_task_never_commits_what_it_prepared(self, driven):
        epochs = driven(to_shelf)
        epochs.add_splits()
        assert self._prepared(epochs.run(quota=2), epochs) == [(1, (1, 2))]
        epochs.complete()
        # told that the first is complete, it forgets that one
        assert self._prepared(epochs.run(quota=1), epochs) == [(2, (3,))]
        for vertex in "01":
            epochs.tell(vertex, 0, messages.NotifyCheckpointAborted(2))
        # nobody has committed the second
        assert self._prepared(epochs.run(), epochs) == [(2, (3,)), (3, (4,))]
        epochs.complete()
        epochs.run(triggers=False)
        assert Shelf.story == []

    def test_what_is_restored_is_committed_again(self, driven):
        epochs = driven(to_shelf)
        epochs.add_splits()
        epochs.run(quota=2)
        epochs.complete()
        epochs.lose(0)
        epoch = epochs.run(quota=1)
        assert Shelf.story == [("recommit", [(1, 2)])]
        assert self._prepared(epoch, epochs) == [(2, (3,))]


class Append(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value


class TestChannelState:
    @pytest.mark.parametrize("rescaled", [False, True])
    def test_what_was_in_flight_is_processed_first(self, driven, rescaled):
        def build(env):
            source = TestingSource([("a", 3)], bounded=False)
            stream = env.from_source(source, NO_WATERMARKS, "numbers")
            stream.key_by(lambda value: value[0]).process(Append()).sink_to(CollectSink("c"))

        epochs = driven(build)
        edge = epochs.descriptors[epochs.key("1")].task.inputs[0].edge
        at_consumer = [serialize_records([("a", 1)], None), Watermark(7)]
        handles = tuple(
            ChannelStateHandle(edge, 0, 0, at_producer, InlineBytes(pickle.dumps(items)))
            for at_producer, items in [(True, [serialize_records([("a", 2)], None)]), (False, at_consumer)]
        )
        epochs.restore = {epochs.key("1"): TaskRestore(4, {}, handles, rescaled=rescaled)}
        epochs.add_splits()
        epoch = epochs.run()
        collected = [deserialize_batch(payload.payload).values for payload in epoch.of(messages.ClientPayload)]
        assert [value for values in collected for value in values] == [("a", 1), ("a", 2), ("a", 3)]
        assert epoch.report("1").records == 3

    def test_an_unaligned_trigger_is_as_good_as_any(self, driven):
        epochs = driven(lambda env: picky(env, [5, 2]))
        epochs.add_splits()
        acknowledged = epochs.run(unaligned=True).of(messages.AcknowledgeCheckpoint)
        assert [message.state.channels for message in acknowledged] == [(), ()]


class TestRows:
    def test_an_operator_that_multiplies_its_records_uses_the_disk(self, driven):
        rows = ROW_CONFIG.floating_buffers_per_gate + OVERDRAFT_BUFFERS + 50

        def build(env):
            def explode(_value: int) -> Iterator[Any]:
                return ((number, "x" * 1000) for number in range(rows * 256))

            source = TestingSource([1], bounded=False)
            stream = env.from_source(source, NO_WATERMARKS, "one").flat_map(explode)
            stream.rebalance().map(lambda value: value[0]).sink_to(CollectSink("c"))

        epochs = driven(build)
        epochs.add_splits()
        command = epochs.command(epochs.key("0"), None)
        output = run_epoch_task(replace(command, messages=(*command.messages, _trigger())), [], epochs.cache(0))
        kinds = [unpack_row(row) for row in islice(output, 1, None, 2)]
        values = [value[0] for row in kinds if row.kind == BATCH for value in deserialize_batch(row.payload).values]
        assert values == list(range(rows * 256))

    def test_rows_are_read_as_they_are_needed(self, driven):
        epochs = driven(lambda env: picky(env, [5, 2]))
        epochs.add_splits()
        epochs.run()
        # the report, which is passed on as it comes, before the records
        rows = [row for _, row in reversed(epochs.last[0].rows["0", 0])]
        read = []

        def slowly() -> Iterator[bytes]:
            for row in rows:
                read.append(row)
                yield row

        fresh = DrivenEpochs(epochs.graph, Path(epochs.directory), first=1)
        command = replace(fresh.command(fresh.key("1"), None), messages=(_trigger(),))
        output = run_epoch_task(command, slowly(), fresh.cache(0))
        next(output)
        assert len(read) == 1
        output.close()
        fresh.close()


def _trigger() -> messages.TriggerCheckpoint:
    options = CheckpointOptions(SnapshotKind.CHECKPOINT, CheckpointLocation("/nowhere", "/nowhere"))
    return messages.TriggerCheckpoint(1, 0, options, ())


class Lines:
    def __init__(self, text: StringIO):
        self._text = text

    def take(self):
        lines = self._text.getvalue().splitlines()
        self._text.truncate(0)
        self._text.seek(0)
        return [("stdout", lines)] if lines else []


@contextmanager
def capture() -> Iterator[Lines]:
    with redirect_stdout(StringIO()) as text:
        yield Lines(text)


class TestPrinted:
    def _lines(self, told: Any) -> list[str]:
        payloads = [
            each for each in told if isinstance(each, messages.ClientPayload) and each.channel == "print#stdout"
        ]
        read = [deserialize_batch(payload.payload).values for payload in payloads]
        assert all(name == "stdout" for name, _ in read)
        return [line for _, lines in read for line in lines]

    def test_lines_are_told_with_the_epoch(self, driven):
        epochs = driven(lambda env: picky(env, [5, 2, 1]), capture=capture)
        epochs.add_splits()
        assert self._lines(epochs.run(quota=2).told["1", 0]) == ["looks at 5", "looks at 2"]
        assert self._lines(epochs.run().told["1", 0]) == ["looks at 1"]

    def test_and_with_a_failure(self, driven):
        epochs = driven(picky, capture=capture)
        epochs.add_splits()
        with pytest.raises(StageTaskError) as raised:
            epochs.run()
        assert self._lines(raised.value.messages) == ["looks at 5", "looks at 2", "looks at 0"]


class Counting(SourceReader):
    """Has nothing to give yet, but knows of three."""

    def poll_next(self, output, max_records):
        return InputStatus.NOTHING_AVAILABLE

    def add_splits(self, splits):
        pass

    def notify_no_more_splits(self):
        pass

    def snapshot_state(self, checkpoint_id):
        return []

    def pending_records(self):
        return 3


class CountingSource(TestingSource):
    def create_reader(self, context):
        context.send_split_request()
        return Counting()


class TestSources:
    def test_a_backlog_is_told_and_is_not_dry(self, driven):
        epochs = driven(
            lambda env: env.from_source(CountingSource([]), NO_WATERMARKS, "c").rebalance().sink_to(CollectSink("c"))
        )
        epoch = epochs.run()
        report = epoch.report("0")
        assert (report.pending_records, report.ran_dry, report.ready_in_ms) == (3, False, None)
        (request,) = epoch.of(messages.RequestSplit)
        assert request.subtask == 0

    def test_one_without_splits_asks_for_one_and_is_dry(self, driven):
        epochs = driven(picky)
        epoch = epochs.run()
        assert epoch.report("0").ran_dry
        assert epoch.report("0").records == 0
        assert len(epoch.of(messages.RequestSplit, "0")) == 1
