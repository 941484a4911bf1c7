"""Batch task: reads all its input, emits the final results, and reports its outcome.

Nothing leaves the task but its rows, so that Spark may run it as often as it likes: what sinks prepared and what is for
the client goes with the report.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from firesteel.execution.batch.grouping_output import BucketedPartition, GroupingOutput
from firesteel.execution.batch.keyed_head import KeyedHead
from firesteel.execution.stages.errors import StageTaskError
from firesteel.execution.stages.exchange_rows import GROUPS, REPORT, ExchangeRow, pack_number, pack_row
from firesteel.execution.stages.row_order import (
    BROADCAST_ORDER,
    REPORT_ORDER,
    bucket_of_row,
    bucket_order,
    buckets_per_subtask,
    record_order,
)
from firesteel.execution.stages.row_spool import RowSpool, runs_of_rows
from firesteel.execution.stages.stage_task import StageTask
from firesteel.execution.stages.task_cache import PrintedLines
from firesteel.execution.stages.task_commands import BatchCommand, BatchReport
from firesteel.jobmaster.model.log_line import LOG_STREAM
from firesteel.runtime.chain.output import TaskOutput
from firesteel.runtime.model import messages
from firesteel.runtime.model.deployment import OutputDescriptor
from firesteel.runtime.model.elements import MAX_WATERMARK, ControlEvent
from firesteel.runtime.model.partitioner import BroadcastPartitioner, KeyGroupPartitioner
from firesteel.runtime.network.partition import ResultPartition
from firesteel.runtime.operators.sink import SinkOperator
from firesteel.runtime.slot.mailbox import Clock
from firesteel.runtime.slot.wiring import Wiring
from firesteel.runtime.task.task import Task

__all__ = ["BatchTask", "run_batch_task"]

Capture = Callable[[], AbstractContextManager[PrintedLines | None]]
RowReader = Callable[[Iterable[bytes]], Iterator[Any]]
_MAX_PAYLOAD_BYTES = 4 << 20
_SOURCE_WAIT_S = 0.01
DATAFRAME_SPLIT = "dataframe"
"""The split that a source's records are in where Spark itself has read them."""


def run_batch_task(
    command: BatchCommand, rows: Iterable[bytes], *, clock: Clock | None = None, capture: Capture = nullcontext
) -> Iterator[bytes]:
    """Runs one task of a batch job: from rows, sorted by their order, to number, row, number, row, …

    ``capture`` is entered while the task runs, and returns its printed output.
    """
    task = BatchTask(command, clock)
    try:
        with capture() as printed:
            task.printed = printed
            task.open()
            yield from task.run_batch(command, rows)
            task.end()
            yield from task.drain(flush=True)
            yield from task.report()
    finally:
        task.close()


class _BucketingTask(Task):
    """The task itself: keyed outputs are divided into buckets."""

    def create_output(self, descriptor: OutputDescriptor, partition: Any) -> TaskOutput:
        """One of the task's outputs."""
        if isinstance(partition, BucketedPartition):
            return GroupingOutput(descriptor, partition, self.make_room)
        return super().create_output(descriptor, partition)


