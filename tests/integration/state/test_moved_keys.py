"""State of the first key encoding, in which equal rows and times could be different keys, in every backend."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.common.errors import StateIncompatibleError
from firesteel.common.windows import TimeWindow
from firesteel.runtime.model import key_groups
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange, key_group_of
from firesteel.runtime.model.state_handles import KeyedStateHandle
from firesteel.runtime.state.rocksdb import keys as row_keys
from firesteel.testing import FakeClock
from tests.support.state.keyed_backends import Workbench
from tests.support.state.keyed_states import CHECKPOINT, DESCRIPTORS, EVERY_KIND, LIST, MAP, MAX, SAVEPOINT, VALUE, put

PARIS = datetime.timezone(datetime.timedelta(hours=2))
UTC = datetime.timezone.utc


@contextmanager
def first_encoding(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Encodes as version 1 did: rows in the order of their fields, times of day by their zones."""

    def by_zone(value: Any) -> bytes:
        return b"d" + value.isoformat().encode()

    encoders = [(kind, by_zone if kind is datetime.time else encode) for kind, encode in key_groups._BASE_ENCODERS]
    with patch.context() as patched:
        patched.setattr(key_groups, "row_values", list)
        patched.setattr(key_groups, "_BASE_ENCODERS", tuple(encoders))
        patched.setattr(row_keys, "_encode_row", lambda row: b"R" + row_keys._encode_items(row))
        yield


def in_order(number: int) -> Row:
    return Row(age=number, name=f"n{number}")


def out_of_order(number: int) -> Row:
    return Row(name=f"n{number}", age=number)


def nested(number: int) -> Any:
    return ("x", (out_of_order(number), number))


def times(number: int) -> datetime.time:
    return datetime.time(10, number, tzinfo=PARIS)


def plain(number: int) -> Any:
    return f"key-{number}" if number % 2 else number


def fill(backend: Any, make_key: Callable[[int], Any], numbers: Iterable[int] = range(40)) -> None:
    states = [backend.get_state(descriptor, namespace_aware=True) for descriptor in DESCRIPTORS]
    for number in numbers:
        backend.key = make_key(number)
        for namespace in (None, TimeWindow(0, 10)):
            for state, descriptor in zip(states, DESCRIPTORS, strict=True):
                state.set_current_namespace(namespace)
                put(state, descriptor, number)
                if descriptor is LIST:
                    state.add_all([number, -number])
                if descriptor is MAP:
                    state.put(out_of_order(1), "row")
                    state.put((times(1), "x"), "time")
            backend.timer_queue("t/event").add(number, backend.key, namespace)


def check(backends: list[Any], make_key: Callable[[int], Any], numbers: Iterable[int] = range(40)) -> None:
    """Looks everything up, with keys that are equal to those it was put under."""
    for number in numbers:
        key = make_key(number)
        (backend,) = [each for each in backends if key_group_of(key, MAX) in each.key_groups]
        backend.key = key
        for namespace in (None, TimeWindow(0, 10)):
            found = []
            for descriptor in DESCRIPTORS:
                state = backend.get_state(descriptor, namespace_aware=True)
                state.set_current_namespace(namespace)
                if descriptor is LIST:
                    found.append(list(state.get()))
                elif descriptor is MAP:
                    in_utc = datetime.time(8, 1, tzinfo=UTC)
                    found.append([state.get(each) for each in (number, Row(age=1, name="n1"), (in_utc, "x"))])
                    assert len(list(state.keys())) == 3
                else:
                    found.append(state.value() if descriptor is VALUE else state.get())
            assert found == [number, [number, number, -number], [str(number), "row", "time"], number, float(number)]
            backend.timer_queue("t/event").remove(number, key, namespace)
    assert [len(each.timer_queue("t/event")) for each in backends] == [0] * len(backends)


def equal_key(make_key: Callable[[int], Any]) -> Callable[[int], Any]:
    """The same keys, said otherwise."""
    others = {
        out_of_order: in_order,
        nested: lambda number: ("x", (in_order(number), number)),
        times: lambda number: datetime.time(8, number, tzinfo=UTC),
    }
    return others.get(make_key, make_key)  # type: ignore[call-overload, no-any-return]


