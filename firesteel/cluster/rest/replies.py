"""REST responses: status, headers and body."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from firesteel.cluster.rest.request import RestError
from firesteel.cluster.rest.router import MethodNotAllowed
from firesteel.common.errors import FiresteelError
from firesteel.rest.endpoint import Access, Endpoint, Text

__all__ = ["Headers", "Reply", "encode_success", "error_reply", "failure_reply"]

Headers = list[tuple[bytes, bytes]]

JSON = b"application/json; charset=UTF-8"
TEXT = b"text/plain; charset=UTF-8"
BINARY = b"application/octet-stream"

_NO_SNIFF = (b"x-content-type-options", b"nosniff")
_NO_CACHE = (b"cache-control", b"no-store")

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True)
class Reply:
    """An answer, ready to be sent."""

    status: int
    headers: Headers
    body: bytes

    @classmethod
    def of(cls, status: int, content_type: bytes, body: bytes, extra: Iterable[tuple[bytes, bytes]] = ()) -> Reply:
        """An answer with the headers that all have."""
        headers = [
            (b"content-type", content_type),
            (b"content-length", b"%d" % len(body)),
            _NO_SNIFF,
            *extra,
        ]
        return cls(status, headers, body)


def encode_success(endpoint: Endpoint[Any, Any], result: Any, reader_headers: Headers) -> Reply:
    """The answer to a request that succeeded; ``reader_headers`` are those of answers to requests that only read."""
    extra = (*reader_headers, _NO_CACHE) if endpoint.required_access is Access.READ else (_NO_CACHE,)
    if endpoint.response is Text:
        return Reply.of(endpoint.status, TEXT, str(result).encode("utf-8", "replace"), extra)
    if endpoint.response is bytes:
        return Reply.of(endpoint.status, BINARY, result, extra)
    return Reply.of(endpoint.status, JSON, _encoder.encode(result), extra)


def error_reply(status: int, messages: Iterable[str], extra: Iterable[tuple[bytes, bytes]] = ()) -> Reply:
    """``{"errors": […]}``, as Flink's clients expect it."""
    errors = [message.encode("utf-8", "replace").decode() for message in messages]
    return Reply.of(status, JSON, _encoder.encode({"errors": errors}), extra)


def failure_reply(error: BaseException, headers: Iterable[tuple[bytes, bytes]]) -> Reply:
    """The answer to a request that raised: what the user did wrong, or that something is wrong with us."""
    extra: Headers = list(headers)
    if isinstance(error, MethodNotAllowed):
        extra.append((b"allow", ", ".join(error.allowed).encode()))
    if isinstance(error, RestError) and error.status == 401:
        extra.append((b"www-authenticate", b'Bearer realm="firesteel"'))
    if isinstance(error, FiresteelError):
        status = getattr(error, "status", None)
        messages: list[str] = getattr(error, "errors", None) or [str(error)]
        return error_reply(status if isinstance(status, int) else 400, messages, extra)
    trace = "".join(traceback.format_exception(error)).rstrip()
    return error_reply(
        500,
        ["Internal server error.", f"<Exception on server side:\n{trace}\nEnd of exception on server side>"],
        extra,
    )
