"""A6, B1: partition_custom, broadcast, rebalance, rescale, shuffle, forward and all to one, each to three subtasks.

Where a record goes is fixed for custom partitioning only; of the others the number of records per subtask is, or just
that nothing is lost. There is one function instance per subtask: counting in an attribute counts the subtask's records.
"""

from __future__ import annotations

from typing import Any

from firesteel.datastream import DataStream, MapFunction, Partitioner, RuntimeContext, StreamExecutionEnvironment

SUBTASKS = 3


class ByRemainder(Partitioner):
    def partition(self, key: int, num_partitions: int) -> int:
        return key % num_partitions


class Subtask(MapFunction):
    """Adds the subtask."""

    def __init__(self, name: str):
        self.name = name

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map(self, value: Any) -> Any:
        return self.name, value, self.subtask


class Count(MapFunction):
    """Counts the records of this subtask, and forgets which they were."""

    def __init__(self, name: str):
        self.name = name
        self.count = 0

    def map(self, value: Any) -> Any:
        self.count += 1
        return self.name, self.count


def build(env: StreamExecutionEnvironment) -> DataStream:
    def to_three(stream: DataStream, function: MapFunction) -> DataStream:
        return stream.map(function).set_parallelism(SUBTASKS)

    numbers = env.from_collection(range(9))
    three = numbers.rebalance().map(lambda value: value).set_parallelism(SUBTASKS)
    custom = numbers.partition_custom(ByRemainder(), lambda value: value * 10)
    streams = [
        to_three(custom, Subtask("custom by value times 10, modulo 3")),
        to_three(
            numbers.partition_custom(lambda key, count: count - 1, lambda value: value), Subtask("all to the last")
        ),
        to_three(numbers.broadcast(), Subtask("broadcast")),
        to_three(numbers.rebalance(), Count("rebalance")),
        to_three(numbers.rescale(), Count("rescale from one")),
        to_three(three.rescale(), Count("rescale from three")),
        to_three(three.forward(), Count("forward from three")),
        three.broadcast().map(Count("broadcast from three to two")).set_parallelism(2),
        to_three(numbers.shuffle(), Subtask("shuffle")).map(lambda result: result[:2]).set_parallelism(SUBTASKS),
    ]
    return streams[0].union(*streams[1:])


def after_restore(line: str) -> str:
    """Counts in attributes, and whose turn it is to get a record, begin anew; nothing is lost all the same."""
    return line if line.count(",") > 1 else line.partition(",")[0]
