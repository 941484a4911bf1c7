"""What the loop itself costs in CPython here: the bound under every case. ``python -m benchmarks.floor``

Each line times a bare loop over a list with one more step than the line before, without any of Firesteel around it.
"""

from __future__ import annotations

import pickle
import timeit
from collections.abc import Callable
from typing import Any

RECORDS = 200_000
BATCH = 2_048
KEYS = 10_000
NUMBERS = list(range(RECORDS))
PAIRS = [(number % KEYS, number) for number in NUMBERS]


class _State:
    """A ValueState as the hashmap backend has it."""

    def __init__(self) -> None:
        self.table: dict[int, int] = {}
        self.key = 0

    def value(self) -> int | None:
        return self.table.get(self.key)

    def update(self, value: int) -> None:
        self.table[self.key] = value


STATE = _State()


def _process(value: tuple[int, int]) -> Any:
    total = (STATE.value() or 0) + value[1]
    STATE.update(total)
    yield value[0], total


def _empty() -> None:
    for _number in NUMBERS:
        pass


def _three_calls() -> None:
    add, keep, double = (lambda x: x + 1), (lambda x: x % 3 != 0), (lambda x: x * 2)
    out: list[int] = []
    append = out.append
    for value in NUMBERS:
        value = add(value)
        if keep(value):
            append(double(value))


def _three_inlined() -> None:
    out: list[int] = []
    append = out.append
    for value in NUMBERS:
        value = value + 1
        if value % 3 != 0:
            append(value * 2)


def _map_and_route() -> None:
    channels: tuple[list[Any], list[Any]] = ([], [])
    routes = {key: channels[key & 1].append for key in range(KEYS)}
    for number in NUMBERS:
        value = (number % KEYS, number)
        routes[value[0]](value)


def _pickle() -> None:
    for start in range(0, RECORDS, BATCH):
        pickle.dumps(PAIRS[start : start + BATCH], 5)


BUFFERS = [pickle.dumps(PAIRS[start : start + BATCH], 5) for start in range(0, RECORDS, BATCH)]


def _unpickle() -> None:
    for buffer in BUFFERS:
        pickle.loads(buffer)


def _keyed_process() -> None:
    process, state = _process, STATE
    for value in PAIRS:
        state.key = value[0]
        for _result in process(value):
            pass


def main() -> None:
    steps: list[tuple[str, Callable[[], None]]] = [
        ("empty loop", _empty),
        ("map, filter, map as calls of lambdas", _three_calls),
        ("map, filter, map inlined", _three_inlined),
        ("map to a pair, key, route to a channel", _map_and_route),
        ("pickle", _pickle),
        ("unpickle", _unpickle),
        ("process_element (a generator) with ValueState get and update, one result", _keyed_process),
    ]
    for name, step in steps:
        best = min(timeit.repeat(step, number=1, repeat=7))
        print(f"{best / RECORDS * 1e9:7.0f} ns/record  {name}")


if __name__ == "__main__":
    main()
