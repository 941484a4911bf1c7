"""Every endpoint of the REST API."""

from __future__ import annotations

from typing import Any

from firesteel.rest import (
    checkpoints,
    cluster,
    diagnostics,
    exceptions,
    job_logs,
    jobs,
    login,
    metrics,
    openapi,
    programs,
    rescaling,
    savepoints,
    sql_gateway,
    submission,
    task_managers,
    vertices,
)
from firesteel.rest.endpoint import Endpoint

__all__ = ["all_endpoints"]

_TOPICS = (
    cluster,
    login,
    jobs,
    submission,
    programs,
    vertices,
    exceptions,
    job_logs,
    metrics,
    checkpoints,
    savepoints,
    rescaling,
    diagnostics,
    task_managers,
    sql_gateway,
    openapi,
)


def all_endpoints() -> list[Endpoint[Any, Any]]:
    """All endpoints, by topic."""
    endpoints: list[Endpoint[Any, Any]] = []
    for topic in _TOPICS:
        endpoints.extend(topic.ENDPOINTS)
    return endpoints
