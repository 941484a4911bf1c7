"""Looking into a running job: what its tasks are doing, and what its state holds."""

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
    """A place in the code, how many samples were in it, and what it called."""

    name: str
    value: int
    children: list[FlameGraphNode] = []


class FlameGraph(msgspec.Struct, omit_defaults=True):
    """Samples of a vertex's stacks.

    Without data, ``endTimestamp`` says why: -1 the vertex has ended, -2 there are no samples yet, -3 sampling is
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
    """What a state holds of a key now; nothing says that it will survive a failure."""

    key: Any
    value: Any
    """Where JSON has no such value: {"repr": …}."""
    type: str
    operator: str
    subtask: int
    namespace: str = ""
    """The window, where the state is a window's."""
    checkpointed: bool = False


FLAME_GRAPH: Endpoint[None, FlameGraph] = Endpoint(
    "GET",
    "/jobs/:jobid/vertices/:vertexid/flamegraph",
    "Samples of what the tasks of a vertex are doing, as a flame graph. The first call has them taken.",
    response=FlameGraph,
    query=(
        Parameter("type", "Samples on the CPU, those that waited, or both: on_cpu, off_cpu or full.", default="full"),
        Parameter("subtaskindex", "Of one subtask alone.", type=int),
    ),
    errors={400: "The type is none of these.", 404: "There is no such job, vertex or subtask."},
    tag="diagnostics",
)
STATES: Endpoint[None, QueryableStates] = Endpoint(
    "GET",
    "/jobs/:jobid/state",
    "The keyed states of a running job that can be read by key.",
    response=QueryableStates,
    errors={404: "There is no such job.", 409: "The job does not run.", 503: "A slot did not answer."},
    tag="diagnostics",
    is_ours=True,
)
QUERY_STATE: Endpoint[None, QueriedState] = Endpoint(
    "GET",
    "/jobs/:jobid/state/:uid/:name",
    "What a keyed state of a running job holds of a key now. The operator is named by its uid, its id or its name.",
    response=QueriedState,
    query=(
        Parameter("key", "The key as JSON (a tuple as an array), or a string as it is.", is_required=True),
        Parameter("namespace", "Of a window's state: the window, as start-end in milliseconds.", default=""),
    ),
    errors={
        400: "The key cannot be one.",
        404: "There is no such job, operator or state, or nothing for the key.",
        409: "The job does not run.",
        503: "The slot did not answer.",
    },
    tag="diagnostics",
    is_ours=True,
)

ENDPOINTS = (FLAME_GRAPH, STATES, QUERY_STATE)
