"""When a task takes part in a checkpoint: aligned, unaligned, and aligned until its time is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.runtime.model.checkpoint_options import CheckpointLocation, CheckpointOptions, SnapshotKind
from firesteel.runtime.model.elements import Batch, CheckpointBarrier, ControlEvent, EndOfPartition, Watermark
from firesteel.runtime.model.serialization import deserialize_batch, serialize_records
from firesteel.runtime.network.config import NetworkConfig
from firesteel.runtime.network.gate import InputGate
from firesteel.runtime.task.barriers import BarrierHandler, InFlightInput, alignment_delay

OPTIONS = CheckpointOptions(SnapshotKind.CHECKPOINT, CheckpointLocation("/chk", "/shared"))


def barrier(checkpoint_id: int, **options: Any) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint_id, 1000, replace(OPTIONS, **options))


def test_the_alignment_timeout_is_never_exceeded_where_clocks_differ() -> None:
    aligned = barrier(1, alignment_timeout=500)
    assert alignment_delay(aligned, 1000) == 500
    assert alignment_delay(aligned, 1200) == 300
    assert alignment_delay(aligned, 1000 + 3_600_000) == 0
    assert alignment_delay(aligned, 1000 - 3_600_000) == 500


class FakeTask:
    """Reads a gate as a task does, and writes down what happens."""

    def __init__(self, channels: int, *, unaligned: bool = True):
        self.gate = InputGate(channels, config=NetworkConfig(buffers_per_channel=100))
        self.handler = BarrierHandler(self.gate, self, unaligned=unaligned)
        self.story: list[Any] = []
        self.in_flight: InFlightInput | None = None
        self.now = 1000
        self.calls: list[tuple[int, Callable[[], None]]] = []
        self.urgent = False

    def take_snapshot(self, barrier: CheckpointBarrier, in_flight: InFlightInput | None, alignment_ms: int) -> None:
        self.story.append(f"snapshot {barrier.checkpoint_id}{' unaligned' if in_flight else ''}")
        self.in_flight = in_flight

    def decline(self, checkpoint_id: int, reason: str) -> None:
        self.story.append(f"declined {checkpoint_id}")

    def processing_time(self) -> int:
        return self.now

    def is_urgent(self) -> None:
        self.urgent = True

    def monotonic_ms(self) -> int:
        return self.now

    def call_after(self, delay: int, callback: Callable[[], None]) -> None:
        self.calls.append((self.now + delay, callback))

    def advance(self, now: int) -> None:
        self.now = now
        due = [callback for at, callback in self.calls if at <= now]
        self.calls = [(at, callback) for at, callback in self.calls if at > now]
        for callback in due:
            callback()

    def send(self, channel: int, *items: Any) -> None:
        for item in items:
            target = self.gate.channels[channel]
            target.receiver.take_credit()
            if isinstance(item, ControlEvent):
                target.on_event(item, 0)
            else:
                target.on_data(Batch([item]), 0)

    def run(self, steps: int = 1000) -> list[Any]:
        """Reads until there is nothing to read; returns what happened since the last call."""
        for _ in range(steps):
            if self.urgent:
                self.urgent = False
                self.handler.process_urgent()
                continue
            polled = self.gate.poll()
            if polled is None:
                break
            channel, element = polled
            if isinstance(element, Batch):
                self.story += element.values
            elif isinstance(element, CheckpointBarrier):
                self.handler.received(channel, element)
            elif isinstance(element, EndOfPartition):
                self.handler.ended(channel)
        story, self.story = self.story, []
        return story

    def recorded(self) -> dict[int, list[Any]]:
        assert self.in_flight is not None
        return {
            channel: [
                item if isinstance(item, ControlEvent) else value
                for item in items
                for value in ([item] if isinstance(item, ControlEvent) else deserialize_batch(item).values)
            ]
            for channel, items in self.in_flight.channels.items()
            if items
        }


class TestAligned:
    def test_one_channel(self) -> None:
        task = FakeTask(1)
        task.send(0, "a", barrier(1), "b")
        assert task.run() == ["a", "snapshot 1", "b"]

    def test_a_channel_whose_barrier_was_read_waits_for_the_others(self) -> None:
        task = FakeTask(2)
        task.send(0, "a", barrier(1), "c")
        task.send(1, "b")
        assert task.run() == ["a", "b"]
        task.send(1, barrier(1), "d")
        assert sorted(task.run()) == ["c", "d", "snapshot 1"]

    def test_the_snapshot_is_taken_before_anything_behind_a_barrier(self) -> None:
        task = FakeTask(3)
        for channel in range(3):
            task.send(channel, f"before {channel}", barrier(1), f"after {channel}")
        story = task.run()
        taken = story.index("snapshot 1")
        assert all("before" in item for item in story[:taken])
        assert all("after" in item for item in story[taken + 1 :])

    def test_at_least_once_blocks_nothing(self) -> None:
        task = FakeTask(2)
        task.send(0, barrier(1, exactly_once=False), "c")
        assert task.run() == ["c"]
        task.send(1, barrier(1, exactly_once=False))
        assert task.run() == ["snapshot 1"]

    def test_a_channel_that_has_ended_needs_no_barrier(self) -> None:
        task = FakeTask(2)
        task.send(0, barrier(1))
        assert task.run() == []
        task.send(1, EndOfPartition())
        assert task.run() == ["snapshot 1"]
        task.send(0, barrier(2))
        assert task.run() == ["snapshot 2"]

    def test_a_newer_barrier_ends_an_older_alignment(self) -> None:
        task = FakeTask(2)
        task.send(0, barrier(1))
        task.send(1, barrier(2))
        assert task.run() == ["declined 1"]
        task.send(0, "a", barrier(2))
        assert task.run() == ["a", "snapshot 2"]

    def test_an_aborted_checkpoint_lets_its_channels_go(self) -> None:
        task = FakeTask(2)
        task.send(0, barrier(1), "a")
        assert task.run() == []
        task.handler.aborted(1)
        assert task.run() == ["a"]
        task.send(1, barrier(1))
        assert task.run() == []

    def test_a_task_without_producers_is_triggered_itself(self) -> None:
        task = FakeTask(1)
        task.send(0, EndOfPartition())
        task.run()
        task.handler.trigger(barrier(3))
        assert task.run() == ["snapshot 3"]


class TestUnaligned:
    def test_a_barrier_may_be_read_before_it_is_dealt_with(self) -> None:
        task = FakeTask(2)
        task.send(0, barrier(1, unaligned=True), "after")
        task.send(1, "before")
        task.urgent = False  # there was no opportunity yet
        assert task.run(1) == ["snapshot 1 unaligned"]
        assert task.in_flight is not None
        task.send(1, barrier(1, unaligned=True))
        assert task.in_flight.is_complete, "only channel 1 was waited for"
        assert task.recorded() == {1: ["before"]}

    def test_overtakes_what_is_queued(self) -> None:
        task = FakeTask(1)
        task.send(0, "a", Watermark(5), "b", barrier(1, unaligned=True), "c")
        assert task.run() == ["snapshot 1 unaligned", "a", "b", "c"]
        assert task.recorded() == {0: ["a", Watermark(5), "b"]}
        assert task.in_flight is not None
        assert task.in_flight.is_complete

    def test_records_what_arrives_before_the_other_barriers(self) -> None:
        task = FakeTask(2)
        task.send(0, "a", barrier(1, unaligned=True), "b")
        task.send(1, "c")
        assert task.run()[0] == "snapshot 1 unaligned"
        assert task.in_flight is not None
        assert not task.in_flight.is_complete
        task.send(1, "d", Watermark(7))
        task.run()
        task.send(1, barrier(1, unaligned=True), "e")
        assert task.in_flight.is_complete
        assert task.run() == ["e"]
        assert task.recorded() == {0: ["a"], 1: ["c", "d", Watermark(7)]}

    def test_the_end_of_a_channel_completes_it_too(self) -> None:
        task = FakeTask(2)
        task.send(0, barrier(1, unaligned=True))
        task.run()
        task.send(1, "a", EndOfPartition())
        assert task.in_flight is not None
        assert task.in_flight.is_complete
        task.run()
        assert task.recorded() == {1: ["a"]}

    def test_an_abort_stops_the_recording(self) -> None:
        task = FakeTask(2)
        task.send(0, barrier(1, unaligned=True))
        task.run()
        task.handler.aborted(1)
        task.send(1, "a")
        assert task.gate.channels[1].recorded is None
        assert task.run() == ["a"]

    def test_the_next_checkpoint_follows(self) -> None:
        task = FakeTask(2)
        for checkpoint_id in (1, 2):
            for channel in range(2):
                task.send(channel, f"{checkpoint_id}{channel}", barrier(checkpoint_id, unaligned=True))
            story = task.run()
            assert story[0] == f"snapshot {checkpoint_id} unaligned"
            assert task.recorded() == {0: [f"{checkpoint_id}0"], 1: [f"{checkpoint_id}1"]}


class TestAfterRescaling:
    """What was in flight is read first, in an order that no channel can keep."""

    def test_no_barrier_overtakes_what_was_restored(self) -> None:
        task = FakeTask(2)
        task.gate.restore_first(1, [serialize_records(["old"], None), serialize_records(["older", "oldest"], None)])
        task.send(0, "a", barrier(1, unaligned=True))
        task.send(1, "b")
        assert task.run(steps=3) == ["old", "older", "oldest"]
        assert task.run(steps=1) == ["snapshot 1 unaligned"]
        task.send(1, barrier(1, unaligned=True))
        task.run()
        assert task.recorded() == {0: ["a"], 1: ["b"]}

    def test_a_part_that_was_put_back_has_to_be_read_too(self) -> None:
        task = FakeTask(1)
        task.gate.restore_first(0, [serialize_records(["old", "older"], None)])
        task.send(0, barrier(1, unaligned=True))
        task.handler.process_urgent()
        task.urgent = False
        assert task.gate.poll() is not None
        task.gate.push_back(0, Batch(["older"]))
        assert task.run() == ["older", "snapshot 1 unaligned"]

    def test_one_that_is_given_up_meanwhile_does_not_begin(self) -> None:
        task = FakeTask(1)
        task.gate.restore_first(0, [serialize_records(["old"], None)])
        task.send(0, barrier(1, unaligned=True))
        task.handler.process_urgent()
        task.handler.aborted(1)
        assert task.run() == ["old"]

    def test_one_whose_time_is_over_waits_too(self) -> None:
        task = FakeTask(1)
        task.gate.restore_first(0, [serialize_records(["old"], None)])
        task.send(0, "a", barrier(1, alignment_timeout=100))
        task.advance(1100)
        assert task.run() == ["old", "snapshot 1 unaligned", "a"]
        assert task.recorded() == {0: ["a"]}

    def test_one_that_the_coordinator_triggers_waits_too(self) -> None:
        task = FakeTask(1)
        task.gate.restore_first(0, [serialize_records(["old"], None)])
        task.handler.trigger(barrier(1, unaligned=True))
        assert task.run() == ["old", "snapshot 1 unaligned"]


class TestWhereNothingMayBeInFlight:
    """Behind a forward or a broadcast edge an unaligned barrier waits in line, and goes on as it came."""

    def test_an_unaligned_barrier_is_aligned(self) -> None:
        task = FakeTask(2, unaligned=False)
        task.send(0, "a", barrier(1, unaligned=True), "c")
        task.send(1, "b")
        assert not task.urgent
        assert task.run() == ["a", "b"]
        task.send(1, barrier(1, unaligned=True), "d")
        story = task.run()
        assert story[0] == "snapshot 1"
        assert sorted(story[1:]) == ["c", "d"]

    def test_no_timeout_makes_it_overtake(self) -> None:
        task = FakeTask(1, unaligned=False)
        task.send(0, "a", barrier(1, alignment_timeout=100))
        task.advance(5000)
        assert task.run() == ["a", "snapshot 1"]

    @pytest.mark.parametrize("options", [{"unaligned": True}, {"alignment_timeout": 100}])
    def test_one_that_the_coordinator_triggers_waits_for_what_is_left(self, options: dict[str, Any]) -> None:
        task = FakeTask(1, unaligned=False)
        task.send(0, "a", EndOfPartition())
        task.handler.trigger(barrier(1, **options))
        task.advance(5000)
        assert task.run() == ["a", "snapshot 1"]


class TestAlignedWithTimeout:
    def test_in_time_it_stays_aligned(self) -> None:
        task = FakeTask(2)
        task.send(0, "a", barrier(1, alignment_timeout=100))
        task.send(1, barrier(1, alignment_timeout=100))
        assert task.run() == ["a", "snapshot 1"]
        task.advance(2000)
        assert task.run() == []

    def test_a_barrier_that_waits_behind_records_overtakes_them(self) -> None:
        task = FakeTask(1)
        task.send(0, "a", "b", barrier(1, alignment_timeout=100))
        assert task.run(steps=1) == ["a"]
        task.advance(1099)
        task.advance(1100)
        assert task.run() == ["snapshot 1 unaligned", "b"]
        assert task.recorded() == {0: ["b"]}

    def test_a_channel_that_was_read_up_to_its_barrier_has_nothing_in_flight(self) -> None:
        task = FakeTask(2)
        task.send(0, "a", barrier(1, alignment_timeout=100), "c")
        task.send(1, "b")
        assert task.run() == ["a", "b"]
        task.advance(1100)
        assert task.run() == ["snapshot 1 unaligned", "c"]
        task.send(1, "d", barrier(1, unaligned=True))
        task.run()
        assert task.recorded() == {1: ["d"]}


@pytest.mark.parametrize("unaligned", [False, True])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_state_and_what_is_in_flight_are_exactly_what_came_before_the_barriers(unaligned: bool, data: Any) -> None:
    """Whatever the order of arrival and reading: snapshot + in flight = all records before the barriers."""
    channels = data.draw(st.integers(1, 4))
    task = FakeTask(channels)
    script = [[f"{c}-{i}" for i in range(data.draw(st.integers(0, 5)))] for c in range(channels)]
    waiting = [[*before, barrier(1, unaligned=unaligned), f"after {c}"] for c, before in enumerate(script)]
    story: list[Any] = []
    while any(waiting):
        channel = data.draw(st.sampled_from([c for c in range(channels) if waiting[c]]))
        task.send(channel, waiting[channel].pop(0))
        story += task.run(steps=data.draw(st.integers(0, 3)))
    story += task.run()
    name = "snapshot 1 unaligned" if unaligned else "snapshot 1"
    taken = story.index(name)
    counted = list(story[:taken])
    if unaligned:
        for items in task.recorded().values():
            counted += items
    assert sorted(counted) == sorted(record for before in script for record in before)
    assert sorted(story[:taken] + story[taken + 1 :]) == sorted(
        [record for before in script for record in before] + [f"after {c}" for c in range(channels)]
    )
