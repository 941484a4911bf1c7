"""Interval joins, co-groups and evictors beside Flink's own operators: the same output after every step.

The cases, and what Flink 2.3.0 gives for them, are in tests/support/joins/recorded.jsonl, which RecordJoins.java there
has printed. Results after one record have no certain order in Flink, nor have elements of windows that merge: both are
sorted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import AggregateFunction, OutputTag, ProcessJoinFunction, WindowFunction
from firesteel.datastream import window as windows
from firesteel.testing import Emitted, OperatorHarness, harness_for, test_environment

RECORDED = Path(__file__).parents[2] / "support" / "joins" / "recorded.jsonl"
CASES = [json.loads(line) for line in RECORDED.read_text().splitlines()]
LATE = OutputTag("left"), OutputTag("right")


def _cases(kind: str) -> list[Any]:
    """Each case with a backend; RocksDB takes longer, and gets every third."""
    cases = [case for case in CASES if case["kind"] == kind]
    return [pytest.param(case, "hashmap" if i % 3 else "rocksdb", id=f"{kind}-{i}") for i, case in enumerate(cases)]


def _keyed() -> Any:
    return test_environment().from_collection([]).key_by(lambda record: record[0])


def _shown(records: list[Emitted]) -> list[str]:
    return sorted(f"{value}@{timestamp}" for value, timestamp in records)


def _check(harness: Any, case: dict[str, Any], of_record: Any = tuple) -> None:
    for number, (what, record, time, expected, *timers) in enumerate(case["steps"]):
        taken = len(harness.records)
        arguments = (time,) if record is None else (of_record(record), time)
        getattr(harness, f"process_{what}")(*arguments)
        assert _shown(harness.records[taken:]) == expected, f"step {number}"
        if timers:
            assert harness.num_event_time_timers() == timers[0], f"step {number}"


class Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        yield f"{left[1]}-{right[1]} {ctx.get_left_timestamp()} {ctx.get_right_timestamp()}"


@pytest.mark.parametrize(("case", "backend"), _cases("interval"))
def test_interval_join(case: dict[str, Any], backend: str) -> None:
    left, right = _streams()
    joined = left.interval_join(right).between(case["lower"], case["upper"])
    if not case["lower_inclusive"]:
        joined.lower_bound_exclusive()
    if not case["upper_inclusive"]:
        joined.upper_bound_exclusive()
    joined.side_output_left_late_data(LATE[0]).side_output_right_late_data(LATE[1])
    with harness_for(joined.process(Pair()), backend=backend) as harness:
        _check(harness, case)
        for tag, expected in zip(LATE, case["late"], strict=True):
            late = [f"({value[0]},{value[1]})@{timestamp}" for value, timestamp in harness.side_records(tag)]
            assert sorted(late) == expected


def _streams() -> Any:
    env = test_environment()
    return [env.from_collection([]).key_by(lambda record: record[0]) for _ in range(2)]


def _assigner(description: list[Any]) -> Any:
    name, arguments = description
    kind = getattr(windows, name)
    if name == "GlobalWindows":
        return kind.create()
    return kind.with_gap(*arguments) if name == "EventTimeSessionWindows" else kind.of(*arguments)


def _set(stream: Any, case: dict[str, Any]) -> Any:
    if case["trigger"] is not None:
        name, (count,) = case["trigger"]
        trigger: Any = windows.CountTrigger.of(count)
        stream = stream.trigger(windows.PurgingTrigger.of(trigger) if name == "PurgingTrigger" else trigger)
    return stream.allowed_lateness(case["lateness"])


@pytest.mark.parametrize(("case", "backend"), _cases("co_group"))
def test_co_group(case: dict[str, Any], backend: str) -> None:
    one, two = _streams()
    grouped = one.co_group(two).where(lambda record: record[0]).equal_to(lambda record: record[0])
    values = _values(case)
    stream = _set(grouped.window(_assigner(case["window"])), case).apply(
        lambda first, second: [f"{values(first)} {values(second)}"]
    )
    with harness_for(stream, backend=backend) as harness:
        _check(harness, case, lambda tagged: (tagged[0], tuple(tagged[1])))


def _values(case: dict[str, Any]) -> Any:
    in_order = sorted if case["window"][0] == "EventTimeSessionWindows" else list
    return lambda records: in_order(value for _, value in records)


class Values(WindowFunction[Any, Any, Any, Any]):
    def __init__(self, values: Any):
        self.values = values

    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield f"{key} {self.values(inputs)}"


class Fold(AggregateFunction):
    def create_accumulator(self) -> int:
        return 1

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator * 3 + int(value[1])

    def get_result(self, accumulator: int) -> str:
        return f"result {accumulator}"

    def merge(self, acc_a: int, acc_b: int) -> int:
        raise NotImplementedError


def _evictor(description: list[Any]) -> Any:
    name, (limit, after) = description
    if name == "DeltaEvictor":
        return windows.DeltaEvictor.of(limit, lambda one, last: abs(one[1] % 7 - last[1] % 7), bool(after))
    return getattr(windows, name).of(limit, bool(after))


@pytest.mark.parametrize(("case", "backend"), _cases("evictor"))
def test_evictor(case: dict[str, Any], backend: str) -> None:
    windowed = _set(_keyed().window(_assigner(case["window"])), case).evictor(_evictor(case["evictor"]))
    if case["function"] == "list":
        stream = windowed.apply(Values(_values(case)))
    elif case["function"] == "aggregate":
        stream = windowed.aggregate(Fold())
    else:
        stream = windowed.reduce(lambda one, other: (one[0], one[1] * 3 + other[1]))
    harness: OperatorHarness
    with harness_for(stream, backend=backend) as harness:
        _check(_Javaish(harness) if case["function"] == "reduce" else harness, case)


class _Javaish:
    """Shows tuples and None as Java does."""

    def __init__(self, harness: Any):
        self._harness = harness

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)

    @property
    def records(self) -> list[Emitted]:
        return [
            Emitted("null" if value is None else f"({value[0]},{value[1]})", timestamp)
            for value, timestamp in self._harness.records
        ]
