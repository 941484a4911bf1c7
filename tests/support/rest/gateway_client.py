"""A client of the SQL Gateway that sends what Flink's clients send."""

from __future__ import annotations

import json
import urllib.request
from typing import Any
from urllib.error import HTTPError

__all__ = ["GatewayClient", "GatewayRefusal"]

TIMEOUT_S = 60.0


class GatewayRefusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.status = status


class GatewayClient:
    """Requests to one gateway, in one version of its API."""

    def __init__(self, url: str, token: str, version: str = "/v4") -> None:
        self._url = url
        self._token = token
        self.version = version

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded answer; ``path`` begins after the version, unless it names one."""
        target = path if path.startswith("/v") else self.version + path
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self._url + target, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.loads(answer.read())
        except HTTPError as error:
            with error:
                raise GatewayRefusal(error.code, json.loads(error.read())["errors"]) from None

    def open_session(self, **properties: str) -> str:
        """The handle of a new session."""
        handle: str = self.call("POST", "/sessions", {"properties": properties})["sessionHandle"]
        return handle

    def execute(self, session: str, sql: str, **more: Any) -> str:
        """The path of a new operation."""
        answer = self.call("POST", f"/sessions/{session}/statements", {"statement": sql, **more})
        return f"/sessions/{session}/operations/{answer['operationHandle']}"

    def pages(self, operation: str, row_format: str = "JSON") -> list[dict[str, Any]]:
        """All pages of a result that are ready, to the last one."""
        query = "" if self.version == "/v1" else f"?rowFormat={row_format}"
        uri: str | None = f"{operation}/result/0{query}"
        found = []
        while uri is not None:
            page = self.call("GET", uri)
            uri = page.get("nextResultUri")
            if page["resultType"] != "NOT_READY":
                found.append(page)
        return found

    def rows(self, session: str, sql: str, row_format: str = "JSON") -> list[Any]:
        """The rows of a statement: the kinds of those that are no insertions, and their fields."""
        pages = self.pages(self.execute(session, sql), row_format)
        assert pages[-1]["resultType"] == "EOS"
        return [
            row["fields"] if row["kind"] == "INSERT" else (row["kind"], row["fields"])
            for page in pages
            for row in page["results"]["data"]
        ]
