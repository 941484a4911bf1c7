"""B1: connect with a CoMapFunction, where None emits nothing, and with a CoFlatMapFunction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.datastream import CoFlatMapFunction, CoMapFunction, DataStream, StreamExecutionEnvironment


class Describe(CoMapFunction):
    def map1(self, value: int) -> str | None:
        return None if value == 3 else f"number {value}"

    def map2(self, value: str) -> str | None:
        return f"text {value}" if value else None


class Explode(CoFlatMapFunction):
    def flat_map1(self, value: int) -> Iterable[Any]:
        return ["*" * count for count in range(1, value + 1)]

    def flat_map2(self, value: str) -> Iterable[Any] | None:
        if value == "gamma":
            return None
        return iter(value[:2])


def build(env: StreamExecutionEnvironment) -> DataStream:
    numbers = env.from_sequence(1, 4)
    texts = env.from_collection(["alpha", "", "gamma"])
    described = numbers.connect(texts).map(Describe())
    exploded = numbers.connect(texts).flat_map(Explode())
    return described.union(exploded)
