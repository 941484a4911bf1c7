"""REST handlers for flame graphs of a vertex and for queryable state."""

from __future__ import annotations

from typing import Any, Protocol

from firesteel.cluster.diagnostics.flame_graphs import FlameGraphs, flame_graph
from firesteel.cluster.diagnostics.known_jobs import KnownJob, KnownJobs, find_job, find_vertex
from firesteel.cluster.diagnostics.queryable_state import list_states, query_state
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.config.cluster_options import FLAMEGRAPH_ENABLED, QUERYABLE_STATE_ENABLED
from firesteel.config.configuration import Configuration
from firesteel.graph.execution_graph import ExecutionState
from firesteel.jobmaster.shell.runner import JobMasterRunner
from firesteel.jobmaster.view.job import JobView
from firesteel.rest import diagnostics as rest

__all__ = ["routes"]

TERMINATED, WAITING, DISABLED = -1, -2, -3
_TYPES = {"full": None, "on_cpu": True, "off_cpu": False}
_TERMINAL = (ExecutionState.FINISHED, ExecutionState.CANCELED, ExecutionState.FAILED)


class _AskedJob(KnownJob, Protocol):
    @property
    def runner(self) -> JobMasterRunner | None:
        """What runs it; None if nothing does yet, or any more."""
        ...


def routes(jobs: KnownJobs, configuration: Configuration) -> list[Route]:
    """What answers each endpoint; jobs have a ``runner``, as the Dispatcher's do."""
    handlers = _DiagnosticHandlers(jobs, configuration)
    return [
        Route(rest.FLAME_GRAPH, handlers.flame_graph, blocking=True),
        Route(rest.STATES, handlers.states, blocking=True),
        Route(rest.QUERY_STATE, handlers.query_state, blocking=True),
    ]


class _DiagnosticHandlers:
    def __init__(self, jobs: KnownJobs, configuration: Configuration):
        self._jobs = jobs
        self._samples_stacks = configuration.get(FLAMEGRAPH_ENABLED)
        self._reads_state = configuration.get(QUERYABLE_STATE_ENABLED)
        self._graphs = FlameGraphs(configuration)

    def _runner(self, view: JobView) -> JobMasterRunner | None:
        job: _AskedJob = self._jobs.job(view.job_id)  # type: ignore[assignment]
        return job.runner

    def flame_graph(self, request: RestRequest[Any]) -> rest.FlameGraph:
        kind = request.query["type"].lower()
        if kind not in _TYPES:
            raise RestError(
                400, f"'{kind[:100]}' is not a type of flame graph.", hint="Choose full, on_cpu or off_cpu."
            )
        view = find_job(self._jobs, request)
        vertex = find_vertex(view, request)
        subtask = request.query["subtaskindex"]
        if subtask is not None and not 0 <= subtask < vertex.parallelism:
            raise RestError(
                404, f"Invalid subtask index for vertex {vertex.id}: {subtask} (it has {vertex.parallelism})."
            )
        runner = self._runner(view)
        if not self._samples_stacks:
            return rest.FlameGraph(DISABLED)
        if runner is None or view.status.is_terminal_state() or vertex.state in _TERMINAL:
            return rest.FlameGraph(TERMINATED)
        assert view.snapshot is not None, "a job with a vertex has one"
        graph = view.snapshot.execution_graph
        if not graph.job_graph.execution.traits.is_long_lived:
            return rest.FlameGraph(DISABLED)
        group = graph.slots.group_of(vertex.id)
        slots = range(group.first_slot, group.first_slot + group.slot_count)
        taken = self._graphs.samples((view.job_id, view.snapshot.attempt, group.name), slots, runner.ask)
        if taken is None:
            return rest.FlameGraph(WAITING)
        ended_ms, samples = taken
        return rest.FlameGraph(ended_ms, flame_graph(samples, vertex.id, subtask, _TYPES[kind]))

    def _asked(self, request: RestRequest[Any]) -> JobMasterRunner:
        view = find_job(self._jobs, request)
        if not self._reads_state:
            raise RestError(404, "Reading state is disabled.", hint=f"Set {QUERYABLE_STATE_ENABLED.key} to true.")
        runner = self._runner(view)
        if runner is None:
            raise RestError(409, f"Job {view.job_id} is {view.status.name}; only a running job can be queried.")
        return runner

    def states(self, request: RestRequest[Any]) -> rest.QueryableStates:
        return list_states(self._asked(request))

    def query_state(self, request: RestRequest[Any]) -> rest.QueriedState:
        path, query = request.path, request.query
        return query_state(self._asked(request), path["uid"], path["name"], query["key"], query["namespace"])
