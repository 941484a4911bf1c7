"""Whatever happens in whatever order, a job ends exactly once and nothing is sent to a slot that is gone.

The harness checks its invariants after every event; each run ends by firing all timers until the job is over.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.graph.execution_graph import ExecutionState
from firesteel.jobmaster.events import AttemptEnded, ClientConsumed, SlotLost
from firesteel.jobmaster.restart_strategy import FixedDelayRestartStrategy
from firesteel.runtime.messages import (
    ClientPayload,
    Heartbeat,
    ReaderStarted,
    RequestSplit,
    SlotFailed,
    SlotStopped,
    TaskStateChanged,
)

SLOTS = 2
FAILURES = st.sampled_from(
    [
        TaskFailure("boom", error_type="ValueError", user_file="job.py"),
        TaskFailure("reset", error_type="ConnectionResetError"),
    ]
)
slots = st.integers(0, SLOTS - 1)
# How many attempts ago the news is from: mostly none.
ages = st.sampled_from([0, 0, 0, 0, 1])


def machine(make_harness, restarts):
    class RandomEvents(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.h = make_harness(FixedDelayRestartStrategy(restarts, 500), parallelism=SLOTS)

        def attempt(self, age):
            return max(0, self.h.jm.attempt - age)

        @precondition(lambda self: self.h.status is JobStatus.INITIALIZING)
        @rule()
        def start(self):
            self.h.start()

        @rule(slot=slots, age=ages)
        def register(self, slot, age):
            self.h.register(slot, self.attempt(age))

        @precondition(lambda self: self.h.status is JobStatus.CREATED)
        @rule()
        def register_all(self):
            for slot in range(SLOTS):
                if (self.h.jm.attempt, slot) not in self.h.connected:
                    self.h.register(slot)

        @rule(
            slot=slots,
            age=ages,
            vertex=st.sampled_from(["source", "map"]),
            state=st.sampled_from(ExecutionState),
        )
        def task_state(self, slot, age, vertex, state):
            failure = TaskFailure("boom") if state is ExecutionState.FAILED else None
            self.h.say(slot, TaskStateChanged(self.attempt(age), vertex, slot, state.name, failure))

        @precondition(lambda self: self.h.status is JobStatus.RUNNING)
        @rule(state=st.sampled_from(["RUNNING", "FINISHED", "FINISHED"]))
        def all_tasks(self, state):
            self.h.all_tasks(state)

        @rule(slot=slots, age=ages)
        def slot_stopped(self, slot, age):
            self.h.say(slot, SlotStopped(self.attempt(age), slot, {"n": 1}))

        @rule()
        def all_slots_stopped(self):
            for slot in range(SLOTS):
                self.slot_stopped(slot, 0)

        @rule(slot=slots, age=ages, failure=FAILURES)
        def slot_failed(self, slot, age, failure):
            self.h.say(slot, SlotFailed(self.attempt(age), slot, failure))

        @rule(slot=slots, age=ages)
        def slot_lost(self, slot, age):
            self.h.feed(SlotLost(self.attempt(age), slot))

        @precondition(lambda self: self.h.started)
        @rule(age=ages, failure=st.none() | FAILURES)
        def attempt_ended(self, age, failure):
            self.h.feed(AttemptEnded(self.attempt(age), failure))

        @rule(slot=slots)
        def heartbeat(self, slot):
            self.h.say(slot, Heartbeat(self.attempt(0), slot, self.h.now))

        @rule(slot=slots, sequence=st.integers(0, 3))
        def payload(self, slot, sequence):
            self.h.say(slot, ClientPayload(self.attempt(0), "print", slot, sequence, sequence))

        @rule(slot=slots, age=ages, sequence=st.integers(0, 3))
        def consumed(self, slot, age, sequence):
            self.h.feed(ClientConsumed(self.attempt(age), "print", slot, sequence))

        @rule(slot=slots)
        def reader(self, slot):
            self.h.say(slot, ReaderStarted(self.attempt(0), "source", "op-source", slot))
            self.h.say(slot, RequestSplit(self.attempt(0), "source", "op-source", slot))

        @precondition(lambda self: self.h.timers)
        @rule()
        def first_timer(self):
            self.h.fire(min(self.h.timers, key=self.h.timers.__getitem__))

        @rule()
        def cancel(self):
            self.h.cancel()

        def teardown(self):
            if self.h.status is JobStatus.INITIALIZING:
                self.h.start()
            for _ in range(20 * (restarts + 1)):
                if self.h.done is not None:
                    break
                self.first_timer()
            assert self.h.status.is_terminal_state(), f"never ended:\n{self.h.jm.story}"
            assert self.h.jm.attempt <= restarts

    return RandomEvents


@pytest.mark.parametrize("restarts", [0, 2])
def test_any_order_of_events_ends_in_one_terminal_status(make_harness, restarts):
    run_state_machine_as_test(
        machine(make_harness, restarts),
        settings=settings(
            max_examples=150,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
