"""Epoch task: reads the available input, takes its snapshot, and reports both.

An epoch of a job is one run through its stages. What a slot gets as mails comes with the command, what a slot sends as
it goes is in the report. No barriers travel: when a task has read all its rows, it has all the input of the epoch.
"""

from __future__ import annotations

import pickle
import socket
import time
import uuid
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from firesteel.common.errors import FiresteelError
from firesteel.config import pipeline_options
from firesteel.execution.stages.errors import StageTaskError, TaskStateLostError
from firesteel.execution.stages.exchange_rows import EVENTS, REPORT, ExchangeRow, pack_row, unpack_row
from firesteel.execution.stages.stage_task import RowFile, StageTask
from firesteel.execution.stages.task_cache import TaskCache
from firesteel.execution.stages.task_commands import EpochCommand, EpochReport
from firesteel.process import fault_points
from firesteel.runtime.model import messages
from firesteel.runtime.model.elements import (
    MAX_WATERMARK,
    MIN_TIMESTAMP,
    CheckpointBarrier,
    ControlEvent,
    EndOfData,
    EndOfPartition,
    Watermark,
    WatermarkStatus,
)
from firesteel.runtime.network.gate import InputChannel
from firesteel.runtime.operators.deferring import DeferringOperator
from firesteel.runtime.operators.sink import SinkOperator
from firesteel.runtime.operators.source import SourceOperator
from firesteel.runtime.operators.timestamps import TimestampsAndWatermarksOperator
from firesteel.runtime.slot.mailbox import Clock
from firesteel.runtime.task.slot_snapshots import SlotSnapshots

__all__ = ["EpochBegan", "EpochTask", "TaskCache", "mixed_runs", "run_epoch_task"]

READER_TIMEOUT_S = 0.02
"""How long a source that has read nothing yet waits for a reader that expects records in a moment."""


_ANNOUNCEMENT = 0
"""The place of a producer's announcement among its rows."""


@dataclass(frozen=True, slots=True)
class EpochBegan(ControlEvent):
    """The first event of a producer in an epoch; ``run`` is another one whenever the producer is run again."""

    epoch: int
    run: str


def run_epoch_task(command: EpochCommand, rows: Iterable[bytes], cache: TaskCache) -> Iterator[bytes]:
    """Runs one task for one epoch: from rows to number, row, number, row, …

    A task that is not in the cache in the version of the command is loaded. A command without a TriggerCheckpoint is
    for a task that has finished, or finishes with its messages: that one is not loaded any more.
    """
    task, reloaded = _find(command, cache)
    task.snapshots.use_stores()
    try:
        with cache.capture() as printed:
            task.printed = printed
            fault_points.reach("epoch.begin")
            yield from task.run_epoch(command, rows, reloaded=reloaded)
            task.printed = None
        cache.put(command, task)
    except BaseException:
        # also where Spark stops reading: what this epoch has left behind is of no use
        task.close()
        raise
    fault_points.reach("epoch.end")


def _find(command: EpochCommand, cache: TaskCache) -> tuple[EpochTask, bool]:
    found = cache.take(command)
    if isinstance(found, EpochTask):
        return found, False
    task = EpochTask(command, cache.clock, cache.snapshots(command))
    if not command.is_restorable and _trigger_of(command) is not None:
        error = TaskStateLostError(
            f"The state of the task after epoch {command.version} was only in a process that has exited.",
            hint="The job restarts from its last completed checkpoint. This can happen while checkpoints fail.",
        )
        task.close()
        raise StageTaskError([task.failed(error)]) from error
    return task, True


def _trigger_of(command: EpochCommand) -> messages.TriggerCheckpoint | None:
    return next((m for m in command.messages if isinstance(m, messages.TriggerCheckpoint)), None)


