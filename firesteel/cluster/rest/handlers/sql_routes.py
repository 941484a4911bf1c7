"""REST routes of the SQL Gateway, which is loaded with the first request that needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel import __version__
from firesteel.cluster.rest.request import RestRequest, Route
from firesteel.rest import sql_gateway as rest
from firesteel.rest.endpoint import Endpoint

if TYPE_CHECKING:
    from firesteel.cluster.rest.handlers.sql_gateway import SqlHandlers

__all__ = ["routes"]

PRODUCT = "Firesteel"

_HANDLERS = {
    rest.OPEN_SESSION: "open_session",
    rest.SESSION_CONFIG: "session_config",
    rest.CLOSE_SESSION: "close_session",
    rest.HEARTBEAT: "heartbeat",
    rest.CONFIGURE_SESSION: "configure",
    rest.EXECUTE_STATEMENT: "execute",
    rest.OPERATION_STATUS: "status",
    rest.CANCEL_OPERATION: "cancel",
    rest.CLOSE_OPERATION: "close",
    rest.FETCH_RESULTS: "fetch",
    rest.COMPLETE_STATEMENT: "complete",
    rest.COMPLETE_STATEMENT_BY_POST: "complete",
}


def routes(handlers: Callable[[], SqlHandlers]) -> list[Route]:
    """The routes of a gateway; ``handlers`` loads it."""

    def info(_: RestRequest[None]) -> rest.GatewayInfo:
        return rest.GatewayInfo(PRODUCT, __version__)

    def versions(_: RestRequest[None]) -> rest.ApiVersions:
        return rest.ApiVersions([f"V{version}" for version in rest.VERSIONS])

    def route(endpoint: Endpoint[Any, Any], name: str) -> Route:
        def handle(request: RestRequest[Any]) -> Any:
            return getattr(handlers(), name)(request)

        return Route(endpoint, handle, blocking=True)

    return [
        Route(rest.GATEWAY_INFO, info),
        Route(rest.API_VERSIONS, versions),
        *(route(endpoint, name) for endpoint, name in _HANDLERS.items()),
    ]
