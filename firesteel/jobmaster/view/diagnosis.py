"""Bottleneck diagnosis: which vertex slows a job down.

Backpressure runs upstream: a task that cannot hand its records on waits, and so do all before it. So of the vertices
that wait, the one closest to the sinks waits for a neighbour that does not wait itself, and works as much as it can.
That neighbour is the bottleneck.
"""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.common.job_status import JobStatus
from firesteel.jobmaster.view.job import JobView
from firesteel.jobmaster.view.vertices import VertexView

__all__ = ["Diagnosis", "Load", "Skewed", "diagnose"]

BACKPRESSURED_MS = 100.0
"""Milliseconds of a second that a vertex waits, above which it is backpressured: Flink's LOW."""
BUSY_MS = 500.0
"""Milliseconds of a second that a vertex works, above which it is busy."""

_SKEW_FACTOR = 3.0
"""How many times the records of the others a subtask must have got to be the reason."""
_SKEW_RECORDS = 1000
"""The minimum number of records for a diagnosis."""


@dataclass(frozen=True, slots=True)
class Load:
    """How the busiest subtask of a vertex, or the one that waits most, spends a second; in milliseconds."""

    busy: float
    back_pressured: float
    idle: float
    in_pool_usage: float


@dataclass(frozen=True, slots=True)
class Skewed:
    """One subtask gets far more records than the others."""

    subtask: int
    records: int
    share: float
    skew: float
    """The mean deviation from the mean, in per cent of it."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The bottleneck of a job and the vertices that wait for it, nearest first."""

    vertex: VertexView
    load: Load
    waiting: tuple[VertexView, ...]
    skewed: Skewed | None
    explanation: str


def diagnose(view: JobView) -> Diagnosis | None:
    """The bottleneck; None if nothing waits."""
    if view.status is not JobStatus.RUNNING:
        return None  # what was measured last is over
    vertices = {vertex.id: vertex for vertex in view.vertices()}
    loads = {vertex_id: _load(vertex) for vertex_id, vertex in vertices.items()}
    waiting = [vertex_id for vertex_id in vertices if loads[vertex_id].back_pressured > BACKPRESSURED_MS]
    if not waiting:
        return None
    # in topological order, so the last one that waits is the closest to the sinks
    for last in reversed(waiting):
        consumers = [edge.target_vertex for edge in vertices[last].job_vertex.output_edges]
        working = [consumer for consumer in consumers if loads[consumer].back_pressured <= BACKPRESSURED_MS]
        if working:
            slowest = max(working, key=lambda each: (loads[each].busy, loads[each].in_pool_usage))
            return _explain(vertices, loads, slowest)
    return None


def _load(vertex: VertexView) -> Load:
    """The greatest of each: one subtask that is busy all the time holds up everything, however idle the others are."""
    subtasks = vertex.subtasks()
    return Load(
        busy=max((subtask.rate("busyTimeMsPerSecond") for subtask in subtasks), default=0.0),
        back_pressured=max((subtask.rate("backPressuredTimeMsPerSecond") for subtask in subtasks), default=0.0),
        idle=min((subtask.rate("idleTimeMsPerSecond") for subtask in subtasks), default=0.0),
        in_pool_usage=max((subtask.rate("inPoolUsage") for subtask in subtasks), default=0.0),
    )


def _explain(vertices: dict[str, VertexView], loads: dict[str, Load], slowest: str) -> Diagnosis:
    vertex, load = vertices[slowest], loads[slowest]
    waiting = _waiting_for(vertices, loads, slowest)
    skewed = _skew(vertex)
    names = ", ".join(f"'{each.name}' ({loads[each.id].back_pressured / 10:.0f}%)" for each in waiting)
    sentence = (
        f"'{vertex.name}' is the bottleneck: it is busy {load.busy / 10:.0f}% of the time and not backpressured, while "
        f"{names} upstream wait{'s' if len(waiting) == 1 else ''} for it."
    )
    if skewed is not None:
        sentence += (
            f" Its subtask {skewed.subtask} received {skewed.share:.0%} of all records, far more than the others: a "
            "few keys have most of the records. A higher parallelism does not help; use keys that distribute the "
            "records evenly."
        )
    elif load.busy > BUSY_MS:
        sentence += " Make it faster, or give it a higher parallelism."
    else:
        sentence += " It does not take its records as fast as it could: look at the network, and at its other inputs."
    return Diagnosis(vertex, load, waiting, skewed, sentence)


def _waiting_for(vertices: dict[str, VertexView], loads: dict[str, Load], slowest: str) -> tuple[VertexView, ...]:
    found: dict[str, None] = {}
    pending = [slowest]
    while pending:
        for edge in vertices[pending.pop(0)].job_vertex.input_edges:
            source = edge.source_vertex
            if source not in found and loads[source].back_pressured > BACKPRESSURED_MS:
                found[source] = None
                pending.append(source)
    return tuple(vertices[vertex_id] for vertex_id in found)


def _skew(vertex: VertexView) -> Skewed | None:
    records = [subtask.io().records_in for subtask in vertex.subtasks()]
    total, most = sum(records), max(records, default=0)
    mean = total / len(records) if records else 0.0
    if len(records) < 2 or total < _SKEW_RECORDS or most < _SKEW_FACTOR * (total - most) / (len(records) - 1):
        return None
    deviation = sum(abs(number - mean) for number in records) / len(records)
    return Skewed(records.index(most), most, most / total, min(100.0, deviation / mean * 100))
