"""Static files of the web UI, served from one directory."""

from __future__ import annotations

import hashlib
import mimetypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from firesteel.cluster.rest.replies import Reply

__all__ = ["StaticFiles"]

INDEX = "index.html"
CONTENT_SECURITY_POLICY = (
    b"default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    b"frame-ancestors 'none'"
)
TYPES = {
    # set here because the machine's own table of types may differ
    ".css": "text/css; charset=UTF-8",
    ".html": "text/html; charset=UTF-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=UTF-8",
    ".json": "application/json; charset=UTF-8",
    ".mjs": "text/javascript; charset=UTF-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=UTF-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True)
class _File:
    stamp: tuple[int, int]
    etag: bytes
    reply: Reply


class StaticFiles:
    """The files below a directory, kept in memory until they change on disk."""

    def __init__(self, directory: str | Path):
        self._root = Path(directory).resolve()
        self._files: dict[Path, _File] = {}

    def reply(self, raw_path: str, headers: Mapping[bytes, bytes]) -> Reply | None:
        """The file at a path, or that it has not changed; None if there is none."""
        path = self._resolve(unquote(raw_path))
        if path is None:
            return None
        try:
            status = os.stat(path)  # noqa: PTH116 - once per request
            file = self._files.get(path)
            stamp = (status.st_mtime_ns, status.st_size)
            if file is None or file.stamp != stamp:
                file = self._files[path] = _load(path, stamp)
        except OSError:
            return None
        if file.etag in [tag.strip().removeprefix(b"W/") for tag in headers.get(b"if-none-match", b"").split(b",")]:
            kept = [(name, value) for name, value in file.reply.headers if name != b"content-length"]
            return Reply(304, kept, b"")
        return file.reply

    def _resolve(self, path: str) -> Path | None:
        names = [name for name in path.split("/") if name]
        if any(name.startswith(".") or "\\" in name or "\0" in name for name in names):
            return None
        try:
            # links are followed before the place is checked
            found = self._root.joinpath(*names or [INDEX]).resolve()
            inside = found.is_relative_to(self._root) and found.is_file()
        except (OSError, ValueError, RuntimeError):
            return None
        return found if inside else None


def _load(path: Path, stamp: tuple[int, int]) -> _File:
    content = path.read_bytes()
    guessed = TYPES.get(path.suffix.lower()) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'.encode()
    extra = [
        (b"etag", etag),
        (b"cache-control", b"no-cache"),
        (b"content-security-policy", CONTENT_SECURITY_POLICY),
        (b"referrer-policy", b"no-referrer"),
    ]
    return _File(stamp, etag, Reply.of(200, guessed.encode(), content, extra))
