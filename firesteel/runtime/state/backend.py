"""The interface of keyed state backends; ``hashmap`` and others implement it with the same file names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from firesteel.common.state import StateDescriptor
from firesteel.runtime.key_groups import KeyGroupRange

__all__ = ["VOID_NAMESPACE", "KeyedStateBackend"]

VOID_NAMESPACE = None
"""The namespace of state that does not belong to a window."""


class KeyedStateBackend(ABC):
    """The keyed state of one operator in one subtask.

    ``key`` is the current key: whoever processes a record or fires a timer sets it, every state reads it.
    """

    __slots__ = ("key", "key_groups", "max_parallelism")

    def __init__(self, key_groups: KeyGroupRange, max_parallelism: int):
        self.key: Any = None
        self.key_groups = key_groups
        self.max_parallelism = max_parallelism

    @abstractmethod
    def get_state(self, descriptor: StateDescriptor, namespace_aware: bool = False) -> Any:
        """The state a descriptor names; the same object for the same name.

        A namespace-aware state additionally has ``set_current_namespace(namespace)`` and, where its values can be
        merged, ``merge_namespaces(target, sources)``.
        """

    @abstractmethod
    def descriptors(self) -> Mapping[str, StateDescriptor]:
        """The descriptor each state was first asked for with, by name."""

    @abstractmethod
    def keys(self, state_name: str, namespace: Any = VOID_NAMESPACE) -> Iterator[Any]:
        """The keys that have a value in a state."""

    @abstractmethod
    def snapshot_key_group(self, key_group: int) -> dict[str, dict[Any, dict[Any, Any]]]:
        """Everything one key group holds, as state name → namespace → key → stored value."""

    @abstractmethod
    def restore_key_group(self, key_group: int, contents: dict[str, dict[Any, dict[Any, Any]]]) -> None:
        """Puts back what snapshot_key_group gave; states may be asked for before or after."""

    def close(self) -> None:  # noqa: B027 - optional
        """Releases what the backend holds."""


Clock = Callable[[], int]
"""Reads the processing time in milliseconds; time-to-live is measured with it, as in Flink."""
