from __future__ import annotations

import pytest

from firesteel.graph.slots import assign_slots, slot_counts
from firesteel.graph.transformation import ResourceProfile


@pytest.fixture
def two_groups(program):
    stream = program.keyed(program.source(parallelism=2), "Wide", parallelism=3)
    program.sink(stream, parallelism=2, slot_sharing_group="sinks", resource_profile=ResourceProfile(cpu_cores=0.5))
    return program.job_graph()


def test_a_group_needs_as_many_slots_as_its_widest_vertex(two_groups) -> None:
    assert slot_counts(two_groups) == {"default": 3, "sinks": 2}
    assert assign_slots(two_groups).total == 5


def test_subtask_i_runs_in_slot_i_of_its_group(two_groups) -> None:
    source, wide, sink = (vertex.id for vertex in two_groups.vertices)
    slots = assign_slots(two_groups)
    assert [slots.slot_of(source, i) for i in range(2)] == [0, 1]
    assert [slots.slot_of(wide, i) for i in range(3)] == [0, 1, 2]
    assert [slots.slot_of(sink, i) for i in range(2)] == [3, 4]


def test_every_subtask_is_in_exactly_one_slot(two_groups) -> None:
    slots = assign_slots(two_groups)
    placed = [subtask for slot in range(slots.total) for subtask in slots.subtasks_in(slot)]
    assert sorted(placed) == sorted((v.id, i) for v in two_groups.vertices for i in range(v.parallelism))
    for slot in range(slots.total):
        assert all(slots.slot_of(*subtask) == slot for subtask in slots.subtasks_in(slot))


def test_what_does_not_exist(two_groups) -> None:
    slots = assign_slots(two_groups)
    with pytest.raises(IndexError):
        slots.slot_of(two_groups.vertices[0].id, 2)
    with pytest.raises(IndexError):
        slots.subtasks_in(5)


def test_groups_carry_resources_and_a_stable_id(two_groups) -> None:
    first, second = assign_slots(two_groups).groups, assign_slots(two_groups).groups
    assert first == second
    assert [group.resource_profile for group in first] == [None, ResourceProfile(cpu_cores=0.5)]
    assert len({group.id for group in first}) == 2
    assert all(len(group.id) == 32 for group in first)
