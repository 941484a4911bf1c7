"""Timers: one per key, namespace and time; in order; also those that are registered while firing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.runtime.time import timers
from firesteel.runtime.time.timers import InternalTimerService, TimerQueue
from firesteel.testing import FakeClock

operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "remove", "pop"]),
        st.integers(0, 6),
        st.sampled_from("ab"),
        st.sampled_from([None, "w"]),
    ),
    max_size=60,
)


@given(operations)
def test_a_queue_behaves_like_a_sorted_list(script: list[tuple[str, int, str, Any]]) -> None:
    queue = TimerQueue()
    model: list[tuple[int, str, Any]] = []  # in the order of registration
    for what, time, key, namespace in script:
        timer = (time, key, namespace)
        if what == "add":
            assert queue.add(*timer) is (timer not in model)
            if timer not in model:
                model.append(timer)
        elif what == "remove":
            queue.remove(*timer)
            if timer in model:
                model.remove(timer)
        else:
            due = [timer for timer in model if timer[0] <= time]
            first = min(due, key=lambda timer: timer[0], default=None)
            assert queue.pop_due(time) == first
            if first is not None:
                model.remove(first)
        assert len(queue) == len(model)
        assert queue.timers() == sorted(model, key=lambda timer: timer[0])
        assert queue.peek() == min((timer[0] for timer in model), default=None)


@given(operations)
def test_a_queue_that_is_made_anew_all_the_time_behaves_the_same(script: list[tuple[str, int, str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timers, "_MAX_DELETED", -1)
        test_a_queue_behaves_like_a_sorted_list.hypothesis.inner_test(script)  # type: ignore[attr-defined]


def test_deleted_timers_do_not_pile_up() -> None:
    """An inactivity timeout: each record deletes the timer of its key and sets a later one."""
    queue = TimerQueue()
    heap = queue._heap
    due: dict[int, int] = {}
    most = 0
    for number in range(50_000):
        key = number % 50
        if key in due:
            queue.remove(due[key], key, None)
        due[key] = 3_600_000 + number
        queue.add(due[key], key, None)
        most = max(most, len(heap))
    assert most <= 2 * 50 + 1024 + 2
    assert queue._heap is heap
    assert [queue.pop_due(1 << 40) for _ in range(50)] == [(3_600_000 + n, n % 50, None) for n in range(49_950, 50_000)]
    assert queue.pop_due(1 << 40) is None


def test_timers_that_are_all_deleted_do_not_stay() -> None:
    queue = TimerQueue()
    for number in range(10_000):
        queue.add(number, "k", None)
    for number in range(10_000):
        queue.remove(number, "k", None)
    assert len(queue._heap) <= 1024


class Bench:
    """A timer service whose firings are kept, and may do more."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.backend = HashMapKeyedStateBackend(KeyGroupRange(0, 127), 128, self.clock)
        self.service = InternalTimerService(self.backend, self, self.clock, self.clock.schedule)
        self.fired: list[Any] = []
        self.then: Any = lambda timestamp: None

    def on_event_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        assert self.backend.key == key
        self.fired.append((timestamp, key, namespace))
        self.then(timestamp)

    def on_processing_time(self, timestamp: int, key: Any, namespace: Any) -> None:
        assert self.backend.key == key
        self.fired.append((timestamp, key, namespace, self.clock.now))
        self.then(timestamp)

    def event(self, key: Any, timestamp: int, namespace: Any = None) -> None:
        self.backend.key = key
        self.service.register_event_time_timer(namespace, timestamp)

    def processing(self, key: Any, timestamp: int, namespace: Any = None) -> None:
        self.backend.key = key
        self.service.register_processing_time_timer(namespace, timestamp)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_timer_fires_once_when_the_watermark_reaches_it(bench: Bench) -> None:
    bench.event("a", 10)
    bench.event("a", 10)
    bench.service.advance_watermark(9)
    assert bench.fired == []
    bench.service.advance_watermark(10)
    bench.service.advance_watermark(11)
    assert bench.fired == [(10, "a", None)]


