"""The ASGI application behind the REST port: dispatches requests to handlers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from firesteel.cluster.rest.answer_cache import AnswerCache
from firesteel.cluster.rest.authentication import AccessControl
from firesteel.cluster.rest.bodies import (
    ClientDisconnected,
    Receive,
    decode_body,
    discard_body,
    read_beginning,
    read_body,
    read_form,
)
from firesteel.cluster.rest.connection import SAME_USER
from firesteel.cluster.rest.replies import Headers, Reply, encode_success, error_reply, failure_reply
from firesteel.cluster.rest.request import RestError, RestRequest, Route
from firesteel.cluster.rest.router import Router
from firesteel.cluster.rest.standby import StandbyRoutes
from firesteel.cluster.rest.static_files import StaticFiles
from firesteel.common.errors import FiresteelError
from firesteel.rest.endpoint import Access, Endpoint, Parameter

__all__ = ["RestApplication"]

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HANDLER_THREADS = 64
"""Many, for clients that wait for what a job gives hold one each."""
MAX_WAITING = 512
HANDLER_TIMEOUT_S = 120.0
MAX_QUERY_PARAMETERS = 1000


class RestApplication:
    """Answers requests with the handlers of routes, after all checks that need no handler."""

    def __init__(
        self,
        routes: Sequence[Route] | StandbyRoutes,
        access_control: AccessControl,
        *,
        max_content_length: int,
        own_addresses: Sequence[str],
        prefix: str | None = None,
        static_files: StaticFiles | None = None,
        allowed_origin: str | None = None,
    ):
        self._reader_headers: Headers = []
        if allowed_origin is not None:
            self._reader_headers.append((b"access-control-allow-origin", allowed_origin.encode("latin-1")))
        self._access = access_control
        self._max_content_length = max_content_length
        self._own_addresses = own_addresses
        self._prefix = f"/{prefix.strip('/')}" if prefix and prefix.strip("/") else ""
        self._static_files = static_files
        self._executor = ThreadPoolExecutor(HANDLER_THREADS, thread_name_prefix="firesteel-rest-handler")
        self._in_flight: set[Future[Any]] = set()
        self._standby: StandbyRoutes | None = None
        self._router = Router(())
        self._answers = AnswerCache()
        self.replace_routes(routes)

    def replace_routes(self, routes: Sequence[Route] | StandbyRoutes) -> None:
        """Answers with other routes from the next request on; may be called from any thread."""
        if isinstance(routes, StandbyRoutes):
            self._standby, self._answers = routes, AnswerCache()
            return
        # a new one: an earlier request may still put what it has into the old one
        self._router, self._answers = Router(routes, self._prefix), AnswerCache()
        self._standby = None

    def close(self, timeout: float) -> None:
        """Waits for handlers that are still running."""
        wait_for_futures(list(self._in_flight), timeout)
        # a handler that hangs blocks its thread, not `close`
        self._executor.shutdown(wait=not self._in_flight, cancel_futures=True)

    def ready_answer(
        self, target: bytes, headers: Sequence[tuple[bytes, bytes]], *, is_same_user: bool
    ) -> bytes | None:
        """The whole answer to a GET, head and all, if there is one that its sender may see with no further check."""
        wire = self._answers.wire(target)
        return (
            wire if wire is not None and self._access.is_plain_read(dict(headers), is_same_user=is_same_user) else None
        )

    # ---- one request ----------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request, or what is none."""
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        body = _Body(receive, headers)
        try:
            reply = await self._reply(scope, headers, body)
        except ClientDisconnected:
            return
        except asyncio.CancelledError:
            body.is_pending = False
            reply = error_reply(503, ["The JobManager is shutting down."], [(b"connection", b"close")])
        await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
        if body.is_pending:
            # closing on a client that still writes would take the answer from it
            await send({"type": "http.response.body", "body": reply.body, "more_body": True})
            await discard_body(receive)
            await send({"type": "http.response.body", "body": b""})
        else:
            await send({"type": "http.response.body", "body": reply.body})

    async def _reply(self, scope: Scope, headers: Mapping[bytes, bytes], body: _Body) -> Reply:
        is_read = False
        try:
            self._access.check_host(headers)
            method: str = scope["method"]
            raw_path: str = scope["raw_path"].decode("latin-1")
            if self._standby is not None:
                return await self._standby_reply(self._standby, scope)
            if method == "OPTIONS":
                return self._options(raw_path)
            try:
                route, path = self._router.match(method, raw_path)
            except RestError as error:
                static = self._static(method, raw_path, headers) if error.status == 404 else None
                if static is None:
                    raise
                return static
            access = route.endpoint.required_access
            is_read = access is Access.READ
            try:
                self._access.check(access, headers, is_same_user=scope.get(SAME_USER, False))
            except RestError as refused:
                raise await _reason(route, body, refused) from None
            if not route.cache_ms or not is_read:
                return await self._handle(route, path, scope, headers, body)
            answers, target = self._answers, _target(scope)
            kept = answers.get(target)
            if kept is not None:
                return kept
            reply = await self._handle(route, path, scope, headers, body)
            answers.put(target, reply, route.cache_ms / 1000)
        except (ClientDisconnected, asyncio.CancelledError):
            raise
        except Exception as error:
            if not isinstance(error, FiresteelError):
                logger.exception("The request %s %s failed", scope["method"], scope["path"])
            return failure_reply(error, self._reader_headers if is_read else ())
        return reply

    async def _handle(
        self, route: Route, path: Mapping[str, str], scope: Scope, headers: Mapping[bytes, bytes], body: _Body
    ) -> Reply:
        endpoint = route.endpoint
        query = _query(endpoint, scope["query_string"]) if endpoint.query else {}
        content, uploads = None, {}
        if endpoint.is_upload:
            form = await read_form(body.take(), self._max_content_length, headers)
            uploads = form.uploads
            content = None if endpoint.request is None else form.decode(endpoint.request)
        elif endpoint.request is not None:
            raw = await read_body(body.take(), self._max_content_length, headers.get(b"content-length"))
            content = raw if endpoint.request is bytes else decode_body(raw, endpoint.request)
        base_url = self._base_url(scope, headers)
        own_url = self._own_url(scope, base_url)
        version = max(endpoint.versions)
        if version > 1:
            version = self._router.version(scope["raw_path"].decode("latin-1")) or version
        request: RestRequest[Any] = RestRequest(path, query, content, uploads, base_url, own_url, version)
        if route.blocking:
            result = await self._in_thread(route.handler, request)
        else:
            result = route.handler(request)
        return encode_success(endpoint, result, self._reader_headers)

    async def _in_thread(self, function: Callable[[Any], Any], argument: Any) -> Any:
        if len(self._in_flight) >= MAX_WAITING:
            raise RestError(503, "The JobManager has too many requests at the moment.", hint="Try again.")
        future = self._executor.submit(function, argument)
        self._in_flight.add(future)
        future.add_done_callback(self._in_flight.discard)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), HANDLER_TIMEOUT_S)
        except asyncio.TimeoutError:
            if future.done() and not future.cancelled():
                raise  # the handler's own
            raise RestError(
                503, f"The JobManager did not complete the request within {HANDLER_TIMEOUT_S:.0f} s."
            ) from None

    # ---- what is no handler ---------------------------------------------------------------------------------------

    async def _standby_reply(self, standby: StandbyRoutes, scope: Scope) -> Reply:
        target = _target(scope).decode("latin-1")

        def ask(method: str) -> Reply:
            return standby.reply(method, target, scheme=scope["scheme"], own_addresses=self._own_addresses)

        reply: Reply = await self._in_thread(ask, scope["method"])
        return reply

    def _options(self, raw_path: str) -> Reply:
        allowed = self._router.allowed(raw_path)
        if not allowed:
            raise RestError(404, f"Not found: {raw_path}")
        return Reply(204, [(b"allow", ", ".join(allowed).encode())], b"")

    def _static(self, method: str, raw_path: str, headers: Mapping[bytes, bytes]) -> Reply | None:
        if self._static_files is None or method not in ("GET", "HEAD"):
            return None
        # pages and scripts are the same everywhere, and are needed before a user can enter a token
        if self._prefix and (raw_path == self._prefix or raw_path.startswith(f"{self._prefix}/")):
            raw_path = raw_path[len(self._prefix) :]
        return self._static_files.reply(raw_path, headers)

    def _base_url(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
        host = headers.get(b"host", self._own_addresses[0].encode()).decode("latin-1")
        return f"{scope['scheme']}://{host}{self._prefix}"

    def _own_url(self, scope: Scope, base_url: str) -> str:
        if scope["scheme"] == "https":
            return base_url  # the name that the certificate is for; no other server can answer for it
        host, port = scope["server"][:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{self._prefix}"


def _target(scope: Scope) -> bytes:
    path: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    return b"%b?%b" % (path, query) if query else path


async def _reason(route: Route, body: _Body, refused: RestError) -> RestError:
    """Why a request is refused: it is not permitted, or the beginning of its body shows why."""
    if route.refusal is None or refused.status != 401 or not body.is_pending:
        return refused
    beginning = await read_beginning(body.take())
    return route.refusal(beginning) or refused


class _Body:
    """The body of a request: whether there is one, and whether a handler has begun to read it."""

    __slots__ = ("_receive", "is_pending")

    def __init__(self, receive: Receive, headers: Mapping[bytes, bytes]):
        self._receive = receive
        self.is_pending = b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"

    def take(self) -> Receive:
        async def receive() -> MutableMapping[str, Any]:
            message = await self._receive()
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                self.is_pending = False
            return message

        return receive


def _query(endpoint: Endpoint[Any, Any], query_string: bytes) -> dict[str, Any]:
    """The declared parameters, converted; others are ignored."""
    given: dict[str, list[str]] = {}
    if query_string:
        try:
            pairs = parse_qsl(
                query_string.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_QUERY_PARAMETERS
            )
        except ValueError:
            raise RestError(400, f"There are more than {MAX_QUERY_PARAMETERS} query parameters.") from None
        for name, value in pairs:
            given.setdefault(name, []).append(value)
    return {parameter.name: _value(parameter, given.get(parameter.name)) for parameter in endpoint.query}


def _value(parameter: Parameter, given: list[str] | None) -> Any:
    if given is None:
        if parameter.is_required:
            raise RestError(400, f"The query parameter {parameter.name!r} is missing: {parameter.description}")
        return [] if parameter.is_list and parameter.default is None else parameter.default
    text = ",".join(given)
    try:
        if parameter.is_list:
            return [_convert(part, parameter.type) for part in text.split(",") if part]
        return _convert(text, parameter.type)
    except ValueError as error:
        raise RestError(
            400,
            "Bad request, could not parse parameters: "
            f'Cannot resolve query parameter ({parameter.name}) from value "{text[:200]}": {error}',
        ) from None


def _convert(text: str, type: Any) -> Any:
    return text if type is str else msgspec.convert(text, type, strict=False)
