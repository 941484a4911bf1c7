"""A3, A7, D1: a parallelism for each operator, broken chains, names, uids, max parallelism, slot sharing groups.

None of it changes the result: the sum of the squares of the odd numbers to 99 for each last digit.

As a batch the job emits nothing: a reduce has one result per key there, and ten are needed to fill the count window.
"""

from __future__ import annotations

from typing import Any

from firesteel.datastream import DataStream, SlotSharingGroup, StreamExecutionEnvironment


def build(env: StreamExecutionEnvironment) -> DataStream:
    return (
        env.from_sequence(1, 99)
        .name("numbers")
        .set_parallelism(2)
        .map(lambda number: (number % 10, number))
        .disable_chaining()
        .filter(lambda pair: pair[1] % 2 == 1)
        .start_new_chain()
        .map(lambda pair: (pair[0], pair[1] ** 2))
        .set_parallelism(3)
        .uid("squares")
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .set_parallelism(2)
        .set_max_parallelism(16)
        .map(lambda pair: pair)
        .set_parallelism(1)
        .slot_sharing_group(SlotSharingGroup("apart"))
        .key_by(lambda pair: pair[0])
        .max(1)
        .set_parallelism(1)
        .key_by(lambda pair: pair[0])
        .count_window(10)
        .reduce(lambda a, b: max(a, b))
        .set_parallelism(1)
        .slot_sharing_group("default")
    )


def key_of(result: Any) -> Any:
    return result[0]
