"""Results that a client does not read: they stop the job's sinks, but neither its checkpoints nor its JobMaster."""

from __future__ import annotations

import itertools
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import DataStream
from firesteel.jobmaster import client_channels
from firesteel.jobmaster.client_channels import ClientChannels, ClientLimits
from firesteel.jobmaster.model.events import ClientConsumed
from firesteel.jobmaster.shell import client_results
from firesteel.jobmaster.shell.result_buffer import ResultBuffer, StoredPayload
from firesteel.runtime.model.messages import ClientAck, ClientPayload, SendBeforeBarrier
from firesteel.testing import eventually
from tests.support.jobs.running_jobs import environment

LIMITS = ClientLimits(unread=100, total=300)


# -- when a slot may send -------------------------------------------------------------------------------------------


class Channels:
    """The channels of a job that takes checkpoints. Payloads have 50 bytes."""

    def __init__(self) -> None:
        self.now = 100_000
        self.under_way: list[tuple[int, int]] = []
        self.checkpoint_id = 0
        self._numbers: dict[int, int] = {}
        self.channels = ClientChannels(hold=True, limits=LIMITS)

    def send(self, subtask: int = 0, checkpoint_id: int | None = None) -> list[Any]:
        """What the slot is told that sends the next payload."""
        number = self._numbers[subtask] = self._numbers.get(subtask, -1) + 1
        payload = ClientPayload(
            0, "c#op", subtask, number, bytes(50), self.checkpoint_id if checkpoint_id is None else checkpoint_id
        )
        told = list(self.channels.accept(subtask + 10, payload))
        assert {(each.attempt, each.slot_index) for each in told} <= {(0, subtask + 10)}
        return [each.message for each in told]

    def complete(self, checkpoint_id: int) -> list[int]:
        """A checkpoint completes; the numbers of the payloads that the client gets."""
        self.under_way, self.checkpoint_id = [], checkpoint_id
        return [delivery.sequence for delivery in self.channels.release(checkpoint_id)]

    def read(self, number: int, subtask: int = 0, **options: Any) -> list[Any]:
        """The client reads a payload; what slots are told."""
        told = self.channels.consumed(ClientConsumed(0, "c#op", subtask, number, 50), **options)
        return [*((each.slot_index, each.message) for each in told), *self.answer()]

    def answer(self, after: int = 0) -> list[Any]:
        """What slots are told after a while."""
        self.now += after
        answers, self.due = self.channels.answer(self.under_way, self.now, 1000)
        return [(each.slot_index, each.message) for each in answers]

    def next_attempt(self) -> None:
        self.channels.begin_attempt()
        self._numbers.clear()


def ack(number: int, subtask: int = 0) -> ClientAck:
    return ClientAck("c#op", subtask, number)


def test_what_waits_for_a_checkpoint_does_not_stop_a_slot() -> None:
    channels = Channels()
    assert [channels.send() for _ in range(5)] == [[ack(number)] for number in range(5)]
    assert not channels.channels.has_waiting


def test_so_much_that_waits_for_a_checkpoint_does() -> None:
    channels = Channels()
    assert [channels.send() for _ in range(6)] == [*([ack(number)] for number in range(5)), []]
    assert channels.channels.has_waiting
    assert channels.complete(1) == [0, 1, 2, 3, 4, 5]
    assert channels.send() == []
    for number in range(4):
        assert channels.read(number) == []
    assert channels.read(4) == [(10, ack(6))], "there is room as soon as enough was read"


def test_what_the_client_has_not_read_stops_all_slots() -> None:
    channels = Channels()
    channels.send()
    channels.send(subtask=1)
    assert channels.complete(1) == [0, 0]
    assert channels.send() == []
    assert channels.send(subtask=1) == []
    assert channels.read(0) == [(10, ack(1)), (11, ack(1, subtask=1))]


