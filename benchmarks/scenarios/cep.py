"""The pattern of the fraud example on a stream of payments: a high one, then one abroad."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.cases import CORES
from benchmarks.runner import Run
from benchmarks.systems.firesteel import ReceivingSink
from firesteel.cep import CEP, Pattern
from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

__all__ = ["figures_of", "run"]

Payment = tuple[int, int, int, int]
"""Card, amount, country and time: as in java/CepJob.java."""


def run(run: Run) -> dict[str, Any]:
    """Two sizes: what the larger one takes longer is the cost of its records, without that of starting."""
    records, few = run.params["records"], run.params["few"]
    _execute(run, few)  # starts Spark and its workers, and loads everything
    return figures_of(records, few, _execute(run, few), _execute(run, records))


def figures_of(records: int, few: int, short: float, long: float) -> dict[str, Any]:
    """Returns the figures of two runs."""
    return {"records": records, "seconds": long, "records_per_s": (records - few) / max(long - short, 0.001)}


def _execute(run: Run, records: int) -> float:
    config = Configuration()
    config.set_string("spark.master", f"local[{CORES}]")
    for key, value in run.params.get("options", {}).items():
        config.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(CORES)
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    if run.params.get("in_process"):
        from firesteel.testing.in_process import InProcessExecutor

        env._executor = InProcessExecutor()
    keys, half, matches = run.params["keys"], records // 2, run.params["matches"]

    def payment(number: int) -> Payment:
        hashed = (number * 2654435761) & 0xFFFFFFFF
        hashed ^= hashed >> 15
        return hashed % keys, (hashed >> 4) % 10_007, (hashed >> 9) % 53, number % half // 50

    pattern = (
        Pattern.begin("high")
        .where(lambda payment: payment[1] > 9_900)
        .followed_by("foreign")
        .where(lambda payment: matches and payment[2] == 0)
        .within(run.params["within_ms"])
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda payment, _: payment[3])
    numbers = env.from_source(NumberSequenceSource(0, records - 1), WatermarkStrategy.no_watermarks(), "numbers")
    row = Types.TUPLE([Types.LONG()] * 4)
    payments = numbers.map(payment, row).assign_timestamps_and_watermarks(strategy).key_by(lambda payment: payment[0])
    CEP.pattern(payments, pattern).select(lambda match: match["foreign"][0][0], output_type=Types.LONG()).sink_to(
        ReceivingSink()
    )
    begin = time.monotonic()
    env.execute("bench")
    return time.monotonic() - begin
