"""State larger than the slots' memory: every record reads and replaces a large value of one of many keys."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable
from typing import Any

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.scenarios.controlled import KeyTraffic, NotingSink
from benchmarks.scenarios.job import PAIR, Scene
from benchmarks.scenarios.payload import SCRAMBLE, Payload
from firesteel.common import Types
from firesteel.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from firesteel.datastream.state import ValueState, ValueStateDescriptor

__all__ = ["run"]


class Replace(KeyedProcessFunction):
    """Reads a key's value and writes one that counts one more.

    ``memory_limit`` is what the process may allocate (RLIMIT_DATA: heap and private memory, without mapped files).
    """

    def __init__(self, size: int, memory_limit: int | None) -> None:
        self._size = size
        self._memory_limit = memory_limit

    def open(self, runtime_context: RuntimeContext) -> None:
        """Limits the process, and opens the state."""
        if self._memory_limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (self._memory_limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        self._payload = Payload(self._size)
        self._value: ValueState[str] = runtime_context.get_state(ValueStateDescriptor("value", Types.STRING()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[tuple[int, int]]:
        """Replaces the key's value."""
        old = self._value.value()
        count = 1 if old is None else self._payload.count(old) + 1
        self._value.update(self._payload.make(value[1], count))
        yield value[0], count


def run(run: Run) -> dict[str, Any]:
    """Inserts every key once, then updates them in scrambled order."""
    params = run.params
    keys = params["keys"]
    scene = Scene(run, KeyTraffic(keys, keys))
    limit = params.get("limit_mb")

    def build(stream: DataStream, sink: NotingSink) -> None:
        function = Replace(params["size"], None if limit is None else limit << 20)
        pairs = stream.map(lambda x: (x * SCRAMBLE % keys, x), PAIR)
        pairs.key_by(lambda pair: pair[0], Types.LONG()).process(function, PAIR).sink_to(sink)

    options = {"state.backend.type": params["backend"], **params.get("options", {})}
    job = scene.start(build, options, limit=scene.traffic.fill(CORES))
    try:
        job.wait(lambda: job.outputs.records() > 0, "the first record")
        begin = time.monotonic()
        job.wait(lambda: job.outputs.records() >= keys, f"{keys} keys", params["patience_s"])
        insert_rate = keys / (time.monotonic() - begin)
        job.control.lift_limit()
        job.watch(params["warmup_s"])
        return {"keys": keys, "insert_records_per_s": insert_rate, **job.throughput(params["seconds"])}
    finally:
        job.cancel()
