"""Job plans for display: Flink's two JSON shapes, a Mermaid diagram and a plain-text tree."""

from __future__ import annotations

import html
import json
from typing import Any

from firesteel.graph.chaining import is_chainable
from firesteel.graph.exchange import CHAINED, EXCHANGE_TYPES, exchange_of
from firesteel.graph.execution import Execution, JobExecution
from firesteel.graph.job_graph import JobEdge, JobGraph, JobVertex
from firesteel.graph.slots import slot_counts
from firesteel.graph.stream_graph import StreamEdge, StreamGraph, StreamNode

__all__ = ["edge_label", "execution_plan", "job_plan", "to_mermaid", "to_text", "vertex_description"]


def execution_plan(stream_graph: StreamGraph) -> str:
    """The operators as JSON in the shape of Flink's ``get_execution_plan``: by id, sinks last.

    ``side`` is "second" for every predecessor, as it is in Flink's own plans. ``execution`` and ``exchange`` are
    Firesteel's own.
    """
    execution = stream_graph.execution
    nodes = sorted(stream_graph.nodes, key=lambda node: (node.is_sink, node.id))
    plan = {
        "nodes": [_plan_node(node, stream_graph, execution) for node in nodes],
        "execution": _plan_execution(execution),
    }
    return json.dumps(plan, indent=2)


def _plan_execution(execution: Execution) -> dict[str, str]:
    return {"kind": execution.kind.value, "reason": execution.reason}


def _plan_node(node: StreamNode, graph: StreamGraph, execution: Execution) -> dict[str, Any]:
    pact = "Data Source" if node.is_source else "Data Sink" if node.is_sink else "Operator"
    plan: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": pact,
        "contents": node.description,
        "parallelism": node.parallelism,
    }
    if not node.is_source:
        plan["predecessors"] = [
            {
                "id": edge.source_id,
                "ship_strategy": edge.partitioner.name,
                "side": "second",
                "exchange": _exchange_type(edge, graph, execution),
            }
            for edge in graph.in_edges(node.id)
        ]
    return plan


def _exchange_type(edge: StreamEdge, graph: StreamGraph, execution: Execution) -> str:
    return CHAINED.type if is_chainable(edge, graph) else EXCHANGE_TYPES[execution.kind]


def job_plan(job_graph: JobGraph) -> dict[str, Any]:
    """The vertices in the shape of Flink's REST API: the object inside ``/jobs/:jobid/plan``.

    ``execution`` and ``exchange_reason`` are Firesteel's own; ``local_strategy`` is there where Flink has it, with
    inputs that the consumer gets in another order than they were sent in.
    """
    return {
        "jid": job_graph.job_id,
        "name": job_graph.job_name,
        "type": job_graph.job_type.value,
        "nodes": [_plan_vertex(vertex, job_graph) for vertex in job_graph.vertices],
        "execution": _plan_execution(job_graph.execution),
    }


def _plan_vertex(vertex: JobVertex, job_graph: JobGraph) -> dict[str, Any]:
    description = html.escape(vertex_description(vertex), quote=False).replace('"', "&quot;")
    plan: dict[str, Any] = {
        "id": vertex.id,
        "operator": "",
        "parallelism": vertex.parallelism,
        "operator_strategy": "",
        "description": description.replace("\n", "<br/>").replace("\\", "&#92;"),
        "optimizer_properties": {},
    }
    if vertex.input_edges:
        plan["inputs"] = [_plan_input(number, edge, job_graph) for number, edge in enumerate(vertex.input_edges)]
    return plan


def _plan_input(number: int, edge: JobEdge, job_graph: JobGraph) -> dict[str, Any]:
    exchange = exchange_of(job_graph, edge)
    plan = {
        "id": edge.source_vertex,
        "num": number,
        "exchange": exchange.type,
        "ship_strategy": edge.partitioner.name,
        "exchange_reason": exchange.reason,
    }
    if exchange.is_grouped_by_key:
        plan["local_strategy"] = "group by key"
    return plan


def vertex_description(vertex: JobVertex) -> str:
    """The descriptions of a chain's operators as a tree, one per line."""
    lines: list[str] = []
    pending = [(vertex.head, "", "")]
    while pending:
        operator, prefix, indent = pending.pop()
        lines.append(prefix + operator.node.description)
        consumers = vertex.consumers(operator.node.id)
        for position, consumer in reversed(list(enumerate(consumers, 1))):
            last = position == len(consumers)
            pending.append((consumer, indent + ("+- " if last else ":- "), indent + ("   " if last else ":  ")))
    return "\n".join(lines)


def to_mermaid(job_graph: JobGraph) -> str:
    """The vertices as a Mermaid flowchart."""
    names = {vertex.id: f"v{number}" for number, vertex in enumerate(job_graph.vertices, 1)}
    execution = job_graph.execution
    lines = ["flowchart LR", f"  %% {execution.kind.value}: {' '.join(execution.reason.split())}"]
    for vertex in job_graph.vertices:
        label = f"{_mermaid_text(vertex.name)}<br/>parallelism {vertex.parallelism}"
        lines.append(f'  {names[vertex.id]}["{label}"]')
    for edge in job_graph.edges:
        label = _mermaid_text(f"{edge_label(edge)}, {exchange_of(job_graph, edge).describe()}")
        lines.append(f'  {names[edge.source_vertex]} -->|"{label}"| {names[edge.target_vertex]}')
    return "\n".join(lines) + "\n"


def _mermaid_text(text: str) -> str:
    # "#" starts an entity in Mermaid, so it has to be replaced before any entity is written.
    for char, entity in (("#", "#35;"), ('"', "#quot;"), ("<", "#lt;"), (">", "#gt;"), ("\n", " ")):
        text = text.replace(char, entity)
    return text


def to_text(job_graph: JobGraph) -> str:
    """The vertices as a tree that starts at the sources; one reached again is named by its number only."""
    numbers = {vertex.id: number for number, vertex in enumerate(job_graph.vertices, 1)}
    execution = job_graph.execution
    size = f"{len(numbers)} vertices, {job_graph.total_subtasks} subtasks"
    if execution.kind is not JobExecution.BATCH:  # whose stages take what slots there are
        size += f", {sum(slot_counts(job_graph).values())} slots"
    lines = [f"Job '{job_graph.job_name}': {size}", f"Execution: {execution.kind.value}, because {execution.reason}"]
    shown: set[str] = set()
    pending = [(vertex, "", "") for vertex in reversed(job_graph.vertices) if not vertex.input_edges]
    while pending:
        vertex, prefix, indent = pending.pop()
        number = numbers[vertex.id]
        if vertex.id in shown:
            lines.append(f"{prefix}see {number}")
            continue
        shown.add(vertex.id)
        lines.append(f"{prefix}{number}: {vertex.name} (parallelism {vertex.parallelism})")
        edges = vertex.output_edges
        for position, edge in reversed(list(enumerate(edges, 1))):
            last = position == len(edges)
            pending.append(
                (
                    job_graph.vertex(edge.target_vertex),
                    f"{indent}{'+-' if last else ':-'} {edge_label(edge)}, {_exchange_label(job_graph, edge)} -> ",
                    indent + ("   " if last else ":  "),
                )
            )
    return "\n".join(lines) + "\n"


def _exchange_label(job_graph: JobGraph, edge: JobEdge) -> str:
    return exchange_of(job_graph, edge).describe()


def edge_label(edge: JobEdge) -> str:
    """The partitioner's name, and the side output's."""
    tag = "" if edge.output_tag is None else f" [{edge.output_tag.tag_id}]"
    return edge.partitioner.name + tag
