"""A state of each kind, for tests that every backend passes."""

from __future__ import annotations

from typing import Any

from firesteel.api.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.datastream.functions import AggregateFunction
from firesteel.runtime.model.checkpoint_options import SnapshotKind

MAX = 16
CHECKPOINT, SAVEPOINT = SnapshotKind.CHECKPOINT, SnapshotKind.SAVEPOINT
EVERY_KIND = list(SnapshotKind)


class Average(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Collect(AggregateFunction):
    """Keeps the numbers, and gives their sum."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        return [*accumulator, value]

    def get_result(self, accumulator: list[int]) -> int:
        return sum(accumulator)

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


VALUE = ValueStateDescriptor("value")
LIST = ListStateDescriptor("list")
MAP = MapStateDescriptor("map")
SUM = ReducingStateDescriptor("sum", lambda a, b: a + b)
AVERAGE = AggregatingStateDescriptor("average", Average())
DESCRIPTORS = (VALUE, LIST, MAP, SUM, AVERAGE)


def put(state: Any, descriptor: Any, value: int) -> None:
    """Puts a value into a state of any kind."""
    if descriptor is VALUE:
        state.update(value)
    elif descriptor is MAP:
        state.put(value, str(value))
    else:
        state.add(value)