def test_a_payload_that_was_not_acknowledged_is_when_it_was_read() -> None:
    channels = Channels()
    for _ in range(2):
        channels.send()
    channels.complete(1)
    for _ in range(3):
        assert channels.send() == []
    channels.complete(2)
    assert channels.read(0) == channels.read(1) == []
    assert channels.read(2) == [(10, ack(2))]
    assert channels.read(3) == [(10, ack(3)), (10, ack(4))]


def test_a_checkpoint_that_has_waited_gets_what_comes_before_its_barrier() -> None:
    channels = Channels()
    for _ in range(2):
        channels.send()
    channels.complete(1)
    assert channels.send() == []
    channels.under_way = [(2, channels.now)]
    assert channels.answer() == []
    assert channels.due == channels.now + 1000
    assert channels.answer(after=1000) == [(10, SendBeforeBarrier("c#op", 0, 2))]
    assert channels.due is None
    channels.send()
    assert channels.answer() == [], "it was told already"
    channels.send(subtask=1)
    assert channels.answer() == [(11, SendBeforeBarrier("c#op", 1, 2))]
    channels.send(subtask=2, checkpoint_id=2)
    assert channels.answer() == [], "the barrier has gone through"
    assert channels.complete(2) == [2, 3, 0]
    channels.under_way = [(3, 0)]
    assert channels.answer() == [(slot, SendBeforeBarrier("c#op", slot - 10, 3)) for slot in (10, 11, 12)]


def test_a_checkpoint_does_not_wait_for_a_client_that_has_nothing_to_read() -> None:
    channels = Channels()
    for _ in range(6):
        channels.send()
    channels.under_way = [(1, channels.now)]
    assert channels.answer() == [(10, SendBeforeBarrier("c#op", 0, 1))]


def test_what_was_not_read_of_an_earlier_attempt_counts() -> None:
    channels = Channels()
    for _ in range(2):
        channels.send()
    channels.complete(1)
    channels.next_attempt()
    assert channels.send() == []
    assert channels.read(0, is_current=False) == [(10, ack(0))]
    assert channels.complete(2) == [0]


# -- where payloads are ---------------------------------------------------------------------------------------------


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are enough


def test_payloads_beyond_the_limit_are_on_disk() -> None:
    before = open_files()
    buffer = ResultBuffer(in_memory=100, segment=200)
    payloads = [bytes([number]) * 40 for number in range(20)]
    stored = [buffer.keep(0, payload) for payload in payloads]
    assert buffer.bytes_in_memory == 80
    assert open_files() == before + 4
    for each in stored:
        buffer.deliver(each)
    buffer.forget_before(1)
    assert [buffer.take(each) for each in stored] == payloads
    assert buffer.bytes_in_memory == 0
    assert open_files() == before, "a file is gone when nothing in it is needed"
    assert buffer.take(buffer.keep(1, b"again")) == b"again"


def test_what_an_attempt_has_left_is_forgotten() -> None:
    before = open_files()
    buffer = ResultBuffer(in_memory=100, segment=200)
    first = [buffer.keep(0, bytes(40)) for _ in range(10)]
    buffer.deliver(first[9])
    second = buffer.keep(1, b"x" * 40)
    buffer.forget_before(1)
    assert buffer.bytes_in_memory == 0
    assert len(buffer.take(first[9])) == 40
    assert buffer.take(second) == b"x" * 40
    assert open_files() == before


def test_a_disk_that_is_full_costs_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: Any) -> int:
        raise OSError(28, "No space left on device")

    buffer = ResultBuffer(in_memory=100, segment=200)
    monkeypatch.setattr(os, "pwrite", fails)
    stored = [buffer.keep(0, bytes([number]) * 40) for number in range(5)]
    assert buffer.bytes_in_memory == 200
    assert [buffer.take(each)[0] for each in stored] == [0, 1, 2, 3, 4]


