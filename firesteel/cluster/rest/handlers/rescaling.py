"""REST handlers for rescaling of jobs."""

from __future__ import annotations

from typing import Any

from firesteel.cluster.dispatcher.dispatcher import Dispatcher
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.common.errors import InvalidProgramError, NotEnoughSlotsError
from firesteel.rest.jobs import VertexRequirements
from firesteel.rest.rescaling import UPDATE_RESOURCE_REQUIREMENTS

__all__ = ["routes"]


def routes(dispatcher: Dispatcher) -> list[Route]:
    def update(request: RestRequest[dict[str, VertexRequirements]]) -> dict[str, Any]:
        job = dispatcher.job(request.path["jobid"])
        runner = job.runner
        if runner is None or job.status.is_terminal_state():
            raise RestError(409, f"Job {job.job_id} is {job.status.name}: it cannot be rescaled.")
        graph = runner.job_graph
        missing = [vertex.name for vertex in graph.vertices if vertex.id not in request.body]
        if missing:
            raise RestError(400, f"These vertices are missing: {', '.join(missing)}.")
        wanted = {}
        for vertex_id, requirements in request.body.items():
            bounds = requirements.parallelism
            if not 1 <= bounds.lower_bound <= bounds.upper_bound:
                raise RestError(400, f"{vertex_id}: 1 <= lowerBound <= upperBound does not hold.")
            wanted[vertex_id] = bounds.upper_bound
        if all(vertex.parallelism == wanted[vertex.id] for vertex in graph.vertices):
            return {}  # nothing to change: the job is not restarted for it
        try:
            dispatcher.rescale(job.job_id, wanted)
        except NotEnoughSlotsError as error:
            raise RestError(409, error.message, hint=error.hint) from None
        except InvalidProgramError as error:
            raise RestError(400, error.message, hint=error.hint) from None
        return {}

    return [Route(UPDATE_RESOURCE_REQUIREMENTS, update, blocking=True)]
