"""Explains a job before it runs: its execution mode, exchanges and their reasons, slots, state and checkpoints."""

from __future__ import annotations

import json
from typing import Any

from firesteel.config import checkpointing_options, exchange_options
from firesteel.config.configuration import Configuration
from firesteel.graph.exchange import exchange_of
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.plan import edge_label, job_plan, to_mermaid, to_text
from firesteel.graph.slots import slot_counts

__all__ = ["explain", "explain_json", "explain_text", "facts"]


def explain(job_graph: JobGraph, format: str = "text") -> str:
    """The explanation as ``text``, as ``json`` or as a ``mermaid`` flowchart."""
    formats = {"text": explain_text, "json": explain_json, "mermaid": to_mermaid}
    if format not in formats:
        raise ValueError(f"There is no format {format!r}: choose one of {', '.join(formats)}.")
    return formats[format](job_graph).rstrip()


def explain_text(job_graph: JobGraph) -> str:
    """The plan as a tree, what it means for slots, state and checkpoints, and each exchange with its reason."""
    numbers = {vertex.id: number for number, vertex in enumerate(job_graph.vertices, 1)}
    lines = [to_text(job_graph).rstrip(), ""]
    lines += [f"{name + ':':<13}{text}" for name, text in facts(job_graph).items()]
    if job_graph.edges:
        lines += ["", "Exchanges:"]
    for edge in job_graph.edges:
        exchange = exchange_of(job_graph, edge)
        ends = f"{numbers[edge.source_vertex]} -> {numbers[edge.target_vertex]}"
        lines.append(f"  {ends}: {edge_label(edge)}, {exchange.describe()}: {exchange.reason}")
    return "\n".join(lines)


def explain_json(job_graph: JobGraph) -> str:
    """The job's plan in the shape of Flink's REST API, with what the text says; a job id comes with execution only."""
    plan = job_plan(job_graph)
    del plan["jid"]
    plan["execution"] |= facts(job_graph)
    for node, vertex in zip(plan["nodes"], job_graph.vertices, strict=True):
        node["operators"] = _operators(vertex)
    return json.dumps(plan, indent=2)


def _operators(vertex: JobVertex) -> list[dict[str, Any]]:
    nodes = (operator.node for operator in vertex.operators)
    return [
        {"id": node.operator_id, "name": node.name, "uid": node.uid, "defined_at": node.defined_at} for node in nodes
    ]


def facts(job_graph: JobGraph) -> dict[str, str]:
    """What the execution means for this job, by subject."""
    slots = sum(slot_counts(job_graph).values())
    configuration = job_graph.configuration
    backend = configuration.get(checkpointing_options.STATE_BACKEND)
    kind = job_graph.execution.kind
    if kind is JobExecution.BATCH:
        widest = max(vertex.parallelism for vertex in job_graph.vertices)
        return {
            "slots": f"for one run; up to {widest} at a time for a stage, fewer make it slower",
            "state": "of one key at a time, in memory; state.backend.type has no effect",
            "checkpoints": "none: Spark recomputes the work of a lost task or executor",
        }
    about = {}
    if kind is JobExecution.EPOCHS:
        about["trigger"] = _trigger(configuration)
        about["credits"] = _read_quota(configuration)
        about["slots"] = f"{slots}, held only while an epoch runs; fewer make it slower"
        about["state"] = f"{backend}, kept in the Python workers from epoch to epoch"
        about["checkpoints"] = f"one with every epoch, in {_directory(configuration)}"
    else:
        interval = configuration.get_optional(checkpointing_options.CHECKPOINTING_INTERVAL)
        about["slots"] = f"{slots}, held all the time; without them the job does not start"
        about["state"] = f"{backend}, in the slots"
        about["checkpoints"] = (
            "none: execution.checkpointing.interval is not set"
            if interval is None
            else f"every {interval.format()}, in {_directory(configuration)}"
        )
    path = configuration.get(checkpointing_options.SAVEPOINT_PATH)
    if path is not None:
        about["starts from"] = path
    elif kind is JobExecution.EPOCHS and _resumes(configuration):
        about["starts from"] = "the last retained checkpoint of a job with this name, if there is one"
    return about


def _resumes(configuration: Configuration) -> bool:
    resume = configuration.get_optional(exchange_options.EPOCH_RESUME)
    if resume is None:
        resume = configuration.get(exchange_options.EPOCH_TRIGGER) == "available-now"
    return resume and configuration.get_optional(checkpointing_options.CHECKPOINTS_DIRECTORY) is not None


def _trigger(configuration: Configuration) -> str:
    trigger = configuration.get(exchange_options.EPOCH_TRIGGER)
    if trigger == "interval":
        return f"interval: an epoch every {configuration.get(exchange_options.EPOCH_INTERVAL).format()}"
    if trigger == "available-now":
        return "available-now: epochs until all available input is read, then the job ends"
    return "continuous: an epoch starts when the previous one has ended and input is available"


def _read_quota(configuration: Configuration) -> str:
    by_interval = configuration.get(exchange_options.EPOCH_TRIGGER) == "interval"
    if by_interval and not configuration.contains(exchange_options.EPOCH_TARGET_DURATION):
        target = configuration.get(exchange_options.EPOCH_INTERVAL).format()
    else:
        target = configuration.get(exchange_options.EPOCH_TARGET_DURATION).format()
    most = configuration.get_optional(exchange_options.EPOCH_MAX_RECORDS)
    limit = "" if most is None else f", at most {most:,} records for each subtask of a source"
    return f"as many as make an epoch last {target}{limit}"


def _directory(configuration: Configuration) -> str:
    directory = configuration.get_optional(checkpointing_options.CHECKPOINTS_DIRECTORY)
    return directory or (
        "a temporary directory that is deleted when the job ends (execution.checkpointing.dir is not set)"
    )
