"""Rescaling: what parallelism a job's vertices shall have."""

from __future__ import annotations

from firesteel.rest.endpoint import Endpoint
from firesteel.rest.jobs import VertexRequirements

__all__ = ["ENDPOINTS", "UPDATE_RESOURCE_REQUIREMENTS"]

UPDATE_RESOURCE_REQUIREMENTS = Endpoint(
    "PUT",
    "/jobs/:jobid/resource-requirements",
    "Has a running job go on with other parallelisms: each vertex gets its upper bound, or, with the adaptive "
    "scheduler, as much of it as there are slots for. The job takes a checkpoint and restarts from it.",
    response=dict,
    request=dict[str, VertexRequirements],
    errors={
        400: "A vertex is unknown or missing, or its parallelism cannot be; the job takes no checkpoints.",
        404: "There is no such job.",
        409: "The job has ended, or there are not enough slots.",
    },
)

ENDPOINTS = (UPDATE_RESOURCE_REQUIREMENTS,)
