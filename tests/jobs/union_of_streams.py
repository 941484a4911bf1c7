"""B1: union of three streams of different parallelism, and of a stream with itself: its records come twice."""

from __future__ import annotations

from firesteel.datastream import DataStream, StreamExecutionEnvironment


def build(env: StreamExecutionEnvironment) -> DataStream:
    letters = env.from_collection(["a", "b"])
    numbers = env.from_sequence(1, 4).map(str)
    constants = env.from_collection(["x", "y", "z"]).map(str.upper).set_parallelism(1)
    return letters.union(numbers, constants, letters).map(lambda value: f"<{value}>")
