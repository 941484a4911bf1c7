"""Async functions on records of Python: dicts that are changed, lists, None, results without a type."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment


class Enrich(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(0.001 * (3 - value["id"] % 3))
        value["seen"] = True
        return [value, {"copy of": value["id"], "tags": ("x", [1, None])}]


class Kinds(AsyncFunction):
    async def async_invoke(self, value):
        return [value, [value], {value}, None, 1.5 * value, str(value).encode()]


class Nothing(AsyncFunction):
    async def async_invoke(self, value):
        return []


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    records = env.from_collection([{"id": number, "tags": []} for number in range(5)])
    enriched = AsyncDataStream.unordered_wait(records, Enrich(), Time.seconds(30), 3)
    enriched.print("enriched")
    enriched.filter(lambda record: "id" in record).map(lambda record: record["id"], Types.INT()).print("ids")
    enriched.key_by(lambda record: "id" in record).map(lambda record: sorted(record)).print("keyed")
    AsyncDataStream.ordered_wait(enriched, Nothing(), Time.seconds(30)).print("nothing")
    numbers = env.from_collection([1, 2], Types.INT())
    AsyncDataStream.ordered_wait(numbers, Kinds(), Time.seconds(30), 2).map(lambda value: repr(value)).print("kinds")
    AsyncDataStream.ordered_wait(
        numbers.map(lambda number: {"number": number}, Types.MAP(Types.STRING(), Types.INT())),
        Enriched(),
        Time.seconds(30),
        2,
        Types.MAP(Types.STRING(), Types.INT()),
    ).print("typed")
    env.execute()


class Enriched(AsyncFunction):
    async def async_invoke(self, value):
        return [{**value, "twice": 2 * value["number"]}]


if __name__ == "__main__":
    main()
