"""Callbacks and wake-ups, with epoll and with the portable selector."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from firesteel.runtime.network.io_loop import IOLoop


@pytest.fixture(params=[False, True], ids=["epoll", "portable"])
def loop(request: pytest.FixtureRequest) -> Iterator[IOLoop]:
    loop = IOLoop(portable=request.param)
    yield loop
    loop.close()


def test_calls_back_for_what_is_readable_or_writable(loop: IOLoop) -> None:
    left, right = socket.socketpair()
    with left, right:
        seen: list[str] = []
        loop.add_reader(left.fileno(), lambda: seen.append(left.recv(10).decode()))
        assert not loop.poll(0.0)
        right.send(b"a")
        assert loop.poll(60.0)
        loop.add_writer(left.fileno(), lambda: seen.append("writable"))
        right.send(b"b")
        loop.poll(60.0)
        loop.remove_writer(left.fileno())
        loop.remove_writer(left.fileno())
        right.send(b"c")
        loop.poll(60.0)
        loop.remove_reader(left.fileno())
        right.send(b"d")
        assert not loop.poll(0.0)
        assert seen == ["a", "b", "writable", "c"]


def test_a_callback_may_remove_another(loop: IOLoop) -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    calls: list[int] = []

    def callback(index: int) -> None:
        calls.append(index)
        for left, _ in pairs:
            loop.remove_reader(left.fileno())

    for index, (left, right) in enumerate(pairs):
        loop.add_reader(left.fileno(), lambda index=index: callback(index))
        right.send(b"x")
    loop.poll(60.0)
    assert len(calls) == 1
    for left, right in pairs:
        left.close()
        right.close()


def test_another_thread_wakes_up_a_waiting_poll(loop: IOLoop) -> None:
    thread = threading.Thread(target=loop.wakeup)
    begun = time.monotonic()
    thread.start()
    assert loop.poll(120.0)
    thread.join()
    assert time.monotonic() - begun < 100


def test_wake_ups_do_not_pile_up(loop: IOLoop) -> None:
    for _ in range(3000):
        loop.wakeup()
    assert loop.poll(0.0)
    assert not loop.poll(0.0)


def test_wakeup_after_close_is_harmless() -> None:
    loop = IOLoop()
    loop.close()
    loop.wakeup()
