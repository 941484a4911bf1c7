"""The same with PyFlink's RocksDB backend, in thread mode."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueState, ValueStateDescriptor

from benchmarks.board import Board
from benchmarks.cases import CORES, END
from benchmarks.runner import Run
from benchmarks.scenarios.payload import SCRAMBLE, Payload
from benchmarks.systems.pyflink import PAIR, THROUGHPUT, PyFlinkJob, _discard, _environment, _numbers

__all__ = ["run"]

HALF = END // CORES


class Replace(KeyedProcessFunction):
    """Reads a key's value and writes one that counts one more; it also counts what goes through."""

    def __init__(self, size: int, board: Board) -> None:
        self._size = size
        self._board = board

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the state and the counter."""
        self._payload = Payload(self._size)
        self._value: ValueState = runtime_context.get_state(ValueStateDescriptor("value", Types.STRING()))
        self._slots = self._board.writer()
        self._count = 0

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[int, int]]:
        """Replaces the key's value."""
        old = self._value.value()
        count = 1 if old is None else self._payload.count(old) + 1
        self._value.update(self._payload.make(value[1], count))
        self._count += 1
        if not self._count & 63:
            self._slots[0] = self._count
        yield value[0], count


def run(run: Run) -> dict[str, Any]:
    """Inserts every key once, then updates them.

    It gets fewer keys than the other systems, which is easier: five million would take many minutes to insert.
    """
    params = run.params
    keys, board = params["keys"], run.board
    share = keys // CORES

    def pair(x: int) -> tuple[int, int]:
        # each split of the source goes round its own share of the keys
        number = x % HALF % share + x // HALF * share
        return number * SCRAMBLE % keys, number

    env = _environment(run, **THROUGHPUT)
    stream = _numbers(env).map(pair, PAIR)
    _discard(stream.key_by(lambda pair: pair[0], Types.LONG()).process(Replace(params["size"], board), PAIR))
    job = PyFlinkJob(env, board)
    try:
        _wait_for(job, 1, params["patience_s"])
        begin = time.monotonic()
        _wait_for(job, keys, params["patience_s"])
        insert_rate = keys / (time.monotonic() - begin)
        time.sleep(params["warmup_s"])
        records, begin = job.progress()[0], time.monotonic()
        time.sleep(params["seconds"])
        rate = (job.progress()[0] - records) / (time.monotonic() - begin)
        return {"keys": keys, "insert_records_per_s": insert_rate, "records_per_s": rate}
    finally:
        job.stop()


def _wait_for(job: PyFlinkJob, records: int, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while job.progress()[0] < records:
        if time.monotonic() > deadline:
            raise TimeoutError(f"fewer than {records} records in {patience_s:.0f} s")
        time.sleep(0.05)
