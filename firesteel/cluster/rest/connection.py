"""Client connection: uvicorn's protocol, with limits on request size and duration."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from firesteel.cluster.rest.peers import is_same_user

__all__ = ["SAME_USER", "HttpConnection"]

SAME_USER = "firesteel.same_user"
"""In the scope of a request: whether it comes from this machine, and from this process's own user."""

HEADERS_TIMEOUT_S = 20.0
CHECK_INTERVAL_S = 5.0
MAX_HEAD_BYTES = 64 * 1024
MAX_LEFTOVER_BYTES = 1024 * 1024
"""How much of a body may still come once its request is answered."""


class HttpConnection(HttpToolsProtocol):
    """Closes connections of clients that send a request too slowly, or endless headers or bodies.

    uvicorn bounds none of these; what is read of a body is bounded where it is read.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._head_since: float | None = None
        self._head_bytes = 0
        self._leftover = 0
        self._check: asyncio.TimerHandle | None = None
        self._ready_answer = getattr(self.app, "ready_answer", None)
        self._is_answered = False
        self._is_same_user = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        self._is_same_user = is_same_user(self.client, self.server)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            # uvicorn refuses requests only; connections that ask for nothing would take all places, and all files
            self._make_place()
        self._head_since = self.loop.time()
        self._check = self.loop.call_later(CHECK_INTERVAL_S, self._check_head)

    def _make_place(self) -> None:
        """Closes the connection that has been idle for the longest time: slow clients do not keep others out."""
        silent = [
            (other._head_since, id(other), other)
            for other in self.connections
            if isinstance(other, HttpConnection) and other is not self and other._head_since is not None
        ]
        # if all are busy, this one goes
        (min(silent)[2] if silent else self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        if self._check is not None:
            self._check.cancel()
            self._check = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something came: counted as long as it may be a head."""
        if self._head_since is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                super().data_received(data[:MAX_HEAD_BYTES])
                data = data[MAX_HEAD_BYTES:]
                if not self._has_head():
                    self.send_400_response("The request's headers are too large.")
        if data and not self.transport.is_closing():
            super().data_received(data)

    def _has_head(self) -> bool:
        return self._head_since is None

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope[SAME_USER] = self._is_same_user  # type: ignore[literal-required]
        self._leftover = 0
        self._head_since = self.loop.time()

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        self._head_since = None
        self._head_bytes = 0
        if self._answer_at_once():
            self._is_answered = True
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is there as a whole."""
        if self._is_answered:
            self._is_answered = False
            self.on_response_complete()
        else:
            super().on_message_complete()

    def _answer_at_once(self) -> bool:
        """Writes an answer that is ready, without the cost of a task; only where nothing is in its way."""
        if (
            self._ready_answer is None
            or self.parser.get_method() != b"GET"
            or (self.cycle is not None and not self.cycle.response_complete)
            or self.flow.write_paused
            or self.parser.get_http_version() != "1.1"
            or not self.parser.should_keep_alive()
            or self.parser.should_upgrade()
        ):
            return False
        answer = self._ready_answer(self.url, self.headers, is_same_user=self._is_same_user)
        if answer is None:
            return False
        self.transport.write(answer)
        return True

    def on_body(self, body: bytes) -> None:
        """A part of a body has come."""
        if self.cycle.response_complete:
            self._leftover += len(body)
            if self._leftover > MAX_LEFTOVER_BYTES:
                self.transport.abort()
                return
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Answers what is not HTTP, in the format of all errors."""
        if self.transport.is_closing():
            return
        body = msgspec.json.encode({"errors": [msg]})
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json; charset=UTF-8\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%b" % (len(body), body)
        )
        self.transport.close()

    def _check_head(self) -> None:
        since = self._head_since
        if since is not None and self.loop.time() - since > HEADERS_TIMEOUT_S:
            self.transport.abort()
            return
        self._check = self.loop.call_later(CHECK_INTERVAL_S, self._check_head)
