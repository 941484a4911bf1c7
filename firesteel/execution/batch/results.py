"""Results of a batch: commits them, and sends the slot messages for them to the client and the JobMaster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from firesteel.common.errors import UserCodeError
from firesteel.execution.stages.task_commands import BatchReport
from firesteel.graph.job_graph import JobGraph
from firesteel.jobmaster.client_channels import PRINT_CHANNEL
from firesteel.jobmaster.metrics import merge_accumulators
from firesteel.jobmaster.model.failure import failure_of
from firesteel.jobmaster.model.log_line import LOG_STREAM
from firesteel.process import fault_points
from firesteel.runtime.model.messages import ClientPayload, MetricReport, MetricScope, TaskKey
from firesteel.runtime.model.serialization import serialize_records

__all__ = ["BatchResults"]

SlotOf = Callable[[str, int], int]


class BatchResults:
    """The reports of all tasks, those of sources first."""

    def __init__(self, reports: Sequence[BatchReport]):
        self._reports = tuple(reports)
        self._tried: set[str] = set()
        self._committed: set[str] = set()
        self.is_delivered = False
        """Whether the client has got its part."""

    def commit(self, job_graph: JobGraph) -> None:
        """Commits what the sinks have prepared, those of an operator at once, and what was committed not again.

        A failed commit can be repeated: the committer is then informed that part of it may be done.
        """
        committables: dict[str, list[Any]] = defaultdict(list)
        for report in self._reports:
            for operator_id, prepared in report.committables.items():
                committables[operator_id] += prepared
        for node in job_graph.nodes():
            operator_id, sink = node.operator_id, node.spec.get_sink()
            if not committables[operator_id] or operator_id in self._committed or sink is None:
                continue
            try:
                self._commit(operator_id, sink.create_committer(), committables[operator_id])
            except Exception as error:
                failure = failure_of(error, operator=node.name, uid=node.uid, defined_at=node.defined_at)
                raise UserCodeError(failure) from error
            self._committed.add(operator_id)

    def _commit(self, operator_id: str, committer: Any, committables: list[Any]) -> None:
        if committer is None:
            return
        try:
            fault_points.reach("sink.commit")
            if operator_id in self._tried:
                committer.recommit(committables)
            else:
                self._tried.add(operator_id)
                committer.commit(committables)
            committer.finish()
            fault_points.reach("sink.committed")
        finally:
            committer.close()

    def metric_reports(self, attempt: int, slots: int, slot_of: SlotOf) -> list[MetricReport]:
        """What each slot reports of metrics and accumulators."""
        metrics: dict[int, dict[MetricScope, Mapping[str, Any]]] = {slot: {} for slot in range(slots)}
        accumulators: dict[int, dict[TaskKey, dict[str, Any]]] = {slot: {} for slot in range(slots)}
        for report in self._reports:
            slot = slot_of(report.vertex_id, report.subtask)
            for operator_id, values in report.metrics.items():
                metrics[slot][report.vertex_id, operator_id, report.subtask] = values
            of_task = accumulators[slot].setdefault((report.vertex_id, report.subtask), {})
            merge_accumulators(of_task, report.accumulators)
        return [MetricReport(attempt, slot, metrics[slot], accumulators[slot]) for slot in range(slots)]

    def client_payloads(self, attempt: int, slot_of: SlotOf) -> Iterator[tuple[int, ClientPayload]]:
        """What goes to the client, with the slot it comes from: printed lines first."""
        numbers: dict[tuple[str, int], int] = defaultdict(int)
        for report in self._reports:
            slot = slot_of(report.vertex_id, report.subtask)
            said: list[tuple[str, Sequence[Any]]] = [*_lines(report.printed)]
            if report.logged:
                said.append((LOG_STREAM, list(report.logged)))
            for stream, lines in said:
                channel = f"{PRINT_CHANNEL}#{stream}"
                payload = serialize_records((stream, lines), None)
                yield slot, ClientPayload(attempt, channel, slot, _next(numbers, channel, slot), payload)
        for report in sorted(self._reports, key=lambda report: report.part):
            slot = slot_of(report.vertex_id, report.subtask)
            for channel, payload in report.client_payloads:
                number = _next(numbers, channel, report.subtask)
                yield slot, ClientPayload(attempt, channel, report.subtask, number, payload)


def _next(numbers: dict[tuple[str, int], int], channel: str, subtask: int) -> int:
    number = numbers[channel, subtask]
    numbers[channel, subtask] = number + 1
    return number


def _lines(printed: Sequence[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Whole lines by stream, in the order in which they were printed as far as that is known."""
    texts: list[tuple[str, list[str]]] = []
    for stream, text in printed:
        if texts and texts[-1][0] == stream:
            texts[-1][1].append(text)
        else:
            texts.append((stream, [text]))
    for stream, parts in texts:
        lines = "".join(parts).removesuffix("\n").split("\n")
        yield stream, lines
