"""Flame graphs: requests stack samples from slots, caches them, and aggregates them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from firesteel.config.cluster_options import FLAMEGRAPH_DELAY, FLAMEGRAPH_REFRESH, FLAMEGRAPH_SAMPLES
from firesteel.config.configuration import Configuration
from firesteel.rest.diagnostics import FlameGraphNode
from firesteel.runtime.slot.stack_sampling import SampleStacks, StackSample

__all__ = ["FlameGraphs", "SampledGroup", "flame_graph"]

ANSWER_TIMEOUT_S = 10.0
"""How long a slot may take beyond the sampling itself."""
RETRY_INTERVAL_S = 5.0
MAX_SLOTS = 64
"""The maximum number of slots to sample: more of them add little."""
MAX_KEPT_SAMPLINGS = 64

Ask = Callable[[int, Any, float], "Future[Any]"]
SampledGroup = tuple[str, int, str]
"""Job, attempt and slot sharing group: the vertices of a group share slots, and so samples."""


@dataclass
class _Sampling:
    samples: list[StackSample] = field(default_factory=list)
    ended_ms: int | None = None
    due: float = 0.0
    """When to sample again (monotonic)."""
    waiting: int = 0
    found: list[StackSample] = field(default_factory=list)


class FlameGraphs:
    """Samples in the background while clients request it; nothing is sampled otherwise."""

    def __init__(self, configuration: Configuration):
        self._question = SampleStacks(
            max(1, configuration.get(FLAMEGRAPH_SAMPLES)), configuration.get(FLAMEGRAPH_DELAY).to_millis() / 1000
        )
        self._refresh_s = configuration.get(FLAMEGRAPH_REFRESH).to_millis() / 1000
        self._lock = threading.Lock()
        self._samplings: OrderedDict[SampledGroup, _Sampling] = OrderedDict()

    def samples(self, group: SampledGroup, slots: Iterable[int], ask: Ask) -> tuple[int, list[StackSample]] | None:
        """When the last samples were taken, and these; None if there are none yet. New ones are taken if it is time."""
        slots = list(slots)[:MAX_SLOTS]
        with self._lock:
            sampling = self._samplings.setdefault(group, _Sampling())
            self._samplings.move_to_end(group)
            while len(self._samplings) > MAX_KEPT_SAMPLINGS:
                self._samplings.popitem(last=False)
            begins = not sampling.waiting and time.monotonic() >= sampling.due
            if begins:
                sampling.waiting, sampling.found = len(slots), []
            taken = None if sampling.ended_ms is None else (sampling.ended_ms, sampling.samples)
        if begins:
            timeout = self._question.samples * self._question.interval_s + ANSWER_TIMEOUT_S
            for slot in slots:
                ask(slot, self._question, timeout).add_done_callback(
                    lambda future, sampling=sampling: self._answered(sampling, future)  # type: ignore[misc]
                )
        return taken

    def _answered(self, sampling: _Sampling, answer: Future[Any]) -> None:
        with self._lock:
            sampling.waiting -= 1
            if not answer.cancelled() and answer.exception() is None:
                sampling.found += answer.result()
            if sampling.waiting:
                return
            if sampling.found:
                sampling.samples, sampling.found = sampling.found, []
                sampling.ended_ms = time.time_ns() // 1_000_000
                sampling.due = time.monotonic() + self._refresh_s
            else:
                sampling.due = time.monotonic() + RETRY_INTERVAL_S


def flame_graph(
    samples: Iterable[StackSample], vertex_id: str, subtask: int | None, on_cpu: bool | None
) -> FlameGraphNode:
    """The samples of a vertex, or of one of its subtasks, as a tree; ``on_cpu`` None takes both sorts.

    >>> graph = flame_graph([("v", 0, True, ("f", "g"), 3), ("v", 1, True, ("f",), 1)], "v", None, True)
    >>> graph.value, [(node.name, node.value, len(node.children)) for node in graph.children]
    (4, [('f', 4, 1)])
    """
    root = _Node()
    for vertex, index, is_on_cpu, stack, count in samples:
        if vertex == vertex_id and subtask in (None, index) and on_cpu in (None, is_on_cpu):
            node = root
            node.count += count
            for name in stack:
                node = node.children.setdefault(name, _Node())
                node.count += count
    return FlameGraphNode("root", root.count, _children(root.children))


@dataclass
class _Node:
    count: int = 0
    children: dict[str, _Node] = field(default_factory=dict)


def _children(nodes: Mapping[str, _Node]) -> list[FlameGraphNode]:
    return [FlameGraphNode(name, node.count, _children(node.children)) for name, node in nodes.items()]
