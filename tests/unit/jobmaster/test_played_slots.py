"""What attempts of batches and of epochs have in common, with an attempt that does what the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from firesteel.config.configuration import Configuration
from firesteel.execution.stages.played_slots import AttemptOver, PlayedSlots
from firesteel.graph.execution import Execution, JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.model.events import AttemptEnded, MessageReceived
from firesteel.jobmaster.model.host import Attempt
from firesteel.process.concurrency import SYSTEM
from firesteel.runtime.model.messages import CancelSlot, JobMasterMessage, RegisterSlot, Shutdown, SlotStopped

SLOTS = 3
TIMEOUT_S = 20.0


class Runner:
    """Ends a run when it is cancelled for the n-th time."""

    def __init__(self, deaf_to: int = 0):
        self.reasons: list[str] = []
        self.began, self.ended = threading.Event(), threading.Event()
        self._deaf_to = deaf_to

    def run(self) -> None:
        self.began.set()
        assert self.ended.wait(TIMEOUT_S)

    def cancel(self, reason: str) -> None:
        self.reasons.append(reason)
        if len(self.reasons) > self._deaf_to:
            self.ended.set()


class Played(PlayedSlots):
    def __init__(self, play: Callable[[Played], None], runner: Any = None, predecessor: Played | None = None):
        graph = JobGraph("id", "job", Configuration(), (), (), Execution(JobExecution.BATCH, "the test says so"))
        attempt = Attempt(0 if predecessor is None else 1, SLOTS, graph, b"")
        self.events: list[Any] = []
        self.ended = threading.Event()
        self.taken: list[tuple[int, JobMasterMessage]] = []
        self.followed: list[Played] = []
        self._steps = play
        super().__init__(attempt, self._note, runner or Runner(), predecessor, SYSTEM, "played")

    def _note(self, event: Any) -> None:
        self.events.append(event)
        if isinstance(event, AttemptEnded):
            self.ended.set()

    def _take(self, slot: int, message: JobMasterMessage) -> None:
        self.taken.append((slot, message))

    def _take_over(self, predecessor: PlayedSlots) -> None:
        assert isinstance(predecessor, Played)
        self.followed.append(predecessor)

    def _play(self) -> None:
        self._register()
        self._steps(self)

    def _accumulators(self) -> Mapping[int, Any]:
        return {1: {("map", 1): {"seen": 7}}}

    def to_its_end(self) -> list[Any]:
        assert self.ended.wait(TIMEOUT_S)
        self.join(TIMEOUT_S)
        assert not self.is_alive
        return self.events

    def sent(self, kind: type) -> list[Any]:
        return [e.message for e in self.events if isinstance(e, MessageReceived) and isinstance(e.message, kind)]


def await_end(played: Played) -> None:
    with played._changed:
        while True:
            played._wait(TIMEOUT_S)


def run_stages(played: Played) -> None:
    with played._running_stages():
        played._runner.run()  # type: ignore[attr-defined]
    played._check_ended()


def test_every_slot_registers_and_stops_before_the_attempt_ends() -> None:
    played = Played(lambda _: None)
    played.start()
    assert played.to_its_end()[-1] == AttemptEnded(0, None)
    assert [message.slot_index for message in played.sent(RegisterSlot)] == [0, 1, 2]
    stopped = played.sent(SlotStopped)
    assert [(message.slot_index, message.accumulators) for message in stopped] == [
        (0, {}),
        (1, {("map", 1): {"seen": 7}}),
        (2, {}),
    ]


def test_what_goes_wrong_here_ends_the_attempt_and_no_slot_stops() -> None:
    def fail(_: Played) -> None:
        raise RuntimeError("out of order")

    played = Played(fail)
    played.start()
    ended = played.to_its_end()[-1]
    assert ended.failure is not None
    assert "out of order" in ended.failure.message
    assert not played.sent(SlotStopped)


def test_a_slot_that_has_failed_does_not_stop_again() -> None:
    def fail_slot(played: Played) -> None:
        played._failed_slots.add(0)
        raise AttemptOver

    played = Played(fail_slot)
    played.start()
    assert played.to_its_end()[-1] == AttemptEnded(0, None)
    assert [message.slot_index for message in played.sent(SlotStopped)] == [1, 2]


def test_a_cancellation_ends_a_wait_and_other_messages_are_taken() -> None:
    played = Played(await_end)
    played.start()
    played.deliver(2, Shutdown())
    played.deliver(0, CancelSlot("the user wants it"))
    assert played.to_its_end()[-1] == AttemptEnded(0, None)
    assert played.taken == [(2, Shutdown())]
    assert played._runner.reasons == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("deaf_to", [0, 2])
def test_a_run_is_cancelled_until_it_ends(deaf_to: int) -> None:
    runner = Runner(deaf_to)
    played = Played(run_stages, runner)
    played.start()
    assert runner.began.wait(TIMEOUT_S)
    played.cancel("enough")
    assert played.to_its_end()[-1] == AttemptEnded(0, None)
    assert set(runner.reasons) == {"enough"}
    assert len(runner.reasons) >= deaf_to + 1


def test_no_run_begins_after_a_cancellation() -> None:
    runner = Runner()
    cancelled = threading.Event()

    def late(played: Played) -> None:
        assert cancelled.wait(TIMEOUT_S)
        run_stages(played)

    played = Played(late, runner)
    played.start()
    played.cancel("enough")
    cancelled.set()
    played.to_its_end()
    assert not runner.began.is_set()


def test_an_attempt_registers_when_the_one_before_has_ended() -> None:
    first = Played(await_end)
    first.start()
    second = Played(lambda _: None, predecessor=first)
    second.start()
    assert not second.sent(RegisterSlot)
    first.cancel("it is restarted")
    assert second.to_its_end()[-1] == AttemptEnded(1, None)
    assert second.followed == [first]
    assert len(second.sent(RegisterSlot)) == SLOTS
