"""Async functions, in order and not, with retries and a timeout handler."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.async_retry_predicates import has_exception_predicate
from pyflink.datastream.functions import AsyncRetryStrategy


class Lookup(AsyncFunction):
    def open(self, runtime_context: RuntimeContext):
        self.names = {1: "one", 2: "two", 3: "three"}

    async def async_invoke(self, value):
        await asyncio.sleep(0.01 * (5 - value))
        return [(value, self.names.get(value, "?"))]

    def timeout(self, value):
        return [(value, "late")]


class Expand(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0)
        return [value] * (value - 1)


class Flaky(AsyncFunction):
    def open(self, runtime_context: RuntimeContext):
        self.attempts = {}

    async def async_invoke(self, value):
        self.attempts[value] = self.attempts.get(value, 0) + 1
        if self.attempts[value] < 3:
            raise ValueError(value)
        return [f"{value} after {self.attempts[value]}"]


class Slow(AsyncFunction):
    async def async_invoke(self, value):
        if value == 2:
            await asyncio.sleep(60)
        return [f"{value} in time"]

    def timeout(self, value):
        return [f"{value} timed out"]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2, 3, 4], Types.INT())
    pair = Types.TUPLE([Types.INT(), Types.STRING()])
    AsyncDataStream.unordered_wait(numbers, Lookup(), Time.seconds(20), 3, pair).print("unordered")
    AsyncDataStream.ordered_wait(numbers, Expand(), Time.seconds(20), 2, Types.INT()).print("expanded")
    AsyncDataStream.unordered_wait_with_retry(
        numbers,
        Flaky(),
        Time.seconds(60),
        AsyncRetryStrategy.fixed_delay(5, 10, None, has_exception_predicate),
        100,
        Types.STRING(),
    ).print("retried")
    AsyncDataStream.unordered_wait(numbers, Slow(), Time.seconds(2), 100, Types.STRING()).print("slow")
    env.execute()
    ordered = AsyncDataStream.ordered_wait(numbers, Lookup(), Time.seconds(20), 100, pair)
    with ordered.execute_and_collect() as results:
        print(list(results))


if __name__ == "__main__":
    main()