def test_files_of_a_buffer_that_nobody_needs_are_closed() -> None:
    before = open_files()
    buffer: ResultBuffer | None = ResultBuffer(in_memory=0)
    stored: StoredPayload | None = buffer.keep(0, b"payload") if buffer else None
    assert open_files() == before + 1
    buffer = stored = None  # noqa: F841 - the last references
    assert open_files() == before


# -- jobs -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> ClientLimits:
    """Much lower limits than those of a real job."""
    limits = ClientLimits(unread=200_000, total=1_000_000)
    monkeypatch.setattr(client_channels, "ClientLimits", lambda: limits)
    monkeypatch.setattr(client_results, "ResultBuffer", partial(ResultBuffer, 100_000, 300_000))
    return limits


class FailsOnce:
    """Fails at a number, if that comes in the first attempt."""

    def __init__(self, path: Path, number: int):
        self._path, self._number = path, number

    def __call__(self, number: int) -> int:
        if number == self._number and not self._path.exists():
            self._path.touch()
            raise RuntimeError("boom")
        return number


def texts(numbers: DataStream) -> DataStream:
    return numbers.map(lambda number: f"{number:0100d}")


def first_numbers(results: Any, count: int) -> list[int]:
    return sorted(int(text) for text in itertools.islice(results, count))


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_client_that_reads_nothing_stops_the_job(tmp_path: Path, tight: ClientLimits, parallelism: int) -> None:
    env = environment(
        tmp_path,
        parallelism,
        execution__checkpointing__interval="20 ms",
        execution__checkpointing__timeout="10 s",
        execution__checkpointing__tolerable_failed_checkpoints="1000",
    )
    with texts(env.from_sequence(1, 10**9).rebalance()).execute_and_collect() as results:
        runner: Any = results._job_client._handle
        volumes = runner._master._client._volumes
        eventually(lambda: any(volume.unread > tight.unread for volume in volumes.values()))
        completed = runner.checkpoint_statistics()["counts"]["completed"]
        eventually(lambda: runner.checkpoint_statistics()["counts"]["completed"] >= completed + 2)
        assert runner._results._buffer.bytes_in_memory <= 100_000
        results_read = first_numbers(results, 50_000)
        assert len(set(results_read)) == 50_000
        if parallelism == 1:
            assert results_read == list(range(1, 50_001))


def test_results_are_exact_through_a_restart(tmp_path: Path, tight: ClientLimits) -> None:
    env = environment(tmp_path, 2, execution__checkpointing__interval="20 ms")
    numbers = env.from_sequence(1, 60_000).map(FailsOnce(tmp_path / "failed", 40_000)).rebalance()
    with texts(numbers).execute_and_collect() as results:
        runner: Any = results._job_client._handle
        assert first_numbers(results, 100_000) == list(range(1, 60_001))
        assert runner.snapshot.attempt == 1
        assert runner._results._buffer.bytes_in_memory == 0


def test_a_savepoint_is_taken_although_the_client_reads_nothing(tmp_path: Path, tight: ClientLimits) -> None:
    env = environment(tmp_path, 2)
    with texts(env.from_sequence(1, 10**9).rebalance()).execute_and_collect() as results:
        runner: Any = results._job_client._handle
        volumes = runner._master._client._volumes
        eventually(lambda: any(volume.held > tight.total for volume in volumes.values()))
        runner.trigger_savepoint(str(tmp_path / "savepoints")).result(120)


def test_epochs_wait_for_the_client(tmp_path: Path, tight: ClientLimits) -> None:
    env = environment(tmp_path, execution__exchange="spark", execution__epoch__max_records="500")
    with texts(env.from_sequence(1, 10**9)).execute_and_collect() as results:
        runner: Any = results._job_client._handle
        host = runner._host._host
        eventually(lambda: bool(host._current and host._current._unread and host._current.rests()))
        eventually(lambda: any(volume.unread >= tight.unread for volume in runner._master._client._volumes.values()))
        assert first_numbers(results, 10_000) == list(range(1, 10_001))
