"""Every endpoint of the REST API."""

from __future__ import annotations

from typing import Any

from firesteel.rest import jobs, openapi, rescaling
from firesteel.rest.endpoint import Endpoint

__all__ = ["all_endpoints"]

_TOPICS = (jobs, rescaling, openapi)


def all_endpoints() -> list[Endpoint[Any, Any]]:
    """All endpoints, by topic."""
    return [endpoint for topic in _TOPICS for endpoint in topic.ENDPOINTS]
