"""The same bounded job with metrics and without, in turns: what measuring and reporting cost."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import psutil

from benchmarks.cases import CORES, KEYS
from benchmarks.processes import is_python_worker
from benchmarks.runner import Run
from benchmarks.systems.firesteel import PAIR, KeyedSum, ReceivingSink
from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.testing.in_process import InProcessExecutor

__all__ = ["run"]

_INTERVALS = {"on": "500 ms", "off": "0 ms"}


def run(run: Run) -> dict[str, Any]:
    """Medians over the rounds; each round runs both, the one first that came second in the round before."""
    params = run.params
    _job(run, "on", params["warm"])
    cpu: dict[str, list[float]] = {"on": [], "off": []}
    rates: dict[str, list[float]] = {"on": [], "off": []}
    for turn in range(params["rounds"]):
        for mode in ("on", "off") if turn % 2 else ("off", "on"):
            before, begin = _cpu_s(), time.monotonic()
            _job(run, mode, params["records"])
            rates[mode].append(params["records"] / (time.monotonic() - begin))
            cpu[mode].append((_cpu_s() - before) * 1e9 / params["records"])
    return {
        "records": params["records"],
        "records_per_s": median(rates["on"]),
        "records_per_s_off": median(rates["off"]),
        "cpu_ns": median(cpu["on"]),
        "cpu_ns_off": median(cpu["off"]),
        # of neighbours in time, which the machine treated alike
        "cpu_ratio": median(on / off for on, off in zip(cpu["on"], cpu["off"], strict=True)),
        "throughput_ratio": median(on / off for on, off in zip(rates["on"], rates["off"], strict=True)),
    }


def _cpu_s() -> float:
    """Processor time of the slots and of this process, in which the JobMaster runs."""
    total = time.process_time()
    for process in psutil.Process().children(recursive=True):
        try:
            if is_python_worker(process):
                times = process.cpu_times()
                total += times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return total


def _job(run: Run, mode: str, records: int) -> None:
    config = Configuration()
    config.set_string("spark.master", f"local[{CORES}]")
    config.set_string("metrics.fetcher.update-interval", _INTERVALS[mode])
    env = StreamExecutionEnvironment.get_execution_environment(config)
    if run.params.get("in_process"):
        env._executor = InProcessExecutor()
    env.set_parallelism(CORES)
    source = NumberSequenceSource(0, records - 1)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    _SHAPES[run.params["job"]](numbers).sink_to(ReceivingSink())
    env.execute("bench")


def _keyed_sum(numbers: DataStream) -> DataStream:
    pairs = numbers.map(lambda x: (x % KEYS, x), PAIR)
    return pairs.key_by(lambda pair: pair[0], Types.LONG()).process(KeyedSum(), PAIR)


def _stateless(numbers: DataStream) -> DataStream:
    return numbers.map(lambda x: x + 1, Types.LONG()).filter(lambda x: x % 3 != 0).map(lambda x: x * 2, Types.LONG())


_SHAPES = {"keyed_sum": _keyed_sum, "stateless": _stateless}
