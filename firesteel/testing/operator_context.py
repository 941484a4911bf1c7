"""Operator context of a harness: collects what the operator emits, with a manual clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from firesteel.api.output_tag import OutputTag
from firesteel.runtime.model.elements import MIN_TIMESTAMP
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.metrics import Counter, Gauge, MetricRegistry
from firesteel.runtime.model.operator_spec import OperatorRuntime
from firesteel.runtime.state.api.backend import KeyedStateBackend
from firesteel.runtime.state.api.operator_state import OperatorStateBackend
from firesteel.runtime.state.hashmap import HashMapKeyedStateBackend
from firesteel.runtime.time.input_clock import InputClock
from firesteel.runtime.time.timers import InternalTimerService, Triggerable
from firesteel.runtime.time.turns import Turn
from firesteel.spi.execution_traits import PIPELINED
from firesteel.testing.clock import FakeClock
from firesteel.testing.virtual_event_loop import ManualEventLoop

__all__ = ["FAKE_RUNTIME", "FakeClock", "FakeOperatorContext", "FakeRuntimeContext"]

FAKE_RUNTIME = OperatorRuntime(PIPELINED, watermark_interval_ms=200, keeps_objects=True)
"""A runtime to create an operator for that is opened with a FakeOperatorContext."""
_MAX_PARALLELISM = 128


class FakeRuntimeContext:
    """The part of a RuntimeContext that an operator alone can offer: keyed state, metrics, and that it is alone."""

    job_id = ""
    run_id = ""
    operator_id = "operator"

    def __init__(self, backend: KeyedStateBackend, metrics: MetricRegistry):
        self._backend = backend
        self._metrics = metrics

    def get_index_of_this_subtask(self) -> int:
        """The only one."""
        return 0

    def get_number_of_parallel_subtasks(self) -> int:
        """One."""
        return 1

    def get_attempt_number(self) -> int:
        """The first."""
        return 0

    def get_metrics_group(self) -> MetricRegistry:
        """Where counters and gauges are registered."""
        return self._metrics

    def get_state(self, state_descriptor: Any) -> Any:
        """A value per key."""
        return self._backend.get_state(state_descriptor)

    get_list_state = get_map_state = get_reducing_state = get_aggregating_state = get_state


class FakeOperatorContext:
    """An OperatorContext whose outputs are lists.

    ``output`` holds (value, timestamp) pairs, ``side_output`` the same per tag, ``watermarks`` those sent on, and
    ``events`` these with "idle" and "active" between them.
    """

    def __init__(
        self,
        key_selector: Callable[[Any], Any] | None,
        clock: FakeClock | None = None,
        backend: KeyedStateBackend | None = None,
    ):
        self.key_selectors: tuple[Callable[[Any], Any], ...] = () if key_selector is None else (key_selector,)
        self.clock = FakeClock() if clock is None else clock
        self.metrics = MetricRegistry()
        self._keyed_state = backend or HashMapKeyedStateBackend(
            KeyGroupRange(0, _MAX_PARALLELISM - 1), _MAX_PARALLELISM, self.clock
        )
        self.backend: KeyedStateBackend | None = self._keyed_state
        self.operator_state = OperatorStateBackend()
        self.checkpointing = False
        self.execution = PIPELINED
        self.reuses_objects = False
        self.copies_results = True
        self.runtime_context: Any = FakeRuntimeContext(self._keyed_state, self.metrics)
        self.output: list[tuple[Any, int]] = []
        self.side_output: dict[OutputTag, list[tuple[Any, int]]] = {}
        self.watermarks: list[int] = []
        self.events: list[int | str] = []
        self.timer_services: dict[str, InternalTimerService] = {}
        self.turn = Turn()
        self.input_clock = InputClock(self.clock.monotonic_ms)
        self.event_loop = ManualEventLoop(self.clock, self.wakeup)

    def wakeup(self) -> None:
        """Nobody waits."""

    def wait_for_results(self) -> None:
        """Lets calls go as far as they can."""
        self.event_loop.run_ready()

    def emit(self, values: list[Any], timestamps: list[int] | None) -> None:
        """Keeps records."""
        self.output.extend(_pairs(values, timestamps))

    def emit_in_turn(self, values: Sequence[Any], timestamps: Sequence[int] | None) -> int:
        """Keeps records, all of them."""
        self.emit(values, timestamps)  # type: ignore[arg-type]
        return 0

    def emit_side(self, tag: OutputTag, values: list[Any], timestamps: list[int] | None) -> None:
        """Keeps records of a side output."""
        self.side_output.setdefault(tag, []).extend(_pairs(values, timestamps))

    def emit_watermark(self, timestamp: int) -> None:
        """Keeps a watermark."""
        self.watermarks.append(timestamp)
        self.events.append(timestamp)

    def emit_idle(self, idle: bool) -> None:
        """Keeps a status."""
        self.events.append("idle" if idle else "active")

    def timer_service(self, name: str, triggerable: Triggerable) -> InternalTimerService:
        """The named timer service, driven by the fake clock."""
        if name not in self.timer_services:
            self.timer_services[name] = InternalTimerService(
                self._keyed_state, triggerable, self.clock, self.clock.schedule, name, self.turn
            )
        return self.timer_services[name]

    def processing_time(self) -> int:
        """The fake clock's time."""
        return self.clock.now

    def schedule(self, timestamp: int, callback: Callable[[int], None]) -> None:
        """Calls back when a test moves the clock there."""
        self.clock.schedule(timestamp, callback)

    def monotonic_ms(self) -> int:
        """The fake clock's time, without steps."""
        return self.clock.monotonic_ms()

    def schedule_after(self, delay: int, callback: Callable[[], None]) -> None:
        """Calls back when a test has moved the clock so far."""
        self.clock.schedule_after(delay, callback)

    def counter(self, name: str) -> Counter:
        """The counter of that name."""
        return self.metrics.counter(name)

    def gauge(self, name: str, read: Callable[[], Any]) -> Gauge:
        """Registers a gauge."""
        return self.metrics.gauge(name, read)

    def take_output(self) -> list[tuple[Any, int]]:
        """What was emitted since the last call."""
        taken, self.output = self.output, []
        return taken

    def take_side_output(self, tag: OutputTag) -> list[tuple[Any, int]]:
        """What a side output got since the last call."""
        return self.side_output.pop(tag, [])

    def stored(self, state_name: str) -> dict[Any, dict[Any, Any]]:
        """All a state of the backend holds, as namespace → key → stored value."""
        found: dict[Any, dict[Any, Any]] = {}
        for namespace, key, value in self._keyed_state.entries(state_name):
            found.setdefault(namespace, {})[key] = value
        return found


def _pairs(values: list[Any], timestamps: list[int] | None) -> list[tuple[Any, int]]:
    if timestamps is None:
        return [(value, MIN_TIMESTAMP) for value in values]
    if len(values) != len(timestamps):
        raise AssertionError(f"{len(values)} values but {len(timestamps)} timestamps")
    return list(zip(values, timestamps, strict=True))
