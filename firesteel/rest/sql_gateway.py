"""REST endpoints of the SQL Gateway: sessions, statements and their results."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from firesteel.rest.endpoint import Access, Endpoint, Parameter

__all__ = [
    "API_VERSIONS",
    "CANCEL_OPERATION",
    "CLOSE_OPERATION",
    "CLOSE_SESSION",
    "COMPLETE_STATEMENT",
    "COMPLETE_STATEMENT_BY_POST",
    "CONFIGURE_SESSION",
    "ENDPOINTS",
    "EXECUTE_STATEMENT",
    "FETCH_RESULTS",
    "GATEWAY_INFO",
    "HEARTBEAT",
    "OPEN_SESSION",
    "OPERATION_STATUS",
    "SESSION_CONFIG",
    "VERSIONS",
    "ApiVersions",
    "Candidates",
    "CompleteStatement",
    "ConfigureSession",
    "ExecuteStatement",
    "FetchedResults",
    "GatewayInfo",
    "Handled",
    "OpenSession",
    "OperationHandle",
    "OperationState",
    "ResultSet",
    "SessionConfig",
    "SessionHandle",
]

VERSIONS = (1, 2, 3, 4)
_SINCE_2 = (2, 3, 4)
_SESSION = "/sessions/:session_handle"
_OPERATION = f"{_SESSION}/operations/:operation_handle"
_ERRORS = {400: "The request is malformed.", 500: "There is no such session or operation, or the statement failed."}


class Handled(msgspec.Struct):
    """An empty response."""


class GatewayInfo(msgspec.Struct, rename="camel"):
    """Which product, of which version."""

    product_name: str
    version: str


class ApiVersions(msgspec.Struct):
    """The versions of the API."""

    versions: list[str]


class OpenSession(msgspec.Struct, rename="camel"):
    """The properties of a new session."""

    session_name: str | None = None
    properties: dict[str, str] | None = None


class SessionHandle(msgspec.Struct, rename="camel"):
    """The id of a session."""

    session_handle: str


class SessionConfig(msgspec.Struct):
    """The options of a session."""

    properties: dict[str, str]


class ConfigureSession(msgspec.Struct, rename="camel"):
    """A statement that changes a session."""

    statement: str | None = None
    execution_timeout: int | None = None


class ExecuteStatement(msgspec.Struct, rename="camel"):
    """A statement, and options for it alone."""

    statement: str | None = None
    execution_timeout: int | None = None
    execution_config: dict[str, str] | None = None


class OperationHandle(msgspec.Struct, rename="camel"):
    """The id of an operation."""

    operation_handle: str


class OperationState(msgspec.Struct):
    """The status of an operation or a session."""

    status: str


class CompleteStatement(msgspec.Struct):
    """A statement that is being written, and the place of the cursor in it."""

    statement: str = ""
    position: int = 0


class Candidates(msgspec.Struct):
    """What can be written at the cursor."""

    candidates: list[str]


class ResultSet(msgspec.Struct, rename="camel"):
    """Columns and rows; a row has a kind and fields."""

    columns: list[dict[str, Any]]
    row_format: str
    data: msgspec.Raw


class FetchedResults(msgspec.Struct, rename="camel"):
    """A page of a result: NOT_READY, PAYLOAD, or EOS, which is the last one and has no rows."""

    result_type: str
    is_query_result: bool | UnsetType = UNSET
    job_id: str | UnsetType = msgspec.field(default=UNSET, name="jobID")
    result_kind: str | UnsetType = UNSET
    results: ResultSet | UnsetType = UNSET
    next_result_uri: str | UnsetType = UNSET


def _endpoint(
    method: str,
    path: str,
    summary: str,
    response: type[Any],
    request: type[Any] | None = None,
    **more: Any,
) -> Endpoint[Any, Any]:
    more = {"versions": VERSIONS, "access": Access.CODE, "errors": _ERRORS, **more}
    return Endpoint(method, path, summary, response, request, tag="sql", **more)


GATEWAY_INFO = _endpoint(
    "GET", "/info", "Returns the name and version of the SQL Gateway.", GatewayInfo, access=None, errors={}
)
API_VERSIONS = _endpoint(
    "GET", "/api_versions", "Returns the versions of the SQL Gateway's API.", ApiVersions, access=None, errors={}
)
OPEN_SESSION = _endpoint("POST", "/sessions", "Opens a SQL session.", SessionHandle, OpenSession)
SESSION_CONFIG = _endpoint("GET", _SESSION, "Returns the options of a SQL session.", SessionConfig)
CLOSE_SESSION = _endpoint(
    "DELETE", _SESSION, "Closes a SQL session. Its queries are cancelled; jobs of INSERT continue.", OperationState
)
HEARTBEAT = _endpoint("POST", f"{_SESSION}/heartbeat", "Keeps a SQL session open.", Handled)
CONFIGURE_SESSION = _endpoint(
    "POST",
    f"{_SESSION}/configure-session",
    "Executes a statement that changes a session, such as SET, USE or CREATE, and waits for it.",
    Handled,
    ConfigureSession,
    versions=_SINCE_2,
)
EXECUTE_STATEMENT = _endpoint(
    "POST", f"{_SESSION}/statements", "Begins to execute a statement.", OperationHandle, ExecuteStatement
)
OPERATION_STATUS = _endpoint("GET", f"{_OPERATION}/status", "Returns the status of an operation.", OperationState)
CANCEL_OPERATION = _endpoint(
    "POST", f"{_OPERATION}/cancel", "Cancels a statement that is being executed.", OperationState
)
CLOSE_OPERATION = _endpoint(
    "DELETE",
    f"{_OPERATION}/close",
    "Closes an operation and releases its result. The job of a query is cancelled.",
    OperationState,
)
FETCH_RESULTS = _endpoint(
    "GET",
    f"{_OPERATION}/result/:token",
    "Returns a page of the result of a statement. The first token is 0; nextResultUri has the next one.",
    FetchedResults,
    query=(Parameter("rowFormat", "JSON, or PLAIN_TEXT for values as texts. Not in v1.", str, "JSON"),),
)
COMPLETE_STATEMENT = _endpoint(
    "GET",
    f"{_SESSION}/complete-statement",
    "Returns what can be written at a position of a statement.",
    Candidates,
    CompleteStatement,
    versions=_SINCE_2,
)
COMPLETE_STATEMENT_BY_POST = _endpoint(
    "POST",
    f"{_SESSION}/complete-statement",
    "As GET, for clients that cannot send a body with it, such as browsers.",
    Candidates,
    CompleteStatement,
    versions=_SINCE_2,
    is_ours=True,
)

ENDPOINTS = (
    GATEWAY_INFO,
    API_VERSIONS,
    OPEN_SESSION,
    SESSION_CONFIG,
    CLOSE_SESSION,
    HEARTBEAT,
    CONFIGURE_SESSION,
    EXECUTE_STATEMENT,
    OPERATION_STATUS,
    CANCEL_OPERATION,
    CLOSE_OPERATION,
    FETCH_RESULTS,
    COMPLETE_STATEMENT,
    COMPLETE_STATEMENT_BY_POST,
)
