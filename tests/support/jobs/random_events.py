"""Events of a job in any order, drawn by Hypothesis, for the JobMaster's harness.

The harness checks its invariants after every event; each run ends by firing all timers until the job is over.
"""

from __future__ import annotations

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from firesteel.common.errors import TaskFailure
from firesteel.common.job_status import JobStatus
from firesteel.graph.execution_graph import ExecutionState
from firesteel.jobmaster.model.events import AttemptEnded, ClientConsumed, SlotLost
from firesteel.jobmaster.restart_strategy import FixedDelayRestartStrategy
from firesteel.runtime.model.messages import (
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


def machine(make_harness, restarts, seen):
    class RandomEvents(RuleBasedStateMachine):
        """Some steps bring the job on its way, some disturb it; news comes twice, late or out of order."""

        def __init__(self):
            super().__init__()
            self.h = make_harness(FixedDelayRestartStrategy(restarts, 500), parallelism=SLOTS)
            self.h.start()

        def attempt(self, age=0):
            return max(0, self.h.jm.attempt - age)

        @rule(steps=st.integers(1, 6))
        def progress(self, steps):
            for _ in range(steps):
                self.progress_once()

        def progress_once(self):
            status, live = self.h.status, self.h.connected
            absent = [slot for slot in range(SLOTS) if (self.attempt(), slot) not in live]
            if status is JobStatus.CREATED and absent:
                self.h.register(absent[0])
            elif status is JobStatus.RUNNING:
                unfinished = [v for v in self.h.graph.vertices() if not v.state.is_terminal]
                if unfinished:
                    vertex = unfinished[0]
                    following = {"DEPLOYING": "INITIALIZING", "INITIALIZING": "RUNNING"}
                    state = following.get(vertex.state.name, "FINISHED")
                    self.h.task(vertex.vertex_id, vertex.subtask_index, state)
                elif len(absent) < SLOTS:
                    self.slot_stopped(next(slot for slot in range(SLOTS) if slot not in absent), 0)
            elif status in (JobStatus.CANCELLING, JobStatus.FAILING, JobStatus.RESTARTING):
                if len(absent) < SLOTS:
                    self.slot_stopped(next(slot for slot in range(SLOTS) if slot not in absent), 0)
                elif self.attempt() not in self.h.ended:
                    self.h.attempt_ended()
                elif self.h.timers:
                    self.first_timer()

        @rule(slot=slots, sequence=st.integers(0, 2), subtask=slots)
        def client(self, slot, sequence, subtask):
            self.h.say(slot, ClientPayload(self.attempt(), "print", slot, sequence, sequence))
            self.h.feed(ClientConsumed(self.attempt(), "print", subtask, sequence))

        @rule(slot=slots)
        def reader(self, slot):
            self.h.say(slot, Heartbeat(self.attempt(), slot, self.h.now))
            self.h.say(slot, ReaderStarted(self.attempt(), "source", "op-source", slot))
            self.h.say(slot, RequestSplit(self.attempt(), "source", "op-source", slot))

        @rule(
            what=st.sampled_from(
                ["task", "stopped", "failed", "lost", "ended", "register", "timer", "timer", "cancel"]
            ),
            slot=slots,
            age=ages,
            failure=FAILURES,
            state=st.sampled_from(ExecutionState),
        )
        def disturb(self, what, slot, age, failure, state):
            seen.add((self.h.status, what))
            attempt = self.attempt(age)
            if what == "task":
                self.h.say(slot, TaskStateChanged(attempt, "map", slot, state.name, failure))
            elif what == "stopped":
                self.slot_stopped(slot, age)
            elif what == "failed":
                self.h.say(slot, SlotFailed(attempt, slot, failure))
            elif what == "lost":
                self.h.feed(SlotLost(attempt, slot))
            elif what == "ended" and attempt in self.h.started:
                self.h.feed(AttemptEnded(attempt, failure if slot else None))
            elif what == "register":
                self.h.register(slot, attempt)
            elif what == "timer" and self.h.timers:
                self.first_timer()
            elif what == "cancel":
                self.h.cancel()

        def slot_stopped(self, slot, age):
            self.h.say(slot, SlotStopped(self.attempt(age), slot, {("map", slot): {"n": 1}}))

        def first_timer(self):
            self.h.fire(min(self.h.timers, key=self.h.timers.__getitem__))

        def teardown(self):
            for _ in range(20 * (restarts + 1)):
                if self.h.done is not None:
                    break
                self.first_timer()
            assert self.h.status.is_terminal_state(), f"never ended:\n{self.h.jm.story}"
            assert self.h.jm.attempt <= restarts
            seen.add((self.h.status, "end"))

    return RandomEvents


def explore(events, max_examples, steps, seen, wanted):
    """Runs a machine, and again with other dice if the runs have not been everywhere: what they hit upon is chance."""
    for number in range(10):
        run_state_machine_as_test(
            events if number == 0 else seed(number)(events),
            settings=settings(
                max_examples=max_examples,
                stateful_step_count=steps,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
        if wanted <= seen:
            return
    assert wanted <= seen
