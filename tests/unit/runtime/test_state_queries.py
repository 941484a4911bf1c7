"""The keyed state of a running task is read by key, and nothing in it changes by that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from firesteel.api.state_ttl import StateTtlConfig
from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row
from firesteel.common.windows import TimeWindow
from firesteel.datastream import ReduceFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.slot.state_queries import MAX_ITEMS, TooLargeError, _read, namespace_text, to_json
from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.runtime.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.runtime.state.rocksdb.backend import RocksDBKeyedStateBackend
from tests.support.state.keyed_states import Average

MAX_PARALLELISM = 128
ALL = KeyGroupRange(0, MAX_PARALLELISM - 1)


class _Clock:
    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


class _Add(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


@pytest.fixture
def clock() -> _Clock:
    return _Clock()


@pytest.fixture(params=["hashmap", "rocksdb"])
def backend(request: pytest.FixtureRequest, clock: _Clock, tmp_path: Path) -> Iterable[KeyedStateBackend]:
    if request.param == "hashmap":
        made: KeyedStateBackend = HashMapKeyedStateBackend(ALL, MAX_PARALLELISM, clock)
    else:
        made = RocksDBKeyedStateBackend(ALL, MAX_PARALLELISM, clock, directory=tmp_path)
    yield made
    made.close()


def _with_ttl(descriptor: Any) -> Any:
    config = StateTtlConfig.new_builder(Time.milliseconds(100))
    descriptor.enable_time_to_live(config.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite).build())
    return descriptor


KINDS: list[tuple[Callable[[], Any], Callable[[Any], Any], Any]] = [
    (lambda: ValueStateDescriptor("s", Types.LONG()), lambda state: state.update(7), 7),
    (lambda: ListStateDescriptor("s", Types.LONG()), lambda state: state.add_all([1, 2]), [1, 2]),
    (
        lambda: MapStateDescriptor("s", Types.STRING(), Types.LONG()),
        lambda state: state.put_all({"a": 1, "b": 2}),
        {"a": 1, "b": 2},
    ),
    (
        lambda: ReducingStateDescriptor("s", _Add(), Types.LONG()),
        lambda state: [state.add(value) for value in (3, 4)],
        7,
    ),
    (
        lambda: AggregatingStateDescriptor("s", Average(), Types.LONG()),
        lambda state: [state.add(value) for value in (3, 4)],
        3.5,
    ),
]


@pytest.mark.parametrize("ttl", [False, True])
@pytest.mark.parametrize(("describe", "fill", "expected"), KINDS)
def test_every_kind_is_read_as_its_own_methods_would(
    backend: KeyedStateBackend,
    clock: _Clock,
    describe: Callable[[], Any],
    fill: Callable[[Any], Any],
    expected: Any,
    ttl: bool,
) -> None:
    descriptor = _with_ttl(describe()) if ttl else describe()
    state = backend.get_state(descriptor)
    for key in ("a", "b", ("a", 1), 7):
        backend.key = key
        fill(state)
    backend.key = "current"
    for key in ("a", ("a", 1), 7.0):  # type: ignore[assignment]
        (stored,) = backend.stored("s", key).values()
        assert _read(descriptor, stored, clock.now) == expected
    assert backend.stored("s", "unknown") == backend.stored("no such state", "a") == {}
    assert backend.key == "current"


def test_reading_does_not_count_as_an_access(backend: KeyedStateBackend, clock: _Clock) -> None:
    descriptor = _with_ttl(ValueStateDescriptor("s", Types.LONG()))
    state = backend.get_state(descriptor)
    backend.key = "a"
    state.update(7)
    clock.now += 99
    (stored,) = backend.stored("s", "a").values()
    assert _read(descriptor, stored, clock.now) == 7
    clock.now += 1
    (stored,) = backend.stored("s", "a").values()
    assert _read(descriptor, stored, clock.now) is None
    assert state.value() is None


def test_elements_that_have_expired_are_left_out(backend: KeyedStateBackend, clock: _Clock) -> None:
    descriptor = _with_ttl(ListStateDescriptor("s", Types.LONG()))
    state = backend.get_state(descriptor)
    backend.key = "a"
    state.add(1)
    clock.now += 60
    state.add(2)
    clock.now += 60
    (stored,) = backend.stored("s", "a").values()
    assert _read(descriptor, stored, clock.now) == [2]


def test_the_state_of_windows_is_found_by_namespace(backend: KeyedStateBackend) -> None:
    state = backend.get_state(ValueStateDescriptor("s", Types.LONG()), namespace_aware=True)
    backend.key = "a"
    for start in (0, 10):
        state.set_current_namespace(TimeWindow(start, start + 10))
        state.update(start)
    found = {namespace_text(namespace): stored for namespace, stored in backend.stored("s", "a").items()}
    assert found == {"0-10": 0, "10-20": 10}


def test_values_become_json() -> None:
    assert to_json(Row(name="x", at=1)) == {"name": "x", "at": 1}
    assert to_json(Row(1, (2, None))) == [1, [2, None]]
    assert to_json([float("nan"), 2**70, True]) == [{"repr": "nan"}, {"repr": str(2**70)}, True]
    with pytest.raises(TooLargeError):
        to_json(list(range(MAX_ITEMS + 1)))
