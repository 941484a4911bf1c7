"""Endpoint declaration of the REST API, from which server, client, OpenAPI and docs are generated."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic

__all__ = ["Access", "Endpoint", "Parameter", "Text"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    RequestT = TypeVar("RequestT", default=None)
    ResponseT = TypeVar("ResponseT", default=Any)
else:
    from typing import TypeVar

    RequestT = TypeVar("RequestT")
    ResponseT = TypeVar("ResponseT")

_PLACEHOLDER = re.compile(r":(\w+)")


class Access(Enum):
    """Who may call an endpoint."""

    READ = "read"
    """Read access: local processes of the JobManager's user; others with a token or a client certificate."""
    CHANGE = "change"
    """Write access: as READ, but never from a page of another site."""
    CODE = "code"
    """Code execution (programs and pickled objects): always requires a token or a client certificate."""
    LOGIN = "login"
    """The request contains a secret that is exchanged for the token."""


class Text(str):
    """The type of a plain-text response."""

    __slots__ = ()


@dataclass(frozen=True)
class Parameter:
    """A query parameter; ``type`` is what its text is converted to."""

    name: str
    description: str
    type: Any = str
    default: Any = None
    is_list: bool = False
    """Several values, separated by commas."""
    is_required: bool = False


@dataclass(frozen=True, eq=False)
class Endpoint(Generic[RequestT, ResponseT]):
    """One method of one path.

    ``path`` has placeholders in Flink's notation, ``/jobs/:jobid``. The types of bodies are msgspec Structs, or other
    types that msgspec encodes.
    """

    method: str
    path: str
    summary: str
    response: type[ResponseT]
    request: type[RequestT] | None = None
    query: tuple[Parameter, ...] = ()
    status: int = 200
    """The HTTP status of a successful response."""
    errors: dict[int, str] = field(default_factory=dict)
    """Other HTTP statuses and their conditions."""
    access: Access | None = None
    """Default: READ for GET, CHANGE for other methods."""
    tag: str = "jobs"
    is_ours: bool = False
    """Whether the endpoint does not exist in Flink."""
    is_upload: bool = False
    """The body is multipart/form-data."""
    versions: tuple[int, ...] = (1,)
    """The versions of the API that have it; without a version, a path is that of the latest."""

    @property
    def name(self) -> str:
        """A name for code and descriptions: ``get_jobs_jobid_plan``."""
        return "_".join([self.method.lower(), *re.findall(r"\w+", self.path.replace("-", "_"))])

    @property
    def required_access(self) -> Access:
        """Who may call it."""
        if self.access is not None:
            return self.access
        return Access.READ if self.method == "GET" else Access.CHANGE

    @property
    def placeholders(self) -> list[str]:
        """The names of the path's parameters.

        >>> Endpoint("GET", "/jobs/:jobid/vertices/:vertexid", "", dict).placeholders
        ['jobid', 'vertexid']
        """
        return _PLACEHOLDER.findall(self.path)
