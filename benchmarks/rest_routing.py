"""What routing with Starlette would cost the REST API: ``python -m benchmarks.rest_routing [--json]``

Calls the ASGI application for GET requests to a few endpoints, without sockets, once as it is and once with Starlette
(``pip install starlette``), which gets the same routes and does none of the checks of Host, token and parameters. Each
figure is the best of several runs, taken in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from firesteel.cluster.rest.application import RestApplication
from firesteel.cluster.rest.authentication import AccessControl
from firesteel.cluster.rest.request import Route
from firesteel.rest.endpoints import all_endpoints

REQUESTS = 3_000
TURNS = 7
JOB = "0123456789abcdef0123456789abcdef"
PATHS = (
    "/config",
    "/jobs/overview",
    f"/jobs/{JOB}",
    f"/jobs/{JOB}/vertices/{JOB}",
    f"/jobs/{JOB}/checkpoints",
    "/taskmanagers",
)
ANSWER = {"jobs": [{"id": JOB, "status": "RUNNING"}] * 10}

Application = Callable[[Any, Any, Any], Awaitable[None]]


def _firesteel() -> Application:
    routes = [Route(endpoint, lambda request: ANSWER) for endpoint in all_endpoints()]
    access = AccessControl("secret", bound_host="127.0.0.1")
    return RestApplication(routes, access, max_content_length=1 << 20, own_addresses=["localhost:8081"])


def _starlette() -> Application:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route as StarletteRoute

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(ANSWER)

    # a path that is written out has to come before a placeholder: the first route that matches is taken
    endpoints = sorted(all_endpoints(), key=lambda endpoint: ":" in endpoint.path)
    paths = [(re.sub(r":(\w+)", r"{\1}", endpoint.path), endpoint.method) for endpoint in endpoints]
    return Starlette(
        routes=[
            StarletteRoute(prefix + path, answer, methods=[method]) for prefix in ("", "/v1") for path, method in paths
        ]
    )


async def _microseconds(application: Application, path: str) -> float:
    """The time for one request; asserts that it is answered."""
    statuses: list[int] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    def scope() -> dict[str, Any]:
        return {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"localhost:8081"), (b"authorization", b"Bearer secret")],
            "server": ("127.0.0.1", 8081),
            "client": ("127.0.0.1", 50000),
        }

    scopes = [scope() for _ in range(REQUESTS)]
    began = time.perf_counter()
    for each in scopes:
        await application(each, receive, send)
    elapsed = time.perf_counter() - began
    assert statuses == [200] * REQUESTS, set(statuses)
    return elapsed / REQUESTS * 1e6


def _import_milliseconds(module: str) -> float:
    """The processor time that the import adds to a JobManager, which has imported uvicorn and asyncio anyway."""
    code = (
        "import uvicorn, asyncio, time; began = time.process_time(); "
        f"import {module}; print((time.process_time() - began) * 1e3)"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args(arguments).json
    applications = {"firesteel": _firesteel(), "starlette": _starlette()}
    figures: dict[str, Any] = {}
    for path in PATHS:
        best = dict.fromkeys(applications, float("inf"))
        for _ in range(TURNS):
            for name, application in applications.items():
                best[name] = min(best[name], asyncio.run(_microseconds(application, path)))
        figures[path.replace(JOB, ":id")] = {name: round(value, 1) for name, value in best.items()}
    imports = {"starlette": round(_import_milliseconds("starlette.applications, starlette.staticfiles"), 1)}
    if as_json:
        print(json.dumps({"microseconds_per_request": figures, "import_milliseconds": imports}))
        return
    print(f"{'µs per request':<28}{'firesteel':>10}{'starlette':>10}{'ratio':>7}")
    for path, pair in figures.items():
        print(f"{path:<28}{pair['firesteel']:>10}{pair['starlette']:>10}{pair['starlette'] / pair['firesteel']:>7.1f}")
    print(f"import of starlette: {imports['starlette']} ms of processor time")


if __name__ == "__main__":
    main()
