"""State and records in flight find their tasks again, at any parallelism, or the job is refused with names."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.errors import StateIncompatibleError
from firesteel.config.configuration import Configuration
from firesteel.graph.channels import edge_name
from firesteel.graph.execution import Execution, JobExecution
from firesteel.graph.job_graph import ChainedOperator, JobEdge, JobGraph, JobVertex
from firesteel.graph.stream_graph import StreamNode
from firesteel.jobmaster.checkpoints.operator_state_repartitioner import repartition
from firesteel.jobmaster.checkpoints.state_assignment import (
    adopt_max_parallelism,
    assign_state,
    check_compatibility,
)
from firesteel.runtime.checkpoint.metadata import CheckpointMetadata, OperatorState
from firesteel.runtime.model.assigned_state import AssignedOperatorState
from firesteel.runtime.model.checkpoint_options import SnapshotKind
from firesteel.runtime.model.key_groups import KeyGroupRange
from firesteel.runtime.model.partitioner import (
    GlobalPartitioner,
    KeyGroupPartitioner,
    RebalancePartitioner,
)
from firesteel.runtime.model.state_handles import (
    BROADCAST,
    SPLIT,
    UNION,
    ChannelStateHandle,
    FileSegment,
    InlineBytes,
    KeyedPart,
    KeyedStateHandle,
    OperatorStateHandle,
    OperatorSubtaskState,
)
from firesteel.runtime.operators.inline import MapSpec

HASH = KeyGroupPartitioner(str)


def job(parallelism=2, max_parallelism=128, partitioner=HASH, configured=False, names=("source", "sum")):
    """Vertices in a row, each of one operator ``op-<name>`` with uid ``<name>-uid``."""
    vertices, edges = [], []
    for index, name in enumerate(names):
        node = StreamNode(
            id=index,
            name=name,
            spec=MapSpec(str),
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            operator_id=f"op-{name}",
            slot_sharing_group="default",
            uid=f"{name}-uid",
            max_parallelism_configured=configured,
        )
        incoming = ()
        if index:
            edge = JobEdge(len(edges), f"v-{names[index - 1]}", index - 1, f"v-{name}", index, 0, partitioner)
            edges.append(edge)
            incoming = (edge,)
        vertices.append(
            JobVertex(
                f"v-{name}", name, (ChainedOperator(node),), parallelism, max_parallelism, "default", incoming, ()
            )
        )
    execution = Execution(JobExecution.PIPELINED, "it is the default")
    return JobGraph("job", "job", Configuration(), tuple(vertices), tuple(edges), execution)


def keyed(groups, name="part"):
    return KeyedStateHandle("hashmap", groups, (KeyedPart(name, FileSegment(f"/{name}", 0, 1, "0")),))


def keyed_state(parallelism=2, max_parallelism=128, name="sum", **fields):
    subtasks = {
        i: OperatorSubtaskState(keyed(KeyGroupRange.of(i, max_parallelism, parallelism), f"{name}-{i}"))
        for i in range(parallelism)
    }
    return OperatorState(f"op-{name}", f"{name}-uid", name, parallelism, max_parallelism, subtasks, **fields)


def listed(name, items, mode=SPLIT):
    return OperatorStateHandle(name, mode, items, InlineBytes(b""))


def metadata(*operators, channels=()):
    return CheckpointMetadata(
        checkpoint_id=7,
        job_id="old",
        job_name="old",
        timestamp=0,
        kind=SnapshotKind.CHECKPOINT,
        operators=operators,
        channels=tuple(channels),
    )


def assign(stored, graph, allow_non_restored=False, reusable=True):
    return assign_state(stored, graph, allow_non_restored=allow_non_restored, reusable=reusable)


# -- keyed state -------------------------------------------------------------------------------------


def test_unchanged_parallelism_gives_everybody_its_own():
    assigned = assign(metadata(keyed_state()), job())
    for subtask in (0, 1):
        task = assigned["v-sum", subtask]
        assert [handle.parts[0].name for handle in task.operators["op-sum"].keyed] == [f"sum-{subtask}"]
        assert task.checkpoint_id == 7
        assert task.reusable
        assert not task.rescaled
        assert not task.finished
    assert assigned["v-source", 0].operators == {}


@given(old=st.integers(1, 12), new=st.integers(1, 12), max_parallelism=st.sampled_from([12, 13, 128]))
def test_every_key_group_is_found_in_exactly_the_handles_that_hold_it(old, new, max_parallelism):
    assigned = assign(metadata(keyed_state(old, max_parallelism)), job(new, max_parallelism))
    for subtask in range(new):
        own = set(KeyGroupRange.of(subtask, max_parallelism, new))
        handles = assigned["v-sum", subtask].operators["op-sum"].keyed
        assert own <= {group for handle in handles for group in handle.key_groups}
        assert all(own & set(handle.key_groups) for handle in handles)
        assert assigned["v-sum", subtask].rescaled == (old != new)


# -- operator state ----------------------------------------------------------------------------------


def spans(assigned):
    return [[(each.handle.name, each.start, each.stop) for each in subtask] for subtask in assigned]


def test_split_lists_stay_where_they_are_if_the_parallelism_does():
    assigned = repartition({0: [listed("a", 3)], 1: [listed("a", 1)]}, 2, 2)
    assert spans(assigned) == [[("a", 0, 3)], [("a", 0, 1)]]


def test_split_lists_are_dealt_out_evenly():
    assigned = repartition({0: [listed("a", 3)], 1: [listed("a", 4)]}, 2, 3)
    # 7 items over 3 subtasks: 3, 2, 2
    assert spans(assigned) == [[("a", 0, 3)], [("a", 0, 2)], [("a", 2, 4)]]


def test_what_is_left_over_goes_to_the_subtasks_whose_turn_it_is():
    assigned = repartition({0: [listed("a", 4), listed("b", 1), listed("c", 1)]}, 1, 3)
    assert spans(assigned) == [
        [("a", 0, 2)],
        [("a", 2, 3), ("b", 0, 1)],
        [("a", 3, 4), ("c", 0, 1)],
    ]


def test_fewer_items_than_subtasks():
    assigned = repartition({0: [listed("a", 1)], 1: [listed("a", 0)]}, 2, 4)
    assert spans(assigned) == [[("a", 0, 1)], [], [], []]


@given(
    items=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    new=st.integers(1, 8),
    names=st.integers(1, 3),
)
def test_every_item_is_dealt_out_once_and_evenly(items, new, names):
    handles = {i: [listed(f"n{j}", n + j) for j in range(names)] for i, n in enumerate(items)}
    assigned = repartition(handles, len(items), new)
    for j in range(names):
        dealt = [[each for each in subtask if each.name == f"n{j}"] for subtask in assigned]
        if new != len(items):
            counts = [sum(each.items for each in subtask) for subtask in dealt]
            assert max(counts) - min(counts) <= 1
        found = {}
        for each in (each for subtask in dealt for each in subtask):
            key = next(i for i, lists in handles.items() if any(each.handle is handle for handle in lists))
            found.setdefault(key, []).extend(range(each.start, each.stop))
        assert {i: sorted(numbers) for i, numbers in found.items()} == {
            i: list(range(n + j)) for i, n in enumerate(items) if n + j
        }


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_union_lists_go_to_everybody(parallelism):
    first, second = listed("u", 1, UNION), listed("u", 2, UNION)
    assigned = repartition({0: [first], 1: [second]}, 2, parallelism)
    assert assigned == [(AssignedOperatorState(first, 0, 1), AssignedOperatorState(second, 0, 2))] * parallelism


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_everybody_gets_one_copy_of_a_broadcast_list(parallelism):
    copies = [listed("b", 2, BROADCAST), listed("b", 2, BROADCAST)]
    assigned = repartition({0: [copies[0]], 1: [copies[1]]}, 2, parallelism)
    assert [[each.handle for each in subtask] for subtask in assigned] == [[copies[i % 2]] for i in range(parallelism)]


def test_a_subtask_that_had_finished_gets_a_copy_of_the_others_broadcast_state():
    assigned = repartition({1: [listed("b", 2, BROADCAST)]}, 2, 2)
    assert spans(assigned) == [[("b", 0, 2)], [("b", 0, 2)]]


# -- event time --------------------------------------------------------------------------------------


def at(watermarks, name="sum"):
    """The state of an operator whose subtasks had come to these watermarks; those of None had finished."""
    subtasks = {i: OperatorSubtaskState(watermark=each) for i, each in enumerate(watermarks) if each is not None}
    return OperatorState(f"op-{name}", f"{name}-uid", name, len(watermarks), 128, subtasks)


def watermarks(stored, graph):
    assigned = assign(stored, graph)
    return [assigned["v-sum", subtask].watermark for subtask in range(graph.vertex("v-sum").parallelism)]


def test_event_time_goes_on_where_each_subtask_was():
    source = at([None, None], "source")
    assert watermarks(metadata(source, at([5, 9])), job(2)) == [5, 9]
    assert watermarks(metadata(source, at([None, 9])), job(2)) == [None, 9]


def test_event_time_goes_on_from_the_lowest_at_another_parallelism():
    source = at([None, None], "source")
    assert watermarks(metadata(source, at([5, 9])), job(3)) == [5, 5, 5]
    assert watermarks(metadata(source, at([None, 9])), job(1)) == [9]
    assert watermarks(metadata(source, at([None, None])), job(1)) == [None]


def test_event_time_begins_anew_behind_a_source_that_the_checkpoint_does_not_have():
    """Whatever it reads first would be late."""
    assert watermarks(metadata(at([5, 9])), job(2)) == [None, None]


# -- records in flight -------------------------------------------------------------------------------


def in_flight(graph, old_consumers, producers=1, edge=0):
    name = edge_name(graph, graph.edges[edge])
    return [
        ChannelStateHandle(name, producer, consumer, at_producer, InlineBytes(b""))
        for at_producer in (True, False)
        for producer in range(producers)
        for consumer in range(old_consumers)
    ]


def consumers(assigned, parallelism):
    return [sorted({each.consumer for each in assigned["v-sum", i].channels}) for i in range(parallelism)]


def test_buffers_go_to_the_same_consumer_in_order():
    graph = job(2)
    assigned = assign(metadata(keyed_state(2), channels=in_flight(graph, 2)), graph)
    assert [(each.consumer, each.at_producer) for each in assigned["v-sum", 1].channels] == [(1, False), (1, True)]
    assert not assigned["v-source", 0].channels


@pytest.mark.parametrize(
    ("partitioner", "old", "new", "expected"),
    [
        (HASH, 2, 3, [[0], [0, 1], [1]]),
        (HASH, 3, 1, [[0, 1, 2]]),
        (RebalancePartitioner(), 3, 2, [[0, 2], [1]]),
        (RebalancePartitioner(), 1, 2, [[0], []]),
        (GlobalPartitioner(), 1, 3, [[0], [], []]),
    ],
)
def test_buffers_after_rescaling(partitioner, old, new, expected):
    graph = job(new, partitioner=partitioner)
    assigned = assign(metadata(keyed_state(old), channels=in_flight(graph, old)), graph)
    assert consumers(assigned, new) == expected
    assert all(assigned["v-sum", i].rescaled for i in range(new))


def test_buffers_of_a_stream_that_is_united_with_itself_are_told_apart():
    """``stream.rebalance().union(stream.global_())``: two edges between two operators, which distribute differently."""
    graph = job(2, partitioner=RebalancePartitioner())
    twins = (graph.edges[0], replace(graph.edges[0], id=1, partitioner=GlobalPartitioner()))
    reader = replace(graph.vertices[1], input_edges=twins)
    graph = replace(graph, vertices=(graph.vertices[0], reader), edges=twins)
    state = keyed_state(3)
    assert consumers(assign(metadata(state, channels=in_flight(graph, 3, edge=0)), graph), 2) == [[0, 2], [1]]
    assert consumers(assign(metadata(state, channels=in_flight(graph, 3, edge=1)), graph), 2) == [[0, 1, 2], []]
    both = [*in_flight(graph, 3, edge=0), *in_flight(graph, 3, edge=1)]
    assert len({(each.edge, each.producer, each.consumer, each.at_producer) for each in both}) == len(both)


def test_buffers_of_an_edge_that_is_gone_are_not_dropped_silently():
    channel = ChannelStateHandle("op-source->op-sum#1", 0, 0, False, InlineBytes(b""))
    with pytest.raises(StateIncompatibleError) as error:
        assign(metadata(keyed_state(), channels=[channel]), job(), allow_non_restored=True)
    assert "'source' (uid 'source-uid') to operator 'sum' (uid 'sum-uid')" in error.value.message


def test_buffers_to_an_operator_that_is_gone_may_be_dropped():
    stored = metadata(keyed_state(name="gone"), channels=in_flight(job(names=("source", "gone")), 2))
    with pytest.raises(StateIncompatibleError):
        assign(stored, job())
    assert not any(task.channels for task in assign(stored, job(), allow_non_restored=True).values())


# -- finished ----------------------------------------------------------------------------------------


def finished_state(name, subtasks=(0, 1), parallelism=2):
    left = {i: OperatorSubtaskState() for i in range(parallelism) if i not in subtasks}
    return OperatorState(f"op-{name}", f"{name}-uid", name, parallelism, 128, left, finished=frozenset(subtasks))


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_a_vertex_all_of_whose_subtasks_had_finished(parallelism):
    assigned = assign(metadata(finished_state("source"), keyed_state()), job(parallelism))
    assert all(assigned["v-source", i].finished for i in range(parallelism))
    assert not any(assigned["v-sum", i].finished for i in range(parallelism))


def test_a_vertex_that_had_finished_in_part_runs_again():
    assigned = assign(metadata(finished_state("source", subtasks=(0,)), keyed_state()), job())
    assert not assigned["v-source", 0].finished


def test_what_reads_from_a_running_vertex_is_not_finished():
    assigned = assign(metadata(finished_state("source", subtasks=()), finished_state("sum")), job())
    assert not assigned["v-sum", 0].finished


def test_keyed_state_of_finished_subtasks_is_not_missing():
    state = keyed_state()
    half = replace(state, subtasks={1: state.subtasks[1]}, finished=frozenset({0}))
    assert assign(metadata(half), job())["v-sum", 0].operators == {}


def test_a_new_operator_chained_to_a_finished_one_is_refused():
    graph = job()
    source = graph.vertices[0]
    node = replace(source.head.node, id=9, name="extra", uid="extra-uid", operator_id="op-extra")
    graph = replace(
        graph, vertices=(replace(source, operators=(source.head, ChainedOperator(node))), graph.vertices[1])
    )
    with pytest.raises(StateIncompatibleError) as error:
        check_compatibility(metadata(finished_state("source")), graph, False)
    assert error.value.operator == "extra"


# -- what does not fit -------------------------------------------------------------------------------


def refusal(stored, graph, allow_non_restored=False):
    with pytest.raises(StateIncompatibleError) as error:
        check_compatibility(stored, graph, allow_non_restored)
    assert "op-" not in str(error.value), "a hash instead of a name"
    return error.value


def test_state_without_operator():
    error = refusal(metadata(keyed_state(name="gone")), job())
    assert error.operator == "gone"
    assert "'gone' (uid 'gone-uid')" in error.message
    assert "'source' (uid 'source-uid'), 'sum' (uid 'sum-uid')" in error.hint
    assert "ignore-unclaimed-state" in error.hint
    check_compatibility(metadata(keyed_state(name="gone")), job(), True)


def test_state_of_an_operator_that_has_lost_its_uid():
    stored = metadata(replace(keyed_state(), operator_id="op-before", uid=None))
    error = refusal(stored, job())
    assert "'sum' (without uid)" in error.message
    assert "The program has an operator 'sum'" in error.hint


def test_an_enumerator_without_source():
    stored = replace(finished_state("gone", subtasks=()), coordinator=InlineBytes(b"splits"))
    assert refusal(metadata(stored), job()).operator == "gone"


def test_an_operator_without_state_may_go():
    check_compatibility(metadata(finished_state("gone", subtasks=())), job(), False)


def test_another_max_parallelism():
    error = refusal(metadata(keyed_state()), job(max_parallelism=256, configured=True))
    assert error.operator == "sum"
    assert "max parallelism 256" in error.message
    assert "with 128" in error.message


def test_a_parallelism_above_the_stored_max():
    error = refusal(metadata(keyed_state(max_parallelism=4)), job(parallelism=5))
    assert "parallelism 5" in error.message
    assert "max parallelism 4" in error.message


def test_a_missing_subtask():
    state = keyed_state(3)
    error = refusal(metadata(replace(state, subtasks={0: state.subtasks[0], 2: state.subtasks[2]})), job())
    assert "of its 3 subtasks, 1 are missing" in error.message


def test_missing_key_groups():
    state = keyed_state(2)
    cut = OperatorSubtaskState(keyed(KeyGroupRange(70, 127)))
    error = refusal(metadata(replace(state, subtasks={0: state.subtasks[0], 1: cut})), job())
    assert "of its 128 key groups, 64, 65, 66, 67, 68 and 1 more are missing" in error.message


def test_contradictory_key_groups():
    state = keyed_state(2)
    wide = OperatorSubtaskState(keyed(KeyGroupRange(60, 127)))
    error = refusal(metadata(replace(state, subtasks={0: state.subtasks[0], 1: wide})), job())
    assert "key group 60 is in subtask 0 and in subtask 1" in error.message


def test_a_subtask_without_keys_is_not_missing():
    state = keyed_state(2)
    check_compatibility(
        metadata(replace(state, subtasks={0: state.subtasks[0], 1: OperatorSubtaskState()})), job(), False
    )


# -- max parallelism ---------------------------------------------------------------------------------


def test_the_max_parallelism_of_the_state_is_taken_over():
    stored = metadata(keyed_state(2, max_parallelism=64))
    graph = adopt_max_parallelism(job(3, max_parallelism=128), stored)
    assert [vertex.max_parallelism for vertex in graph.vertices] == [128, 64]
    assert graph.vertex("v-sum").head.node.max_parallelism == 64
    assert assign(stored, graph)["v-sum", 2].operators["op-sum"].keyed


def test_a_max_parallelism_that_the_program_sets_is_not_replaced():
    stored = metadata(keyed_state(2, max_parallelism=64))
    graph = job(max_parallelism=128, configured=True)
    assert adopt_max_parallelism(graph, stored) == graph
    refusal(stored, graph)


def test_a_max_parallelism_that_is_too_low_is_not_taken_over():
    stored = metadata(keyed_state(2, max_parallelism=4))
    graph = adopt_max_parallelism(job(5), stored)
    assert graph.vertex("v-sum").max_parallelism == 128
    refusal(stored, graph)
