"""A task: input gate → fused operator chain → result partitions, run in steps by its slot's mailbox."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from firesteel.runtime.chain import ChainedOperator, SecondInput
from firesteel.runtime.codegen import Loop, compile_loop
from firesteel.runtime.deployment import OutputDescriptor, TaskDeploymentDescriptor
from firesteel.runtime.elements import Batch, ControlEvent, EndOfData, Watermark, WatermarkStatus
from firesteel.runtime.network.gate import InputGate
from firesteel.runtime.network.partition import ResultPartition
from firesteel.runtime.operators.base import StreamOperator
from firesteel.runtime.operators.factory import create_operator
from firesteel.runtime.operators.sink import SinkOperator
from firesteel.runtime.operators.source import SourceOperator
from firesteel.runtime.output import TaskOutput
from firesteel.runtime.time.watermarks import WatermarkValve

__all__ = ["Task", "TaskServices"]


class TaskServices(Protocol):
    """What a slot gives to its tasks."""

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        ...

    def schedule(self, task: Task, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back while the task is not running, once the wall clock reaches the timestamp."""
        ...

    def wait_for_room(self, task: Task) -> None:
        """Runs the other tasks and the network until the task's outputs have room."""
        ...

    def request_split(self, task: Task, operator_id: str) -> None:
        """Asks a source's enumerator for a split."""
        ...

    def report_watermark(self, task: Task, watermark: int) -> None:
        """Tells a source's alignment group how far it has come."""
        ...

    def send_to_client(self, task: Task, channel: str, payload: Any) -> None:
        """Hands a payload to the client."""
        ...

    def client_has_room(self, task: Task, channel: str) -> bool:
        """Whether the client has taken most of what it was sent."""
        ...


