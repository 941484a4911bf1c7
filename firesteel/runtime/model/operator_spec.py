"""Operator specification: a frozen picklable value that creates the operator (Flink's operator factory).

A spec is made by the API, carried by the graphs and asked for its operator where a task starts. It lies in one module
with its operator. Nothing else knows an operator by name, so packages outside of ``runtime`` add their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.spi.sink import DeliveryGuarantee

if TYPE_CHECKING:
    from firesteel.spi.execution_traits import ExecutionTraits
    from firesteel.spi.sink import Sink
    from firesteel.spi.source import Source

__all__ = ["FunctionSpec", "Operator", "OperatorRuntime", "OperatorSpec", "is_opened"]


class Operator:
    """Root of all operators: those that process batches, and those that become lines of a generated loop."""


@dataclass(frozen=True)
class OperatorRuntime:
    """What a spec can ask about the task for which it creates an operator."""

    execution: ExecutionTraits
    """What holds because of how the job is executed."""
    watermark_interval_ms: int
    keeps_objects: bool
    """Whether the state backend holds state as Python objects."""


@dataclass(frozen=True)
class OperatorSpec(ABC):
    """Root of all operator specs."""

    @abstractmethod
    def create(self, runtime: OperatorRuntime) -> Operator:
        """Returns a new operator for one subtask."""

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Returns the user's functions by role, for failure reports."""
        return {}

    def user_function(self) -> Any:
        """Returns the function object that may be a CheckpointedFunction, or None."""
        return None

    def get_source(self) -> Source[Any] | None:
        """Returns the source that the operator reads, if it is a source operator."""
        return None

    def get_sink(self) -> Sink | None:
        """Returns the sink that the operator writes to, if it is a sink operator."""
        return None

    def get_required_guarantee(self) -> DeliveryGuarantee:
        """Returns the delivery guarantee that the program requires of the sink."""
        return DeliveryGuarantee.NONE

    def get_watermark_strategy(self) -> Any:
        """Returns the WatermarkStrategy of an operator that generates watermarks, or None."""
        return None

    def associative_reduction(self) -> tuple[str, int | str] | None:
        """Returns the reduction that may be computed in parts before the exchange, if the operator is one."""
        return None

    def declares_states(self, *, is_keyed: bool) -> bool:
        """Whether the operator registers states when it is opened; asked without a cluster."""
        return is_keyed or hasattr(self.user_function(), "initialize_state")

    def without_user_functions(self) -> OperatorSpec | None:
        """Returns a spec that registers the same states and can be opened without calling the user's code."""
        return None

    @property
    def awaits_functions(self) -> bool:
        """Whether the operator calls coroutine functions; others cannot."""
        return False

    @property
    def has_broadcast_side(self) -> bool:
        """Whether the second input is a broadcast stream."""
        return False


@dataclass(frozen=True)
class FunctionSpec(OperatorSpec):
    """An operator with one user function: a bare callable or a Function object."""

    function: Any

    def user_function(self) -> Any:
        return self.function

    def without_user_functions(self) -> OperatorSpec | None:
        """Returns the spec itself if opening the function calls no user code."""
        return None if is_opened(self.function) else self


def is_opened(function: Any) -> bool:
    """Whether a function has code of its own that is called before the first record."""
    function = getattr(function, "wrapped_function", function)
    owners = [owner for name in ("open", "initialize_state") for owner in type(function).__mro__ if name in vars(owner)]
    return any(not owner.__module__.startswith("firesteel.") for owner in owners)
