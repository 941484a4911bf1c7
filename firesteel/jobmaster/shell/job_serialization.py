"""Serializes a job for its slots, with an error that names the part of the program that cannot be pickled."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import cloudpickle

from firesteel.common.errors import FunctionSerializationError
from firesteel.graph.job_graph import JobGraph
from firesteel.graph.stream_graph import StreamNode
from firesteel.runtime.model.partitioner import KeyGroupPartitioner

__all__ = ["serialize_job"]

_MAX_DEPTH = 6
_HINT = "A function must not hold locks, sockets, files, generators or sessions: create them in open()."


def serialize_job(job_graph: JobGraph) -> bytes:
    """The job as bytes for every slot; raises FunctionSerializationError that names the operator that cannot travel."""
    try:
        return bytes(cloudpickle.dumps(job_graph, pickle.HIGHEST_PROTOCOL))
    except Exception as error:  # noqa: BLE001 - user objects may raise anything when pickled
        raise _explain(job_graph, error) from None


def _explain(job_graph: JobGraph, error: Exception) -> FunctionSerializationError:
    for node in job_graph.nodes():
        problem = _problem(node.spec)
        if problem is not None:
            return _error(node, "", problem, node.spec)
    for edge in job_graph.edges:
        problem = _problem(edge.partitioner)
        if problem is not None:
            node = job_graph.vertex(edge.target_vertex).operator(edge.target_node_id).node
            keyed = isinstance(edge.partitioner, KeyGroupPartitioner)
            what = "The key selector of operator" if keyed else "The partitioner before operator"
            return _error(node, what, problem, edge.partitioner)
    return FunctionSerializationError(f"The job cannot be sent to the slots: {error}", hint=_HINT)


def _error(node: StreamNode, what: str, problem: Exception, root: Any) -> FunctionSerializationError:
    culprit = _culprit(root)
    holds = f"{problem}" if culprit is None else f"{culprit} cannot be pickled ({problem})"
    where = f" (defined at {node.defined_at})" if node.defined_at else ""
    return FunctionSerializationError(
        f"{what or 'Operator'} '{node.name}'{where} cannot be sent to the slots: {holds}.",
        operator=node.name,
        uid=node.uid,
        defined_at=node.defined_at,
        culprit=culprit,
        hint=_HINT,
    )


def _problem(value: Any) -> Exception | None:
    try:
        cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - user objects may raise anything when pickled
        return error
    return None


def _culprit(value: Any) -> str | None:
    """Follows what cannot be pickled down to the innermost part that has a name."""
    found: str | None = None
    for _ in range(_MAX_DEPTH):
        for name, part in _parts(value):
            if _problem(part) is not None:
                found = f"{name}, a {type(part).__module__}.{type(part).__qualname__}," if name else found
                value = part
                break
        else:
            break
    return found


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value holds, with the words a user knows it by."""
    if isinstance(value, MethodType):
        yield "", value.__self__
        yield "", value.__func__
    elif isinstance(value, FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, partial):
        yield "", value.func
        for argument in (*value.args, *value.keywords.values()):
            yield "an argument of partial()", argument
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield f"item {key!r}"[:80], item
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield "an element", item
    else:
        # the parts of Firesteel's own objects have no names a user would know
        ours = type(value).__module__.startswith("firesteel.")
        for name, item in getattr(value, "__dict__", {}).items():
            yield "" if ours else f"attribute '{name}' of {type(value).__qualname__}", item


def _parts_of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"variable '{name}' of function '{function.__name__}'", cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in code.co_names:
        if name in function.__globals__:
            yield f"global variable '{name}' of function '{function.__name__}'", function.__globals__[name]
    for default in function.__defaults__ or ():
        yield f"a default argument of function '{function.__name__}'", default
