from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from firesteel.cluster.rest.server import RestServer
from firesteel.cluster.rest.static_files import StaticFiles
from tests.support.rest.samples import Handlers, ask, serving


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("place")
    (place / "secret.txt").write_text("secret")
    web = place / "web"
    (web / "deep").mkdir(parents=True)
    (web / "index.html").write_text("<!doctype html>")
    (web / "app.js").write_text("export {}")
    (web / "style.css").write_text("a {}")
    (web / "deep" / "icon.svg").write_text("<svg/>")
    (web / "log").write_text("not the route")
    (web / ".hidden").write_text("hidden")
    (web / "link.txt").symlink_to(place / "secret.txt")
    (place / "web-other").mkdir()
    (place / "web-other" / "x.txt").write_text("secret")
    return web


@pytest.fixture(scope="module")
def server(web: Path) -> Iterator[RestServer]:
    with serving(Handlers().routes(), {"rest.path": "/proxy"}, static_directory=web) as a_server:
        yield a_server


@pytest.mark.parametrize(
    ("path", "content", "content_type"),
    [
        ("/", b"<!doctype html>", "text/html; charset=UTF-8"),
        ("/index.html", b"<!doctype html>", "text/html; charset=UTF-8"),
        ("/proxy/", b"<!doctype html>", "text/html; charset=UTF-8"),
        ("/app.js", b"export {}", "text/javascript; charset=UTF-8"),
        ("/proxy/app.js?v=1", b"export {}", "text/javascript; charset=UTF-8"),
        ("/style.css", b"a {}", "text/css; charset=UTF-8"),
        ("/deep/icon.svg", b"<svg/>", "image/svg+xml"),
    ],
)
def test_files(server: RestServer, path: str, content: bytes, content_type: str) -> None:
    answer = ask(server, "GET", path)
    assert (answer.status, answer.body) == (200, content)
    assert answer.headers["content-type"] == content_type
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-security-policy"].startswith("default-src 'self';")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in answer.headers


def test_a_route_wins_over_a_file(server: RestServer) -> None:
    assert ask(server, "GET", "/log").body.decode() == "line ü\n"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/deep/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e%2fsecret.txt",
        "/..%5csecret.txt",
        "/../web-other/x.txt",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/link.txt",
        "/.hidden",
        "/deep",
        "/deep/",
        "/app.js%00.html",
        "/" + "x" * 5000,
        "/missing.js",
    ],
)
def test_nothing_else(server: RestServer, path: str) -> None:
    answer = ask(server, "GET", path)
    assert answer.status == 404
    assert answer.errors[0].startswith("Not found: ")


def test_a_file_that_has_not_changed_is_not_sent_again(web: Path) -> None:
    changing = web / "changing.js"
    changing.write_text("1")
    files = StaticFiles(web)
    first = files.reply("/changing.js", {})
    assert first is not None
    etag = dict(first.headers)[b"etag"]
    again = files.reply("/changing.js", {b"if-none-match": b'"other", W/' + etag})
    assert again is not None
    assert (again.status, again.body) == (304, b"")
    changing.write_text("12")
    changed = files.reply("/changing.js", {b"if-none-match": etag})
    assert changed is not None
    assert (changed.status, changed.body) == (200, b"12")
    changing.unlink()
    assert files.reply("/changing.js", {}) is None


def test_an_unchanged_file_over_http(server: RestServer) -> None:
    etag = ask(server, "GET", "/app.js").headers["etag"]
    answer = ask(server, "GET", "/app.js", headers={"If-None-Match": etag})
    assert (answer.status, answer.body) == (304, b"")
    head = ask(server, "HEAD", "/app.js")
    assert (head.status, head.headers["content-length"], head.body) == (200, "9", b"")


def test_only_reading(server: RestServer) -> None:
    assert ask(server, "POST", "/app.js").status == 404
