"""The credit protocol as a state machine, driven by hand and by hypothesis."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.runtime.model.elements import ControlEvent, Watermark
from firesteel.runtime.network.credit import CreditReceiver, CreditSender, FloatingBufferPool
from firesteel.runtime.network.errors import CreditViolationError


def drain(sender: CreditSender[str]) -> list[tuple[str | ControlEvent, int]]:
    sent = []
    while (polled := sender.poll()) is not None:
        sent.append(polled)
    return sent


class TestCreditSender:
    def test_data_needs_credit_and_carries_the_backlog_behind_it(self) -> None:
        sender: CreditSender[str] = CreditSender()
        for item in "abc":
            sender.add(item)
        assert sender.poll() is None
        sender.add_credit(2)
        assert drain(sender) == [("a", 2), ("b", 1)]
        assert (sender.credit, sender.backlog, len(sender)) == (0, 1, 1)

    def test_an_event_needs_no_credit(self) -> None:
        sender: CreditSender[str] = CreditSender()
        sender.add(Watermark(1))
        assert sender.is_available
        assert drain(sender) == [(Watermark(1), 0)]

    def test_an_event_never_overtakes_data(self) -> None:
        sender: CreditSender[str] = CreditSender()
        sender.add("a")
        sender.add(Watermark(1))
        sender.add("b")
        assert not sender.is_available
        assert drain(sender) == []
        sender.add_credit(1)
        assert drain(sender) == [("a", 1), (Watermark(1), 1)]


class TestCreditReceiver:
    def test_exclusive_buffers_are_the_first_credit(self) -> None:
        receiver = CreditReceiver(2, FloatingBufferPool(8))
        assert receiver.take_credit() == 2
        assert receiver.take_credit() == 0

    def test_backlog_borrows_floating_buffers(self) -> None:
        pool = FloatingBufferPool(8)
        receiver = CreditReceiver(2, pool)
        receiver.take_credit()
        receiver.on_data(3)
        # 3 waiting and 2 exclusive ones to keep = 5 wanted, of which one exclusive buffer is free.
        assert receiver.take_credit() == 4
        assert pool.available == 4

    def test_a_consumed_floating_buffer_returns_to_the_pool(self) -> None:
        pool = FloatingBufferPool(1)
        receiver = CreditReceiver(1, pool)
        receiver.take_credit()
        receiver.on_data(1)
        receiver.take_credit()
        receiver.on_data(0)
        assert pool.available == 0
        receiver.on_consumed()  # the exclusive one
        receiver.on_consumed()  # the floating one
        assert pool.available == 1
        assert receiver.take_credit() == 1

    def test_a_recycled_exclusive_buffer_frees_a_floating_one_that_is_not_needed(self) -> None:
        pool = FloatingBufferPool(8)
        receiver = CreditReceiver(2, pool)
        receiver.take_credit()
        receiver.on_data(0)  # wants 2 free, has 1: borrows one
        assert (receiver.take_credit(), pool.available) == (1, 7)
        receiver.on_consumed()
        assert (receiver.take_credit(), pool.available) == (0, 8)

    def test_an_empty_pool_serves_those_who_wait_in_turn(self) -> None:
        pool = FloatingBufferPool(2)
        hog, first, second = (CreditReceiver(1, pool) for _ in range(3))
        for receiver in (hog, first, second):
            receiver.take_credit()
        hog.on_data(1)
        hog.take_credit()
        hog.on_data(0)  # both floating buffers: one stored, one free
        first.on_data(3)
        second.on_data(3)
        assert (pool.available, first.take_credit(), second.take_credit()) == (0, 0, 0)
        hog.on_consumed()  # exclusive: takes the place of the free floating one
        assert (first.take_credit(), second.take_credit()) == (1, 0)
        hog.on_consumed()  # floating
        assert (first.take_credit(), second.take_credit()) == (0, 1)

    def test_who_needs_more_waits_on_and_stands_in_line_once(self) -> None:
        pool = FloatingBufferPool(0)
        first, second = CreditReceiver(2, pool), CreditReceiver(1, pool)
        for receiver in (first, second):
            receiver.take_credit()
        first.on_data(3)
        first.on_data(2)
        second.on_data(3)
        gained = []
        for _ in range(4):  # as if buffers came back that had been lent out
            pool.recycle()
            gained.append((first.take_credit(), second.take_credit()))
        assert gained == [(1, 0), (0, 1), (1, 0), (0, 1)]

    def test_a_buffer_without_credit_is_a_violation(self) -> None:
        receiver = CreditReceiver(1, FloatingBufferPool(0))
        with pytest.raises(CreditViolationError):
            receiver.on_data(0)
        receiver.take_credit()
        receiver.on_data(0)
        with pytest.raises(CreditViolationError):
            receiver.on_data(0)

    def test_on_credit_is_called_once_until_the_credit_is_taken(self) -> None:
        calls = []
        receiver = CreditReceiver(2, FloatingBufferPool(8))
        receiver.take_credit()
        receiver.on_credit = lambda: calls.append(receiver.unannounced)
        receiver.on_data(2)
        receiver.on_data(5)
        assert calls == [3]
        assert receiver.take_credit() == 7

        lone = CreditReceiver(1, FloatingBufferPool(0))
        lone.on_credit = lambda: calls.append(lone.unannounced)
        for _ in range(2):
            assert lone.take_credit() == 1
            lone.on_data(4)
            lone.on_consumed()
        assert calls == [3, 1, 1]

    def test_a_channel_without_exclusive_buffers_is_refused(self) -> None:
        with pytest.raises(ValueError, match="exclusive"):
            CreditReceiver(0, FloatingBufferPool(8))


class Link:
    """One channel: sender, receiver, and what is on the wire in each direction."""

    def __init__(self, exclusive: int, pool: FloatingBufferPool):
        self.sender: CreditSender[int] = CreditSender()
        self.receiver = CreditReceiver(exclusive, pool)
        self.data_wire: deque[tuple[int | ControlEvent, int]] = deque()
        self.credit_wire: deque[int] = deque()
        self.stored: deque[int | ControlEvent] = deque()
        self.produced: list[int | ControlEvent] = []
        self.consumed: list[int | ControlEvent] = []
        self.announced = 0
        self.sent = 0

    def produce(self, event: bool) -> None:
        item: int | ControlEvent = len(self.produced)
        if event:
            item = Watermark(len(self.produced))
        self.produced.append(item)
        self.sender.add(item)

    def send(self) -> bool:
        polled = self.sender.poll()
        if polled is None:
            return False
        if not isinstance(polled[0], ControlEvent):
            self.sent += 1
        self.data_wire.append(polled)
        return True

    def receive(self) -> bool:
        if not self.data_wire:
            return False
        item, backlog = self.data_wire.popleft()
        if isinstance(item, ControlEvent):
            self.receiver.on_backlog(backlog)
        else:
            self.receiver.on_data(backlog)
        self.stored.append(item)
        return True

    def consume(self) -> bool:
        if not self.stored:
            return False
        item = self.stored.popleft()
        self.consumed.append(item)
        if not isinstance(item, ControlEvent):
            self.receiver.on_consumed()
        return True

    def announce(self) -> bool:
        credit = self.receiver.take_credit()
        if credit:
            self.announced += credit
            self.credit_wire.append(credit)
        return bool(credit)

    def receive_credit(self) -> bool:
        if not self.credit_wire:
            return False
        self.sender.add_credit(self.credit_wire.popleft())
        return True

    def check(self) -> None:
        assert self.sent <= self.announced, "more was sent than credit was announced"
        assert self.sender.credit >= 0
        on_wire = sum(not isinstance(item, ControlEvent) for item, _ in self.data_wire)
        assert on_wire + self.sender.credit + sum(self.credit_wire) == self.receiver.announced
        assert self.sender.backlog == sum(not isinstance(i, ControlEvent) for i in self.sender._queue)
        assert self.consumed == self.produced[: len(self.consumed)], "lost, duplicated or reordered"

    def step_all(self, *, consume: bool = True) -> bool:
        steps = [self.send(), self.receive(), self.announce(), self.receive_credit()]
        return any(steps) | (consume and self.consume())


def check_pool(pool: FloatingBufferPool, links: list[Link], exclusive: int) -> None:
    stored = sum(not isinstance(item, ControlEvent) for link in links for item in link.stored)
    free = sum(link.receiver.announced + link.receiver.unannounced for link in links)
    total = len(links) * exclusive + pool.size
    assert stored + free + pool.available == total, "a buffer was lost or made up"


ACTIONS = (
    "produce",
    "produce",
    "produce",
    "event",
    "send",
    "receive",
    "consume",
    "announce",
    "receive_credit",
)


@st.composite
def scripts(draw: st.DrawFn) -> tuple[int, int, int, list[tuple[int, str]]]:
    channels = draw(st.integers(1, 6))
    step = st.tuples(st.integers(0, channels - 1), st.sampled_from(ACTIONS))
    return (
        channels,
        draw(st.integers(1, 3)),
        draw(st.integers(0, 8)),
        draw(st.lists(step, max_size=300)),
    )


@given(scripts())
@settings(max_examples=200, deadline=None)
def test_any_interleaving_delivers_everything_once_in_order_within_credit(
    script: tuple[int, int, int, list[tuple[int, str]]],
) -> None:
    channels, exclusive, floating, steps = script
    pool = FloatingBufferPool(floating)
    links = [Link(exclusive, pool) for _ in range(channels)]
    for channel, action in steps:
        link = links[channel]
        if action in ("produce", "event"):
            link.produce(action == "event")
        else:
            getattr(link, action)()
        for each in links:
            each.check()
        check_pool(pool, links, exclusive)
    while sum(link.step_all() for link in links):
        for each in links:
            each.check()
        check_pool(pool, links, exclusive)
    assert [link.consumed for link in links] == [link.produced for link in links]
    assert pool.available == floating, "an idle channel keeps a floating buffer"


@given(st.integers(2, 5), st.integers(0, 8), st.integers(20, 80), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_stalled_channel_does_not_stall_the_others(channels: int, floating: int, items: int, random) -> None:
    pool = FloatingBufferPool(floating)
    links = [Link(2, pool) for _ in range(channels)]
    stalled = links[0]
    for link in links:
        for _ in range(items):
            link.produce(event=False)
    progress = True
    while progress:
        order = list(links)
        random.shuffle(order)
        progress = bool(sum(link.step_all(consume=link is not stalled) for link in order))
        check_pool(pool, links, 2)
    assert stalled.consumed == []
    assert stalled.sender.backlog >= items - 2 - floating
    for link in links[1:]:
        assert link.consumed == link.produced
