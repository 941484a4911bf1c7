"""Whatever happens in whatever order: no file a checkpoint needs is ever deleted, and in the end nothing is left over.

Tasks are played as they behave: a snapshot shares files of the last checkpoint its task was told is complete; news
and acknowledgements travel, so barriers overtake them and acknowledgements come late or twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.checkpoints.settings import UNLIMITED, CheckpointRetention
from firesteel.jobmaster.model.instructions import (
    FailJob,
    NotifyAborted,
    NotifyComplete,
    RequestDone,
    RequestFailed,
    TriggerTasks,
)
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import SnapshotKind, StopMode
from tests.support.checkpoints.harness import JOB, TASKS, CoordinatorHarness, plan, snapshot
from tests.support.jobs.random_events import explore

tasks = st.sampled_from(TASKS)


@dataclass
class FakeTask:
    """One task: what it was told, and which files its snapshots have."""

    key: tuple[str, int]
    news: list = field(default_factory=list)
    base: frozenset[str] = frozenset()
    snapshots: dict[int, frozenset[str]] = field(default_factory=dict)
    taken: int = 0
    """The last checkpoint it has taken part in; barriers come in order."""
    acks: list = field(default_factory=list)

    def hear(self):
        """The oldest news."""
        decision = self.news.pop(0)
        if isinstance(decision, NotifyComplete) and decision.checkpoint_id in self.snapshots:
            self.base = self.snapshots[decision.checkpoint_id]
        self.snapshots = {n: files for n, files in self.snapshots.items() if n > decision.checkpoint_id}


def machine(max_concurrent, num_retained, seen):
    class RandomEvents(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.h = CoordinatorHarness(
                max_concurrent=max_concurrent,
                num_retained=num_retained,
                tolerable_failures=UNLIMITED,
                timeout=3000,
                retention=CheckpointRetention.RETAIN_ON_CANCELLATION,
            )
            self.names = self.last_completed = 0
            self.requests = set()
            self.answered = []
            self.new_attempt()

        # -- the job --------------------------------------------------------------------------------

        def new_attempt(self):
            latest = self.h.coordinator.latest()
            reusable = latest is not None and latest.is_owned
            self.tasks = {
                key: FakeTask(
                    key,
                    base=frozenset(latest.metadata.files()) if reusable else frozenset(),
                    taken=self.h.coordinator.next_id - 1,
                )
                for key in TASKS
            }
            self.finished = set()
            if latest is not None:
                self.call("restored", latest.metadata, latest.path, latest.is_owned)
            self.call("start", plan())

        def call(self, method, *arguments, **named):
            decisions = self.h.call(method, *arguments, **named)
            for decision in decisions:
                self.observe(decision)
            self.check()
            return decisions

        def observe(self, decision):
            seen.add(type(decision).__name__)
            if isinstance(decision, TriggerTasks):
                assert len(set(decision.tasks) & self.finished) == 0
                assert decision.tasks, "nobody would send a barrier"
                self.h.coordinators(decision.checkpoint_id)
            elif isinstance(decision, (NotifyComplete, NotifyAborted)):
                if isinstance(decision, NotifyComplete):
                    assert decision.checkpoint_id > self.last_completed
                    self.last_completed = decision.checkpoint_id
                elif "has been deleted" in decision.reason:
                    seen.add("file deleted")
                for task in self.tasks.values():
                    task.news.append(decision)
            elif isinstance(decision, (RequestDone, RequestFailed)):
                self.answered.append(decision.request_id)
            elif isinstance(decision, FailJob):
                self.stop_attempt()

        def check_on_disk(self):
            """After a crash at any time, whatever looks complete is complete."""
            for directory, metadata in self.h.metadata.items():
                assert metadata.files() <= self.h.files, f"{directory} has lost files"

        def check(self):
            self.check_on_disk()
            coordinator = self.h.coordinator
            for checkpoint in coordinator._completed:
                missing = checkpoint.metadata.files() - self.h.files
                assert not missing, f"checkpoint {checkpoint.checkpoint_id} has lost {missing}"
                assert checkpoint.path in self.h.metadata
            for stored in self.h.storing.values():
                if stored.checkpoint_id in coordinator.pending():
                    assert stored.metadata.files() <= self.h.files
            assert len([n for n in coordinator.pending() if not self.kind(n).is_savepoint]) <= max_concurrent
            owned = [each for each in coordinator._completed if each.is_owned]
            assert len(owned) <= num_retained
            assert len(self.answered) == len(set(self.answered)), "a request was answered twice"

        def kind(self, checkpoint_id):
            return self.h.triggered[checkpoint_id].options.kind

        def is_running(self):
            return self.h.coordinator._plan is not None

        # -- what tasks do --------------------------------------------------------------------------

        @rule(
            who=st.lists(tasks, min_size=1, max_size=4, unique=True),
            what=st.lists(st.sampled_from(["snapshot", "acknowledge", "hear"]), min_size=1, max_size=3),
            fate=st.sampled_from(["keep", "keep", "some", "none"]),
            shared=st.sampled_from([True, True, False]),
        )
        def work(self, who, what, fate, shared):
            for action in what:
                for key in who:
                    if action == "snapshot":
                        self.take_snapshot(key, fate, shared)
                    elif action == "acknowledge":
                        self.acknowledge(key, False)
                    else:
                        self.hear(key)

        def take_snapshot(self, key, fate, shared):
            task = self.tasks[key]
            waiting = [n for n in self.h.triggered if n > task.taken]
            if key in self.finished or not waiting:
                return
            checkpoint_id = task.taken = min(waiting)
            options = self.h.triggered[checkpoint_id].options
            files = set()
            if options.kind is SnapshotKind.CHECKPOINT:
                base = sorted(path for path in task.base if "/shared/" in path)
                files |= {"keep": set(base), "some": set(base[::2]), "none": set()}[fate]
            self.names += 1
            written = {f"{options.location.shared if shared else options.location.exclusive}/{self.names}"}
            self.h.files |= written
            files |= written
            # what is not shared is not built upon
            task.snapshots[checkpoint_id] = frozenset(path for path in files if "/shared/" in path)
            task.acks.append((checkpoint_id, frozenset(files)))

        def acknowledge(self, key, twice):
            task = self.tasks[key]
            if task.acks:
                checkpoint_id, files = task.acks[0] if twice else task.acks.pop(0)
                self.deliver(key, checkpoint_id, files)

        def deliver(self, key, checkpoint_id, files):
            state = snapshot(files, f"op-{key[0]}")
            self.call("acknowledge", checkpoint_id, *key, state, CheckpointMetrics())

        def hear(self, key):
            if self.tasks[key].news:
                self.tasks[key].hear()

        @rule(key=tasks, what=st.sampled_from(["decline", "finish", "twice", "restart", "kill", "die", "corrupt"]))
        def disturb(self, key, what):
            seen.add(what)
            if what == "decline":
                self.decline(key)
            elif what == "finish" and self.is_running():
                self.finish(key)
            elif what == "twice":
                self.acknowledge(key, True)
            elif what == "restart":
                self.restart()
            elif what in ("kill", "die"):
                self.kill(what == "die")
            elif what == "corrupt":
                self.corrupt()

        def decline(self, key):
            for checkpoint_id in self.h.coordinator.pending()[:1]:
                self.call("decline", checkpoint_id, *key, "no")

        def finish(self, key):
            if len(self.finished) < len(TASKS) - 1:
                self.finished.add(key)
                self.call("task_finished", key)

        # -- what the storage, the clock and the user do ----------------------------------------------

        @rule(success=st.sampled_from([True, True, False]), newest=st.booleans())
        def store(self, success, newest):
            if not self.h.storing:
                return
            checkpoint_id = (max if newest else min)(self.h.storing)
            stored = self.h.storing.pop(checkpoint_id)
            directory = stored.location.exclusive
            if success:
                self.h.metadata[directory] = stored.metadata
                self.check_on_disk()
                self.call("stored", checkpoint_id, directory)
            else:
                self.call("store_failed", checkpoint_id, "disk full")

        @rule(
            fate=st.sampled_from(["keep", "some", "none"]),
            deaf=st.lists(tasks, max_size=2),
            store=st.sampled_from(["no", "oldest", "newest"]),
        )
        def complete_one(self, fate, deaf, store):
            """A checkpoint gets on as it should, only that some tasks do not hear any news."""
            if not self.h.coordinator.pending():
                self.tick()
            for key in TASKS:
                while key not in deaf and self.tasks[key].news:
                    self.hear(key)
            for _ in range(max_concurrent):
                for key in TASKS:
                    self.take_snapshot(key, fate, True)
                    self.acknowledge(key, False)
            if store != "no":
                self.store(True, store == "newest")

        @rule()
        def tick(self):
            if self.h.coordinator.next_due() is not None:
                at = self.h.coordinator.next_due()
                self.call("due", after=max(0, at - self.h.now))

        @rule(what=st.sampled_from(["checkpoint", "last", "full", "savepoint", "native", "stop"]))
        def ask(self, what):
            request = None
            if what != "last":
                request = f"r{len(self.requests)}"
                self.requests.add(request)
            if what in ("checkpoint", "last"):
                self.call("trigger_checkpoint", request)
            elif what == "full":
                self.call("trigger_checkpoint", request, kind=SnapshotKind.FULL_CHECKPOINT)
            else:
                kind = SnapshotKind.NATIVE_SAVEPOINT if what == "native" else SnapshotKind.SAVEPOINT
                stop = StopMode.SUSPEND if what == "stop" else None
                self.call("trigger_savepoint", request, kind, "/sp", stop)

        # -- failures -------------------------------------------------------------------------------

        def stop_attempt(self):
            self.call("stop", "the attempt is over")
            assert not self.h.coordinator.pending()
            # what tasks that live on had to say comes late
            for key, task in self.tasks.items():
                for checkpoint_id, files in task.acks:
                    self.deliver(key, checkpoint_id, files)
                task.acks.clear()
                task.snapshots.clear()

        def restart(self):
            """All tasks hear of it, and what they say is heard: nothing is left over but what was not said."""
            self.stop_attempt()
            self.finish_storing()
            self.check_nothing_is_left_over()
            self.new_attempt()

        def finish_storing(self):
            while self.h.storing:
                self.store(True, False)

        def kill(self, sudden):
            """Processes die: acknowledgements are lost. ``sudden``: the driver's too, and all it knew."""
            for task in self.tasks.values():
                task.acks.clear()
            if sudden:
                self.answered += sorted(self.requests - set(self.answered))
                next_id = self.h.coordinator.next_id
                self.h.storing.clear()
                self.h.coordinator = self.h.new_coordinator()
                found = [(m, d) for d, m in self.h.metadata.items() if d.startswith(JOB)]
                found.sort(key=lambda each: each[0].checkpoint_id)
                kept = found[-num_retained:]
                for metadata, directory in found[:-num_retained]:
                    assert metadata.checkpoint_id < next_id
                    del self.h.metadata[directory]
                self.h.coordinator.recover(kept)
                self.h.coordinator.next_id = next_id
            else:
                self.stop_attempt()
                self.finish_storing()
            self.sweep()
            self.check_nothing_is_left_over()
            self.new_attempt()

        def sweep(self):
            """As the storage does between attempts."""
            needed = self.h.coordinator.needed_files()
            self.h.files = {path for path in self.h.files if path in needed or self.is_savepoint_file(path)}

        def corrupt(self):
            """The latest checkpoint cannot be read: an older one is used."""
            latest = self.h.coordinator.latest()
            if latest is None or not latest.is_owned:
                return
            self.stop_attempt()
            self.h.coordinator.unusable(latest.checkpoint_id, "bad")
            assert self.h.latest_id != latest.checkpoint_id
            self.new_attempt()

        # -- the end --------------------------------------------------------------------------------

        def is_savepoint_file(self, path):
            return any(path.startswith(directory + "/") for directory in self.h.metadata if "/sp/" in directory)

        def check_nothing_is_left_over(self):
            needed = set()
            for checkpoint in self.h.coordinator._completed:
                needed |= checkpoint.metadata.files()
            rest = {path for path in self.h.files if not self.is_savepoint_file(path)}
            assert rest == {path for path in needed if not self.is_savepoint_file(path)}

        def teardown(self):
            self.stop_attempt()
            self.finish_storing()
            self.check_nothing_is_left_over()
            self.h.call("job_ended", JobStatus.FINISHED)
            assert {path for path in self.h.files if not self.is_savepoint_file(path)} == set()
            assert not [directory for directory in self.h.metadata if directory.startswith(JOB)]
            assert self.requests == set(self.answered), "a request was never answered"
            seen.add(f"retained {len(self.h.metadata)}")

    return RandomEvents


@pytest.mark.parametrize(("max_concurrent", "num_retained"), [(1, 1), (3, 2)])
def test_any_order_of_events_keeps_what_is_needed_and_nothing_else(max_concurrent, num_retained):
    seen = set()
    decided = {"NotifyComplete", "NotifyAborted", "DeleteFiles", "RequestDone", "RequestFailed", "FailJob"}
    happened = {"decline", "finish", "twice", "restart", "kill", "die", "corrupt"}
    explore(machine(max_concurrent, num_retained, seen), 150, 50, seen, decided | happened)
