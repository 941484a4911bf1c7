"""Base class of the keyed state backends; ``hashmap`` and ``rocksdb`` implement it with the same file names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.api.state import StateDescriptor
from firesteel.common.errors import InvalidProgramError
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.state_handles import KeyedStateHandle, StateMeta

if TYPE_CHECKING:
    from firesteel.runtime.checkpoint.files import SnapshotFiles, StateFileReader
    from firesteel.runtime.time.timers import TimerQueue

__all__ = [
    "NO_KEY",
    "VOID_NAMESPACE",
    "Clock",
    "DerivedTimers",
    "KeyedSnapshot",
    "KeyedStateBackend",
    "KeyedStateBackendParameters",
    "ObjectStateBackend",
    "ObjectTable",
    "check_not_none",
]

VOID_NAMESPACE = None
"""The namespace of state that does not belong to a window."""


class _NoKey:
    """The current key where there is none: any use of it, as by every state, raises an error."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise InvalidProgramError(
            "A record of the broadcast side has no key, so there is no keyed state and no timer for it.",
            hint="ctx.apply_to_keyed_state(descriptor, function) goes over the state of all keys.",
        )


NO_KEY = _NoKey()
"""Never equal to a key, and never stored as one."""


Clock = Callable[[], int]
"""Reads the processing time in milliseconds; time-to-live is measured with it, as in Flink."""


@dataclass(frozen=True)
class KeyedStateBackendParameters:
    """What a keyed state backend is created with, besides the configuration."""

    key_groups: KeyGroupRange
    max_parallelism: int
    clock: Clock
    label: str = "state"
    """Operator and subtask, for names of files."""
    working_directory: Path | None = None
    """For a backend that keeps state on local disk."""
    open_files: Callable[[], StateFileReader] | None = None
    """Opens a reader of state files, for snapshots that rewrite what earlier ones wrote."""
    incremental: bool = False
    """Whether checkpoints write only what changed."""
    reuses_objects: bool = False


class KeyedSnapshot(Protocol):
    """The state at a barrier, ready to be written while the job continues."""

    def write(self, files: SnapshotFiles) -> KeyedStateHandle:
        """Writes the state; called once, in a thread of its own. The mailbox thread may change the state meanwhile."""
        ...

    def discard(self) -> None:
        """The snapshot will not be written, or writing it failed: releases what it holds."""
        ...


class KeyedStateBackend(ABC):
    """The keyed state of one operator in one subtask.

    ``key`` is the current key: it is set before a record is processed or a timer fires, and read by every state.

    A backend is restored first, if at all; then states and timers are asked for. All calls come from the mailbox
    thread. A snapshot may use files of earlier checkpoints again only if it was notified that those are complete.
    """

    __slots__ = ("key", "key_groups", "max_parallelism")

    name = ""
    """As in ``state.backend.type``; also the format of its own snapshots."""

    def __init__(self, key_groups: KeyGroupRange, max_parallelism: int):
        self.key: Any = None
        self.key_groups = key_groups
        self.max_parallelism = max_parallelism

    @abstractmethod
    def get_state(self, descriptor: StateDescriptor, namespace_aware: bool = False, *, internal: bool = False) -> Any:
        """The state a descriptor names; the same object for the same name.

        What is stored is copied, and so is what is read, unless objects are reused or the state is ``internal``: that
        of an operator, which sees to it that its values are not shared.

        A namespace-aware state additionally has ``set_current_namespace(namespace)`` and, where its values can be
        merged, ``merge_namespaces(target, sources)``. Refuses a descriptor that does not fit what was restored.
        """

    @abstractmethod
    def timer_queue(self, name: str) -> TimerQueue:
        """The timers of that name, with those restored; snapshots contain them."""

    @abstractmethod
    def descriptors(self) -> Mapping[str, StateDescriptor]:
        """The descriptor each state was first asked for with, by name."""

    @abstractmethod
    def keys(self, state_name: str, namespace: Any = VOID_NAMESPACE) -> Iterator[Any]:
        """The keys that have a value in a state when the first one is asked for; it may change in between."""

    def apply_to_all_keys(self, descriptor: StateDescriptor, function: Callable[[Any, Any], Any]) -> None:
        """Calls ``function(key, state)`` for every key that has a value in a state, which it may change or clear."""
        state = self.get_state(descriptor)
        before = self.key
        for key in self.keys(descriptor.get_name()):
            self.key = key
            function(key, state)
        # not so after an error, which is to name the key it was about
        self.key = before

    @abstractmethod
    def entries(self, state_name: str) -> Iterator[tuple[Any, Any, Any]]:
        """Everything a state holds as (namespace, key, stored value); stored values look the same in all backends."""

    def stored(self, state_name: str, key: Any) -> dict[Any, Any]:
        """What a state holds of one key, by namespace, as ``entries`` gives it. Changes nothing, no time of access."""
        return {namespace: stored for namespace, found, stored in self.entries(state_name) if found == key}

    @abstractmethod
    def snapshot(self, checkpoint_id: int, kind: SnapshotKind) -> KeyedSnapshot:
        """The synchronous part of a snapshot: costs what changed since the last one, not what there is."""

    @abstractmethod
    def restore(self, handles: Sequence[KeyedStateHandle], files: StateFileReader, *, reusable: bool) -> None:
        """Takes the state of this backend's key groups out of handles, which may hold other groups as well.

        With ``reusable`` the handles belong to a checkpoint of this job, whose files later snapshots may share.
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027 - optional
        """The snapshot of that number is part of a completed checkpoint: its files may be used again."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:  # noqa: B027 - optional
        """The snapshot of that number will never be used: its files are deleted."""

    def close(self) -> None:  # noqa: B027 - optional
        """Releases what the backend holds."""


