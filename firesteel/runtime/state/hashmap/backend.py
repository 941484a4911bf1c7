"""The hashmap backend: one dictionary per state and namespace.

A table is not split by key group: that would cost every access a second lookup, while only a snapshot needs the
groups. The key group of a key is computed when its state is written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from firesteel.common.errors import InvalidProgramError
from firesteel.common.state import StateDescriptor
from firesteel.runtime.key_groups import KeyGroupRange, key_group_of
from firesteel.runtime.state.backend import VOID_NAMESPACE, Clock, KeyedStateBackend
from firesteel.runtime.state.hashmap import states, ttl_states

__all__ = ["HashMapKeyedStateBackend"]


class HashMapKeyedStateBackend(KeyedStateBackend):
    """Keyed state in dictionaries of this process."""

    __slots__ = ("_clock", "_descriptors", "_states", "_tables")

    def __init__(self, key_groups: KeyGroupRange, max_parallelism: int, clock: Clock):
        super().__init__(key_groups, max_parallelism)
        self._clock = clock
        self._tables: dict[str, dict[Any, dict[Any, Any]]] = {}
        self._states: dict[str, states.HashMapState] = {}
        self._descriptors: dict[str, StateDescriptor] = {}

    def get_state(self, descriptor: StateDescriptor, namespace_aware: bool = False) -> Any:
        """The state a descriptor names; every hashmap state knows namespaces."""
        name = descriptor.get_name()
        state = self._states.get(name)
        if state is None:
            namespaces = self._tables.setdefault(name, {VOID_NAMESPACE: {}})
            namespaces.setdefault(VOID_NAMESPACE, {})
            if descriptor.ttl_config is None:
                state = states.STATES[descriptor.kind](self, namespaces, descriptor)
            else:
                state = ttl_states.STATES[descriptor.kind](self, namespaces, descriptor, self._clock)
            self._states[name] = state
            self._descriptors[name] = descriptor
        elif self._descriptors[name].kind != descriptor.kind:
            first = self._descriptors[name].kind
            raise InvalidProgramError(
                f"State '{name}' was first registered as {first} state, now as {descriptor.kind} state.",
                hint="Give each state of a function a name of its own.",
            )
        return state

    def descriptors(self) -> Mapping[str, StateDescriptor]:
        """The descriptor each state was first asked for with, by name."""
        return self._descriptors

    def keys(self, state_name: str, namespace: Any = VOID_NAMESPACE) -> Iterator[Any]:
        """The keys that have a value in a state."""
        return iter(list(self._tables.get(state_name, {}).get(namespace, ())))

    def snapshot_key_group(self, key_group: int) -> dict[str, dict[Any, dict[Any, Any]]]:
        """Everything one key group holds."""
        contents: dict[str, dict[Any, dict[Any, Any]]] = {}
        for name, namespaces in self._tables.items():
            for namespace, table in namespaces.items():
                part = {
                    key: value for key, value in table.items() if key_group_of(key, self.max_parallelism) == key_group
                }
                if part:
                    contents.setdefault(name, {})[namespace] = part
        return contents

    def restore_key_group(self, key_group: int, contents: dict[str, dict[Any, dict[Any, Any]]]) -> None:
        """Puts back what snapshot_key_group gave."""
        if key_group not in self.key_groups:
            raise ValueError(f"key group {key_group} does not belong to {self.key_groups}")
        for name, namespaces in contents.items():
            tables = self._tables.setdefault(name, {VOID_NAMESPACE: {}})
            for namespace, part in namespaces.items():
                tables.setdefault(namespace, {}).update(part)
