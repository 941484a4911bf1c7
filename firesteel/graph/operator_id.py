"""Operator ids, which identify operators and their state across runs."""

from __future__ import annotations

from collections import deque

import mmh3

from firesteel.graph.chaining import is_chainable
from firesteel.graph.stream_graph import StreamGraph, StreamNode

__all__ = ["operator_id_from_uid", "operator_ids"]


def operator_id_from_uid(uid: str) -> str:
    """The id of an operator with a uid: the same 32 hex digits that Flink derives from it.

    >>> operator_id_from_uid("hello")
    '029bbd41b3a7d8cb191dae486a901e5b'
    """
    return mmh3.hash_bytes(uid.encode()).hex()


def operator_ids(graph: StreamGraph) -> dict[int, str]:
    """An id for every node, by node id.

    A uid (or a uid hash) decides alone. Without one the id follows from the node's place in a breadth-first
    walk from the sources, from how many of its consumers are chained to it, and from the ids of its inputs:
    it changes when the program's shape does, which is why stateful operators should have a uid.
    """
    ids: dict[int, str] = {}
    waiting = {node.id: len(graph.in_edges(node.id)) for node in graph.nodes}
    ready = deque(node for node in sorted(graph.nodes, key=lambda node: node.id) if not waiting[node.id])
    while ready:
        node = ready.popleft()
        ids[node.id] = _id_of(node, graph, ids)
        for edge in graph.out_edges(node.id):
            waiting[edge.target_id] -= 1
            if not waiting[edge.target_id]:
                ready.append(graph.node(edge.target_id))
    return ids


def _id_of(node: StreamNode, graph: StreamGraph, ids: dict[int, str]) -> str:
    if node.uid_hash is not None:
        return node.uid_hash.lower()
    if node.uid is not None:
        return operator_id_from_uid(node.uid)
    chained = sum(is_chainable(edge, graph) for edge in graph.out_edges(node.id))
    inputs = ",".join(f"{edge.input_index}:{ids[edge.source_id]}" for edge in graph.in_edges(node.id))
    return mmh3.hash_bytes(f"{len(ids)}/{chained}/{inputs}".encode()).hex()
