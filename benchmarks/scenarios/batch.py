"""keyed_sum over Parquet: as a batch on Spark's shuffle, and with the same program pipelined."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.scenarios.job import PAIR, KeyedSum
from benchmarks.scenarios.parquet_data import pairs
from benchmarks.systems.firesteel import ReceivingSink
from firesteel.common import Configuration, Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

__all__ = ["run"]


def run(run: Run) -> dict[str, Any]:
    """One result for each row, in either mode."""
    records = run.params["records"]
    path = pairs(records)
    warm = pairs(run.params["warm"])
    _execute(run, str(warm))  # starts Spark and its workers, and loads everything
    begin = time.monotonic()
    _execute(run, str(path))
    took = time.monotonic() - begin
    return {"records": records, "seconds": took, "records_per_s": records / took}


def _execute(run: Run, path: str) -> None:
    config = Configuration()
    config.set_string("spark.master", f"local[{CORES}]")
    for key, value in run.params.get("options", {}).items():
        config.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(CORES)
    env.set_runtime_mode(RuntimeExecutionMode[run.params["mode"]])
    if run.params.get("in_process"):
        from firesteel.testing.in_process import InProcessExecutor

        env._executor = InProcessExecutor()
    stream = env.read_parquet(path, as_tuples=True)
    sums = stream.key_by(lambda row: row[0], Types.LONG()).process(KeyedSum(), PAIR)
    sums.sink_to(ReceivingSink())
    env.execute("bench")
