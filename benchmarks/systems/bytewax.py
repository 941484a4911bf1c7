"""The cases on Bytewax, with one worker or with two processes that exchange by key."""

from __future__ import annotations

import multiprocessing
import socket
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow, Stream
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import windowing
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main, run_main

from benchmarks.board import Board, bucket_of
from benchmarks.cases import KEYS, RATE, RECORDS_PER_EVENT_SECOND
from benchmarks.runner import Run

BATCH = 1_000
EPOCH = datetime(2025, 1, 1, tzinfo=timezone.utc)
MILLISECOND = timedelta(milliseconds=1)
RECORDS_PER_MS = RECORDS_PER_EVENT_SECOND // 1000


class Numbers(StatelessSourcePartition[int]):
    """Every n-th number, a batch at a time."""

    def __init__(self, first: int, step: int) -> None:
        self._next = first
        self._step = step

    def next_batch(self) -> list[int]:
        """The next batch."""
        start = self._next
        self._next = start + BATCH * self._step
        return list(range(start, self._next, self._step))


class NumberSource(DynamicSource[int]):
    """The number sequence, interleaved between workers."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Numbers:
        """One part per worker."""
        return Numbers(worker_index, worker_count)


class Ticks(StatelessSourcePartition[tuple[int, int]]):
    """Records (number, creation time in nanoseconds) at a fixed rate."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._count = 0

    def next_batch(self) -> list[tuple[int, int]]:
        """The records that are due."""
        due = int((time.monotonic() - self._start) * RATE)
        first, self._count = self._count, due
        now = time.monotonic_ns()
        return [(number, now) for number in range(first, due)]

    def next_awake(self) -> datetime:
        """A millisecond from now: Bytewax would otherwise spin."""
        return datetime.now(timezone.utc) + MILLISECOND


class TickSource(DynamicSource[tuple[int, int]]):
    """Records at a fixed rate."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Ticks:
        """One worker makes all of them."""
        return Ticks()


class Discard(StatelessSinkPartition[Any]):
    """Counts what arrives and drops it."""

    def __init__(self, board: Board, weight: float) -> None:
        self._slots = board.writer()
        self._count = 0
        self._weight = weight

    def write_batch(self, items: list[Any]) -> None:
        """Counts a batch."""
        self._count += len(items)
        self._slots[0] = int(self._count * self._weight)


class DiscardSink(DynamicSink[Any]):
    """Drops everything; each output stands for `weight` input records."""

    def __init__(self, board: Board, weight: float = 1.0) -> None:
        self._board = board
        self._weight = weight

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Discard:
        """One part per worker."""
        return Discard(self._board, self._weight)


def _free_addresses(count: int) -> list[str]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    finally:
        for each in sockets:
            each.close()


class BytewaxJob:
    """The flow's processes; the driver only reads the counters."""

    stepwise = False

    def __init__(self, run: Run, flow: Dataflow) -> None:
        self._board = run.board
        context = multiprocessing.get_context("fork")
        if run.system == "bytewax-2p":
            addresses = _free_addresses(2)
            bodies: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
                (cluster_main, (flow, addresses, index)) for index in range(2)
            ]
        else:
            bodies = [(run_main, (flow,))]
        self._processes = [context.Process(target=body, args=args, daemon=True) for body, args in bodies]
        for process in self._processes:
            process.start()

    def progress(self) -> tuple[int, dict[int, int]]:
        """Records counted so far."""
        for process in self._processes:
            if not process.is_alive():
                raise RuntimeError(f"a Bytewax process ended with {process.exitcode}")
        return self._board.read()

    def stop(self) -> None:
        """Kills the processes: Bytewax ends an endless flow in no other way."""
        for process in self._processes:
            process.kill()
            process.join()


def stateless(run: Run) -> BytewaxJob:
    """Three Python lambdas."""
    flow = Dataflow("stateless")
    stream: Stream[int] = op.input("numbers", flow, NumberSource())
    stream = op.map("add", stream, lambda x: x + 1)
    stream = op.filter("thirds", stream, lambda x: x % 3 != 0)
    stream = op.map("double", stream, lambda x: x * 2)
    op.output("discard", stream, DiscardSink(run.board, weight=1.5))
    return BytewaxJob(run, flow)


def _add(total: int | None, value: int) -> tuple[int, int]:
    total = (total or 0) + value
    return total, total


def keyed_sum(run: Run) -> BytewaxJob:
    """Running sum over 10,000 keys."""
    flow = Dataflow("keyed_sum")
    stream = op.input("numbers", flow, NumberSource())
    pairs = op.map("pair", stream, lambda x: (str(x % KEYS), x))
    op.output("discard", op.stateful_map("sum", pairs, _add), DiscardSink(run.board))
    return BytewaxJob(run, flow)


def window(run: Run) -> BytewaxJob:
    """Sum per key in 1 s tumbling event-time windows."""
    flow = Dataflow("window")
    stream = op.input("numbers", flow, NumberSource())
    pairs = op.map("pair", stream, lambda x: (str(x % KEYS), x))
    # Bytewax lets the watermark run on with the wall clock: without a wait, records of a key that come more
    # slowly than their event time are late.
    clock = windowing.EventClock(
        lambda x: EPOCH + MILLISECOND * (x // RECORDS_PER_MS), wait_for_system_duration=timedelta(seconds=1)
    )
    windower = windowing.TumblingWindower(length=timedelta(seconds=1), align_to=EPOCH)
    sums = windowing.reduce_window("sum", pairs, clock, windower, lambda a, b: a + b)
    op.output("discard", sums.down, DiscardSink(run.board, weight=RECORDS_PER_EVENT_SECOND / KEYS))
    return BytewaxJob(run, flow)


class TimedSum:
    """Running count per key; notes each record's age at the end."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._slots: memoryview | None = None

    def __call__(self, total: int | None, created: int) -> tuple[int, int]:
        """Counts one record of a key."""
        slots = self._slots
        if slots is None:
            slots = self._slots = self._board.writer()
        total = (total or 0) + 1
        slots[0] += 1
        slots[1 + bucket_of((time.monotonic_ns() - created) / 1000)] += 1
        return total, total


def latency(run: Run) -> BytewaxJob:
    """Running count per key at a fixed rate."""
    flow = Dataflow("latency")
    stream = op.input("ticks", flow, TickSource())
    pairs = op.map("pair", stream, lambda tick: (str(tick[0] % KEYS), tick[1]))
    op.output("discard", op.stateful_map("sum", pairs, TimedSum(run.board)), DiscardSink(run.board, weight=0.0))
    return BytewaxJob(run, flow)
