"""HTTP requests on an event loop, over connections that are kept."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httptools

from firesteel.table.bound.errors import ValidationError

__all__ = ["HttpClient", "Response"]

_READ_SIZE = 1 << 16
_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Response:
    """The answer to a request."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first header of a name in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class _Reading:
    """What the parser of a response calls."""

    def __init__(self) -> None:
        self.response = Response()
        self.is_complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.response.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_body(self, body: bytes) -> None:
        self.response.body += body

    def on_message_complete(self) -> None:
        self.is_complete = True


class HttpClient:
    """Posts to one URL. Connections without a request are kept for the next one."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValidationError(
                f"'{url}' is no URL of HTTP.", hint="For example http://localhost:8000/v1/embeddings."
            )
        self._host = parts.hostname
        self._is_secure = parts.scheme == "https"
        self._port = parts.port or (443 if self._is_secure else 80)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = {"Host": parts.netloc.rpartition("@")[2], "Connection": "keep-alive", **headers}
        self._head = f"POST {target} HTTP/1.1\r\n" + "".join(f"{key}: {value}\r\n" for key, value in lines.items())
        self._idle: list[_Connection] = []

    async def post(self, body: bytes) -> Response:
        """The answer to a body. Raises OSError if there is none."""
        message = f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body
        while self._idle:
            try:
                return await self._exchange(self._idle.pop(), message)
            except _NoAnswerError:
                continue  # the server had closed the connection meanwhile
        try:
            return await self._exchange(await self._connect(), message)
        except _NoAnswerError as error:
            raise ConnectionError(f"{self._host}:{self._port} closed the connection without an answer.") from error

    async def close(self) -> None:
        """Closes the connections that are kept."""
        while self._idle:
            _, writer = self._idle.pop()
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                continue  # it was broken

    async def _connect(self) -> _Connection:
        context = ssl.create_default_context() if self._is_secure else None
        return await asyncio.open_connection(self._host, self._port, ssl=context)

    async def _exchange(self, connection: _Connection, message: bytes) -> Response:
        reader, writer = connection
        is_reusable = False
        reading = _Reading()
        parser = httptools.HttpResponseParser(reading)
        try:
            writer.write(message)
            received = 0
            while not reading.is_complete:
                data = await reader.read(_READ_SIZE)
                if not data:
                    break
                received += len(data)
                parser.feed_data(data)
            if not received:
                raise _NoAnswerError
            response = reading.response
            response.status = parser.get_status_code()
            has_end = response.header("content-length") or response.header("transfer-encoding")
            if not reading.is_complete and has_end:
                raise ConnectionError(f"{self._host}:{self._port} closed the connection within an answer.")
            is_reusable = reading.is_complete and parser.should_keep_alive()
        except httptools.HttpParserError as error:
            raise ConnectionError(f"{self._host}:{self._port} did not answer in HTTP: {error}") from error
        except (ConnectionResetError, BrokenPipeError) as error:
            raise _NoAnswerError from error
        finally:
            # also of a call that is cancelled: its answer must not be taken for that of the next one
            if is_reusable:
                self._idle.append(connection)
            else:
                writer.close()
        return response


class _NoAnswerError(Exception):
    """The connection was closed before the answer."""
