"""B2, B15: functions with open and close, job parameters and counters, which become accumulators of the job's result.

open and close are called once per subtask, not once per key; with three subtasks that is three times. As a batch a
key has its last result only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.datastream import (
    DataStream,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)

ACCUMULATORS = {"opened": 3, "words": 7}


class Words(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.prefix = runtime_context.get_job_parameter("prefix", "-")
        self.words = runtime_context.get_metrics_group().counter("words")
        runtime_context.get_metrics_group().counter("opened").inc()

    def flat_map(self, value: str) -> Iterable[str]:
        for word in value.split():
            self.words.inc()
            yield self.prefix + word


class Long(FilterFunction):
    def filter(self, value: str) -> bool:
        return len(value) > 3


class Pair(MapFunction):
    def map(self, value: str) -> tuple[str, list[str]]:
        return value[1].lower(), [value]


class Initial(KeySelector):
    def get_key(self, value: Any) -> str:
        return str(value[0])


class Gather(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], sorted(value1[1] + value2[1])


def build(env: StreamExecutionEnvironment) -> DataStream:
    parameters = dict(env.get_config().get_global_job_parameters())
    env.get_config().set_global_job_parameters({**parameters, "prefix": "_"})
    lines = env.from_collection(["alpha Beta gamma", "a bat", "apple Grape"])
    keyed = lines.flat_map(Words()).set_parallelism(3).filter(Long()).map(Pair()).key_by(Initial())
    # the order of the words depends on the subtasks, the last result of a key does not
    return keyed.reduce(Gather()).map(lambda result: (result[0], len(result[1])))


def key_of(result: Any) -> Any:
    return result[0]
