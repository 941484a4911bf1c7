"""REST handlers of the SQL Gateway. They are loaded with its first request: SQL has libraries of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from firesteel.cluster.rest.request import RestError, RestRequest
from firesteel.config.configuration import shown
from firesteel.gateway.completion import candidates
from firesteel.gateway.errors import SqlGatewayError
from firesteel.gateway.gateway import GatewaySession, SqlGateway
from firesteel.gateway.operations import Operation
from firesteel.gateway.payloads import JSON, PLAIN_TEXT, columns_of, rows_writer
from firesteel.gateway.results import Page, ResultPages
from firesteel.rest import sql_gateway as rest

__all__ = ["SqlHandlers"]

MAX_WAIT_S = 0.5
MAX_WAITING = 32
"""So many requests for results may wait at once; each has one of the server's threads meanwhile."""

T = TypeVar("T")


class SqlHandlers:
    """Answers requests with a gateway."""

    def __init__(self, gateway: SqlGateway) -> None:
        self._gateway = gateway
        self._waiting = threading.BoundedSemaphore(MAX_WAITING)

    def open_session(self, request: RestRequest[rest.OpenSession]) -> rest.SessionHandle:
        """Opens a session."""
        body = request.body
        session = _as("Failed to openSession.", lambda: self._gateway.open_session(body.properties, body.session_name))
        return rest.SessionHandle(session.handle)

    def session_config(self, request: RestRequest[None]) -> rest.SessionConfig:
        """Returns the options of a session, without secrets."""
        session = _as("Failed to getSessionConfig.", lambda: self._session(request))
        return rest.SessionConfig({key: shown(key, value) for key, value in session.configuration().items()})

    def close_session(self, request: RestRequest[None]) -> rest.OperationState:
        """Closes a session."""
        _as("Failed to closeSession.", lambda: self._gateway.close_session(request.path["session_handle"]))
        return rest.OperationState("CLOSED")

    def heartbeat(self, request: RestRequest[None]) -> rest.Handled:
        """Keeps a session open."""
        _as("Failed to getSessionConfig.", lambda: self._session(request))
        return rest.Handled()

    def configure(self, request: RestRequest[rest.ConfigureSession]) -> rest.Handled:
        """Executes a statement that changes a session."""
        body = request.body

        def act() -> None:
            _check_timeout(body.execution_timeout)
            self._session(request).configure(body.statement or "")

        _as("Failed to configure session.", act)
        return rest.Handled()

    def execute(self, request: RestRequest[rest.ExecuteStatement]) -> rest.OperationHandle:
        """Begins to execute a statement."""
        body = request.body

        def act() -> Operation:
            _check_timeout(body.execution_timeout)
            return self._session(request).execute(body.statement or "", body.execution_config)

        return rest.OperationHandle(_as("Failed to execute statement.", act).handle)

    def status(self, request: RestRequest[None]) -> rest.OperationState:
        """Returns the status of an operation."""
        return rest.OperationState(_as("Failed to getOperationInfo.", lambda: self._operation(request)).status.name)

    def cancel(self, request: RestRequest[None]) -> rest.OperationState:
        """Cancels a statement that is being executed."""
        _as("Failed to cancelOperation.", lambda: self._operation(request).cancel())
        return rest.OperationState("CANCELED")

    def close(self, request: RestRequest[None]) -> rest.OperationState:
        """Closes an operation."""
        handle = request.path["operation_handle"]
        _as("Failed to closeOperation.", lambda: self._session(request).operations.close_operation(handle))
        return rest.OperationState("CLOSED")

    def fetch(self, request: RestRequest[None]) -> rest.FetchedResults:
        """Returns a page of a result; waits a moment if there is none yet."""
        token = _token(request.path["token"])
        row_format = _row_format(request)
        found = _as("Failed to fetchResults.", lambda: self._fetch(request, token))
        if found is None:
            return rest.FetchedResults("NOT_READY", next_result_uri=_uri(request, token, row_format))
        pages, page = found
        return _payload(pages, page, row_format, None if page.is_end else _uri(request, token + 1, row_format))

    def complete(self, request: RestRequest[rest.CompleteStatement]) -> rest.Candidates:
        """Returns what can be written at a position of a statement."""
        session = _as("Failed to get statement completion candidates.", lambda: self._session(request))
        return rest.Candidates(candidates(session.environment, request.body.statement, request.body.position))

    def _fetch(self, request: RestRequest[None], token: int) -> tuple[ResultPages, Page] | None:
        operation = self._operation(request)
        may_wait = self._waiting.acquire(blocking=False)
        try:
            return operation.fetch(token, MAX_WAIT_S if may_wait else 0.0)
        finally:
            if may_wait:
                self._waiting.release()

    def _session(self, request: RestRequest[Any]) -> GatewaySession:
        return self._gateway.session(request.path["session_handle"])

    def _operation(self, request: RestRequest[Any]) -> Operation:
        return self._session(request).operations.get(request.path["operation_handle"])


def _as(what: str, act: Callable[[], T]) -> T:
    try:
        return act()
    except SqlGatewayError as error:
        raise error.under(what) from error


def _check_timeout(timeout: int | None) -> None:
    if timeout is not None and timeout > 0:
        raise SqlGatewayError("SqlGatewayService doesn't support timeout mechanism now.")


def _token(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise RestError(
            400,
            "Bad request, could not parse parameters: "
            f'Cannot resolve path parameter (token) from value "{text[:200]}".',
        ) from None


def _row_format(request: RestRequest[None]) -> str:
    given: str = request.query["rowFormat"]
    found = JSON if request.version == 1 else given.upper()
    if found not in (JSON, PLAIN_TEXT):
        raise RestError(
            400,
            "Bad request, could not parse parameters: "
            f'Cannot resolve query parameter (rowFormat) from value "{given[:200]}".',
        )
    return found


def _uri(request: RestRequest[None], token: int, row_format: str) -> str:
    session, operation = request.path["session_handle"], request.path["operation_handle"]
    path = f"/v{request.version}/sessions/{session}/operations/{operation}/result/{token}"
    return path if request.version == 1 else f"{path}?rowFormat={row_format}"


def _payload(pages: ResultPages, page: Page, row_format: str, next_uri: str | None) -> rest.FetchedResults:
    info = pages.info
    rows: list[str] = []
    if page.batches:
        write = rows_writer(info.schema.to_source_row_data_type(), row_format, info.session)
        rows = [row for batch in page.batches for row in write(batch)]
    data = msgspec.Raw(f"[{','.join(rows)}]".encode())
    return rest.FetchedResults(
        "EOS" if page.is_end else "PAYLOAD",
        info.is_query,
        info.job_id or msgspec.UNSET,
        info.kind.name,
        rest.ResultSet(columns_of(info.schema), row_format, data),
        next_uri or msgspec.UNSET,
    )
