"""keyed_sum in PyFlink's BATCH mode. It reads a sequence instead of Parquet, which is easier."""

from __future__ import annotations

import time
from typing import Any

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import RuntimeExecutionMode
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

from benchmarks.cases import KEYS
from benchmarks.runner import Run
from benchmarks.systems.pyflink import PAIR, THROUGHPUT, KeyedSum, _discard, _environment

__all__ = ["run"]


def run(run: Run) -> dict[str, Any]:
    """Two sizes: what the larger one takes longer is the cost of its records, without that of starting."""
    records, few = run.params["records"], run.params["few"]
    _execute(run, few)  # the first job of a process also loads everything
    short, long = _execute(run, few), _execute(run, records)
    return {"records": records, "seconds": long, "records_per_s": (records - few) / max(long - short, 0.001)}


def _execute(run: Run, records: int) -> float:
    env = _environment(run, **THROUGHPUT)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    source = NumberSequenceSource(0, records - 1)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    stream = stream.map(lambda x: (x % KEYS, x), PAIR)
    _discard(stream.key_by(lambda pair: pair[0], Types.LONG()).process(KeyedSum(run.board), PAIR))
    begin = time.monotonic()
    env.execute("bench")
    return time.monotonic() - begin