def test_keys_and_namespaces_have_timers_of_their_own(bench: Bench) -> None:
    bench.event("a", 10)
    bench.event("b", 10)
    bench.event("a", 10, "window")
    bench.service.advance_watermark(10)
    assert bench.fired == [(10, "a", None), (10, "b", None), (10, "a", "window")]


def test_timers_fire_in_the_order_of_their_times(bench: Bench) -> None:
    for timestamp in (30, 10, 20, 40):
        bench.event(timestamp, timestamp)
    bench.service.advance_watermark(35)
    assert [timestamp for timestamp, *_ in bench.fired] == [10, 20, 30]


def test_a_deleted_timer_does_not_fire_and_can_be_registered_again(bench: Bench) -> None:
    bench.event("a", 10)
    bench.event("b", 10)
    bench.backend.key = "a"
    bench.service.delete_event_time_timer(None, 10)
    bench.service.delete_event_time_timer(None, 99)
    bench.service.advance_watermark(5)
    bench.event("a", 10)
    bench.service.advance_watermark(10)
    assert bench.fired == [(10, "b", None), (10, "a", None)]


def test_a_timer_registered_while_firing_fires_in_the_same_advance_if_due(bench: Bench) -> None:
    def register_next(timestamp: int) -> None:
        bench.service.register_event_time_timer(None, timestamp + 10)
        assert bench.service.current_watermark == 25

    bench.then = register_next
    bench.event("a", 5)
    bench.service.advance_watermark(25)
    assert [timestamp for timestamp, *_ in bench.fired] == [5, 15, 25]
    assert bench.service.event.timers() == [(35, "a", None)]


def test_a_timer_can_delete_one_that_is_due_after_it(bench: Bench) -> None:
    bench.then = lambda timestamp: bench.service.delete_event_time_timer(None, 20)
    bench.event("a", 10)
    bench.event("a", 20)
    bench.service.advance_watermark(30)
    assert bench.fired == [(10, "a", None)]


def test_a_timer_in_the_past_fires_at_the_next_watermark(bench: Bench) -> None:
    bench.service.advance_watermark(100)
    bench.event("a", 50)
    assert bench.fired == []
    bench.service.advance_watermark(101)
    assert bench.fired == [(50, "a", None)]


def test_processing_time_timers_fire_at_their_time_by_the_clock(bench: Bench) -> None:
    bench.processing("a", 20)
    bench.processing("b", 10)
    bench.processing("b", 10)
    bench.clock.advance(9)
    assert bench.fired == []
    bench.clock.advance(100)
    assert bench.fired == [(10, "b", None, 10), (20, "a", None, 20)]
    assert bench.service.current_processing_time() == 109


def test_processing_time_timers_can_be_deleted_and_chained(bench: Bench) -> None:
    bench.processing("a", 10)
    bench.service.delete_processing_time_timer(None, 10)
    bench.then = lambda timestamp: timestamp < 50 and bench.service.register_processing_time_timer(None, timestamp + 15)
    bench.processing("a", 20)
    bench.clock.advance(100)
    assert [timestamp for timestamp, *_ in bench.fired] == [20, 35, 50]
    assert len(bench.service.processing) == 0


def test_an_earlier_timer_registered_later_is_not_missed(bench: Bench) -> None:
    bench.processing("a", 1000)
    bench.processing("a", 5)
    bench.clock.advance(5)
    assert bench.fired == [(5, "a", None, 5)]
    bench.clock.advance(995)
    assert [timestamp for timestamp, *_ in bench.fired] == [5, 1000]


def test_a_failing_timer_does_not_lose_the_others(bench: Bench) -> None:
    def fail(timestamp: int) -> None:
        raise RuntimeError("user code")

    bench.then = fail
    bench.event("a", 1)
    bench.event("a", 2)
    with pytest.raises(RuntimeError):
        bench.service.advance_watermark(5)
    assert bench.service.event.timers() == [(2, "a", None)]