class BatchTask(StageTask):
    """A task that reads everything and ends."""

    task_class = _BucketingTask
    task: _BucketingTask

    def __init__(self, command: BatchCommand, clock: Clock | None = None):
        super().__init__(command.descriptor, clock=clock)
        descriptor = command.descriptor
        self._broadcast_edges = {
            edge
            for edge, entry in zip(descriptor.input_edges, descriptor.task.inputs, strict=True)
            if isinstance(entry.partitioner, BroadcastPartitioner)
        }
        self._input_of_edge = {
            edge: entry.input_index for edge, entry in zip(descriptor.input_edges, descriptor.task.inputs, strict=True)
        }
        self._keyed_head: KeyedHead | None = None
        self._payload_bytes = 0
        self._parts = 0

    def create_partition(self, index: int) -> ResultPartition:
        """Where one of the task's outputs goes: a keyed one into buckets."""
        descriptor, output = self.descriptor, self.descriptor.task.outputs[index]
        if not isinstance(output.partitioner, KeyGroupPartitioner):
            return super().create_partition(index)
        offset = descriptor.output_offsets[index]
        partitions = [offset + channel.consumer for channel in output.channels]
        buckets = buckets_per_subtask(descriptor.task.configuration, len(partitions))
        partition: Any = BucketedPartition(descriptor.output_edges[index], descriptor.task.subtask, partitions, buckets)
        return partition  # type: ignore[no-any-return]

    # -- input --------------------------------------------------------------------------------------

    def run_batch(self, command: BatchCommand, rows: Iterable[bytes]) -> Iterator[bytes]:
        if self.task.source is not None:
            read_rows = self._row_reader()
            yield from self._read_splits(command) if read_rows is None else self._read_rows(read_rows, rows)
            return
        if self.task.head.backend is not None:
            self._keyed_head = KeyedHead(self.task)
        for run in runs_of_rows(rows, self._order_of):
            if isinstance(run, bytes):
                yield from self.pass_on(run, REPORT_ORDER)
            else:
                yield from self._process(run)

    def feed(self, row: ExchangeRow) -> None:
        """Puts a row into the input; a DataFrame may have more partitions than there are channels, and any will do."""
        if (row.edge, row.producer) not in self.channels:
            row = row._replace(producer=next(producer for edge, producer in self.channels if edge == row.edge))
        super().feed(row)

    def _row_reader(self) -> RowReader | None:
        return getattr(self.task.head.descriptor.spec.get_source(), "read_rows", None)

    def _read_splits(self, command: BatchCommand) -> Iterator[bytes]:
        task, source = self.task, self.task.source
        assert source is not None
        if command.splits:
            self.act(lambda: source.add_splits(command.splits))
        self.act(source.no_more_splits)
        while not source.ended:
            self.run_timers()
            ready, now = source.ready_at, time.monotonic()
            if ready is None or ready > now:
                time.sleep(_SOURCE_WAIT_S if ready is None else min(ready - now, _SOURCE_WAIT_S))
                continue
            self.await_sinks()
            self.act(task.run_once)
            yield from self.drain()

    def _read_rows(self, read_rows: RowReader, rows: Iterable[bytes]) -> Iterator[bytes]:
        source = self.task.source
        assert source is not None
        batches = read_rows(rows)
        while True:
            batch: list[Any] = []
            self.act(lambda: batch.extend(next(batches, ())))  # noqa: B023 - called at once
            if not batch:
                break
            self.await_sinks()
            self.act(lambda: source.collect(DATAFRAME_SPLIT, *batch))  # noqa: B023 - called at once
            self.task.records_in = source.records
            yield from self.drain()
        source.ended = True

    def _order_of(self, row: ExchangeRow) -> int | None:
        if row.kind == REPORT:
            return None
        if row.kind == GROUPS:
            return bucket_order(bucket_of_row(row.sequence))
        if row.edge in self._broadcast_edges:
            return BROADCAST_ORDER
        return record_order(row.producer, row.sequence)

    def _process(self, run: RowSpool) -> Iterator[bytes]:
        head = self._keyed_head
        first = next(run.rows())
        if first.kind != GROUPS:
            with nullcontext() if head is None else head.without_key():
                for row in run.rows():
                    self.await_sinks()
                    self.feed(row)
                    self.run()
                    yield from self.drain()
            return
        assert head is not None
        assert self.task.gate is not None
        self.task.gate.num_buffers_in += len(run)
        self.task.gate.num_bytes_in += run.bytes
        for step in head.process(run, self._input_of_edge):
            self.await_sinks()
            self.act(step)
            self.run_timers()
            yield from self.drain()

    # -- the end ------------------------------------------------------------------------------------

    def end(self) -> None:
        """All input has been read: time ends, and operators emit what is left."""
        task = self.task
        if task.source is None:
            self.act(lambda: task.head.process_watermark(MAX_WATERMARK))
        self.act(task.end_of_data)

    def report(self) -> Iterator[bytes]:
        """Reports the outcome, once nothing more can fail."""
        task = self.descriptor.task
        report = BatchReport(
            task.vertex_id,
            task.subtask,
            self._parts,
            accumulators=Wiring.accumulators([self.task]).get((task.vertex_id, task.subtask), {}),
            metrics=self.task.metrics(),
            committables={
                chained.descriptor.operator_id: list(chained.operator.prepared)
                for chained in self.task.chain
                if isinstance(chained.operator, SinkOperator) and chained.operator.prepared
            },
            client_payloads=self._take_payloads(),
        )
        errors = self.close()
        if errors:
            raise StageTaskError([self.failed(errors[0])]) from errors[0]
        taken = () if self.printed is None else self.printed.take()
        report = replace(
            report,
            printed=tuple(
                (stream, "".join(f"{line}\n" for line in lines)) for stream, lines in taken if stream != LOG_STREAM
            ),
            logged=tuple(line for stream, lines in taken if stream == LOG_STREAM for line in lines),
        )
        yield from self.report_row([report], REPORT_ORDER)

    def send_to_client(self, task: Task, channel: str, payload: Any) -> None:
        """Keeps a payload for the client."""
        super().send_to_client(task, channel, payload)
        self._payload_bytes += len(payload)

    def _take_payloads(self) -> tuple[tuple[str, bytes], ...]:
        """What the client is to get; printed lines come another way."""
        self._payload_bytes = 0
        taken, self.messages[:] = list(self.messages), []
        return tuple(
            (message.channel, message.payload) for message in taken if isinstance(message, messages.ClientPayload)
        )

    def _report_payloads(self) -> Iterator[bytes]:
        """Sends on what there is for the client, so that it need not be held here until the end."""
        task = self.descriptor.task
        report = BatchReport(task.vertex_id, task.subtask, self._parts, client_payloads=self._take_payloads())
        self._parts += 1
        return self.report_row([report], REPORT_ORDER)

    # -- output -------------------------------------------------------------------------------------

    def sends(self, output: int, channel: int, event: ControlEvent) -> bool:
        """Events are not sent: a consumer detects the end of its input by itself."""
        return False

    def row(self, kind: int, output: int, channel: int, payload: bytes) -> Iterator[bytes]:
        """A row for one consumer, behind a number that encodes its order."""
        descriptor, target = self.descriptor, self.descriptor.task.outputs[output]
        sequence, producer = self.next_sequence(output, channel), descriptor.task.subtask
        if isinstance(target.partitioner, BroadcastPartitioner):
            order = BROADCAST_ORDER
        else:
            order = record_order(producer, sequence)
        yield pack_number(descriptor.output_offsets[output] + target.channels[channel].consumer, order)
        yield pack_row(kind, descriptor.output_edges[output], producer, sequence, payload)

    def take_rows(self) -> Iterator[bytes]:
        """Takes the rows that are ready, those of keyed outputs too."""
        for output in self.task.outputs:
            partition: Any = output.partition
            if isinstance(partition, BucketedPartition):
                yield from partition.take()
        yield from super().take_rows()
        if self._payload_bytes > _MAX_PAYLOAD_BYTES:
            yield from self._report_payloads()