class Task:
    """One subtask of one vertex. Is the ChainServices of its chain."""

    def __init__(
        self,
        descriptor: TaskDeploymentDescriptor,
        gate: InputGate | None,
        partitions: Sequence[tuple[OutputDescriptor, ResultPartition]],
        services: TaskServices,
        watermark_interval_ms: int,
    ):
        self.descriptor = descriptor
        self.gate = gate
        self.running = False
        """True while a step of this task is on the stack: it must not be entered again."""
        self.finished = False
        self.at_work: ChainedOperator | None = None
        """The operator being opened, finished or closed: where an error outside a loop belongs."""
        self.records_in = 0
        self.busy_s = 0.0
        self._services = services
        self._opened: list[ChainedOperator] = []
        self.outputs = [TaskOutput(output, partition, self.make_room) for output, partition in partitions]
        self.chain = [
            ChainedOperator(operator, create_operator(operator.spec, watermark_interval_ms), descriptor, self)
            for operator in descriptor.operators
        ]
        self._connect()
        self.head = self.chain[0]
        self.source = self.head.operator if isinstance(self.head.operator, SourceOperator) else None
        self._sinks = [c.operator for c in self.chain if isinstance(c.operator, SinkOperator)]
        # one entry per channel of the gate: which input of the head it belongs to
        self._input_of = [entry.input_index for entry in descriptor.inputs for _ in entry.channels]
        self._valve = WatermarkValve(len(self._input_of))
        self._open_channels = len(self._input_of)
        self._loops: dict[tuple[int, bool], Loop] = {}

    def _connect(self) -> None:
        by_node = {chained.descriptor.node_id: chained for chained in self.chain}
        subtask, parallelism = self.descriptor.subtask, self.descriptor.parallelism
        for chained in self.chain:
            if chained.descriptor.parent is not None:
                by_node[chained.descriptor.parent].add_consumer(chained.descriptor.parent_tag, chained)
            operator = chained.operator
            if isinstance(operator, SourceOperator):
                services, operator_id = self._services, chained.descriptor.operator_id
                operator.connect(
                    subtask,
                    parallelism,
                    partial(services.request_split, self, operator_id),
                    partial(services.report_watermark, self),
                )
            elif isinstance(operator, SinkOperator):
                self._connect_sink(operator, chained.descriptor.operator_id)
        for output in self.outputs:
            by_node[output.descriptor.node_id].add_consumer(output.tag, output)

    def _connect_sink(self, operator: SinkOperator, operator_id: str) -> None:
        # two sinks may use the same channel, so the client's streams are told apart by operator
        services = self._services
        operator.connect(
            self.descriptor.subtask,
            self.descriptor.parallelism,
            lambda channel, payload: services.send_to_client(self, f"{channel}#{operator_id}", payload),
            lambda channel: services.client_has_room(self, f"{channel}#{operator_id}"),
        )

    # -- life cycle ---------------------------------------------------------------------------------

    def open(self) -> None:
        """Opens the operators, the last one first: an operator may emit as soon as it is open."""
        for chained in reversed(self.chain):
            self._opened.append(chained)
            self.at_work = chained
            chained.open()
        self.at_work = None

    def close(self) -> list[BaseException]:
        """Closes what was opened, the head first; returns what went wrong doing so."""
        errors: list[BaseException] = []
        while self._opened:
            self.at_work = self._opened.pop()
            try:
                self.at_work.close()
            except BaseException as error:  # noqa: BLE001 - every operator gets its chance to close
                errors.append(error)
        return errors

    # -- what the mailbox asks ----------------------------------------------------------------------

    def has_room(self) -> bool:
        """Whether every output and sink can take another batch."""
        return all(output.partition.has_room for output in self.outputs) and all(
            sink.has_room() for sink in self._sinks
        )

    def has_work(self, now: float) -> bool:
        """Whether there is input, or a source with data."""
        if self.source is not None:
            return self.source.ended or self.source.has_data(now)
        assert self.gate is not None
        return self.gate.has_input

    def run_once(self) -> None:
        """Processes one batch or control event."""
        self.running = True
        started = time.perf_counter()
        try:
            if self.source is not None:
                if self.source.ended:
                    self._finish()
                else:
                    self.source.poll()
                    self.records_in = self.source.records
            else:
                self._process_input()
        finally:
            self.running = False
            self.busy_s += time.perf_counter() - started

    def _process_input(self) -> None:
        assert self.gate is not None
        polled = self.gate.poll()
        if polled is None:
            return
        channel, element = polled
        if isinstance(element, Batch):
            values, timestamps = element.values, element.timestamps
            self.records_in += len(values)
            loop = self._loops.get((self._input_of[channel], timestamps is not None))
            if loop is None:
                self._first_batch(self._input_of[channel], values, timestamps)
            else:
                loop(values, timestamps)
            for output in self.outputs:
                output.partition.after_batch()
        else:
            self._process_event(channel, element)

    def _first_batch(self, index: int, values: Sequence[Any], timestamps: Sequence[int] | None) -> None:
        """Compiles the loop; the first batch goes through one that also checks declared types."""
        target: Any = self.head if index == 0 else SecondInput(self.head)
        name, with_timestamps = self.descriptor.name, timestamps is not None
        compile_loop(name, [target], with_timestamps, checked=True)(values, timestamps)
        self._loops[index, with_timestamps] = compile_loop(name, [target], with_timestamps)

    def _process_event(self, channel: int, event: ControlEvent) -> None:
        if isinstance(event, Watermark):
            self._advance(self._valve.advance(channel, event.timestamp))
        elif isinstance(event, WatermarkStatus):
            idle_changed, watermark = self._valve.set_idle(channel, event.idle)
            self._advance(watermark)
            if idle_changed:
                self.head.process_idle(self._valve.idle)
        elif isinstance(event, EndOfData):
            self._open_channels -= 1
            if self._open_channels == 0:
                self._finish()

    def _advance(self, watermark: int | None) -> None:
        if watermark is not None:
            self.head.process_watermark(watermark)

    def _finish(self) -> None:
        """All input has been processed: operators emit what is left, in order, then the outputs end."""
        for chained in self.chain:
            if isinstance(chained.operator, StreamOperator):
                self.at_work = chained
                chained.operator.finish()
        self.at_work = None
        for output in self.outputs:
            output.broadcast_event(EndOfData())
        self.finished = True

    # -- ChainServices ------------------------------------------------------------------------------

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return self._services.processing_time()

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back in the mailbox once the wall clock reaches the timestamp."""
        self._services.schedule(self, timestamp, callback)

    def make_room(self) -> None:
        """Closes full buffers; waits where that leaves an output full."""
        for output in self.outputs:
            output.partition.after_batch()
        if not self.has_room():
            self._services.wait_for_room(self)

    # -- reports ------------------------------------------------------------------------------------

    @property
    def watermark(self) -> int:
        """The event time the task has reached."""
        return self._valve.watermark if self.source is None else self.source.watermark

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Task metrics under '', operator metrics under their operator id."""
        partitions = [output.partition for output in self.outputs]
        records_out = sum(partition.num_records_out for partition in partitions)
        reports: dict[str, dict[str, Any]] = {
            "": {
                "numRecordsIn": self.records_in,
                "numRecordsOut": records_out + sum(sink.records for sink in self._sinks),
                "numBytesOut": sum(partition.num_bytes_out for partition in partitions),
                "numBuffersOut": sum(partition.num_buffers_out for partition in partitions),
                "busyTimeMs": int(self.busy_s * 1000),
                "currentInputWatermark": self.watermark,
            }
        }
        if self.gate is not None:
            reports[""]["numBytesIn"] = self.gate.num_bytes_in
            reports[""]["numBuffersIn"] = self.gate.num_buffers_in
        for chained in self.chain:
            snapshot = chained.metrics.snapshot()
            if snapshot:
                reports[chained.descriptor.operator_id] = snapshot
        return reports
