"""A real browser for the web pages, without a screen; and answers for pages that need no cluster."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import firesteel.cluster
from firesteel.cluster.rest.static_files import StaticFiles

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
EXECUTABLE = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if EXECUTABLE is None:
    pytest.skip("there is no Chromium on this machine", allow_module_level=True)

WEB = Path(firesteel.cluster.__file__).parent / "web"
DEADLINE_MS = 30_000
sync_api.expect.set_options(timeout=DEADLINE_MS)
OFFLINE = "http://firesteel.test"
"""Where pages with canned answers are: nobody listens there."""


@contextmanager
def open_browser() -> Iterator[Any]:
    """A Chromium with all its processes up, so that none of them appears during a test."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=EXECUTABLE, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        try:
            with Visit(browser) as visit:
                visit.answer_with(lambda method, path, body: (404, {"errors": ["nothing here"]}))
                visit.page.goto(OFFLINE)
            yield browser
        finally:
            browser.close()


class Visit:
    """One tab. When it is closed, nothing must have gone wrong in it: no error in the console, none in a script."""

    def __init__(self, browser: Any, *, width: int = 1280, height: int = 800, scheme: str = "light"):
        self._context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self._context.set_default_timeout(DEADLINE_MS)
        self.page = self._context.new_page()
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        self.page.on("console", self._said)

    def _said(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.problems.append(f"{message.type}: {message.text}")

    def __enter__(self) -> Visit:  # noqa: PYI034 - typing.Self is of 3.11
        return self

    def __exit__(self, *_exception: object) -> None:
        self._context.close()

    def answer_with(self, answer: Callable[[str, str, str], tuple[int, Any] | None]) -> None:
        """Answers all requests: the files of the pages as the server has them, all else by a function.

        The function gets method, path with query, and body; without an answer the request fails as if nobody listened.
        """
        files = StaticFiles(WEB)

        def handle(route: Any) -> None:
            request = route.request
            place = urlsplit(request.url)
            file = files.reply(place.path, {}) if request.method == "GET" else None
            if file is not None:
                headers = {name.decode(): value.decode() for name, value in file.headers}
                route.fulfill(status=file.status, headers=headers, body=file.body)
                return
            found = answer(request.method, place._replace(scheme="", netloc="").geturl(), request.post_data or "")
            if found is None:
                route.abort("connectionrefused")
            else:
                status, body = found
                route.fulfill(status=status, content_type="application/json", body=json.dumps(body))

        self.page.route("**/*", handle)

    def is_wider_than_the_screen(self) -> bool:
        """Whether one has to scroll sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))
