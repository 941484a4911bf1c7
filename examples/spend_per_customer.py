"""Sums what each customer spends in five-minute event-time windows (``examples.demo`` does it on a live stream)."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import datetime, timezone

from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment, TimeWindow
from firesteel.datastream.window import TumblingEventTimeWindows

PAYMENTS = [  # as they arrive: the one of 10:04:58 is out of order
    ("10:00:10", "Ada", 12.50),
    ("10:01:40", "Grace", 80.00),
    ("10:03:05", "Ada", 7.25),
    ("10:05:02", "Ada", 30.00),
    ("10:04:58", "Grace", 19.90),
    ("10:08:30", "Ada", 5.00),
]


class Sum(AggregateFunction):
    """One number per window and key is all the state there is, however many payments come."""

    def create_accumulator(self) -> float:
        return 0.0

    def add(self, value: tuple[str, str, float], accumulator: float) -> float:
        return accumulator + value[2]

    def get_result(self, accumulator: float) -> float:
        return accumulator

    def merge(self, acc_a: float, acc_b: float) -> float:
        return acc_a + acc_b


class WithWindow(ProcessWindowFunction[float, str, str, TimeWindow]):
    """Gets the one sum of a window, and knows which window and key it is of."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[float]
    ) -> Iterable[str]:
        start = datetime.fromtimestamp(context.window().start / 1000, timezone.utc)
        yield from (f"from {start:%H:%M}  {key:<6} {total:>8.2f}" for total in elements)


def event_time(payment: tuple[str, str, float]) -> int:
    return int(datetime.fromisoformat(f"2026-01-01T{payment[0]}+00:00").timestamp() * 1000)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    (
        env.from_collection(PAYMENTS)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(event_time))
        .key_by(lambda payment: payment[1])
        .window(TumblingEventTimeWindows.of(Time.minutes(5)))
        .aggregate(Sum(), WithWindow())
        .print()
    )
    env.execute("spend per customer")


if __name__ == "__main__":
    main()