def mixed_runs(reports: Iterable[EpochReport]) -> str | None:
    """What is wrong with an epoch in which a task was run twice and its consumers have read different runs.

    Spark runs a stage again whose output is lost; a source then reads on from where the epoch began, but need not
    read the same records. Such an epoch must not be completed.
    """
    reports = list(reports)
    runs = {(edge, report.subtask): report.run for report in reports for edge in report.output_edges}
    for report in reports:
        for (edge, producer), run in report.read_runs.items():
            if runs.get((edge, producer)) != run:
                return (
                    f"Subtask {report.subtask} of vertex {report.vertex_id} has read the output of a run of its "
                    f"producer (subtask {producer}, edge {edge}) that is not the one that counts."
                )
    return None


class EpochTask(StageTask):
    """A task that goes through one epoch after the other. What it sent last is sent again when an epoch begins."""

    def __init__(self, command: EpochCommand, clock: Clock, snapshots: SlotSnapshots):
        super().__init__(command.descriptor, clock=clock, snapshots=snapshots)
        outputs = len(self.task.outputs)
        self._watermarks = [MIN_TIMESTAMP] * outputs
        self._idle = [False] * outputs
        self._said_end = [False] * outputs
        self._early: RowFile | None = None
        self._has_all_splits = False
        self._loaded = False
        self._interval = command.descriptor.task.configuration.get(pipeline_options.AUTO_WATERMARK_INTERVAL).to_millis()
        self._event_time = [
            chained.operator
            for chained in self.task.chain
            if isinstance(chained.operator, (SourceOperator, TimestampsAndWatermarksOperator))
        ]
        self._begin("")

    def _begin(self, run: str) -> None:
        self.run_id = run
        """Names the last run, of which the task's state is."""
        self._read_runs: dict[tuple[int, int], str] = {}
        self._next_sequence: dict[tuple[int, int], int] = {}
        self._ran_dry = True
        self._at_records: tuple[float, float] | None = None
        self._next_periodic = self.clock.monotonic_ms() + self._interval
        self.restart_rows(_ANNOUNCEMENT + 1)

    def close(self) -> list[BaseException]:
        """Closes what was opened; returns what went wrong doing so."""
        if self._early is not None:
            self._early.close()
        return super().close()

    # -- one epoch ----------------------------------------------------------------------------------

    def run_epoch(self, command: EpochCommand, rows: Iterable[bytes], *, reloaded: bool) -> Iterator[bytes]:
        """One epoch, from the announcement to the report."""
        task, trigger = self.task, _trigger_of(command)
        self._begin(uuid.uuid4().hex[:16])
        before = task.records_in
        if reloaded and trigger is None:
            self._is_gone(command)
        elif reloaded:
            self._load(command)
        for message in command.messages:
            self._deliver(message)
        if reloaded and not task.finished:
            rows = yield from self._hear_producers(rows)
            self.put_aside()
        yield from self._announce(command.epoch)
        if task.source is not None and not task.finished:
            yield from self._read(command, trigger)
        yield from self._process(rows)
        if not task.finished:
            self._end_reading()
            if trigger is not None:
                if command.is_last:
                    self._finish_sinks(trigger.checkpoint_id)
                yield from self.drain()
                fault_points.reach("epoch.processed")
                self._take_snapshot(trigger)
        yield from self.drain(flush=True)
        yield from self.report_row(self._report(command, task.records_in - before, reloaded))

    def _announce(self, epoch: int) -> Iterator[bytes]:
        """Repeats to every consumer what this task has sent before: a consumer may have been reloaded."""
        for index in range(len(self.task.outputs)):
            events: list[ControlEvent] = [EpochBegan(epoch, self.run_id)]
            # also that it is not idle: it may have been before it was reloaded
            status = WatermarkStatus(self._idle[index])
            if self._watermarks[index] > MIN_TIMESTAMP:
                # the watermark of an idle input is ignored
                watermark = Watermark(self._watermarks[index])
                events += [watermark, status] if status.idle else [status, watermark]
            else:
                events.append(status)
            if self._said_end[index]:
                events.append(EndOfData())
            edge, subtask = self.descriptor.output_edges[index], self.descriptor.task.subtask
            row = pack_row(EVENTS, edge, subtask, _ANNOUNCEMENT, pickle.dumps(events, 5))
            for number in self.numbers[index]:
                yield number
                yield row

    def _load(self, command: EpochCommand) -> None:
        for message in command.messages:
            if isinstance(message, messages.Deploy):
                token = message.storage_token
                self.act(lambda token=token: self.snapshots.check_storage(token))  # type: ignore[misc]
        self.open(command.restore)
        self._loaded = True
        self.task.snapshots.last_id = command.version or 0
        for operator in self._event_time:
            self.act(operator.resume_event_time)
        # what an unaligned checkpoint found on its way is before everything that comes
        self.run()

    def _is_gone(self, command: EpochCommand) -> None:
        """The task has finished in a process that is no more: all that is left of it is what consumers must know."""
        self.task.finished = True
        for index in range(len(self.task.outputs)):
            self._watermarks[index] = MAX_WATERMARK
            self._said_end[index] = True
        if any(isinstance(message, messages.NotifyCheckpointComplete) for message in command.messages):
            self._tell_finished()

    # -- messages of the JobMaster --------------------------------------------------------------------

    def _deliver(self, message: messages.JobMasterMessage) -> None:
        task = self.task
        if isinstance(message, messages.NotifyCheckpointComplete):
            self._complete(message.checkpoint_id)
        elif task.finished:
            return
        elif isinstance(message, messages.NotifyCheckpointAborted):
            self.act(lambda: task.checkpoints.notify_aborted(message.checkpoint_id))
        elif isinstance(message, messages.AddSplits):
            assert task.source is not None
            source, splits = task.source, message.splits
            self.act(lambda: source.add_splits(splits))
        elif isinstance(message, messages.NoMoreSplits):
            assert task.source is not None
            # sent with every epoch, for a task that was reloaded
            if not self._has_all_splits:
                self._has_all_splits = True
                self.act(task.source.no_more_splits)
        elif isinstance(message, messages.ReaderEvent):
            assert task.source is not None
            source, event = task.source, message.event
            self.act(lambda: source.handle_source_event(event))
        elif isinstance(message, messages.AlignWatermark):
            assert task.source is not None
            source, max_allowed = task.source, message.max_allowed
            self.act(lambda: source.align(max_allowed))

    def _complete(self, checkpoint_id: int) -> None:
        """A checkpoint is complete; if it was the last one of the task, that has finished."""
        self.snapshots.confirm(checkpoint_id)
        task = self.task
        was_finished = task.finished
        if not was_finished:
            self.act(lambda: task.checkpoints.notify_complete(checkpoint_id))
        if task.finished and not was_finished:
            errors = task.close()
            if errors:
                raise StageTaskError([self.failed(errors[0])]) from errors[0]
            self._tell_finished()

    def _tell_finished(self) -> None:
        task = self.descriptor.task
        self.messages.append(messages.TaskStateChanged(task.attempt, task.vertex_id, task.subtask, "FINISHED"))

    # -- input --------------------------------------------------------------------------------------

    def _read(self, command: EpochCommand, trigger: messages.TriggerCheckpoint | None) -> Iterator[bytes]:
        """Lets a source read until its quota or its time is used up, or there is no more input."""
        task, source = self.task, self.task.source
        assert source is not None
        began = time.monotonic()
        patient_until, deadline = began + READER_TIMEOUT_S, began + command.budget_ms / 1000
        first = task.records_in
        stops = trigger is not None and trigger.options.stop is not None
        while not task.ended and not task.suspended:
            self.run_timers()
            left, now = first + command.quota - task.records_in, time.monotonic()
            if not source.ended:
                if not task.has_work(now):
                    ready = source.ready_at
                    if task.records_in > first or ready is None or ready > patient_until or stops:
                        break
                    time.sleep(max(ready - now, 0))
                    continue
                if left <= 0 or now >= deadline or stops:
                    self._ran_dry = False
                    break
            self.await_sinks()
            self.act(lambda: task.run_once(left))  # noqa: B023 - called at once
            self._emit_if_due()
            yield from self.drain()
        self._at_records = began, time.monotonic()

    def _hear_producers(self, rows: Iterable[bytes]) -> Generator[bytes, None, Iterable[bytes]]:
        """Reads until every producer has announced how far event time has come; returns the rows that are left.

        Else records of the first one would not be late that are late in a task that was not reloaded.
        """
        rows = iter(rows)
        while set(self._read_runs) != set(self.channels) and (packed := next(rows, None)) is not None:
            row = unpack_row(packed)
            if row.kind == REPORT:
                yield from self.pass_on(packed)
            elif row.sequence == _ANNOUNCEMENT:
                self._check_sequence(row)
                self.feed(row)
            else:
                if self._early is None:
                    self._early = RowFile()
                self._early.write(packed)
        self.run()
        return rows if self._early is None else chain(self._early.read(), rows)

    def _process(self, rows: Iterable[bytes]) -> Iterator[bytes]:
        began: float | None = None
        for packed in rows:
            row = unpack_row(packed)
            began = time.monotonic() if began is None else began
            if row.kind == REPORT:
                yield from self.pass_on(packed)
            elif not self.task.finished:
                self._check_sequence(row)
                self.feed(row)
                self.run()
                self._emit_if_due()
                yield from self.drain()
        if began is not None:
            self._at_records = began, time.monotonic()
        if not self.task.finished:
            self._check_producers()

    def _check_sequence(self, row: ExchangeRow) -> None:
        expected = self._next_sequence.get((row.edge, row.producer), 0)
        if row.sequence != expected:
            self._refuse(
                f"Row {row.sequence} of subtask {row.producer} came through edge {row.edge} when {expected} was next."
            )
        self._next_sequence[row.edge, row.producer] = expected + 1

    def _check_producers(self) -> None:
        missing = sorted(set(self.channels) - set(self._read_runs))
        if missing:
            edge, producer = missing[0]
            self._refuse(f"Nothing has come from subtask {producer} through edge {edge}.")

    def _refuse(self, problem: str) -> None:
        error = FiresteelError(problem, hint="The exchange has lost rows or mixed up their order: this is a bug.")
        raise StageTaskError([self.failed(error)]) from error

    def accepts(self, channel: InputChannel, event: ControlEvent) -> bool:
        """Whether an event is for the task itself; records events about the producer's run."""
        if isinstance(event, EpochBegan):
            place = next(place for place, own in self.channels.items() if own is channel)
            self._read_runs[place] = event.run
            return False
        return super().accepts(channel, event)

    def sends(self, output: int, channel: int, event: ControlEvent) -> bool:
        """Whether an event travels to a consumer; remembers what has to be repeated."""
        if isinstance(event, Watermark):
            self._watermarks[output] = event.timestamp
        elif isinstance(event, WatermarkStatus):
            self._idle[output] = event.idle
        elif isinstance(event, EndOfData):
            self._said_end[output] = True
        elif isinstance(event, EndOfPartition):
            return False
        return super().sends(output, channel, event)

    # -- event time and the snapshot ----------------------------------------------------------------

    def _emit_if_due(self) -> None:
        """Periodic watermarks, while records come."""
        if not self._event_time or self._interval <= 0 or self.task.ended:
            return
        now = self.clock.monotonic_ms()
        if now >= self._next_periodic:
            self._next_periodic = now + self._interval
            for operator in self._event_time:
                self.act(lambda operator=operator: operator.emit_periodic(judge_idleness=False))  # type: ignore[misc]

    def _end_reading(self) -> None:
        """All input of the epoch has been processed: event time goes as far as it can, and timers fire."""
        self._await_results()
        source = self.task.source
        # one that has records it may not read is not idle
        has_all = source is None or (self._ran_dry and not source.is_ahead)
        if source is not None and not has_all:
            source.restart_idle_timeouts()
        if not self.task.ended:
            for operator in self._event_time:
                self.act(lambda operator=operator: operator.emit_periodic(judge_idleness=has_all))  # type: ignore[misc]
            if source is not None:
                source.report_alignment()
        self.run_timers()
        self._await_results()

    def _await_results(self) -> None:
        """Waits for calls of async functions: what is read in an epoch is in its results."""
        for chained in self.task.chain:
            if isinstance(chained.operator, DeferringOperator):
                self.task.at_work = chained
                self.act(chained.operator.drain)
        self.task.at_work = None

    def _finish_sinks(self, checkpoint_id: int) -> None:
        """No record follows in this run: what sinks hold must not stay invisible until the next one."""
        if not self.task.ended:
            for chained in self.task.chain:
                self.task.at_work = chained
                if isinstance(chained.operator, SinkOperator):
                    self.act(chained.operator.finish)
                    continue
                # a sink that has finished takes nothing any more
                self.act(partial(chained.prepare_snapshot_pre_barrier, checkpoint_id))
                if isinstance(chained.operator, DeferringOperator):
                    self.act(chained.operator.drain)
            self.task.at_work = None

    def _take_snapshot(self, trigger: messages.TriggerCheckpoint) -> None:
        # nothing is in flight, so there is nothing to be aligned
        aligned = replace(trigger.options, unaligned=False, alignment_timeout=None)
        barrier = CheckpointBarrier(trigger.checkpoint_id, trigger.timestamp, aligned)
        task = self.task
        if task.source is not None:
            self.act(lambda: task.checkpoints.trigger(barrier))
        else:
            task.running = True
            try:
                self.act(lambda: task.checkpoints.take_snapshot(barrier, None, 0))
            finally:
                task.running = False

    # -- reports ------------------------------------------------------------------------------------

    def _report(self, command: EpochCommand, records: int, reloaded: bool) -> list[messages.SlotMessage | EpochReport]:
        self.told_to_client()
        descriptor, task, source = self.descriptor.task, self.task, self.task.source
        told: list[messages.SlotMessage | EpochReport] = [*self.messages]
        self.messages.clear()
        if self._loaded:
            told.append(self.metric_report())
        report = EpochReport(
            descriptor.vertex_id,
            descriptor.subtask,
            command.epoch,
            records=records,
            reloaded=reloaded,
            ended=task.ended or task.finished,
            ran_dry=self._ran_dry,
            run=self.run_id,
            read_runs=self._read_runs,
            output_edges=self.descriptor.output_edges,
            host=socket.gethostname(),
            at_records=self._at_records if records else None,
        )
        if not report.ended:
            report = replace(report, next_timer=self._next_timer())
            if source is not None:
                with suppress(Exception):  # a reader may raise anything, and this is no reason to fail
                    report = replace(report, pending_records=source.pending_records())
                report = replace(report, ready_in_ms=_ready_in_ms(source))
                if report.pending_records:
                    # it only waits for what it has asked for
                    report = replace(report, ran_dry=False)
        told.append(report)
        return told

    def _next_timer(self) -> int | None:
        """When a timer is due, or a source is idle if nothing comes; by the wall clock as it is now."""
        idle = [operator.idle_at for operator in self._event_time]
        ahead = self.clock.now_ms() - self.clock.monotonic_ms()
        times = [self.timers.next_at(), *(at + ahead for at in idle if at is not None)]
        return min((at for at in times if at is not None), default=None)


def _ready_in_ms(source: SourceOperator) -> int | None:
    if source.is_ahead:
        return source.alignment_interval
    ready = source.ready_at
    return None if ready is None else max(round((ready - time.monotonic()) * 1000), 0)
