"""REST router: a trie over path segments for each method."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from firesteel.cluster.rest.request import RestError, Route

__all__ = ["MethodNotAllowed", "Router"]

_VERSIONS = {f"v{number}": number for number in range(1, 5)}

_HEX_IDS = frozenset(
    {
        "applicationid",
        "checkpointtriggerid",
        "jobid",
        "savepointtriggerid",
        "triggerid",
        "vertexid",
    }
)
_UUIDS = frozenset({"session_handle", "operation_handle"})
_NUMBERS = frozenset({"attempt", "checkpointid", "subtaskindex"})
_HEX = re.compile(r"[0-9a-fA-F]{32}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"[0-9]{1,18}")


class MethodNotAllowed(RestError):
    """The path is there, but not for this method; ``allowed`` are those it is there for."""

    def __init__(self, method: str, path: str, allowed: Iterable[str]):
        self.allowed = sorted(allowed)
        super().__init__(405, f"Method {method} is not allowed for {path}: {', '.join(self.allowed)} are.")


@dataclass
class _Node:
    children: dict[str, _Node] = field(default_factory=dict)
    any: _Node | None = None
    routes: dict[str, tuple[Route, list[str]]] = field(default_factory=dict)
    """Method to route and the names of its placeholders."""


class Router:
    """All routes by path and method, at ``/x``, ``/v1/x`` or their other versions, and both below a prefix.

    A segment that is written out wins over a placeholder: ``/jobs/overview`` over ``/jobs/:jobid``.
    """

    def __init__(self, routes: Iterable[Route], prefix: str | None = None):
        self._root = _Node()
        self._prefix = [segment for segment in (prefix or "").split("/") if segment]
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node = self._root
        for segment in _segments(route.endpoint.path):
            if segment.startswith(":"):
                node.any = node.any or _Node()
                node = node.any
            else:
                node = node.children.setdefault(segment, _Node())
        method = route.endpoint.method
        if method in node.routes:
            raise ValueError(f"Two routes for {method} {route.endpoint.path}")
        node.routes[method] = (route, route.endpoint.placeholders)

    def match(self, method: str, raw_path: str) -> tuple[Route, Mapping[str, str]]:
        """The route of a request, and the path's parameters; ``raw_path`` is still percent-encoded.

        Raises RestError where there is none, or where an id is none.
        """
        node, values, version = self._find(raw_path)
        if node is None:
            raise RestError(404, f"Not found: {unquote(raw_path)}")
        found = node.routes.get(method)
        if found is None and method == "HEAD":
            found = node.routes.get("GET")
        if found is None:
            raise MethodNotAllowed(method, unquote(raw_path), self._allowed(node))
        route, names = found
        if version is not None and version not in route.endpoint.versions:
            raise RestError(404, f"Not found: {unquote(raw_path)}")
        if not names:
            return route, {}
        return route, {name: _checked(name, value) for name, value in zip(names, values, strict=True)}

    def version(self, raw_path: str) -> int | None:
        """The version of the API that a path names."""
        return self._find(raw_path)[2]

    def allowed(self, raw_path: str) -> list[str]:
        """The methods a path takes; none if there is no such path."""
        node, _, _ = self._find(raw_path)
        return [] if node is None else sorted(self._allowed(node))

    def _find(self, raw_path: str) -> tuple[_Node | None, list[str], int | None]:
        segments = _segments(raw_path)
        if "%" in raw_path:
            # decoded one by one: a slash inside a name does not end it
            segments = [unquote(segment) for segment in segments]
        start = 0
        length = len(self._prefix)
        if length and segments[:length] == self._prefix:
            start = length
        version = _VERSIONS.get(segments[start]) if start < len(segments) else None
        if version is not None:
            start += 1
        values: list[str] = []
        return _walk(self._root, segments, start, values), values, version

    @staticmethod
    def _allowed(node: _Node) -> set[str]:
        methods = {*node.routes, "OPTIONS"}
        return methods | {"HEAD"} if "GET" in methods else methods


def _segments(path: str) -> list[str]:
    inner = path.strip("/")
    return inner.split("/") if inner else []


def _walk(node: _Node, segments: list[str], index: int, values: list[str]) -> _Node | None:
    """Follows the segments: what is written out first, and the placeholder if that leads nowhere."""
    if index == len(segments):
        return node if node.routes else None
    segment = segments[index]
    child = node.children.get(segment)
    if child is not None and (found := _walk(child, segments, index + 1, values)) is not None:
        return found
    if node.any is None or not segment:
        return None
    values.append(segment)
    if (found := _walk(node.any, segments, index + 1, values)) is not None:
        return found
    values.pop()
    return None


def _checked(name: str, value: str) -> str:
    if name in _HEX_IDS:
        if _HEX.fullmatch(value):
            return value.lower()
    elif name in _UUIDS:
        if _UUID.fullmatch(value):
            return value.lower()
    elif name in _NUMBERS:
        if _NUMBER.fullmatch(value):
            return value
    else:
        return value
    expected = "32 hexadecimal digits" if name in _HEX_IDS else "a UUID" if name in _UUIDS else "an integer"
    raise RestError(
        400,
        "Bad request, could not parse parameters: "
        f'Cannot resolve path parameter ({name}) from value "{value[:200]}": it is not {expected}.',
    )
