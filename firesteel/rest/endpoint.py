"""What an endpoint of the REST API is: one declaration, from which server, client, OpenAPI and docs are made."""

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
    """Reads: processes of the JobManager's own user on its machine, others with a token or a client certificate."""
    CHANGE = "change"
    """Changes something: the same, but never a page of another site."""
    CODE = "code"
    """Carries code, as programs and pickled objects are: only with a token or a client certificate, whoever it is."""
    LOGIN = "login"
    """Carries a secret that is exchanged for the token."""


class Text(str):
    """The type of an answer that is plain text instead of JSON."""

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

    ``path`` has placeholders as Flink writes them, ``/jobs/:jobid``. The types of bodies are msgspec Structs, or
    whatever msgspec encodes.
    """

    method: str
    path: str
    summary: str
    response: type[ResponseT]
    request: type[RequestT] | None = None
    query: tuple[Parameter, ...] = ()
    status: int = 200
    """What a success answers with."""
    errors: dict[int, str] = field(default_factory=dict)
    """What else it answers with, and when."""
    access: Access | None = None
    """READ for GET and CHANGE for all others, if not said."""
    tag: str = "jobs"
    is_ours: bool = False
    """Not an endpoint of Flink's."""
    is_upload: bool = False
    """The body is multipart/form-data."""

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
