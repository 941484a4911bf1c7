"""Operator metrics that a task reports for each operator of its chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from firesteel.runtime.chain.output import TaskOutput
from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.sink import SinkOperator
from firesteel.runtime.operators.source import SourceOperator

if TYPE_CHECKING:
    from firesteel.runtime.chain.running_operator import RunningOperator
    from firesteel.runtime.task.task import Task

__all__ = ["count_records", "operator_metrics"]


def operator_metrics(task: Task) -> dict[str, dict[str, Any]]:
    """The metrics of the task's operators by operator id: the user's too, under the names they were given."""
    counts = count_records(task)
    reports = {}
    for chained in task.chain:
        report = chained.metrics.snapshot()
        records_in, records_out = counts[chained]
        if records_in is not None:
            report["numRecordsIn"] = records_in
        if records_out is not None:
            report["numRecordsOut"] = records_out
        if not isinstance(chained.operator, SourceOperator):
            report["currentInputWatermark"] = chained.input_watermark
        report["currentOutputWatermark"] = chained.output_watermark
        reports[chained.descriptor.operator_id] = report
    return reports


def count_records(task: Task) -> dict[RunningOperator, tuple[int | None, int | None]]:
    """How many records went into each operator and came out of it, where that is known.

    The generated loop counts nothing. But it is known how many records the chain reads, how many reach its outputs and
    sinks, that operators on whole batches count what they emit, and that a map emits one for one; the rest follows.
    What is between two operators that drop or multiply records does not.
    """
    chain = _Chain(task)
    while chain.conclude():
        pass
    return {chained: (chain.into.get(chained), chain.out_of.get((chained, None))) for chained in task.chain}


class _Chain:
    """What is known of a chain's records so far."""

    def __init__(self, task: Task):
        self._chain = task.chain
        self.into: dict[RunningOperator, int] = {task.head: task.records_in}
        self.out_of: dict[tuple[RunningOperator, str | None], int] = {}
        for chained in task.chain:
            operator = chained.operator
            if isinstance(operator, SinkOperator):
                if not operator.discards:
                    self.into[chained] = self.out_of[chained, None] = operator.records
            elif isinstance(operator, StreamOperator):
                self.out_of[chained, None] = chained.emitted.get(None, 0)

    def conclude(self) -> bool:
        """Derives further numbers from the known ones; returns whether there were new ones."""
        known = len(self.into) + len(self.out_of)
        for chained in self._chain:
            self._one_to_one(chained)
            for tag, consumers in chained.downstream.items():
                self._handed_on((chained, tag), consumers)
        return len(self.into) + len(self.out_of) > known

    def _one_to_one(self, chained: RunningOperator) -> None:
        if chained.operator.is_one_to_one:
            if chained in self.into:
                self.out_of.setdefault((chained, None), self.into[chained])
            elif (chained, None) in self.out_of:
                self.into[chained] = self.out_of[chained, None]

    def _handed_on(self, output: tuple[RunningOperator, str | None], consumers: list[Any]) -> None:
        """What comes out of an operator goes into each of its consumers."""
        count = self.out_of.get(output)
        for consumer in consumers:
            if count is None:
                count = (
                    consumer.partition.records_emitted if isinstance(consumer, TaskOutput) else self.into.get(consumer)
                )
        if count is None:
            return
        self.out_of[output] = count
        for consumer in consumers:
            if not isinstance(consumer, TaskOutput):
                self.into.setdefault(consumer, count)
