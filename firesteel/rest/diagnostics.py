"""REST endpoints: flame graphs and queryable state of a running job."""

from __future__ import annotations

from typing import Any

import msgspec

from firesteel.rest.endpoint import Endpoint, Parameter

__all__ = [
    "ENDPOINTS",
    "FLAME_GRAPH",
    "QUERY_STATE",
    "STATES",
    "FlameGraph",
    "FlameGraphNode",
    "OperatorStates",
    "QueriedState",
    "QueryableState",
    "QueryableStates",
]


class FlameGraphNode(msgspec.Struct):
    """A stack frame with its number of samples and its callees."""

    name: str
    value: int
    children: list[FlameGraphNode] = []


class FlameGraph(msgspec.Struct, omit_defaults=True):
    """Stack samples of a vertex.

    Without data, ``endTimestamp`` is the reason: -1 the vertex has ended, -2 there are no samples yet, -3 sampling is
    disabled.
    """

    end_timestamp: int = msgspec.field(name="endTimestamp")
    data: FlameGraphNode | None = None


class QueryableState(msgspec.Struct):
    """A keyed state: ``type`` is value, list, map, reducing or aggregating."""

    name: str
    type: str


class OperatorStates(msgspec.Struct, kw_only=True):
    """A keyed operator and its states."""

    uid: str | None
    operator_id: str = msgspec.field(name="operator-id")
    name: str
    vertex_id: str = msgspec.field(name="vertex-id")
    states: list[QueryableState]


class QueryableStates(msgspec.Struct):
    """Every keyed state of a job."""

    operators: list[OperatorStates]


class QueriedState(msgspec.Struct, kw_only=True):
    """The current value of a state for a key. It may be lost in a failure."""

    key: Any
    value: Any
    """{"repr": …} if the value cannot be represented in JSON."""
    type: str
    operator: str
    subtask: int
    namespace: str = ""
    """The window, if the state belongs to a window."""
    checkpointed: bool = False


FLAME_GRAPH: Endpoint[None, FlameGraph] = Endpoint(
    "GET",
    "/jobs/:jobid/vertices/:vertexid/flamegraph",
    "Returns stack samples of the tasks of a vertex as a flame graph. The first call starts the sampling.",
    response=FlameGraph,
    query=(
        Parameter("type", "Samples to return: on_cpu (running), off_cpu (waiting) or full (both).", default="full"),
        Parameter("subtaskindex", "Return the samples of this subtask only.", type=int),
    ),
    errors={400: "Unknown type.", 404: "The job, vertex or subtask does not exist."},
    tag="diagnostics",
)
STATES: Endpoint[None, QueryableStates] = Endpoint(
    "GET",
    "/jobs/:jobid/state",
    "Lists the keyed states of a running job.",
    response=QueryableStates,
    errors={404: "The job does not exist.", 409: "The job is not running.", 503: "A slot did not respond."},
    tag="diagnostics",
    is_ours=True,
)
QUERY_STATE: Endpoint[None, QueriedState] = Endpoint(
    "GET",
    "/jobs/:jobid/state/:uid/:name",
    "Returns the current value of a keyed state of a running job for a key. The operator is given by its uid, id or "
    "name.",
    response=QueriedState,
    query=(
        Parameter("key", "The key as JSON (a tuple as an array), or as a plain string.", is_required=True),
        Parameter(
            "namespace", "The window, as start-end in milliseconds, if the state belongs to a window.", default=""
        ),
    ),
    errors={
        400: "Invalid key.",
        404: "The job, operator or state does not exist, or has no value for the key.",
        409: "The job is not running.",
        503: "The slot did not respond.",
    },
    tag="diagnostics",
    is_ours=True,
)

ENDPOINTS = (FLAME_GRAPH, STATES, QUERY_STATE)
