"""Evictors of the user's own, windows of all records, and restored state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from firesteel.common.errors import FiresteelError, InvalidProgramError, StateIncompatibleError
from firesteel.datastream import AggregateFunction, ProcessWindowFunction
from firesteel.datastream.window import (
    CountEvictor,
    CountTrigger,
    DeltaEvictor,
    Evictor,
    GlobalWindows,
    TimeEvictor,
    TimestampedValue,
    TumblingEventTimeWindows,
)
from firesteel.testing import OneInputHarness, harness_for, test_environment

every_backend = pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])


class Values(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield [value for _, value in elements]


class Odd(Evictor[Any, Any]):
    """Removes odd values before the function, in place, and all but the first after it."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def evict_before(self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: Any) -> None:
        self.calls.append((size, evictor_context.get_current_watermark(), elements[0].get_timestamp()))
        elements[:] = [element for element in elements if element.get_value()[1] % 2 == 0]

    def evict_after(self, elements: list[TimestampedValue], size: int, window: Any, evictor_context: Any) -> Any:
        self.calls.append(size)
        assert evictor_context.get_current_processing_time() >= 0
        assert evictor_context.get_metric_group() is not None
        return iter(elements[:1])


def _windows(evictor: Any = None) -> Any:
    stream = test_environment().from_collection([]).key_by(lambda record: record[0])
    windows = stream.window(GlobalWindows.create()).trigger(CountTrigger.of(2))
    return windows if evictor is None else windows.evictor(evictor)


@every_backend
def test_an_evictor_of_ones_own(backend: str) -> None:
    evictor = Odd()
    with harness_for(_windows(evictor).process(Values()), backend=backend) as harness:
        harness.process_watermark(5)
        for value in (1, 2, 4, 6):
            harness.process_element(("a", value), 10 + value)
        assert harness.output == [[2], [2, 4, 6]]
    assert evictor.calls == [(2, 5, 11), 1, (3, 5, 12), 3]


def test_an_evictor_that_returns_something_else() -> None:
    class Wrong(Odd):
        def evict_after(self, elements: Any, size: int, window: Any, evictor_context: Any) -> Any:
            return 3

    with harness_for(_windows(Wrong()).process(Values())) as harness:
        harness.process_element(("a", 1), 0)
        with pytest.raises(FiresteelError, match="must return the elements to keep"):
            harness.process_element(("a", 2), 0)


@every_backend
def test_elements_are_restored_with_their_timestamps(backend: str) -> None:
    with harness_for(_windows(TimeEvictor.of(5)).process(Values()), backend=backend) as harness:
        harness.process_element(("a", 1), 10)
        snapshot = harness.snapshot()
    for after in ("hashmap", "rocksdb"):
        restored = harness_for(_windows(TimeEvictor.of(5)).process(Values()), backend=after)
        with restored.initialize_state(snapshot) as harness:
            harness.process_element(("a", 2), 15)
            assert harness.output == [[2]]


@every_backend
def test_an_evictor_that_is_added_to_restored_windows(backend: str) -> None:
    with harness_for(_windows().process(Values()), backend=backend) as harness:
        harness.process_element(("a", 1), 10)
        snapshot = harness.snapshot()
    restored = harness_for(_windows(CountEvictor.of(1)).process(Values()), backend=backend)
    with restored.initialize_state(snapshot) as harness:
        harness.process_element(("a", 2), 15)
        assert harness.output == [[2]]


@every_backend
def test_an_evictor_cannot_be_removed_from_restored_windows(backend: str) -> None:
    with harness_for(_windows(CountEvictor.of(1)).process(Values()), backend=backend) as harness:
        harness.process_element(("a", 1), 10)
        snapshot = harness.snapshot()
    with harness_for(_windows().process(Values()), backend=backend).initialize_state(snapshot) as harness:
        with pytest.raises(StateIncompatibleError, match="with an evictor"):
            harness.process_element(("a", 2), 15)


def test_an_evictor_cannot_be_removed_from_restored_aligned_windows() -> None:
    def tumbling() -> Any:
        stream = test_environment().from_collection([]).key_by(lambda record: record[0])
        return stream.window(TumblingEventTimeWindows.of(10))

    with harness_for(tumbling().evictor(CountEvictor.of(1)).process(Values())) as harness:
        harness.process_element(("a", 1), 1)
        snapshot = harness.snapshot()
    restored: OneInputHarness = harness_for(tumbling().process(Values())).initialize_state(snapshot)
    with pytest.raises(StateIncompatibleError, match="with an evictor"):
        restored.open()


class Collect(AggregateFunction):
    """Changes its accumulator, which it has from the first element."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        value.append("seen")
        return [*accumulator, value]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


@every_backend
def test_functions_may_change_elements(backend: str) -> None:
    """None of them sees later what it did."""
    with harness_for(_windows(CountEvictor.of(3)).aggregate(Collect()), backend=backend) as harness:
        for value in (1, 2, 3, 4):
            harness.process_element(["a", value], 0)
        assert harness.output == [
            [["a", 1, "seen"], ["a", 2, "seen"]],
            [["a", 2, "seen"], ["a", 3, "seen"], ["a", 4, "seen"]],
        ]


def test_a_reduce_of_no_elements_is_none() -> None:
    with harness_for(_windows(CountEvictor.of(0)).reduce(lambda a, b: a)) as harness:
        harness.process_element(("a", 1), 0)
        harness.process_element(("a", 2), 0)
        assert harness.output == [None]


def test_windows_of_all_records() -> None:
    stream = test_environment().from_collection([])
    windows = stream.window_all(GlobalWindows.create()).trigger(CountTrigger.of(3)).evictor(CountEvictor.of(2))
    with harness_for(windows.reduce(lambda a, b: a + b)) as harness:
        harness.process_elements([1, 2, 4])
        assert harness.output == [6]


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="Evictor is needed"):
        _windows("none")
    with pytest.raises(InvalidProgramError, match="cannot keep -1"):
        CountEvictor.of(-1)
    with pytest.raises(TypeError, match="callable"):
        DeltaEvictor.of(1.0, "delta")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no timestamp"):
        TimestampedValue(1).get_timestamp()
