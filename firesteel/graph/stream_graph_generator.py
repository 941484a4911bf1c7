"""Turns transformations into a StreamGraph: resolves each operator's settings and each edge's partitioner."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from firesteel.api.output_tag import OutputTag
from firesteel.common.errors import InvalidProgramError
from firesteel.config import network_options, pipeline_options
from firesteel.config.configuration import Configuration
from firesteel.graph.execution import decide_execution
from firesteel.graph.operator_id import operator_ids
from firesteel.graph.parallelism import describe, resolve_parallelism
from firesteel.graph.stream_graph import StreamEdge, StreamGraph, StreamNode
from firesteel.graph.transformation import (
    CacheTransformation,
    PartitionTransformation,
    PhysicalTransformation,
    ResourceProfile,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
)
from firesteel.runtime.model.partitioner import ForwardPartitioner, RebalancePartitioner, StreamPartitioner

__all__ = ["DEFAULT_SLOT_SHARING_GROUP", "generate"]

DEFAULT_SLOT_SHARING_GROUP = "default"

_CHAIN_DIFFERENT_MAX_PARALLELISM = "pipeline.operator-chaining.chain-operators-with-different-max-parallelism"
_UID_HASH = re.compile(r"[0-9A-Fa-f]{32}")


def generate(transformations: Sequence[Transformation], configuration: Configuration, job_name: str) -> StreamGraph:
    """The StreamGraph of a program: all given transformations and everything they read from."""
    ordered = _inputs_first(transformations)
    operators = [t for t in ordered if isinstance(t, PhysicalTransformation)]
    if all(isinstance(operator, SourceTransformation) for operator in operators):
        raise InvalidProgramError(
            f"Job '{job_name}' has no operators, so there is nothing to execute.",
            hint="Add at least one operator or sink, for example stream.print(), before execute().",
        )
    _derive_uids(operators)
    _check_uids(operators, configuration)
    builder = _Builder(configuration)
    for operator in operators:
        builder.add(operator)
    graph = StreamGraph(
        job_name=job_name,
        configuration=configuration,
        nodes=tuple(builder.nodes.values()),
        edges=tuple(builder.edges),
        execution=decide_execution(builder.nodes.values(), configuration),
        chaining_enabled=configuration.get(pipeline_options.OPERATOR_CHAINING),
        chain_different_max_parallelism=configuration.get_boolean(_CHAIN_DIFFERENT_MAX_PARALLELISM, True),
        slot_resources=_slot_resources(operators),
    )
    ids = operator_ids(graph)
    _check_operator_ids(graph, ids)
    return replace(graph, nodes=tuple(replace(node, operator_id=ids[node.id]) for node in graph.nodes))


def _inputs_first(transformations: Sequence[Transformation]) -> list[Transformation]:
    """Everything reachable, each once, after its own inputs."""
    # No recursion: a program can be deeper than Python's stack.
    done: dict[int, Transformation] = {}
    pending = list(reversed(transformations))
    while pending:
        current = pending[-1]
        missing = [t for t in current.inputs if t.id not in done] if current.id not in done else []
        if missing:
            pending.extend(reversed(missing))
        else:
            pending.pop()
            done[current.id] = current
    return list(done.values())


@dataclass(frozen=True)
class _Upstream:
    """A real operator found behind virtual transformations, and what those asked of the edge."""

    operator: PhysicalTransformation
    partitioner: StreamPartitioner | None = None
    output_tag: OutputTag | None = None


def _resolve(transformation: Transformation) -> list[_Upstream]:
    """Looks through partitions, unions and side outputs; of several, the one nearest the reader counts."""
    found: list[_Upstream] = []
    pending: list[tuple[Transformation, StreamPartitioner | None, OutputTag | None]] = [(transformation, None, None)]
    while pending:
        current, partitioner, tag = pending.pop()
        if isinstance(current, PhysicalTransformation):
            found.append(_Upstream(current, partitioner, tag))
        elif isinstance(current, PartitionTransformation):
            pending.append((current.input, partitioner or current.partitioner, tag))
        elif isinstance(current, SideOutputTransformation):
            pending.append((current.input, partitioner, tag or current.tag))
        elif isinstance(current, CacheTransformation):
            pending.append((current.inputs[0], partitioner, tag))
        elif isinstance(current, UnionTransformation):
            pending.extend((t, partitioner, tag) for t in reversed(current.inputs))
        else:
            raise TypeError(f"Unknown transformation {type(current).__name__}")
    return found


class _Builder:
    """Collects nodes and edges; inputs must be added before what reads them."""

    def __init__(self, configuration: Configuration):
        self.nodes: dict[int, StreamNode] = {}
        self.edges: list[StreamEdge] = []
        self._default_parallelism = configuration.get(pipeline_options.DEFAULT_PARALLELISM)
        max_parallelism = configuration.get(pipeline_options.MAX_PARALLELISM)
        self._max_parallelism = None if max_parallelism == -1 else max_parallelism
        self._buffer_timeout = (
            configuration.get(network_options.BUFFER_TIMEOUT).to_millis()
            if configuration.get(network_options.BUFFER_TIMEOUT_ENABLED)
            else -1
        )

    def add(self, operator: PhysicalTransformation) -> None:
        inputs = [_resolve(t) for t in operator.inputs]
        parallelism, max_parallelism = resolve_parallelism(operator, self._default_parallelism, self._max_parallelism)
        name = _name(operator)
        self.nodes[operator.id] = StreamNode(
            id=operator.id,
            name=name,
            spec=operator.operator_spec,
            parallelism=parallelism,
            max_parallelism=max_parallelism,
            max_parallelism_configured=operator.max_parallelism is not None or self._max_parallelism is not None,
            operator_id="",
            slot_sharing_group=self._slot_sharing_group(operator, inputs),
            uid=operator.uid,
            uid_hash=operator.uid_hash,
            description=operator.description or name,
            chaining=operator.chaining,
            buffer_timeout=self._buffer_timeout if operator.buffer_timeout is None else operator.buffer_timeout,
            key_selectors=operator.state_key_selectors,
            key_type=getattr(operator, "key_type", None),
            output_type=operator.output_type,
            defined_at=operator.defined_at,
        )
        for input_index, upstreams in enumerate(inputs):
            for upstream in upstreams:
                self._connect(upstream, operator, input_index)

    def _connect(self, upstream: _Upstream, target: PhysicalTransformation, input_index: int) -> None:
        producers = self.nodes[upstream.operator.id].parallelism
        consumers = self.nodes[target.id].parallelism
        partitioner = upstream.partitioner
        if partitioner is None:
            partitioner = ForwardPartitioner() if producers == consumers else RebalancePartitioner()
        elif isinstance(partitioner, ForwardPartitioner) and producers != consumers:
            raise InvalidProgramError(
                f"Forward partitioning needs equal parallelism, but operator {describe(upstream.operator)} "
                f"has {producers} and operator {describe(target)} has {consumers}.",
                hint="Give both the same parallelism, or use rebalance(), rescale() or nothing instead.",
            )
        self.edges.append(
            StreamEdge(
                len(self.edges),
                upstream.operator.id,
                target.id,
                input_index,
                partitioner,
                upstream.output_tag,
            )
        )

    def _slot_sharing_group(self, operator: PhysicalTransformation, inputs: Iterable[Iterable[_Upstream]]) -> str:
        if operator.slot_sharing_group is not None:
            return operator.slot_sharing_group
        groups = {self.nodes[u.operator.id].slot_sharing_group for upstreams in inputs for u in upstreams}
        return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_SHARING_GROUP


def _name(operator: PhysicalTransformation) -> str:
    prefix = {SourceTransformation: "Source: ", SinkTransformation: "Sink: "}.get(type(operator), "")
    return operator.name if operator.name.startswith(prefix) else prefix + operator.name


def _derive_uids(operators: Iterable[PhysicalTransformation]) -> None:
    for operator in operators:
        if operator.part_of is not None and operator.part_of.uid is not None:
            operator.uid = f"{operator.part_of.uid}-{operator.name}"


def _check_uids(operators: Iterable[PhysicalTransformation], configuration: Configuration) -> None:
    by_uid: dict[str, PhysicalTransformation] = {}
    for operator in operators:
        if operator.uid_hash is not None and not _UID_HASH.fullmatch(operator.uid_hash):
            raise InvalidProgramError(
                f"The uid hash '{operator.uid_hash}' of operator {describe(operator)} is not 32 hex digits.",
                hint="Use uid() unless you restore state whose operator hash you know from logs.",
            )
        if operator.uid is None:
            if operator.uid_hash is None and not configuration.get(pipeline_options.AUTO_GENERATE_UIDS):
                raise InvalidProgramError(
                    f"Operator {describe(operator)} has no uid, and 'pipeline.auto-generate-uids' is off.",
                    hint="Give it one with uid().",
                )
            continue
        other = by_uid.setdefault(operator.uid, operator)
        if other is not operator:
            raise InvalidProgramError(
                f"Two operators have the uid '{operator.uid}': {_place(other)} and {_place(operator)}.",
                hint="A uid names one operator's state, so it must be unique in a job.",
            )


def _place(operator: PhysicalTransformation) -> str:
    return f"'{operator.name}' defined at {operator.defined_at or 'an unknown place'}"


def _check_operator_ids(graph: StreamGraph, ids: dict[int, str]) -> None:
    seen: dict[str, StreamNode] = {}
    for node in graph.nodes:
        other = seen.setdefault(ids[node.id], node)
        if other is not node:
            raise InvalidProgramError(
                f"Operators '{other.name}' and '{node.name}' have the same operator id {ids[node.id]}.",
                hint="Check the uids and uid hashes set with uid() and set_uid_hash().",
            )


def _slot_resources(operators: Iterable[PhysicalTransformation]) -> dict[str, ResourceProfile]:
    resources: dict[str, ResourceProfile] = {}
    for operator in operators:
        if operator.slot_sharing_group is not None and operator.resource_profile is not None:
            known = resources.setdefault(operator.slot_sharing_group, operator.resource_profile)
            if known != operator.resource_profile:
                raise InvalidProgramError(
                    f"Slot sharing group '{operator.slot_sharing_group}' is given two different resources: "
                    f"{known} and, by operator {describe(operator)}, {operator.resource_profile}.",
                    hint="Use one SlotSharingGroup object per name.",
                )
    return resources
