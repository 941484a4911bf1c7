from __future__ import annotations

import cloudpickle

from firesteel.spi.source import Boundedness


def names(job_graph):
    return [vertex.name for vertex in job_graph.vertices]


def spend_per_customer(program, *, sink_parallelism: int):
    stream = program.op(program.source("orders", parallelism=2), parallelism=2)
    program.sink(program.keyed(stream, parallelism=2), parallelism=sink_parallelism)
    return program.job_graph()


def test_keyed_window_with_a_narrow_sink_is_three_vertices(program) -> None:
    graph = spend_per_customer(program, sink_parallelism=1)
    assert names(graph) == ["Source: orders -> Map", "Window", "Sink: out"]
    assert [edge.partitioner.name for edge in graph.edges] == ["HASH", "REBALANCE"]
    assert graph.total_subtasks == 5


def test_keyed_window_with_equal_parallelism_is_two_vertices(program) -> None:
    graph = spend_per_customer(program, sink_parallelism=2)
    assert names(graph) == ["Source: orders -> Map", "Window -> Sink: out"]


def test_a_chain_is_a_tree(program) -> None:
    operator = program.op(program.source("in"))
    program.sink(program.op(operator, "Filter"), "a")
    program.sink(operator, "b")
    (vertex,) = program.job_graph().vertices
    assert vertex.name == "Source: in -> Map -> (Filter -> Sink: a, Sink: b)"
    assert vertex.head.is_head
    assert vertex.is_source
    assert [o.node.name for o in vertex.consumers(operator.id)] == ["Filter", "Sink: b"]
    assert [o.inputs[0].source_id for o in vertex.operators if o.node.name == "Sink: b"] == [operator.id]


def test_chained_side_output_keeps_its_tag(program) -> None:
    operator = program.op(program.source())
    late = program.sink(program.side_output(operator, "late"), "late")
    program.sink(operator, "main")
    (vertex,) = program.job_graph().vertices
    tags = {o.node.name: o.inputs[0].output_tag for o in vertex.operators[2:]}
    assert tags["Sink: main"] is None
    assert tags["Sink: late"].tag_id == "late"
    assert vertex.operator(late.id).node.name == "Sink: late"


def test_edges_between_vertices_name_operators_inputs_and_tags(program) -> None:
    operator = program.op(program.source(buffer_timeout=5), buffer_timeout=7)
    side = program.side_output(operator, "late")
    co = program.connect(operator, side)
    graph = program.job_graph()
    first, second = graph.vertices
    assert graph.edges == second.input_edges == first.output_edges
    assert [edge.id for edge in graph.edges] == [0, 1]
    assert [(e.source_node_id, e.target_node_id, e.input_index) for e in graph.edges] == [
        (operator.id, co.id, 0),
        (operator.id, co.id, 1),
    ]
    assert [e.output_tag and e.output_tag.tag_id for e in graph.edges] == [None, "late"]
    assert [e.buffer_timeout for e in graph.edges] == [7, 7]


def test_vertices_are_in_topological_order(program) -> None:
    left = program.keyed(program.source("left"), "L")
    both = program.connect(left, program.source("right"))
    program.sink(program.union(both, left, program.source("third")))
    graph = program.job_graph()
    order = {vertex.id: index for index, vertex in enumerate(graph.vertices)}
    assert len(order) == 6
    assert all(order[edge.source_vertex] < order[edge.target_vertex] for edge in graph.edges)


def test_vertex_id_is_the_heads_operator_id(program) -> None:
    program.op(program.source(uid="orders"))
    graph = program.job_graph()
    assert graph.vertices[0].id == graph.vertices[0].head.node.operator_id
    assert graph.vertex(graph.vertices[0].id) is graph.vertices[0]


def test_job_ids_are_new_each_time(program) -> None:
    program.op(program.source())
    first, second = program.job_graph(), program.job_graph()
    assert first.job_id != second.job_id
    assert len(first.job_id) == 32


def test_survives_the_way_to_a_slot(program) -> None:
    program.sink(program.keyed(program.source(unbounded=True)))
    graph = program.job_graph()
    copy = cloudpickle.loads(cloudpickle.dumps(graph))
    assert names(copy) == names(graph)
    assert copy.job_id == graph.job_id
    assert copy.job_name == "job"
    assert [e.partitioner.name for e in copy.edges] == ["HASH"]
    assert copy.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    assert copy.vertices[1].head.node.key_selectors == (abs,)
