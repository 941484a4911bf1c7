"""Tasks of epochs, driven by hand: state, splits, event time, timers, and what each epoch tells."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.time import Time
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors import CollectSink
from firesteel.datastream import KeyedProcessFunction, ProcessWindowFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.execution.epochs.task import EpochBegan, mixed_runs
from firesteel.runtime.model import messages
from firesteel.runtime.model.checkpoint_options import StopMode
from firesteel.runtime.model.elements import MAX_WATERMARK, EndOfData, Watermark, WatermarkStatus
from firesteel.runtime.model.serialization import deserialize_batch
from firesteel.testing import PAUSE, At, TestingSource
from tests.support.epochs.driven import DrivenEpochs, Epoch, graph_of


class Running(KeyedProcessFunction):
    """The sum of each key so far."""

    def open(self, runtime_context):
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", int))
        self.seen = runtime_context.get_metrics_group().counter("seen")

    def process_element(self, value, ctx):
        self.seen.inc()
        total = (self.sum.value() or 0) + value[1]
        self.sum.update(total)
        yield value[0], total


def sums(env: StreamExecutionEnvironment, source: TestingSource) -> None:
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
        .key_by(lambda value: value[0])
        .process(Running())
        .sink_to(CollectSink("sums"))
    )


def numbers(first: int, last: int) -> list[Any]:
    return [(f"k{number % 5}", number) for number in range(first, last)]


def collected(epoch: Epoch) -> list[Any]:
    return [
        value for payload in epoch.of(messages.ClientPayload) for value in deserialize_batch(payload.payload).values
    ]


@pytest.fixture
def driven(tmp_path: Path):
    all_driven = []

    def drive(graph: Any, **settings: Any) -> DrivenEpochs:
        driven = DrivenEpochs(graph, tmp_path / str(len(all_driven)), **settings)
        all_driven.append(driven)
        return driven

    yield drive
    for each in all_driven:
        each.close()


def two_lists(bounded: bool = True) -> TestingSource:
    return TestingSource.with_splits(numbers(0, 100), numbers(100, 200), bounded=bounded)


def expected() -> dict[str, int]:
    totals: Counter[str] = Counter()
    for key, number in numbers(0, 200):
        totals[key] += number
    return dict(totals)


def run_to_the_end(epochs: DrivenEpochs) -> tuple[list[Epoch], list[Any]]:
    """Thirty records per source and epoch."""
    epochs.add_splits()
    ran, results = [], []
    while not ran or not all(ran[-1].report("1", subtask).ended for subtask in (0, 1)):
        ran.append(epochs.run(quota=30))
        results += collected(ran[-1])
        epochs.complete()
        assert len(ran) < 20
    return ran, results


class TestState:
    def test_state_goes_from_epoch_to_epoch(self, driven):
        ran, results = run_to_the_end(driven(graph_of(lambda env: sums(env, two_lists()))))
        assert [epoch.report("0").records for epoch in ran[:4]] == [30, 30, 30, 10]
        assert dict(sorted(results, key=lambda pair: pair[1])) == expected()
        assert len(results) == 200
        assert [epoch.report("1").reloaded for epoch in ran] == [True] + [False] * (len(ran) - 1)

    def test_a_lost_worker_costs_a_reload_and_nothing_else(self, driven):
        _, plain = run_to_the_end(driven(graph_of(lambda env: sums(env, two_lists(bounded=True)))))
        epochs = driven(graph_of(lambda env: sums(env, two_lists())))
        epochs.add_splits()
        results = []
        for _ in range(8):
            epoch = epochs.run(quota=30)
            results += collected(epoch)
            epochs.complete()
            # a worker that takes over a reader hears again that there are no more splits
            for worker in (0, 1):
                epochs.lose(worker)
                operator = epochs.descriptors[epochs.key("0")].task.operators[0].operator_id
                epochs.tell("0", worker, messages.NoMoreSplits(operator, worker))
            assert all(epoch.report(vertex, subtask).reloaded for vertex in "01" for subtask in (0, 1))
        assert sorted(results) == sorted(plain)

    def test_a_task_that_is_run_again_starts_from_the_epoch_before(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists(bounded=False))))
        epochs.add_splits()
        results = collected(epochs.run(quota=30))
        epochs.complete()
        again = epochs.run(quota=30, again=[("0", 0), ("1", 1)])
        assert again.report("0", 0).reloaded
        assert again.report("1", 1).reloaded
        assert not again.report("1", 0).reloaded
        results += collected(again)
        epochs.complete()
        for _ in range(3):
            results += collected(epochs.run(quota=30))
            epochs.complete()
        assert len(results) == 200
        assert dict(sorted(results, key=lambda pair: pair[1])) == expected()

    def test_state_that_no_checkpoint_has_cannot_be_loaded(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists())))
        epochs.add_splits()
        epochs.run(quota=30)
        epochs.lose(1)
        with pytest.raises(Exception, match="only in a process that has exited") as raised:
            epochs.run(quota=30)
        (told,) = raised.value.messages
        assert (told.state, told.failure.error_type) == ("FAILED", "TaskStateLostError")

    def test_an_aborted_checkpoint_does_no_harm_to_what_is_kept(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists(bounded=False))))
        epochs.add_splits()
        results = []
        for _ in range(5):
            results += collected(epochs.run(quota=30))
            for vertex in "01":
                for subtask in (0, 1):
                    epochs.tell(vertex, subtask, messages.NotifyCheckpointAborted(epochs.next_epoch - 1))
        assert dict(sorted(results, key=lambda pair: pair[1])) == expected()
        assert len(results) == 200

    def test_what_the_epochs_read_is_in_the_metrics(self, driven):
        ran, _ = run_to_the_end(driven(graph_of(lambda env: sums(env, two_lists()))))
        reports = [ran[-1].of(messages.MetricReport, "1", subtask)[-1] for subtask in (0, 1)]
        assert sum(counted["seen"] for report in reports for counted in report.accumulators.values()) == 200

    def test_tasks_tell_when_they_were_at_records(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists(bounded=False))))
        epochs.add_splits()
        before = time.monotonic()
        epoch = epochs.run(quota=100)
        spans = [epoch.report(vertex).at_records for vertex in "01"]
        times = [before, *(moment for span in spans for moment in span), time.monotonic()]
        assert times == sorted(times)
        assert all(ended > began for began, ended in spans)
        epochs.complete()
        nothing = epochs.run(quota=100)
        assert [nothing.report(vertex).records for vertex in "01"] == [0, 0]
        assert [nothing.report(vertex).at_records for vertex in "01"] == [None, None]


class TestEnd:
    def test_a_bounded_job_ends_with_a_last_checkpoint(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists())))
        epochs.add_splits()
        epoch = epochs.run()
        tasks = {(vertex, subtask) for vertex in "01" for subtask in (0, 1)}
        assert {key for key in tasks if epoch.of(messages.TaskAwaitsCheckpoint, *key)} == tasks
        assert all(epoch.report(*key).ended for key in tasks)
        assert all(message.state.finished for message in epoch.of(messages.AcknowledgeCheckpoint))
        epochs.complete()
        last = epochs.run(triggers=False)
        assert [change.state for change in last.of(messages.TaskStateChanged)] == ["FINISHED"] * 4
        after = epochs.run(triggers=False)
        assert after.of(messages.TaskStateChanged) == []
        assert after.of(messages.AcknowledgeCheckpoint) == []
        assert EndOfData() in after.events("0")

    def test_a_finished_task_whose_worker_is_lost_is_not_loaded(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists())))
        epochs.add_splits()
        epochs.run()
        epochs.complete()
        epochs.lose(0)
        last = epochs.run(triggers=False)
        assert [change.state for change in last.of(messages.TaskStateChanged)] == ["FINISHED"] * 4
        assert {Watermark(MAX_WATERMARK), EndOfData()} <= set(last.events("0", 0))

    @pytest.mark.parametrize("stop", StopMode)
    def test_a_stop_reads_no_further(self, driven, stop):
        epochs = driven(graph_of(lambda env: sums(env, two_lists(bounded=False))))
        epochs.add_splits()
        first = epochs.run(quota=30)
        epochs.complete()
        stopped = epochs.run(stop=stop)
        assert [stopped.report("0", subtask).records for subtask in (0, 1)] == [0, 0]
        drained = stop is StopMode.DRAIN
        assert all(stopped.report(vertex, subtask).ended is drained for vertex in "01" for subtask in (0, 1))
        states = stopped.of(messages.AcknowledgeCheckpoint)
        assert [state.state.finished for state in states] == [drained] * 4
        epochs.complete()
        over = epochs.run(triggers=False)
        assert [change.state for change in over.of(messages.TaskStateChanged)] == ["FINISHED"] * 4
        assert len(collected(first)) == 60

    def test_a_suspended_job_goes_on_if_its_savepoint_fails(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists(bounded=False))))
        epochs.add_splits()
        epochs.run(quota=30)
        epochs.complete()
        epochs.run(stop=StopMode.SUSPEND)
        for vertex in "01":
            for subtask in (0, 1):
                epochs.tell(vertex, subtask, messages.NotifyCheckpointAborted(2))
        assert epochs.run(quota=30).report("0").records == 30

    def test_another_job_goes_on_from_the_savepoint(self, driven):
        graph = graph_of(lambda env: sums(env, two_lists(bounded=False)))
        epochs = driven(graph)
        epochs.add_splits()
        results = collected(epochs.run(quota=30))
        epochs.complete()
        epochs.run(stop=StopMode.SUSPEND)
        following = driven(graph, attempt=1, restore=epochs.complete(), first=10)
        for _ in range(3):
            results += collected(following.run(quota=30))
            following.complete()
        assert dict(sorted(results, key=lambda pair: pair[1])) == expected()


class Window(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().end, sorted(value[1] for value in elements)


def windows(env: StreamExecutionEnvironment, source: TestingSource, strategy: Any, assign: bool = False) -> None:
    stream = env.from_source(source, WatermarkStrategy.no_watermarks() if assign else strategy, "events")
    if assign:
        stream = stream.rebalance().assign_timestamps_and_watermarks(strategy)
    (
        stream.key_by(lambda value: value[0])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .process(Window())
        .sink_to(CollectSink("windows"))
    )


def at(*times: int) -> list[At]:
    return [At(("a", time), time) for time in times]


class TestEventTime:
    strategy = WatermarkStrategy.for_monotonous_timestamps()

    def test_a_window_fires_in_the_epoch_that_closes_it(self, driven):
        source = TestingSource(at(1, 5, 12, 25), bounded=False)
        epochs = driven(graph_of(lambda env: windows(env, source, self.strategy), 1))
        epochs.add_split("0", 0, "0")
        assert collected(epochs.run(quota=2)) == []
        assert collected(epochs.run(quota=1)) == [("a", 10, [1, 5])]
        assert collected(epochs.run(quota=1)) == [("a", 20, [12])]

    def test_watermarks_made_in_the_middle_of_a_stream_too(self, driven):
        source = TestingSource(at(1, 5, 12, 25), bounded=False)
        epochs = driven(graph_of(lambda env: windows(env, source, self.strategy, assign=True), 1))
        epochs.add_split("0", 0, "0")
        assert collected(epochs.run(quota=2)) == []
        assert collected(epochs.run(quota=1)) == [("a", 10, [1, 5])]
        epochs.complete()
        epochs.lose(0)
        assert collected(epochs.run(quota=1)) == [("a", 20, [12])]

    def test_a_consumer_that_is_loaded_anew_hears_the_watermark(self, driven):
        source = TestingSource.with_splits(at(1, 15), at(2, 16), bounded=False)
        epochs = driven(graph_of(lambda env: windows(env, source, self.strategy), 2))
        epochs.add_splits()
        first = epochs.run()
        assert collected(first) == [("a", 10, [1, 2])]
        epochs.complete()
        # both subtasks of the windows, but no source
        for cache in epochs.caches.values():
            for key in [key for key in cache._entries if key[1] == epochs.stages[1].id]:
                cache._entries.pop(key).task.close()
        second = epochs.run()
        assert second.report("1").reloaded
        assert not second.report("0").reloaded
        began, *announced = second.events("0", 0)
        assert isinstance(began, EpochBegan)
        assert announced == [WatermarkStatus(False), Watermark(14)], "active first, or the watermark would not count"
        (report,) = second.of(messages.MetricReport, "1", 0)
        assert report.metrics[epochs.stages[1].id, "", 0]["currentInputWatermark"] == 14

    def test_a_source_that_is_loaded_anew_goes_on_where_event_time_was(self, driven):
        source = TestingSource(at(1, 15, 3, 25), bounded=False)
        epochs = driven(graph_of(lambda env: windows(env, source, self.strategy), 1))
        epochs.add_split("0", 0, "0")
        assert collected(epochs.run(quota=2)) == [("a", 10, [1])]
        epochs.complete()
        epochs.lose(0)
        # 3 is as late as it would have been
        assert collected(epochs.run(quota=1)) == []
        assert collected(epochs.run(quota=1)) == [("a", 20, [15])]

    @pytest.mark.parametrize("assign", [False, True], ids=["at the source", "in the middle"])
    @pytest.mark.parametrize("seed", range(3))
    def test_lost_workers_change_nothing_about_what_is_late(self, driven, assign, seed):
        chance = random.Random(seed)
        lists = [[max(0, step * 3 - chance.choice([0, 0, 0, 1, 9, 30])) for step in range(60)] for _ in range(2)]
        source = TestingSource.with_splits(*(at(*times) for times in lists), bounded=False)
        graph = graph_of(lambda env: windows(env, source, self.strategy, assign=assign), 2)
        results = []
        for loses in (False, True):
            epochs = driven(graph)
            epochs.add_splits()
            results.append([])
            for _ in range(12):
                results[-1].append(collected(epochs.run(quota=6)))
                epochs.complete()
                for worker in (0, 1):
                    if loses and chance.random() < 0.5:
                        epochs.lose(worker)
        assert results[0] == results[1]
        fired = [(end, key) for epoch in results[0] for key, end, _ in epoch]
        assert len(fired) == len(set(fired)) > 10, "a late record has opened a window again"
        assert sum(len(times) for epoch in results[0] for *_, times in epoch) < 110, "nothing was late"

    def test_a_source_that_was_idle_counts_again_when_it_is_loaded_anew(self, driven):
        source = TestingSource.with_splits(at(1, 35), [*at(2), PAUSE(1000), *at(45)], bounded=False)
        strategy = self.strategy.with_idleness(Time.milliseconds(500))
        epochs = driven(graph_of(lambda env: windows(env, source, strategy), 2))
        epochs.add_splits()
        epochs.run()
        epochs.clock.advance(500)
        idle = epochs.run()
        assert idle.events("0", 1)[-1] == WatermarkStatus(True)
        assert collected(idle) == [("a", 10, [1, 2])]
        epochs.complete()
        epochs.lose(1)
        assert epochs.run().events("0", 1)[1:3] == [WatermarkStatus(False), Watermark(1)]
        epochs.clock.advance(1000)
        (report,) = epochs.run().of(messages.MetricReport, "1", 0)
        assert report.metrics[epochs.stages[1].id, "", 0]["currentInputWatermark"] == 44

    def test_a_source_that_is_held_back_is_not_idle(self, driven):
        source = TestingSource(at(1, 15, 25), bounded=False)
        strategy = self.strategy.with_idleness(Time.milliseconds(500))
        strategy = strategy.with_watermark_alignment("group", Time.milliseconds(5))
        epochs = driven(graph_of(lambda env: windows(env, source, strategy), 1))
        epochs.add_split("0", 0, "0")
        operator = epochs.descriptors[epochs.key("0")].task.operators[0].operator_id
        (told,) = epochs.run(quota=2).of(messages.ReportWatermark)
        assert (told.group, told.watermark, told.max_drift) == ("group", 14, 5)
        epochs.tell("0", 0, messages.AlignWatermark(operator, 0, 13))
        epochs.clock.advance(10_000)
        held = epochs.run()
        assert held.report("0").records == 0
        assert WatermarkStatus(True) not in held.events("0")
        epochs.tell("0", 0, messages.AlignWatermark(operator, 0, 14))
        assert epochs.run().report("0").records == 1

    def test_an_idle_split_does_not_hold_back_the_others(self, driven):
        source = TestingSource.with_splits(at(1, 15, 25), at(2), bounded=False)
        strategy = self.strategy.with_idleness(Time.milliseconds(500))
        epochs = driven(graph_of(lambda env: windows(env, source, strategy), 2))
        epochs.add_splits()
        first = epochs.run(quota=2)
        assert collected(first) == []
        # the host is told when to look again
        assert first.report("0", 1).next_timer == epochs.clock.now + 500
        epochs.clock.advance(500)
        second = epochs.run(quota=0)
        assert collected(second) == [("a", 10, [1, 2])]
        assert second.events("0", 1)[-1] == WatermarkStatus(True)
        assert second.report("0", 1).next_timer is None

    def test_a_split_that_was_not_read_is_not_idle(self, driven):
        source = TestingSource(at(1, 15, 25), bounded=False)
        strategy = self.strategy.with_idleness(Time.milliseconds(500))
        epochs = driven(graph_of(lambda env: windows(env, source, strategy), 1))
        epochs.add_split("0", 0, "0")
        epochs.run(quota=1)
        epochs.clock.advance(10_000)
        epoch = epochs.run(quota=0)
        assert not epoch.report("0").ran_dry
        assert WatermarkStatus(True) not in epoch.events("0")

    def test_the_end_closes_all_windows(self, driven):
        epochs = driven(graph_of(lambda env: windows(env, TestingSource(at(1, 5, 12)), self.strategy), 1))
        epochs.add_split("0", 0, "0")
        assert collected(epochs.run()) == [("a", 10, [1, 5]), ("a", 20, [12])]

    def test_so_does_a_drain(self, driven):
        source = TestingSource(at(1, 5, 12), bounded=False)
        epochs = driven(graph_of(lambda env: windows(env, source, self.strategy), 1))
        epochs.add_split("0", 0, "0")
        epochs.run()
        assert collected(epochs.run(stop=StopMode.DRAIN)) == [("a", 20, [12])]

    def test_a_suspension_closes_none(self, driven):
        source = TestingSource(at(1, 5), bounded=False)
        epochs = driven(graph_of(lambda env: windows(env, source, self.strategy), 1))
        epochs.add_split("0", 0, "0")
        epochs.run()
        assert collected(epochs.run(stop=StopMode.SUSPEND)) == []


class Reminder(KeyedProcessFunction):
    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + value[1])

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), timestamp


def reminders(env: StreamExecutionEnvironment) -> None:
    source = TestingSource([("a", 100), ("b", 5000)], bounded=False)
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "reminders")
        .key_by(lambda value: value[0])
        .process(Reminder())
        .sink_to(CollectSink("reminders"))
    )


class TestTimers:
    @pytest.mark.parametrize("lost", [False, True])
    def test_the_first_timer_is_told_and_fires_when_it_is_due(self, driven, lost):
        epochs = driven(graph_of(reminders, 1))
        epochs.add_split("0", 0, "0")
        start = epochs.clock.now
        first = epochs.run()
        assert first.report("1").next_timer == start + 100
        assert first.report("0").next_timer is None
        epochs.complete()
        if lost:
            epochs.lose(0)
        epochs.clock.advance(100)
        second = epochs.run()
        assert collected(second) == [("a", start + 100)]
        assert second.report("1").next_timer == start + 5000
        epochs.complete()
        epochs.clock.advance(10_000)
        third = epochs.run()
        assert collected(third) == [("b", start + 5000)]
        assert third.report("1").next_timer is None


class TestRuns:
    def test_consumers_that_have_read_different_runs_are_found_out(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists(bounded=False))))
        epochs.add_splits()
        first = epochs.run(quota=30)
        reports = [message for message in first.of(object) if hasattr(message, "read_runs")]
        assert len(reports) == 4
        assert mixed_runs(reports) is None
        second = epochs.run(quota=30)
        mixed = [second.report("0", 0), *(report for report in reports if report.run != first.report("0", 0).run)]
        assert "subtask 0, edge 0" in mixed_runs(mixed)

    def test_rows_that_are_missing_fail_the_task(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists(bounded=False))))
        epochs.add_splits()
        take = epochs.input_of
        epochs.input_of = lambda *arguments: take(*arguments)[1:]
        with pytest.raises(Exception, match="Row 1 of subtask 1") as raised:
            epochs.run()
        assert raised.value.messages[-1].state == "FAILED"
        assert len(epochs.cache(0)) == 1  # the source alone

    def test_a_producer_that_is_missing_altogether_too(self, driven):
        epochs = driven(graph_of(lambda env: sums(env, two_lists(bounded=False))))
        epochs.add_splits()
        epochs.input_of = lambda *_arguments: []
        with pytest.raises(Exception, match="Nothing has come from subtask 0"):
            epochs.run()
