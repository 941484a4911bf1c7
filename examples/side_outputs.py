"""Splits one stream three ways: good orders go on, large ones are also reviewed, broken ones are set aside."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from firesteel.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

LINES = [
    '{"order": 1, "amount": 20.0}',
    '{"order": 2, "amount": 1500.0}',
    '{"order": 3, "amou',
    '{"order": 4}',
    '{"order": 5, "amount": 75.5}',
    '{"order": 6, "amount": 9800.0}',
]

BROKEN = OutputTag("broken")
REVIEW = OutputTag("review")


class Parse(ProcessFunction):
    """Yields results to the main output, and pairs of a tag and a result to a side output."""

    def __init__(self, limit: float):
        self._limit = limit

    def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterable[Any]:
        try:
            order = json.loads(value)
            number, amount = order["order"], float(order["amount"])
        except (ValueError, KeyError) as error:
            yield BROKEN, f"{type(error).__name__} in {value}"
            return
        if amount > self._limit:
            yield REVIEW, f"order {number}: {amount:.2f} is more than {self._limit:.2f}"
        yield number, amount


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=1000, help="review orders above this amount (default: 1000)")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    orders = env.from_collection(LINES).process(Parse(options.limit))
    orders.map(lambda order: f"{order[0]}: {order[1]:.2f}").print("order")
    orders.get_side_output(REVIEW).print("review")
    orders.get_side_output(BROKEN).print("broken")
    env.execute("side outputs")


if __name__ == "__main__":
    main()
