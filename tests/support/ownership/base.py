"""What the programs of `programs` have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firesteel.common import Types
from firesteel.datastream import (
    AggregateFunction,
    DataStream,
    ReduceFunction,
    StreamExecutionEnvironment,
)

__all__ = ["ANY", "PAIRS", "PROGRAMS", "Collect", "Extend", "Program", "by_key", "program", "reduce_in_place"]

ANY = Types.PICKLED_BYTE_ARRAY()
PAIRS = [("a", 1), ("a", 2), ("b", 7), ("a", 3)]
BUILD = Callable[[StreamExecutionEnvironment], DataStream]


@dataclass(frozen=True)
class Program:
    build: BUILD
    results: list[Any]
    batch: list[Any]


PROGRAMS: dict[str, Program] = {}


def program(results: list[Any], batch: list[Any] | None = None) -> Callable[[BUILD], BUILD]:
    def register(build: BUILD) -> BUILD:
        PROGRAMS[build.__name__] = Program(build, results, results if batch is None else batch)
        return build

    return register


def by_key(env: StreamExecutionEnvironment, pairs: list[tuple[str, Any]] = PAIRS) -> Any:
    return env.from_collection(pairs).key_by(lambda pair: pair[0])


class Extend(ReduceFunction):
    """Changes its first argument and returns it."""

    def reduce(self, value1: Any, value2: Any) -> Any:
        value1.extend(value2)
        return value1


class Collect(AggregateFunction):
    """Its accumulator is also its result, and holds the records themselves."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        return accumulator

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        acc_a.extend(acc_b)
        return acc_a


def reduce_in_place(total: Any, record: Any) -> Any:
    total[1].extend(record[1])
    return total
