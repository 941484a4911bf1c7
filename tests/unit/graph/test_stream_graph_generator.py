from __future__ import annotations

import pytest

from firesteel.common.errors import InvalidProgramError
from firesteel.config.configuration import Configuration
from firesteel.graph.parallelism import default_max_parallelism
from firesteel.graph.stream_graph import JobType  # type: ignore[attr-defined]
from firesteel.graph.stream_graph_generator import generate
from firesteel.graph.transformation import PartitionTransformation, ResourceProfile
from firesteel.runtime.model.partitioner import BroadcastPartitioner, RebalancePartitioner
from firesteel.spi.source import Boundedness


def names(graph):
    return [node.name for node in graph.nodes]


def test_sources_and_sinks_are_named_as_flink_names_them(program) -> None:
    program.sink(program.op(program.source("numbers")), "Print to Std. Out")
    assert names(program.stream_graph()) == ["Source: numbers", "Map", "Sink: Print to Std. Out"]


def test_everything_upstream_is_found_once_and_inputs_come_first(program) -> None:
    left, right = program.source("left"), program.source("right")
    both = program.op(program.union(program.op(left, "L"), program.op(right, "R")), "Both")
    program.sink(both, "a")
    program.sink(both, "b")
    graph = program.stream_graph()
    assert len(names(graph)) == len(set(names(graph))) == 7
    position = {node.id: index for index, node in enumerate(graph.nodes)}
    assert all(position[edge.source_id] < position[edge.target_id] for edge in graph.edges)


def test_a_program_deeper_than_the_stack(program) -> None:
    stream = program.source()
    for _ in range(3000):
        stream = program.op(stream)
    program.transformations = [program.sink(stream)]
    assert len(program.stream_graph().nodes) == 3002
    assert len(program.job_graph().vertices) == 1


def test_default_partitioner_is_forward_or_rebalance_by_parallelism(program) -> None:
    program.sink(program.op(program.source(parallelism=2), parallelism=2), parallelism=3)
    assert [edge.partitioner.name for edge in program.stream_graph().edges] == ["FORWARD", "REBALANCE"]


def test_partitioner_nearest_the_reader_wins(program) -> None:
    partitioned = PartitionTransformation(program.source(), RebalancePartitioner())
    program.op(PartitionTransformation(partitioned, BroadcastPartitioner()))
    assert [edge.partitioner.name for edge in program.stream_graph().edges] == ["BROADCAST"]


def test_virtual_transformations_attach_to_edges(program) -> None:
    operator = program.op(program.source())
    program.keyed(program.union(program.side_output(operator, "late"), operator))
    edges = program.stream_graph().edges[1:]
    assert [(e.partitioner.name, e.output_tag and e.output_tag.tag_id) for e in edges] == [
        ("HASH", "late"),
        ("HASH", None),
    ]


def test_union_with_itself_keeps_both_edges(program) -> None:
    source = program.source()
    program.op(program.union(source, source))
    graph = program.stream_graph()
    assert len(set(graph.edges)) == 2


def test_two_inputs_are_told_apart(program) -> None:
    first, second = program.source("a"), program.source("b")
    co = program.connect(first, second, key_selectors=(abs, len))
    graph = program.stream_graph()
    assert [(e.source_id, e.input_index) for e in graph.in_edges(co.id)] == [(first.id, 0), (second.id, 1)]
    assert graph.node(co.id).key_selectors == (abs, len)


def test_explicit_forward_between_different_parallelisms_names_both(program) -> None:
    program.op(program.forward(program.source("in", parallelism=2)), "Slow", parallelism=3)
    with pytest.raises(InvalidProgramError) as info:
        program.stream_graph()
    for part in ("'in'", "2", "'Slow'", "3"):
        assert part in info.value.message


def test_parallelism_comes_from_configuration_unless_set(program) -> None:
    program.sink(program.op(program.source()), parallelism=1)
    graph = program.stream_graph(**{"parallelism.default": "4"})
    assert [node.parallelism for node in graph.nodes] == [4, 4, 1]


@pytest.mark.parametrize("parallelism", [0, -1])
def test_parallelism_below_one_is_refused(program, parallelism: int) -> None:
    program.op(program.source(), parallelism=parallelism)
    with pytest.raises(InvalidProgramError, match="'Map'"):
        program.stream_graph()


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [(1, 128), (85, 128), (86, 256), (128, 256), (172, 512), (20000, 32768), (32768, 32768)],
)
def test_default_max_parallelism_is_flinks(parallelism: int, expected: int) -> None:
    assert default_max_parallelism(parallelism) == expected


