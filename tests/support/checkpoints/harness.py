"""A CheckpointCoordinator with a clock and a store that exists in memory only."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from firesteel.jobmaster.checkpoints.coordinator import CheckpointCoordinator
from firesteel.jobmaster.checkpoints.plan import CheckpointPlan, PlannedOperator, PlannedTask
from firesteel.jobmaster.checkpoints.settings import CheckpointSettings
from firesteel.jobmaster.model.instructions import (
    DeleteCheckpoint,
    DeleteFiles,
    PartInstruction,
    StoreMetadata,
    TriggerTasks,
)
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata
from firesteel.runtime.model.checkpoint_metrics import CheckpointMetrics
from firesteel.runtime.model.checkpoint_options import CheckpointLocation, SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import (
    FileSegment,
    KeyedPart,
    KeyedStateHandle,
    OperatorStateHandle,
    OperatorSubtaskState,
    TaskStateSnapshot,
)

JOB = "/ckp/job"
TASKS = [("source", 0), ("source", 1), ("sum", 0), ("sum", 1)]

_savepoints = count(1)


def location_of(checkpoint_id: int) -> CheckpointLocation:
    return CheckpointLocation(f"{JOB}/chk-{checkpoint_id}", f"{JOB}/shared")


def savepoint_location_of(target: str) -> CheckpointLocation:
    directory = f"{target}/savepoint-{next(_savepoints)}"
    return CheckpointLocation(directory, directory)


def plan(parallelism: int = 2, forward: bool = False) -> CheckpointPlan:
    """A source, and behind it a keyed sum; with ``forward`` subtask i reads from subtask i only."""
    source = PlannedOperator("op-source", "numbers", "numbers-uid", parallelism, 128, has_coordinator=True)
    total = PlannedOperator("op-sum", "sum", "sum-uid", parallelism, 128)
    return CheckpointPlan(
        (
            *(PlannedTask("source", i, (source,)) for i in range(parallelism)),
            *(
                PlannedTask("sum", i, (total,), (("source", range(i, i + 1) if forward else range(parallelism)),))
                for i in range(parallelism)
            ),
        )
    )


def snapshot(paths: Iterable[str] = (), operator: str = "op-sum", **fields: Any) -> TaskStateSnapshot:
    """Keyed state in these files."""
    parts = tuple(KeyedPart(f"part-{i}", FileSegment(path, 0, 10, "0")) for i, path in enumerate(sorted(paths)))
    keyed = KeyedStateHandle("hashmap", KeyGroupRange(0, 127), parts) if parts else None
    return TaskStateSnapshot({operator: OperatorSubtaskState(keyed)} if keyed else {}, **fields)


def list_state(mode: str, path: str, operator: str = "op-sum", **fields: Any) -> TaskStateSnapshot:
    """Operator state of one list."""
    handle = OperatorStateHandle("list", mode, 1, FileSegment(path, 0, 10, "0"))
    return TaskStateSnapshot({operator: OperatorSubtaskState(None, (handle,))}, **fields)


class CoordinatorHarness:
    """Calls a coordinator, lets time pass, and carries out what concerns files."""

    def __init__(self, **settings: Any):
        self.settings = CheckpointSettings(**{"interval": 1000, "timeout": 5000, **settings})
        self.now = 1_000_000
        self.files: set[str] = set()
        self.metadata: dict[str, CheckpointMetadata] = {}
        """What ``_metadata`` says, by directory."""
        self.storing: dict[int, StoreMetadata] = {}
        self.triggered: dict[int, TriggerTasks] = {}
        self.decisions: list[PartInstruction] = []
        self.coordinator = self.new_coordinator()

    def new_coordinator(self) -> CheckpointCoordinator:
        return CheckpointCoordinator(
            self.settings,
            "job",
            "a job",
            location_of=location_of,
            savepoint_location_of=savepoint_location_of,
            random_source=lambda: 0.999999,
        )

    # -- calls ------------------------------------------------------------------------------------

    def call(self, method: str, *arguments: Any, after: int = 1, **named: Any) -> list[PartInstruction]:
        self.now += after
        decisions: list[PartInstruction] = getattr(self.coordinator, method)(*arguments, now=self.now, **named) or []
        self.decisions += decisions
        for decision in decisions:
            self._carry_out(decision)
        return decisions

    def _carry_out(self, decision: PartInstruction) -> None:
        if isinstance(decision, DeleteFiles):
            self.files -= set(decision.paths)
        elif isinstance(decision, DeleteCheckpoint):
            self.metadata.pop(decision.path, None)
            self.files -= set(decision.files)
            if decision.whole:
                self.files = {path for path in self.files if not path.startswith(decision.path + "/")}
        elif isinstance(decision, StoreMetadata):
            self.storing[decision.checkpoint_id] = decision
        elif isinstance(decision, TriggerTasks):
            self.triggered[decision.checkpoint_id] = decision

    def start(self, job_plan: CheckpointPlan | None = None, **named: Any) -> list[PartInstruction]:
        return self.call("start", job_plan or plan(), **named)

    def due(self) -> list[PartInstruction]:
        """Waits until something is due."""
        at = self.coordinator.next_due()
        assert at is not None, "nothing will ever be due"
        return self.call("due", after=max(0, at - self.now))

    def trigger(self) -> int:
        """Waits for the next periodic checkpoint; returns its number."""
        [decision] = [each for each in self.due() if isinstance(each, TriggerTasks)]
        return decision.checkpoint_id

    def ack(
        self,
        checkpoint_id: int,
        task: tuple[str, int],
        paths: Iterable[str] = (),
        state: TaskStateSnapshot | None = None,
        metrics: CheckpointMetrics | None = None,
    ) -> list[PartInstruction]:
        paths = list(paths)
        self.files |= set(paths)
        state = snapshot(paths, f"op-{task[0]}") if state is None else state
        metrics = metrics or CheckpointMetrics(bytes_written=10 * len(paths))
        return self.call("acknowledge", checkpoint_id, *task, state, metrics)

    def coordinators(self, checkpoint_id: int) -> list[PartInstruction]:
        return self.call("coordinator_states", checkpoint_id, {"op-source": b"splits"})

    def ack_all(self, checkpoint_id: int, paths: Iterable[str] = (), tasks: Iterable[Any] = TASKS) -> None:
        """The enumerators and all tasks acknowledge, the first one with these files."""
        self.coordinators(checkpoint_id)
        for index, task in enumerate(tasks):
            self.ack(checkpoint_id, task, paths if not index else ())

    def store(self, checkpoint_id: int) -> list[PartInstruction]:
        decision = self.storing.pop(checkpoint_id)
        self.metadata[decision.location.exclusive] = decision.metadata
        return self.call("stored", checkpoint_id, decision.location.exclusive)

    def complete(self, checkpoint_id: int, paths: Iterable[str] = ()) -> list[PartInstruction]:
        self.ack_all(checkpoint_id, paths)
        return self.store(checkpoint_id)

    def savepoint(
        self, request_id: str = "r", kind: SnapshotKind = SnapshotKind.SAVEPOINT, stop: Any = None
    ) -> list[PartInstruction]:
        return self.call("trigger_savepoint", request_id, kind, "/sp", stop)

    # -- looking ----------------------------------------------------------------------------------

    def of(self, kind: type) -> list[Any]:
        return [decision for decision in self.decisions if isinstance(decision, kind)]

    @property
    def latest_id(self) -> int | None:
        latest = self.coordinator.latest()
        return None if latest is None else latest.checkpoint_id


def kinds(decisions: list[PartInstruction]) -> list[str]:
    """The names of what was decided."""
    return [type(decision).__name__ for decision in decisions]
