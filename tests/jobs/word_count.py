"""B1: flat_map, filter, map, key_by, sum. A sum emits a running result with every record, in order within a key.

As a batch, where there are only final results, a sum emits one result per key.
"""

from __future__ import annotations

from typing import Any

from firesteel.datastream import DataStream, StreamExecutionEnvironment

LINES = [
    "to be or not to be",
    "that is the question",
    "  ",
    "to sleep perchance to dream",
    "the rest is silence",
]


def build(env: StreamExecutionEnvironment) -> DataStream:
    return (
        env.from_collection(LINES)
        .flat_map(str.split)
        .filter(lambda word: word != "question")
        .map(lambda word: (word, 1))
        .key_by(lambda pair: pair[0])
        .sum(1)
    )


def key_of(result: Any) -> Any:
    return result[0]
