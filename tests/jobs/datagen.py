"""F7: generated records at a rate, as fast as possible, and from a GeneratorFunction with open and close."""

from __future__ import annotations

from typing import Any

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, GeneratorFunction, RateLimiterStrategy


class Greeting(GeneratorFunction):
    def open(self, reader_context: Any) -> None:
        self.word = "hello"

    def map(self, value: int) -> str:
        return f"{self.word} {value}"


def build(env: StreamExecutionEnvironment) -> DataStream:
    none = WatermarkStrategy.no_watermarks()
    limited = DataGeneratorSource(
        lambda index: f"limited {index}", 20, RateLimiterStrategy.per_second(200), Types.STRING()
    )
    free = DataGeneratorSource(Greeting(), 5)
    nothing = DataGeneratorSource(lambda index: "never", 0)
    return (
        env.from_source(limited, none, "limited")
        .union(env.from_source(free, none, "free"), env.from_source(nothing, none, "nothing"))
        .map(str)
    )