class ObjectTable(Protocol):
    """The entries of one state as Python objects: a dictionary from key to stored value per namespace.

    Where changes are tracked, an operator that changes an entry of a namespace adds its key to ``changed(namespace)``.
    A set from there is valid until the next snapshot, when the listeners of ``on_snapshot`` are called.
    """

    namespaces: dict[Any, dict[Any, Any]]
    tracked: bool

    def changed(self, namespace: Any) -> set[Any]:
        """Returns the keys of a namespace that changed since the last snapshot."""

    def add_new(self, namespace: Any, entries: dict[Any, Any]) -> None:
        """Adds a namespace, all of which is in the next snapshot: until then its changes need not be marked."""

    def on_snapshot(self, listener: Callable[[], None]) -> None:
        """Adds a listener."""

    def drop(self, namespace: Any) -> None:
        """Removes a namespace with all its entries."""


class DerivedTimers(Protocol):
    """Timers that an operator does not keep one by one but that a canonical snapshot must contain."""

    source: str
    """The state whose entries the timers are derived from."""
    table: str
    """The table that the timers go into."""
    omitted: frozenset[str]
    """States that stand for these timers in other snapshots, and are left out where the timers are."""

    def timers(self, namespace: Any, keys: Sequence[Any]) -> list[tuple[int, Any, Any]]:
        """Returns the timers of entries of the state."""


class ObjectStateBackend(KeyedStateBackend):
    """A backend that keeps state as Python objects and gives operators direct access to them."""

    __slots__ = ("derived_timers",)

    def __init__(self, key_groups: KeyGroupRange, max_parallelism: int):
        super().__init__(key_groups, max_parallelism)
        self.derived_timers: Callable[[], DerivedTimers] | None = None
        """Called in the synchronous part of a canonical snapshot; set by an operator that has such timers."""

    @abstractmethod
    def state_table(self, name: str) -> ObjectTable:
        """Returns the entries of a state that ``get_state`` has returned, with those restored."""

    @abstractmethod
    def replace_table(self, table: Any) -> None:
        """Puts another table in place of the one of its name; it holds what was restored."""

    @abstractmethod
    def restored_states(self) -> Mapping[str, StateMeta]:
        """Returns what the backend was restored with, by name; timers under the name of their table."""

    @abstractmethod
    def drop_state(self, name: str) -> None:
        """Removes a restored state that no operator has asked for."""


def check_not_none(value: Any) -> None:
    """Refuses what a list state cannot hold, as in Flink."""
    if value is None:
        raise ValueError("None cannot be added to a list state")
