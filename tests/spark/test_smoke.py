"""One job on real embedded Spark, in every execution: what each supported version of Python is tried with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.common import Duration, Row, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows

EXECUTIONS = {
    "pipelined": {"execution.runtime-mode": "STREAMING"},
    "epochs": {"execution.runtime-mode": "STREAMING", "execution.exchange": "spark"},
    "batch": {"execution.runtime-mode": "BATCH"},
}


class Numbered(KeyedProcessFunction):
    """Each value with the number of those of its key up to it."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


@pytest.mark.parametrize(
    ("execution", "backend"), [("pipelined", "rocksdb"), ("epochs", "hashmap"), ("batch", "hashmap")]
)
def test_a_job_with_state_windows_and_small_functions(spark_env: Any, execution: str, backend: str) -> None:
    env = spark_env(2, {**EXECUTIONS[execution], "state.backend.type": backend})
    numbers = env.from_sequence(1, 300)
    ones, trues, halves = numbers.map(lambda x: 1), numbers.map(lambda x: True), numbers.map(lambda x: 1.0)
    kinds = ones.union(trues, halves).map(lambda x: type(x).__name__).key_by(lambda x: x)
    rows = numbers.map(lambda n: Row(name=f"n{n % 3}", age=n % 3) if n % 2 else Row(age=n % 3, name=f"n{n % 3}"))
    counted = rows.key_by(lambda row: row).process(Numbered()).map(lambda pair: (pair[0].name, pair[1]))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(300))
    times = numbers.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda n: n))
    windows = times.key_by(lambda n: n % 2).window(TumblingEventTimeWindows.of(100)).reduce(lambda a, b: a + b)
    results = kinds.process(Numbered()).union(counted, windows.map(lambda total: ("sum", total)))
    found = Counter(results.execute_and_collect("smoke"))
    expected = Counter((kind, n) for kind in ("int", "bool", "float") for n in range(1, 301))
    expected += Counter((f"n{key}", n) for key in range(3) for n in range(1, 101))
    for start in range(0, 400, 100):
        for parity in range(2):
            values = [n for n in range(start, start + 100) if 1 <= n <= 300 and n % 2 == parity]
            expected += Counter([("sum", sum(values))] if values else [])
    assert found == expected
