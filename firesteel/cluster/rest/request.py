"""REST requests as handlers get them, and the registration of handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from firesteel.common.errors import FiresteelError
from firesteel.rest.endpoint import Endpoint

__all__ = ["Handler", "RestError", "RestRequest", "Route", "Upload"]

BodyT = TypeVar("BodyT")


class RestError(FiresteelError):
    """An answer other than a success: becomes ``{"errors": [message]}`` with the status."""

    def __init__(self, status: int, message: str, *, hint: str | None = None):
        super().__init__(message, hint=hint)
        self.status = status


@dataclass(frozen=True)
class Upload:
    """A file of a multipart body."""

    filename: str
    content: bytes


@dataclass(frozen=True)
class RestRequest(Generic[BodyT]):
    """A request that has passed all checks of its declaration."""

    path: Mapping[str, str]
    """The path's parameters."""
    query: Mapping[str, Any]
    """All declared query parameters, converted; those that were not given have their defaults."""
    body: BodyT
    """The decoded body; None where the endpoint declares none."""
    uploads: Mapping[str, Upload] = field(default_factory=dict)
    """The files of a multipart body by field name; its other fields are in ``body``."""
    base_url: str = ""
    """This server as the client calls it."""
    own_url: str = ""
    """The URL of this server for processes of this machine, independent of the client: they may send it the token."""
    version: int = 1
    """The version of the API by which it was called."""


Handler = Callable[[RestRequest[Any]], Any]


@dataclass(frozen=True)
class Route:
    """An endpoint and what answers it.

    A handler that only looks at what is in memory runs in the server's own thread; one that does I/O, waits or takes
    long is marked ``blocking`` and runs in a thread pool.
    """

    endpoint: Endpoint[Any, Any]
    handler: Handler
    blocking: bool = False
    cache_ms: int = 0
    """How old an answer may be: within that time, equal requests get the same bytes. Only for endpoints that read."""
    refusal: Callable[[bytes], RestError | None] | None = None
    """Of a request without the token: looks at the beginning of its body for a better reason to refuse it."""