def written(
    bench: Workbench, kind: SnapshotKind, make_key: Callable[[int], Any], groups: KeyGroupRange | None = None
) -> tuple[KeyedStateHandle, list[int]]:
    """State of some key groups as version 1 wrote it, and the numbers of its keys."""
    with pytest.MonkeyPatch.context() as patch, first_encoding(patch):
        backend = bench.backend(groups)
        numbers = [number for number in range(40) if key_group_of(make_key(number), MAX) in backend.key_groups]
        fill(backend, make_key, numbers)
        return replace(bench.snapshot(backend, kind), key_encoding=1), numbers


both_formats = pytest.mark.parametrize("kind", [CHECKPOINT, SAVEPOINT], ids=["native", "canonical"])
every_key = pytest.mark.parametrize("make_key", [out_of_order, nested, times, in_order, plain])


@every_key
@both_formats
def test_keys_that_have_moved_are_taken_along(
    bench: Workbench, kind: SnapshotKind, make_key: Callable[[int], Any]
) -> None:
    handle, _ = written(bench, kind, make_key)
    restored: Any = bench.restore([handle])
    again = bench.snapshot(restored, kind)
    assert again.key_encoding == 2
    check([restored], equal_key(make_key))
    parts: Any = [bench.restore([again], KeyGroupRange.of(subtask, MAX, 3)) for subtask in range(3)]
    check(parts, equal_key(make_key))


@pytest.mark.parametrize("make_key", [in_order, plain])
@pytest.mark.parametrize("parallelism", [2, 3])
@both_formats
def test_keys_that_have_not_moved_can_be_restored_at_any_parallelism(
    bench: Workbench, kind: SnapshotKind, parallelism: int, make_key: Callable[[int], Any]
) -> None:
    handle, _ = written(bench, kind, make_key)
    ranges = [KeyGroupRange.of(subtask, MAX, parallelism) for subtask in range(parallelism)]
    check([bench.restore([handle], groups) for groups in ranges], make_key)


@pytest.mark.parametrize("make_key", [out_of_order, nested, times])
@both_formats
def test_a_key_that_has_moved_to_another_subtask_is_refused(
    bench: Workbench, kind: SnapshotKind, make_key: Callable[[int], Any]
) -> None:
    half = KeyGroupRange.of(0, MAX, 2)
    handle, numbers = written(bench, kind, make_key, half)
    with pytest.raises(StateIncompatibleError, match="belongs to another") as refused:
        bench.restore([handle], half)
    assert "parallelism 1" in str(refused.value.hint)
    check([bench.restore([handle])], equal_key(make_key), numbers)


@both_formats
def test_two_keys_that_have_become_equal_are_refused(bench: Workbench, kind: SnapshotKind) -> None:
    """The hashmap backend has them in two subtasks, RocksDB in one as well."""
    with pytest.MonkeyPatch.context() as patch, first_encoding(patch):
        number = next(n for n in range(99) if _half(in_order(n)) != _half(out_of_order(n)))
        handles = []
        for key in sorted((in_order(number), out_of_order(number)), key=_half):
            backend: Any = bench.backend(KeyGroupRange.of(_half(key), MAX, 2))
            backend.key = key
            backend.get_state(VALUE).update(1)
            handles.append(replace(bench.snapshot(backend, kind), key_encoding=1))
    with pytest.raises(StateIncompatibleError, match="Each has its own value") as refused:
        bench.restore(handles)
    assert "State Processor" in str(refused.value.hint)


def test_two_map_keys_that_have_become_equal_are_refused(clock: FakeClock) -> None:
    """The hashmap backend always had them as one."""
    bench = Workbench("rocksdb", MAX, clock)
    try:
        with pytest.MonkeyPatch.context() as patch, first_encoding(patch):
            backend: Any = bench.backend()
            backend.key = "k"
            backend.get_state(MAP).put(in_order(1), 1)
            backend.get_state(MAP).put(out_of_order(1), 2)
            handle = replace(bench.snapshot(backend), key_encoding=1)
        with pytest.raises(StateIncompatibleError, match="Each has its own value"):
            bench.restore([handle])
    finally:
        bench.close()


def _half(key: Any) -> int:
    return key_group_of(key, MAX) * 2 // MAX


def test_what_is_written_now_says_so(bench: Workbench, backend: Any) -> None:
    fill(backend, out_of_order)
    assert {bench.snapshot(backend, kind).key_encoding for kind in EVERY_KIND} == {key_groups.KEY_ENCODING}
