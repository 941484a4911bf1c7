"""Converts the reports of an epoch's tasks to slot messages for the JobMaster. No I/O."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.execution.epochs.read_quota import SourceLoad
from firesteel.execution.epochs.trigger import EpochOutcome
from firesteel.execution.stages.stage_runner import StageMessage
from firesteel.execution.stages.task_commands import BatchReport, EpochReport
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.slots import assign_slots
from firesteel.jobmaster.metrics import merge_accumulators
from firesteel.jobmaster.model.events import MessageReceived
from firesteel.runtime.model.messages import (
    AcknowledgeCheckpoint,
    ClientPayload,
    DeclineCheckpoint,
    MetricReport,
    MetricScope,
    RequestSplit,
    SlotMessage,
    TaskAwaitsCheckpoint,
    TaskKey,
    TaskStateChanged,
)

__all__ = ["EpochMessages", "EpochResult"]


@dataclass
class EpochResult:
    """An epoch that has run, as reported by its tasks."""

    number: int
    reports: dict[TaskKey, EpochReport]
    others: list[SlotMessage]
    """In the order in which they came."""
    loads: dict[TaskKey, SourceLoad] = field(default_factory=dict)
    """Of the subtasks of sources."""

    @classmethod
    def of(cls, number: int, messages: Iterable[StageMessage], sources: Iterable[TaskKey]) -> EpochResult:
        """Sorts what a run gave."""
        reports: dict[TaskKey, EpochReport] = {}
        others: list[SlotMessage] = []
        for message in messages:
            if isinstance(message, EpochReport):
                reports[message.vertex_id, message.subtask] = message
            elif not isinstance(message, BatchReport):
                others.append(message)
        loads = {
            task: SourceLoad(reports[task].records, not reports[task].ran_dry) for task in sources if task in reports
        }
        return cls(number, reports, others, loads)

    @property
    def records(self) -> int:
        """What sources read."""
        return sum(load.records for load in self.loads.values())

    @property
    def records_ms(self) -> float:
        """For how long tasks were at records.

        Vertices run one after the other, and subtasks of one on several hosts at once, but not always all on a host.
        """
        by_host: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
        for report in self.reports.values():
            if report.at_records is not None:
                by_host[report.vertex_id][report.host].append(report.at_records)
        return 1000 * sum(max(map(_covered, hosts.values())) for hosts in by_host.values())

    @property
    def ended(self) -> set[TaskKey]:
        """Tasks that have nothing left to do."""
        return {task for task, report in self.reports.items() if report.ended}

    @property
    def reloaded(self) -> int:
        """How many tasks had to load their state."""
        return sum(report.reloaded for report in self.reports.values())

    @property
    def used_up(self) -> frozenset[TaskKey]:
        """Sources whose quota ended their reading."""
        return frozenset(task for task, load in self.loads.items() if load.used_up)

    @property
    def ready_in_ms(self) -> int | None:
        """When the first source expects more."""
        return min(
            (report.ready_in_ms for report in self.reports.values() if report.ready_in_ms is not None), default=None
        )

    @property
    def backlog(self) -> int | None:
        """Available records that have not been read, as far as readers report them."""
        known = [report.pending_records for report in self.reports.values() if report.pending_records is not None]
        return sum(known) if known else None

    def outcome(self) -> EpochOutcome:
        """The input of the trigger."""
        timers = [report.next_timer for report in self.reports.values() if report.next_timer is not None]
        ended = self.ended
        return EpochOutcome(
            self.records,
            frozenset(task for task in self.loads if task in ended or task not in self.used_up),
            bool(self.used_up),
            min(timers, default=None),
        )


class EpochMessages:
    """Sends messages for the slots of an attempt.

    A worker that takes over a task starts to count from 0. So what goes to the client is numbered here, and
    accumulators are added to what the lost worker's had come to.
    """

    def __init__(self, job_graph: JobGraph, attempt: int):
        self._attempt = attempt
        self._assignment = assign_slots(job_graph)
        self._operators = {
            operator.node.operator_id: vertex.id for vertex in job_graph.vertices for operator in vertex.operators
        }
        self._sequences: Counter[tuple[str, int]] = Counter()
        self._accumulators: dict[TaskKey, Mapping[str, Any]] = {}
        self._lost: dict[TaskKey, dict[str, Any]] = defaultdict(dict)

    def slot_of(self, task: TaskKey) -> int:
        """The slot a task belongs to."""
        return self._assignment.slot_of(*task)

    def tasks_in(self, slot: int) -> list[TaskKey]:
        return self._assignment.subtasks_in(slot)

    def events(
        self,
        result: EpochResult,
        ask: Callable[[Mapping[TaskKey, int]], Sequence[TaskKey]],
        measured: Mapping[MetricScope, Mapping[str, Any]],
    ) -> list[MessageReceived]:
        """The messages for the JobMaster, in order.

        Acknowledgements come last, as they may complete the checkpoint: by then readers have asked for splits, and what
        enumerators give them is there before the next epoch. ``ask`` selects the requests to send, given how
        many each reader made; ``measured`` are metrics of the host's own. Reports of task states are left out:
        it is the host that starts and ends them. So is that a task waits for a last checkpoint: there is always one.
        """
        said: list[MessageReceived] = []
        asked: dict[TaskKey, RequestSplit] = {}
        requests: Counter[TaskKey] = Counter()
        last: list[MessageReceived] = []
        reports: list[MetricReport] = []
        for message in result.others:
            if isinstance(message, RequestSplit):
                task = message.vertex_id, message.subtask
                asked.setdefault(task, message)
                requests[task] += 1
            elif isinstance(message, MetricReport):
                reports.append(message)
            elif isinstance(message, ClientPayload):
                said.append(self._payload(result.number, message))
            elif isinstance(message, (AcknowledgeCheckpoint, DeclineCheckpoint)):
                last.append(self._from(message))
            elif not isinstance(message, (TaskStateChanged, TaskAwaitsCheckpoint)):
                said.append(self._from(message))
        said += (self._from(asked[task]) for task in ask(requests))
        return [*said, *self._metrics(result, reports, measured), *last]

    def failures(self, epoch: int, messages: Iterable[StageMessage]) -> list[MessageReceived]:
        """The failure reports of an epoch's tasks, with their printed output; empty if there are none."""
        messages = list(messages)
        payloads = [message for message in messages if isinstance(message, ClientPayload)]
        failed = [
            message for message in messages if isinstance(message, TaskStateChanged) and message.state == "FAILED"
        ]
        return [*(self._payload(epoch, each) for each in payloads), *map(self._from, failed)] if failed else []

    def accumulators(self, tasks: Iterable[TaskKey] | None = None) -> dict[TaskKey, dict[str, Any]]:
        """The user's counters of these tasks, or of all."""
        found: dict[TaskKey, dict[str, Any]] = {}
        for task in self._accumulators if tasks is None else tasks:
            merged = found[task] = dict(self._accumulators.get(task, {}))
            merge_accumulators(merged, self._lost.get(task, {}))
        return found

    def _payload(self, epoch: int, payload: ClientPayload) -> MessageReceived:
        stream = payload.channel, payload.subtask
        sequence = self._sequences[stream]
        self._sequences[stream] += 1
        vertex_id = self._operators.get(payload.channel.rpartition("#")[2])
        slot = 0 if vertex_id is None else self.slot_of((vertex_id, payload.subtask))
        return MessageReceived(slot, replace(payload, sequence=sequence, last_checkpoint_id=epoch - 1))

    def _from(self, message: Any) -> MessageReceived:
        if hasattr(message, "slot_index"):
            return MessageReceived(message.slot_index, message)
        return MessageReceived(self.slot_of((message.vertex_id, message.subtask)), message)

    def _metrics(
        self,
        result: EpochResult,
        reports: Iterable[MetricReport],
        measured: Mapping[MetricScope, Mapping[str, Any]],
    ) -> list[MessageReceived]:
        """One report for each slot."""
        metrics: dict[int, dict[MetricScope, Mapping[str, Any]]] = defaultdict(dict)
        for report in reports:
            for scope, values in report.metrics.items():
                metrics[self.slot_of((scope[0], scope[2]))][scope] = values
            task = next(((scope[0], scope[2]) for scope in report.metrics), None)
            if task is not None:
                told = result.reports.get(task)
                if told is not None and told.reloaded:
                    merge_accumulators(self._lost[task], self._accumulators.get(task, {}))
                self._accumulators[task] = report.accumulators.get(task, {})
        for scope, values in measured.items():
            of_slot = metrics[self.slot_of((scope[0], scope[2]))]
            of_slot[scope] = {**of_slot.get(scope, {}), **values}
        return [
            MessageReceived(
                slot, MetricReport(self._attempt, slot, metrics[slot], self.accumulators(self.tasks_in(slot)))
            )
            for slot in sorted(metrics)
        ]


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """How much time lies within at least one of the spans."""
    covered, until = 0.0, float("-inf")
    for began, ended in sorted(spans):
        covered += max(ended - max(began, until), 0.0)
        until = max(until, ended)
    return covered
