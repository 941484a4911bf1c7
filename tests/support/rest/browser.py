"""A real browser for the web pages, without a screen; and answers for pages that need no cluster."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import firesteel.cluster
from firesteel.cluster.rest.static_files import StaticFiles
from firesteel.testing import eventually

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if EXECUTABLE is None:
    pytest.skip("there is no Chromium on this machine", allow_module_level=True)

WEB = Path(firesteel.cluster.__file__).parent / "web"
DEADLINE_MS = 120_000
sync_api.expect.set_options(timeout=DEADLINE_MS)
OFFLINE = "http://firesteel.test"
"""Where pages with canned answers are; only the browser of the tests knows the way there."""

Answer = Callable[[str, str, str], "tuple[int, Any] | None"]


class _Server(ThreadingHTTPServer):
    """The files of the pages as the JobManager sends them, and answers of a function to all else."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = StaticFiles(WEB)
        self.answer: Answer = lambda method, path, body: (404, {"errors": ["nothing here"]})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        file = self.server.files.reply(urlsplit(self.path).path, {}) if self.command == "GET" else None
        if file is not None:
            headers = {name.decode(): value.decode() for name, value in file.headers}
            self._send(file.status, headers, file.body)
            return
        found = self.server.answer(self.command, self.path, body)
        if found is None:
            self.close_connection = True
        elif isinstance(found[1], str):
            self._send(found[0], {"content-type": "text/plain; charset=UTF-8"}, found[1].encode())
        else:
            self._send(found[0], {"content-type": "application/json"}, json.dumps(found[1]).encode())

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle

    def log_message(self, *_arguments: Any) -> None:
        """Says nothing."""


_server: _Server | None = None


@contextmanager
def open_browser() -> Iterator[Any]:
    """A Chromium with all its processes up, so that none of them appears during a test."""
    global _server
    with _Server() as _server, sync_api.sync_playwright() as playwright:
        threading.Thread(target=_server.serve_forever, daemon=True).start()
        way = f"MAP {urlsplit(OFFLINE).hostname} 127.0.0.1:{_server.server_port}"
        browser = playwright.chromium.launch(
            executable_path=EXECUTABLE,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--host-resolver-rules={way}"],
        )
        try:
            with Visit(browser) as visit:
                visit.page.goto(OFFLINE)
            yield browser
        finally:
            browser.close()
            _server.shutdown()


class Visit:
    """One tab. When it is closed, nothing must have gone wrong in it: no error in the console, none in a script."""

    def __init__(self, browser: Any, *, width: int = 1280, height: int = 800, scheme: str = "light"):
        self._context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self._context.set_default_timeout(DEADLINE_MS)
        self.page = self._context.new_page()
        self.problems: list[str] = []
        self._expected: list[str] = []
        self._asked: set[Any] = set()
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        self.page.on("console", self._said)
        self.page.on("request", lambda request: self._asked.add(request))
        self.page.on("requestfinished", lambda request: self._asked.discard(request))
        self.page.on("requestfailed", lambda request: self._asked.discard(request))

    def expect_problems(self, text: str) -> None:
        """Takes what the browser itself writes down with this text in it for no problem, from now on."""
        self._expected.append(text)

    def await_answers(self) -> None:
        """Waits until every request that was sent so far is over."""
        eventually(lambda: self.page.evaluate("true") and not self._asked, timeout=DEADLINE_MS / 1000)

    def _said(self, message: Any) -> None:
        if message.type in {"error", "warning"} and not any(text in message.text for text in self._expected):
            self.problems.append(f"{message.type}: {message.text}")

    def __enter__(self) -> Visit:  # noqa: PYI034 - typing.Self is of 3.11
        return self

    def __exit__(self, *_exception: object) -> None:
        self._context.close()

    def answer_with(self, answer: Answer) -> None:
        """Has a function answer all requests to ``OFFLINE`` but those for the pages' files.

        It gets method, path with query, and body; without an answer the connection is closed.
        """
        assert _server is not None
        _server.answer = answer

    def is_wider_than_the_screen(self) -> bool:
        """Whether one has to scroll sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
