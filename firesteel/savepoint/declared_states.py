"""State descriptors that the operators of a program register, found by opening them without input."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.stream_graph import StreamNode
from firesteel.runtime.chain.context import StreamingRuntimeContext
from firesteel.runtime.model.deployment import OperatorDescriptor, TaskDeploymentDescriptor
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.metrics import Counter, Gauge, MetricRegistry
from firesteel.runtime.model.operator_spec import OperatorRuntime
from firesteel.runtime.model.state_handles import StateMeta
from firesteel.runtime.operators.base import StateInitializationContext, StreamOperator
from firesteel.runtime.operators.inline import InlineOperator
from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.runtime.state.api.compatibility import meta_of
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.turns import Turn
from firesteel.spi.execution_traits import PIPELINED

__all__ = ["DeclaredStates", "declared_states"]

# which window operator runs is not known here: the general one names the states that all of them keep
_RUNTIME = OperatorRuntime(PIPELINED, watermark_interval_ms=200, keeps_objects=False)


@dataclass(frozen=True)
class DeclaredStates:
    """What an operator asked for when it was opened."""

    keyed: tuple[StateMeta, ...] = ()
    lists: tuple[tuple[str, str], ...] = ()
    """Name and mode of each list of operator state that the user's function asked for."""
    is_known: bool = True
    """False if opening it failed, or was not tried: then it may ask for anything."""
    problem: str | None = None
    """Why it is not known."""


def declared_states(job_graph: JobGraph, *, open_functions: bool = True) -> dict[str, DeclaredStates]:
    """The states of every operator by operator id; states asked for later than in ``open`` are not among them."""
    return {
        operator.node.operator_id: _declared(operator.node, vertex.name, job_graph.configuration, open_functions)
        for vertex in job_graph.vertices
        for operator in vertex.operators
    }


def _declared(node: StreamNode, task: str, configuration: Configuration, open_functions: bool) -> DeclaredStates:
    if not node.spec.declares_states(is_keyed=bool(node.key_selectors)):
        return DeclaredStates()
    if not open_functions:
        spec = node.spec.without_user_functions()
        if spec is None:
            return DeclaredStates(is_known=False, problem="its function was not opened")
        node = replace(node, spec=spec)
    context = _OpeningContext(node, task, configuration)
    problem = None
    try:
        operator = node.spec.create(_RUNTIME)
        assert isinstance(operator, InlineOperator | StreamOperator)
        operator.initialize_state(StateInitializationContext(context))
        operator.open(context)
        operator.close()
    except Exception as error:  # noqa: BLE001 - user code may raise anything; then its states are unknown
        problem = f"open() failed: {type(error).__name__}: {error}"
    return DeclaredStates(
        keyed=() if context.backend is None else tuple(map(meta_of, context.backend.descriptors().values())),
        lists=tuple((name, mode) for name, mode, _ in context.operator_state.snapshot().lists),
        is_known=problem is None,
        problem=problem,
    )


def _now() -> int:
    return time.time_ns() // 1_000_000


class _OpeningContext:
    """Lets an operator open, and nothing more."""

    def __init__(self, node: StreamNode, task: str, configuration: Configuration):
        self.key_selectors: tuple[Callable[[Any], Any], ...] = node.key_selectors
        self.backend: KeyedStateBackend | None = None
        if node.key_selectors:
            key_groups = KeyGroupRange(0, node.max_parallelism - 1)
            self.backend = HashMapKeyedStateBackend(key_groups, node.max_parallelism, _now)
        self.operator_state = OperatorStateBackend()
        self.checkpointing = True
        self.execution = PIPELINED
        self.reuses_objects = self.copies_results = False
        self.turn = Turn()
        self.input_clock = InputClock(_now)
        self._metrics = MetricRegistry()
        descriptor = OperatorDescriptor(node.id, node.operator_id, node.name, node.spec, uid=node.uid)
        subtask = TaskDeploymentDescriptor(
            vertex_id=node.operator_id,
            name=task,
            subtask=0,
            parallelism=node.parallelism,
            max_parallelism=node.max_parallelism,
            attempt=0,
            slot=0,
            operators=(descriptor,),
            configuration=configuration,
        )
        self.runtime_context = StreamingRuntimeContext(subtask, descriptor, self.backend, self._metrics)

    @property
    def event_loop(self) -> Any:
        """Not there: operators with async functions are not opened."""
        raise NotImplementedError

    def wakeup(self) -> None:
        """Nobody waits."""

    def wait_for_results(self) -> None:
        """Nothing is called."""

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        """There is no downstream."""

    def emit_in_turn(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> int:
        """There is no downstream."""
        return 0

    def emit_side(self, tag: Any, values: list[Any], timestamps: list[int] | None) -> None:
        """There is no downstream."""

    def emit_watermark(self, timestamp: int) -> None:
        """There is no downstream."""

    def emit_idle(self, idle: bool) -> None:
        """There is no downstream."""

    def timer_service(self, name: str, triggerable: Any) -> Any:
        """Timers that never fire."""
        return _NoTimers()

    def processing_time(self) -> int:
        """The wall clock in milliseconds."""
        return _now()

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        """Nothing is ever due."""

    def monotonic_ms(self) -> int:
        """Time stands still."""
        return 0

    def schedule_after(self, delay: int, callback: Callable[[], None]) -> None:
        """Nothing is ever due."""

    def counter(self, name: str) -> Counter:
        """A counter that is never read."""
        return self._metrics.counter(name)

    def gauge(self, name: str, read: Callable[[], Any]) -> Gauge:
        """A gauge that is never read."""
        return self._metrics.gauge(name, read)


class _NoTimers:
    current_watermark = MIN_TIMESTAMP

    def current_processing_time(self) -> int:
        return _now()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith(("register_", "delete_", "advance_")):
            return _do_nothing
        raise AttributeError(name)


def _do_nothing(*_: Any) -> None:
    pass
