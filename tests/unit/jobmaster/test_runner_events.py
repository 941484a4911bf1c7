"""What the thread of a JobMaster does first."""

from __future__ import annotations

from firesteel.jobmaster.model.events import CancelJob, MessageReceived, TimerFired
from firesteel.runtime.model.messages import Heartbeat
from tests.support.epochs.scripted import ScriptedJob


def test_a_thread_that_was_held_up_hears_what_was_said_before_it_takes_anybody_for_silent() -> None:
    runner = ScriptedJob().runner
    beats = [MessageReceived(0, Heartbeat(0, 0, at)) for at in (1, 2)]
    for beat in beats:
        runner._events.put(beat)
    runner._timers["silence"] = 0  # long ago
    try:
        assert runner._next_events() == beats
        runner._events.put(CancelJob())
        assert runner._next_events() == [TimerFired("silence")], "however much is said"
        assert runner._next_events() == [CancelJob()]
    finally:
        runner.abandon()
