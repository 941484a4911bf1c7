"""Delivery guarantee check: rejects a program whose sink guarantee the job or its sources cannot provide."""

from __future__ import annotations

from firesteel.common.errors import InvalidProgramError
from firesteel.config import checkpointing_options, pipeline_options
from firesteel.graph.execution import JobExecution
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.stream_graph import StreamNode
from firesteel.spi.sink import DeliveryGuarantee, Sink
from firesteel.spi.source import Boundedness

__all__ = ["check_guarantees", "commits"]


def check_guarantees(job_graph: JobGraph, *, checkpoints: bool) -> None:
    """InvalidProgramError if a sink cannot keep what it promises, or what the program or the configuration asks."""
    configuration = job_graph.configuration
    wanted_of_all = DeliveryGuarantee(configuration.get(pipeline_options.REQUIRED_DELIVERY_GUARANTEE))
    is_batch = job_graph.execution.kind is JobExecution.BATCH
    strongest: tuple[DeliveryGuarantee, StreamNode] | None = None
    for node in job_graph.nodes():
        sink = node.spec.get_sink()
        if sink is None:
            continue
        wanted = max(wanted_of_all, node.spec.get_required_guarantee(), key=lambda each: each.strength)
        _check_sink(node, sink, wanted, needs_checkpoints=not checkpoints and not is_batch and not _ends(job_graph))
        if wanted is not DeliveryGuarantee.NONE and (strongest is None or wanted.strength > strongest[0].strength):
            strongest = wanted, node
    if strongest is None:
        return
    wanted, sink_node = strongest
    if not checkpoints and not is_batch and not _ends(job_graph):
        raise InvalidProgramError(
            f"{_named(sink_node)} must provide {wanted.name}, but checkpointing is disabled.",
            hint="Set execution.checkpointing.interval, or call env.enable_checkpointing(interval_ms).",
        )
    if wanted is not DeliveryGuarantee.EXACTLY_ONCE:
        return
    if checkpoints and configuration.get(checkpointing_options.CHECKPOINTING_MODE) != "EXACTLY_ONCE":
        raise InvalidProgramError(
            f"{_named(sink_node)} must provide EXACTLY_ONCE, but execution.checkpointing.mode is AT_LEAST_ONCE.",
            hint="Set execution.checkpointing.mode to EXACTLY_ONCE.",
        )
    for node in job_graph.nodes():
        source = node.spec.get_source()
        if source is not None and not source.can_rewind():
            raise InvalidProgramError(
                f"{_named(sink_node)} must provide EXACTLY_ONCE, but '{node.name}' cannot be rewound: records read "
                "before a failure would be lost.",
                hint="Use a source that can be read again, such as Kafka or files, or set the required guarantee to "
                "NONE.",
            )


def commits(job_graph: JobGraph) -> bool:
    """Whether the job has sinks that make output visible with checkpoints."""
    sinks = (node.spec.get_sink() for node in job_graph.nodes())
    return any(
        sink.create_committer() is not None or sink.get_delivery_guarantee() is DeliveryGuarantee.EXACTLY_ONCE
        for sink in sinks
        if sink is not None
    )


def _check_sink(node: StreamNode, sink: Sink, wanted: DeliveryGuarantee, *, needs_checkpoints: bool) -> None:
    given = sink.get_delivery_guarantee()
    if not given.includes(wanted):
        raise InvalidProgramError(
            f"{_named(node)} provides {given.name}, but {wanted.name} is required.",
            hint="Use a sink, or sink settings, that provide it, or require a weaker guarantee.",
        )
    if needs_checkpoints and sink.needs_checkpoints():
        raise InvalidProgramError(
            f"{_named(node)} commits records with checkpoints, but checkpointing is disabled.",
            hint="Set execution.checkpointing.interval, call env.enable_checkpointing(interval_ms), or give the sink "
            "a weaker delivery guarantee.",
        )


def _ends(job_graph: JobGraph) -> bool:
    return job_graph.boundedness is Boundedness.BOUNDED


def _named(node: StreamNode) -> str:
    place = f" ({node.defined_at})" if node.defined_at else ""
    return f"'{node.name}'{place}"
