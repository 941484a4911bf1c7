"""Detects card fraud with a pattern: a high payment at home, then a payment abroad within ten minutes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NamedTuple

from firesteel.cep import CEP, AfterMatchSkipStrategy, Pattern, PatternProcessFunction, TimedOutPartialMatchHandler
from firesteel.common import Duration, Time, WatermarkStrategy
from firesteel.datastream import OutputTag, StreamExecutionEnvironment


class Transaction(NamedTuple):
    """A payment with a card; ``time`` is in seconds."""

    card: str
    time: int
    amount: float
    country: str


TRANSACTIONS = [
    Transaction("4711", 0, 80.0, "DE"),
    Transaction("4711", 60, 7200.0, "DE"),
    Transaction("0815", 65, 9500.0, "DE"),
    Transaction("4711", 130, 15.5, "DE"),
    Transaction("4711", 300, 640.0, "BR"),
    Transaction("4711", 290, 35.0, "DE"),
    Transaction("4711", 310, 990.0, "BR"),
    Transaction("0815", 900, 120.0, "FR"),
    Transaction("2342", 1000, 5100.0, "DE"),
    Transaction("2342", 1030, 5300.0, "DE"),
    Transaction("2342", 1100, 700.0, "US"),
]

CHECKED = OutputTag("checked")


class Alert(PatternProcessFunction, TimedOutPartialMatchHandler):
    """Describes matches, and high payments after which there was none abroad in time."""

    def process_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterable[Any]:
        high, foreign = match["high"][0], match["foreign"][0]
        yield (
            f"{high.card}: {high.amount:.2f} in {high.country}, "
            f"then {foreign.amount:.2f} in {foreign.country} after {foreign.time - high.time} s"
        )

    def process_timed_out_match(self, match: dict[str, list[Any]], ctx: Any) -> Iterable[Any]:
        high = match["high"][0]
        yield CHECKED, f"{high.card}: nothing abroad within the time after {high.amount:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=5000, help="what a high payment is (default: 5000)")
    options = parser.parse_args()

    limit = options.limit
    pattern = (
        Pattern.begin("high", AfterMatchSkipStrategy.skip_past_last_event())
        .where(lambda payment: payment.amount > limit)
        .followed_by("foreign")
        .where(lambda payment: payment.country != "DE")
        .within(Time.minutes(10))
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(20))
    env = StreamExecutionEnvironment.get_execution_environment()
    transactions = (
        env.from_collection(TRANSACTIONS)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda payment: payment.time * 1000))
        .key_by(lambda payment: payment.card)
    )
    alerts = CEP.pattern(transactions, pattern).process(Alert())
    alerts.print("alert")
    alerts.get_side_output(CHECKED).print("checked")
    env.execute("fraud detection")


if __name__ == "__main__":
    main()
