"""Keyed state: interfaces and state descriptors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from firesteel.api.state_ttl import StateTtlConfig

if TYPE_CHECKING:
    from firesteel.common.typeinfo import TypeInformation

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Base class of keyed state. Every access is to the value of the current key."""

    @abstractmethod
    def clear(self) -> None:
        """Removes the current key's value."""


class ValueState(State, Generic[T]):
    """One value per key."""

    @abstractmethod
    def value(self) -> T:
        """The current key's value, or None if there is none."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Replaces the current key's value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to and that is read as a whole."""

    @abstractmethod
    def get(self) -> OUT:
        """The result of the values added so far."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Adds one value."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state that supports merging, as required by merging windows."""


class ReducingState(MergingState[T, T]):
    """One value per key, into which each added value is reduced."""


class AggregatingState(MergingState[IN, OUT]):
    """One accumulator per key, to which each value is added."""


class ListState(MergingState[T, Iterable[T]]):
    """A list of elements per key."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replaces all elements."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Appends elements."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapState(State, Generic[K, V]):
    """A map per key."""

    @abstractmethod
    def get(self, key: K) -> V:
        """The value of a map key, or None."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Sets one entry."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V] | Iterable[tuple[K, V]]) -> None:
        """Sets many entries: those of a dict, or pairs of key and value."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Removes an entry if it is there."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is an entry."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All map keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no entry."""

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """Read-only access to broadcast state, a map that is the same in every subtask."""

    @abstractmethod
    def get(self, key: K) -> V:
        """The value of a map key, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is an entry."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All map keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no entry."""

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """Broadcast state: a map that is the same in every subtask."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Sets one entry."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V] | Iterable[tuple[K, V]]) -> None:
        """Sets many entries: those of a dict, or pairs of key and value."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Removes an entry if it is there."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class OperatorStateStore(ABC):
    """Access to operator state, which is not keyed.

    The lists are for a CheckpointedFunction: an element is the unit of redistribution.
    """

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are redistributed when the job is restored with another parallelism."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements of all subtasks are restored in every subtask."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The broadcast state a descriptor names."""


class StateDescriptor(ABC):  # noqa: B024 - the five kinds below are all there are
    """Describes a state of a function: its name, type and time-to-live."""

    kind: ClassVar[str] = ""
    """Which of the kinds this is, in the words the state backends use."""

    def __init__(self, name: str, type_info: TypeInformation | None):
        if not isinstance(name, str) or not name:
            raise ValueError(f"A state's name must be a non-empty string, got {name!r}.")
        self.name = name
        self.type_info = type_info
        self.ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """The name of the state, unique within its function."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Lets values expire as configured."""
        # a disabled configuration costs the hot path nothing if it is forgotten here
        self.ttl_config = ttl_config if ttl_config.is_enabled() else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ValueStateDescriptor(StateDescriptor):
    """Describes a :class:`ValueState`."""

    kind: ClassVar[str] = "value"

    def __init__(self, name: str, value_type_info: TypeInformation | None = None):
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """Describes a :class:`ListState`; ``type_info`` is the type of the whole list."""

    kind: ClassVar[str] = "list"

    def __init__(self, name: str, elem_type_info: TypeInformation | None = None):
        super().__init__(name, None if elem_type_info is None else _types().LIST(elem_type_info))


class MapStateDescriptor(StateDescriptor):
    """Describes a :class:`MapState`; ``type_info`` is the type of the whole map."""

    kind: ClassVar[str] = "map"

    def __init__(
        self,
        name: str,
        key_type_info: TypeInformation | None = None,
        value_type_info: TypeInformation | None = None,
    ):
        typed = key_type_info is not None and value_type_info is not None
        super().__init__(name, _types().MAP(key_type_info, value_type_info) if typed else None)


class ReducingStateDescriptor(StateDescriptor):
    """Describes a :class:`ReducingState`, with a ReduceFunction or a callable of two values."""

    kind: ClassVar[str] = "reducing"

    def __init__(self, name: str, reduce_function: Any, type_info: TypeInformation | None = None):
        super().__init__(name, type_info)
        if not callable(getattr(reduce_function, "reduce", None)):
            if not callable(reduce_function):
                raise TypeError(
                    f"The reduce_function of state '{name}' must be a ReduceFunction or a callable, "
                    f"got {type(reduce_function).__name__}."
                )
            reduce_function = _CallableReduce(reduce_function)
        self.reduce_function = reduce_function

    def get_reduce_function(self) -> Any:
        """An object whose ``reduce`` combines two values."""
        return self.reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Describes an :class:`AggregatingState`, with an AggregateFunction."""

    kind: ClassVar[str] = "aggregating"

    def __init__(self, name: str, agg_function: Any, state_type_info: TypeInformation | None = None):
        super().__init__(name, state_type_info)
        missing = [m for m in ("create_accumulator", "add", "get_result", "merge") if not hasattr(agg_function, m)]
        if missing:
            raise TypeError(
                f"The agg_function of state '{name}' must be an AggregateFunction; "
                f"{type(agg_function).__name__} lacks {', '.join(missing)}."
            )
        self.agg_function = agg_function

    def get_agg_function(self) -> Any:
        """The AggregateFunction."""
        return self.agg_function


class _CallableReduce:
    """Gives a bare callable the shape of a ReduceFunction, at no cost per call."""

    def __init__(self, function: Callable[[Any, Any], Any]):
        self.reduce = function


def _types() -> Any:
    # descriptors without types must not load the type catalogue in every task
    from firesteel.common.typeinfo import Types

    return Types