def test_max_parallelism_from_operator_then_job_then_default(program) -> None:
    program.op(program.source(max_parallelism=7))
    assert [n.max_parallelism for n in program.stream_graph().nodes] == [7, 128]
    assert [n.max_parallelism for n in program.stream_graph(**{"pipeline.max-parallelism": "64"}).nodes] == [
        7,
        64,
    ]


def test_parallelism_above_max_parallelism_says_both_numbers(program) -> None:
    program.op(program.source(), "Wide", parallelism=9, max_parallelism=5, defined_at="job.py:3")
    with pytest.raises(InvalidProgramError) as info:
        program.stream_graph()
    for part in ("9", "5", "'Wide'", "job.py:3"):
        assert part in info.value.message


@pytest.mark.parametrize("maximum", [0, 32769])
def test_max_parallelism_out_of_bounds(program, maximum: int) -> None:
    program.op(program.source(), max_parallelism=maximum)
    with pytest.raises(InvalidProgramError, match=str(maximum)):
        program.stream_graph()


def test_duplicate_uid_names_both_operators_and_their_places(program) -> None:
    first = program.op(program.source(), "First", uid="same", defined_at="job.py:10")
    program.op(first, "Second", uid="same", defined_at="job.py:11")
    with pytest.raises(InvalidProgramError) as info:
        program.stream_graph()
    for part in ("'same'", "'First'", "job.py:10", "'Second'", "job.py:11"):
        assert part in info.value.message


def test_uid_required_when_they_are_not_generated(program) -> None:
    program.op(program.source(uid="s"), "Nameless")
    with pytest.raises(InvalidProgramError, match="'Nameless'"):
        program.stream_graph(**{"pipeline.auto-generate-uids": "false"})


def test_slot_sharing_group_is_inherited_if_inputs_agree(program) -> None:
    a = program.op(program.source("a", slot_sharing_group="g"), "A")
    b = program.op(program.source("b"), "B")
    program.connect(a, a, name="Same")
    program.connect(a, b, name="Mixed")
    program.op(a, "Set", slot_sharing_group="h")
    groups = {node.name: node.slot_sharing_group for node in program.stream_graph().nodes}
    assert groups == {
        "Source: a": "g",
        "A": "g",
        "Source: b": "default",
        "B": "default",
        "Same": "g",
        "Mixed": "default",
        "Set": "h",
    }


def test_a_group_has_one_resource_profile(program) -> None:
    small, large = ResourceProfile(cpu_cores=1), ResourceProfile(cpu_cores=2)
    source = program.source(slot_sharing_group="g", resource_profile=small)
    operator = program.op(source, slot_sharing_group="g", resource_profile=small)
    assert program.stream_graph().slot_resources == {"g": small}
    operator.resource_profile = large
    with pytest.raises(InvalidProgramError, match="'g'"):
        program.stream_graph()


def test_nothing_to_execute(program) -> None:
    with pytest.raises(InvalidProgramError, match="nothing to execute"):
        generate([], Configuration(), "empty")
    with pytest.raises(InvalidProgramError, match="nothing to execute"):
        generate([program.source()], Configuration(), "only a source")


def test_no_sink_is_legal(program) -> None:
    program.op(program.source())
    assert program.stream_graph().sinks == ()


def test_boundedness_and_job_type(program) -> None:
    program.op(program.source())
    assert program.stream_graph().boundedness is Boundedness.BOUNDED
    assert program.stream_graph().job_type is JobType.STREAMING
    assert program.stream_graph(**{"execution.runtime-mode": "AUTOMATIC"}).job_type is JobType.BATCH
    program.op(program.source("forever", unbounded=True))
    assert program.stream_graph().boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert program.stream_graph(**{"execution.runtime-mode": "AUTOMATIC"}).job_type is JobType.STREAMING
    with pytest.raises(InvalidProgramError, match="Source: forever"):
        program.stream_graph(**{"execution.runtime-mode": "BATCH"})


def test_buffer_timeout_from_operator_or_configuration(program) -> None:
    program.op(program.source(buffer_timeout=-1))
    graph = program.stream_graph(**{"execution.buffer-timeout.interval": "20 ms"})
    assert [node.buffer_timeout for node in graph.nodes] == [-1, 20]
    graph = program.stream_graph(**{"execution.buffer-timeout.enabled": "false"})
    assert [node.buffer_timeout for node in graph.nodes] == [-1, -1]
