"""Questions to slots are answered, or fail: nobody waits for ever."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.common.job_status import JobStatus
from firesteel.connectors import DiscardingSink
from firesteel.jobmaster.model.events import AttemptEnded, MessageReceived, SlotLost
from firesteel.jobmaster.shell.slot_questions import SlotQuestionError, SlotQuestions
from firesteel.runtime.model.messages import Answer, Ask
from firesteel.runtime.slot.answers import AskedSlot
from firesteel.runtime.slot.state_queries import ListStates
from firesteel.testing import PAUSE, TestingSource, eventually, test_environment

LONG = 600.0


@dataclass(frozen=True)
class _Beside:
    """Answered beside the mailbox."""

    fails: bool = False

    def answer(self, slot: AskedSlot) -> int:
        if self.fails:
            raise ValueError("no")
        assert threading.get_ident() != slot.thread_id
        return len(slot.tasks)


@dataclass(frozen=True)
class _Endless:
    def answer(self, slot: AskedSlot) -> bool:
        return slot.is_over.wait(LONG)


@pytest.fixture
def running() -> Any:
    env = test_environment(2)
    source = env.from_source(TestingSource([1, PAUSE(3_600_000), 2]), WatermarkStrategy.no_watermarks(), "paused")
    source.key_by(lambda value: value).map(lambda value: value).name("keyed").sink_to(DiscardingSink())
    client = env.execute_async("asked")
    eventually(lambda: client._handle._master.checkpoints.is_running)  # type: ignore[attr-defined]
    yield client
    if not client.get_job_execution_result().done():
        client.cancel().result()


def test_a_slot_answers_beside_its_mailbox_and_in_it(running: Any) -> None:
    runner = running._handle
    eventually(lambda: runner.ask(0, _Beside(), LONG).result() == 4)
    keyed = next(vertex for vertex in runner.job_graph.vertices if "keyed" in vertex.name)
    assert runner.ask(1, ListStates(keyed.id, 1), LONG).result() == {keyed.operators[0].node.operator_id: {}}


def test_what_goes_wrong_in_the_slot_is_an_answer_too(running: Any) -> None:
    with pytest.raises(SlotQuestionError, match="ValueError: no"):
        running._handle.ask(0, _Beside(fails=True), LONG).result()
    with pytest.raises(SlotQuestionError, match="does not run in this slot"):
        running._handle.ask(0, ListStates("unknown", 0), LONG).result()
    assert running._handle.status() is JobStatus.RUNNING


def test_whoever_waits_hears_that_the_job_is_over_and_no_thread_is_left(running: Any) -> None:
    answer = running._handle.ask(0, _Endless(), LONG)
    begin = time.monotonic()
    running.cancel().result()
    with pytest.raises(SlotQuestionError):
        answer.result(LONG)
    assert time.monotonic() - begin < LONG / 2
    with pytest.raises(SlotQuestionError, match="CANCELED"):
        running._handle.ask(0, _Beside(), LONG).result()
    eventually(
        lambda: not {"firesteel-questions", "firesteel-slot-answer"} & {each.name for each in threading.enumerate()}
    )


# -- without a slot -----------------------------------------------------------------------------------


class _Silent:
    """A host that keeps what it is to send."""

    def __init__(self, running: Any) -> None:
        self.sent: list[Any] = []
        self.questions = SlotQuestions(lambda: running._handle.snapshot, lambda *sent: self.sent.append(sent))

    def ask(self, slot: int, timeout_s: float = LONG) -> Future[Any]:
        return self.questions.ask(slot, "what?", timeout_s)


@pytest.fixture
def silent(running: Any) -> Any:
    host = _Silent(running)
    yield host
    host.questions.close()


def test_answers_find_who_asked_and_do_not_reach_the_jobmaster(silent: _Silent) -> None:
    first, second = silent.ask(0), silent.ask(1)
    assert silent.sent == [(0, 0, Ask(1, "what?")), (0, 1, Ask(2, "what?"))]
    assert silent.questions.hears(MessageReceived(1, Answer(0, 1, 2, "that")))
    assert silent.questions.hears(MessageReceived(1, Answer(0, 1, 99, "to nobody")))
    assert second.result() == "that"
    assert not first.done()


def test_a_slot_that_is_gone_does_not_answer(silent: _Silent) -> None:
    first, second = silent.ask(0), silent.ask(1)
    assert not silent.questions.hears(SlotLost(0, 1))
    with pytest.raises(SlotQuestionError, match="was lost"):
        second.result()
    assert not first.done()
    assert not silent.questions.hears(AttemptEnded(0, None))
    with pytest.raises(SlotQuestionError, match="ended"):
        first.result()


def test_time_runs_out(silent: _Silent) -> None:
    silent.ask(0)
    with pytest.raises(SlotQuestionError, match="timed out"):
        silent.ask(1, 0.01).result(LONG)


def test_there_must_be_such_a_slot(silent: _Silent) -> None:
    with pytest.raises(SlotQuestionError, match="no slot 7"):
        silent.ask(7).result()
