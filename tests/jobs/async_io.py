"""B11: async functions, ordered on a keyed stream and unordered before windows, with retries and timeouts."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    StreamExecutionEnvironment,
    async_retry_predicates,
)
from firesteel.datastream.window import TumblingEventTimeWindows

RECORDS = [(key, number, number * 10, []) for number in range(6) for key in "ab"]
LONG = Time.minutes(5)


class Lookup(AsyncFunction[Any, Any]):
    """Takes longer for the first records, so that later ones overtake them unless they are kept in order."""

    async def async_invoke(self, value: Any) -> list[Any]:
        await asyncio.sleep((6 - value[1]) % 4 / 1000)
        value[3].append(value[1])  # the record is the function's own
        return [value]


class Unstable(AsyncFunction[Any, Any]):
    """Fails at first, then has no result, then two."""

    def __init__(self) -> None:
        self.calls: dict[int, int] = {}

    async def async_invoke(self, value: Any) -> list[Any]:
        calls = self.calls[value[1]] = self.calls.get(value[1], 0) + 1
        await asyncio.sleep(0)
        if calls == 1:
            raise ConnectionError("try again")
        return [] if calls == 2 else [("retried", value[1], "first"), ("retried", value[1], "second")]


class Hanging(AsyncFunction[Any, Any]):
    """Has an answer for even numbers only."""

    async def async_invoke(self, value: Any) -> list[Any]:
        if value[1] % 2:
            await asyncio.Event().wait()
        return [("answered", value[1])]

    def timeout(self, value: Any) -> list[Any]:
        return [("timed out", value[1])]


def build(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value[2])
    records = env.from_collection(RECORDS).assign_timestamps_and_watermarks(strategy)

    keyed = records.key_by(lambda value: value[0])
    ordered = AsyncDataStream.ordered_wait(keyed, Lookup(), LONG, capacity=4).map(lambda value: ("ordered", *value))

    unordered = AsyncDataStream.unordered_wait(records, Lookup(), LONG, capacity=3)
    again = AsyncDataStream.unordered_wait(unordered, Lookup(), LONG).map(
        lambda value: ("window", value[0], value[1]), Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()])
    )
    windows = (
        again.key_by(lambda value: value[1])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(40)))
        .reduce(lambda a, b: (*a[:2], a[2] + b[2]))
    )

    of_a = records.filter(lambda value: value[0] == "a")
    retry = AsyncRetryStrategy.exponential_backoff(
        max_attempts=3,
        initial_delay=1,
        max_retry_delay=4,
        multiplier=2.0,
        result_predicate=async_retry_predicates.empty_result_predicate,
        exception_predicate=partial(
            async_retry_predicates.exception_type_predicate, expected_error_type=ConnectionError
        ),
    )
    retried = AsyncDataStream.ordered_wait_with_retry(of_a, Unstable(), LONG, retry)
    hanging = AsyncDataStream.unordered_wait(of_a, Hanging(), Time.milliseconds(20))
    return ordered.union(windows, retried, hanging)


def key_of(result: Any) -> Any:
    return result[:2]
