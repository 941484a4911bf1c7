"""Slot sharing: which slot each subtask runs in."""

from __future__ import annotations

from dataclasses import dataclass

import mmh3

from firesteel.graph.job_graph import JobGraph
from firesteel.graph.transformation import ResourceProfile

__all__ = ["SlotAssignment", "SlotGroup", "assign_slots", "slot_counts"]


@dataclass(frozen=True)
class SlotGroup:
    """Vertices whose subtasks share slots: as many slots as the widest of them has subtasks."""

    name: str
    id: str
    vertex_ids: tuple[str, ...]
    first_slot: int
    slot_count: int
    resource_profile: ResourceProfile | None = None


@dataclass(frozen=True)
class SlotAssignment:
    """Slots numbered from 0, one group's after the other's."""

    groups: tuple[SlotGroup, ...]
    _parallelism: dict[str, int]

    @property
    def total(self) -> int:
        """How many slots the job needs."""
        return sum(group.slot_count for group in self.groups)

    def group_of(self, vertex_id: str) -> SlotGroup:
        """The group a vertex belongs to."""
        return next(group for group in self.groups if vertex_id in group.vertex_ids)

    def slot_of(self, vertex_id: str, subtask: int) -> int:
        """The slot a subtask runs in: subtask i in the i-th slot of the vertex's group."""
        if not 0 <= subtask < self._parallelism[vertex_id]:
            raise IndexError(f"vertex {vertex_id} has no subtask {subtask}")
        return self.group_of(vertex_id).first_slot + subtask

    def subtasks_in(self, slot: int) -> list[tuple[str, int]]:
        """The (vertex id, subtask) pairs of a slot, upstream vertices first."""
        for group in self.groups:
            subtask = slot - group.first_slot
            if 0 <= subtask < group.slot_count:
                return [(v, subtask) for v in group.vertex_ids if subtask < self._parallelism[v]]
        raise IndexError(f"the job has {self.total} slots, so there is no slot {slot}")


def slot_counts(job_graph: JobGraph) -> dict[str, int]:
    """Slots per slot sharing group, in the order in which the groups first occur."""
    counts: dict[str, int] = {}
    for vertex in job_graph.vertices:
        counts[vertex.slot_sharing_group] = max(counts.get(vertex.slot_sharing_group, 0), vertex.parallelism)
    return counts


def assign_slots(job_graph: JobGraph) -> SlotAssignment:
    """Places every subtask of a job, the same way each time."""
    groups: list[SlotGroup] = []
    first_slot = 0
    for name, count in slot_counts(job_graph).items():
        groups.append(
            SlotGroup(
                name=name,
                id=mmh3.hash_bytes(f"{job_graph.job_id}/{name}".encode()).hex(),
                vertex_ids=tuple(v.id for v in job_graph.vertices if v.slot_sharing_group == name),
                first_slot=first_slot,
                slot_count=count,
                resource_profile=job_graph.slot_resources.get(name),
            )
        )
        first_slot += count
    return SlotAssignment(tuple(groups), {v.id: v.parallelism for v in job_graph.vertices})
