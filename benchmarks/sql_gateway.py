"""Latency of small statements in many SQL sessions: ``python -m benchmarks.sql_gateway URL TOKEN_FILE [--json]``

Opens sessions at a running gateway and executes each statement once in every session, a few clients at a time. A figure
is the time from sending the statement to having its last page.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

STATEMENTS = ("SHOW TABLES", "SELECT 1")


class Client:
    """Requests to a gateway."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.loads(answer.read())

    def milliseconds(self, session: str, sql: str) -> float:
        """How long a statement takes."""
        began = time.perf_counter()
        handle = self.call("POST", f"/v4/sessions/{session}/statements", {"statement": sql})["operationHandle"]
        uri = f"/v4/sessions/{session}/operations/{handle}/result/0?rowFormat=JSON"
        while uri:
            uri = self.call("GET", uri).get("nextResultUri")
        took = (time.perf_counter() - began) * 1000
        self.call("DELETE", f"/v4/sessions/{session}/operations/{handle}/close")
        return took


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("url")
    parser.add_argument("token_file", type=Path)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--clients", type=int, default=2, help="requests at the same time")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    client = Client(options.url, options.token_file.read_text().strip())
    sessions = [client.call("POST", "/v4/sessions", {})["sessionHandle"] for _ in range(options.sessions)]
    figures = {}
    with ThreadPoolExecutor(options.clients) as clients:
        for sql in STATEMENTS:
            client.milliseconds(sessions[0], sql)  # what is loaded with the first one
            taken = sorted(clients.map(lambda session, sql=sql: client.milliseconds(session, sql), sessions))
            cuts = statistics.quantiles(taken, n=100)
            figures[sql] = {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1)}
    for session in sessions:
        client.call("DELETE", f"/v4/sessions/{session}")
    if options.json:
        print(json.dumps({"sessions": len(sessions), "clients": options.clients, "milliseconds": figures}))
        return
    print(f"{'ms':<16}{'p50':>8}{'p99':>8}")
    for sql, pair in figures.items():
        print(f"{sql:<16}{pair['p50']:>8}{pair['p99']:>8}")


if __name__ == "__main__":
    main()
