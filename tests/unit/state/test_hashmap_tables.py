"""What the tables of the hashmap backend hold in memory."""

from __future__ import annotations

from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.testing import FakeClock
from tests.support.state.keyed_states import MAX, VALUE


def test_an_empty_namespace_leaves_nothing_behind() -> None:
    backend = HashMapKeyedStateBackend(KeyGroupRange(0, MAX - 1), MAX, FakeClock())
    backend.key = "a"
    state = backend.get_state(VALUE, namespace_aware=True)
    for window in range(1000):
        state.set_current_namespace(window)
        state.update(window)
        state.clear()
    state.set_current_namespace(None)
    assert list(backend.state_table("value").namespaces) == [None]
