"""A slot does not outlive its JobMaster, and a JobMaster answers the heartbeats of its slots."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.connectors import DiscardingSink
from firesteel.jobmaster.model.events import MessageReceived
from firesteel.runtime.model.messages import (
    CancelSlot,
    Heartbeat,
    HeartbeatReceived,
    JobMasterMessage,
    RegisterSlot,
    Shutdown,
)
from firesteel.runtime.slot.control import ControlConnection, accept_control, dial_control
from firesteel.spark.pipelined.slot_watch import EXIT_CODE_GONE, JobMasterLiveness, SlotTimeouts, SlotWatch
from firesteel.testing import PAUSE, TestingSource, eventually, test_environment

ROOT = Path(__file__).parents[3]
SECRET = b"secret"

SLOT = """
import sys, time
from firesteel.runtime.slot.control import dial_control
from firesteel.runtime.model.messages import RegisterSlot
from firesteel.spark.pipelined.slot_watch import SlotTimeouts, SlotWatch

class Executor:
    cancel_requested = False
    def deliver(self, message):
        print(type(message).__name__, flush=True)

class Output:
    def acknowledge(self, message):
        return False
    def tell_left_out(self):
        pass

control = dial_control(("127.0.0.1", int(sys.argv[1])), b"secret", 1)
with SlotWatch(Executor(), control, Output(), 0, 0, SlotTimeouts(0.05, float(sys.argv[2]), 0.0)):
    control.send(RegisterSlot(0, 0, "host", ("host", 1), 1))
    time.sleep(600)
"""


def test_the_jobmaster_is_lost_when_nothing_comes_for_the_timeout() -> None:
    now = [1000.0]
    liveness = JobMasterLiveness(50.0, lambda: now[0])
    for _ in range(10):
        now[0] += 49.9
        assert not liveness.is_lost
        liveness.heard()
    now[0] += 50.0
    assert liveness.is_lost


class FakeExecutor:
    cancel_requested = False

    def __init__(self) -> None:
        self.delivered: list[Any] = []

    def deliver(self, message: Any) -> None:
        self.delivered.append(message)

    def acknowledge(self, message: Any) -> bool:
        return False


def test_every_message_shows_that_the_jobmaster_is_alive() -> None:
    now = [0.0]
    executor: Any = FakeExecutor()
    watch = SlotWatch(executor, executor, executor, 0, 0, SlotTimeouts(1.0, 50.0, 0.0))
    watch._liveness = JobMasterLiveness(50.0, lambda: now[0])
    for message in (HeartbeatReceived(), Shutdown()):
        now[0] += 49.0
        watch._on_message(message)
        assert not watch._liveness.is_lost
    assert executor.delivered == [Shutdown()]
    now[0] += 50.0
    watch._on_lost("reset by peer")
    assert watch._liveness.is_lost, "the end of the connection is no sign of life"
    assert isinstance(executor.delivered[-1], CancelSlot)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock


class JobMaster:
    """The JobMaster's end of a control connection. It answers as long as it is told to."""

    def __init__(self, listener: socket.socket):
        self.heartbeats = 0
        self.answers = True
        self.connection = accept_control(listener.accept()[0], SECRET)
        self.connection.start(self._hear, lambda _reason: None, "job-master")

    def _hear(self, message: Any) -> None:
        if isinstance(message, Heartbeat):
            self.heartbeats += 1
            if self.answers:
                self.connection.send(HeartbeatReceived())


def test_the_process_of_a_slot_ends_when_its_jobmaster_falls_silent(listener: socket.socket) -> None:
    """The connection stays as it is: so it looks if the JobMaster's process is frozen."""
    # long enough for a slot that does not get to its first heartbeat at once, as others compute
    slot = subprocess.Popen(
        [sys.executable, "-c", SLOT, str(listener.getsockname()[1]), "8.0"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        master = JobMaster(listener)
        try:
            eventually(lambda: master.heartbeats >= 1)
            master.answers = False
            output, errors = slot.communicate(timeout=120)
            assert slot.returncode == EXIT_CODE_GONE
            assert "No heartbeat from the JobMaster" in errors
            assert output == "", "it ends without asking its tasks"
        finally:
            master.connection.close()
    finally:
        slot.kill()
        slot.communicate()


class RecordingHost:
    def __init__(self, inner: Any):
        self._inner = inner
        self.sent: list[tuple[int, int, JobMasterMessage]] = []

    def send(self, attempt: int, slot: int, message: JobMasterMessage) -> None:
        self.sent.append((attempt, slot, message))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_heartbeats_of_the_present_attempt_are_answered() -> None:
    env = test_environment(2)
    source = env.from_source(TestingSource([1, PAUSE(3_600_000)]), WatermarkStrategy.no_watermarks(), "paused")
    source.sink_to(DiscardingSink())
    client = env.execute_async("heartbeats")
    runner: Any = client._handle
    try:
        eventually(lambda: runner._master.checkpoints.is_running)
        inner, runner._host = runner._host, RecordingHost(runner._host)
        for attempt, slot in ((0, 1), (-1, 0), (0, 0)):
            runner._hear(MessageReceived(slot, Heartbeat(attempt, slot, 0)))
        answered = [(attempt, slot) for attempt, slot, sent in runner._host.sent if isinstance(sent, HeartbeatReceived)]
        assert answered == [(0, 1), (0, 0)]
        runner._host = inner
    finally:
        client.cancel().result()


def _pair(listener: socket.socket) -> tuple[ControlConnection, socket.socket]:
    """A control connection whose other end is never read from."""
    accepted: list[ControlConnection] = []
    address = listener.getsockname()
    thread = threading.Thread(target=lambda: accepted.append(accept_control(listener.accept()[0], SECRET)))
    thread.start()
    slot = dial_control(address, SECRET, 1)
    thread.join()
    return accepted[0], slot._sock  # type: ignore[return-value]


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such option")
def test_what_nobody_acknowledges_ends_the_connection(listener: socket.socket) -> None:
    master, slot = _pair(listener)
    master.limit_silence(7.5)
    limit = master._sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert limit == 7500
    master.close()
    slot.close()


def test_a_message_that_was_sent_in_part_is_the_last_one(listener: socket.socket) -> None:
    """Else the other side would take the next message for the rest of it."""
    master, slot = _pair(listener)
    master._sock.settimeout(0.2)
    with pytest.raises(ConnectionError):
        master.send(RegisterSlot(0, 0, "x" * 50_000_000, ("", 0), 0))
    with pytest.raises(ConnectionError):
        master.send(HeartbeatReceived())
    while slot.recv(1 << 20):
        pass
    master.close()
    slot.close()
