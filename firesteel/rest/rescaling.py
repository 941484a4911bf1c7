"""REST endpoint: rescaling of a job."""

from __future__ import annotations

from firesteel.rest.endpoint import Endpoint
from firesteel.rest.jobs import VertexRequirements

__all__ = ["ENDPOINTS", "UPDATE_RESOURCE_REQUIREMENTS"]

UPDATE_RESOURCE_REQUIREMENTS = Endpoint(
    "PUT",
    "/jobs/:jobid/resource-requirements",
    "Rescales a running job. Each vertex gets its upper bound as parallelism or, with the adaptive scheduler, as "
    "much of it as there are slots. The job takes a checkpoint and restarts from it.",
    response=dict,
    request=dict[str, VertexRequirements],
    errors={
        400: "A vertex is unknown or missing, a parallelism is invalid, or checkpointing is disabled.",
        404: "The job does not exist.",
        409: "The job has ended, or there are not enough slots.",
    },
)

ENDPOINTS = (UPDATE_RESOURCE_REQUIREMENTS,)
