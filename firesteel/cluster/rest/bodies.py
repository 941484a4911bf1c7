"""Request bodies: read with limits on size and time."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import msgspec
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from firesteel.cluster.rest.request import RestError, Upload

__all__ = [
    "ClientDisconnected",
    "Form",
    "Receive",
    "decode_body",
    "discard_body",
    "read_beginning",
    "read_body",
    "read_form",
]

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

BODY_GRACE_S = 30.0
MIN_BYTES_PER_S = 64 * 1024
"""A client has half a minute, and more only for what it has sent at this rate."""

DISCARDED_BYTES = 16 * 1024 * 1024
DISCARD_TIMEOUT_S = 5.0
GLANCE_BYTES = 64 * 1024
GLANCE_TIMEOUT_S = 2.0
MAX_PARTS = 1000
MAX_FIELD_BYTES = 16 * 1024 * 1024
MAX_NAME_LENGTH = 200

REQUEST_FIELD = "request"
"""The field of a form that holds the request as JSON, as Flink's client names it."""

# it warns of every malformed form; the client gets an error already
logging.getLogger("python_multipart").setLevel(logging.ERROR)

_FILENAME = re.compile(r"[\w.\-+=@,() ]+")


class ClientDisconnected(Exception):
    """The client went away before it had sent everything."""


class _Chunks:
    """The parts of a body as they come; raises if there are too many of them or they come too slowly."""

    def __init__(self, receive: Receive, limit: int, content_length: bytes | None):
        self._receive = receive
        self._limit = limit
        self._started = time.monotonic()
        self._received = 0
        if content_length is not None and int(content_length) > limit:
            raise _too_large(limit)

    async def next(self) -> tuple[bytes, bool]:
        """The next part, and whether there is more."""
        allowed = BODY_GRACE_S + self._received / MIN_BYTES_PER_S
        remaining = self._started + allowed - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(remaining, 0.001))
        except asyncio.TimeoutError:
            raise RestError(
                408,
                f"The request body arrived too slowly: {self._received} bytes in {allowed:.0f} s.",
            ) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        body: bytes = message.get("body", b"")
        self._received += len(body)
        if self._received > self._limit:
            raise _too_large(self._limit)
        return body, bool(message.get("more_body"))


def _too_large(limit: int) -> RestError:
    return RestError(
        413, f"The request's body is larger than {limit} bytes.", hint="rest.server.max-content-length allows more."
    )


async def read_body(receive: Receive, limit: int, content_length: bytes | None = None) -> bytes:
    """The whole body; RestError 413 as soon as it is known to be larger than the limit."""
    chunks = _Chunks(receive, limit, content_length)
    body, more = await chunks.next()
    if not more:
        return body
    parts = [body]
    while more:
        body, more = await chunks.next()
        parts.append(body)
    return b"".join(parts)


async def discard_body(receive: Receive) -> None:
    """Lets a client finish an unread body, so that it sees the answer; gives up on one that does not end."""
    end = time.monotonic() + DISCARD_TIMEOUT_S
    discarded = 0
    while discarded < DISCARDED_BYTES:
        try:
            message = await asyncio.wait_for(receive(), max(end - time.monotonic(), 0.001))
        except asyncio.TimeoutError:
            return
        discarded += len(message.get("body", b""))
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return


async def read_beginning(receive: Receive) -> bytes:
    """The first few kilobytes of a body that is not to be read, or what has come of them within a moment."""
    beginning = bytearray()
    end = time.monotonic() + GLANCE_TIMEOUT_S
    while len(beginning) < GLANCE_BYTES:
        try:
            message = await asyncio.wait_for(receive(), max(end - time.monotonic(), 0.001))
        except asyncio.TimeoutError:
            break
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        beginning += message.get("body", b"")[:GLANCE_BYTES]
        if not message.get("more_body"):
            break
    return bytes(beginning)


class Form:
    """A multipart/form-data body: texts and files by field name."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.uploads: dict[str, Upload] = {}
        self.is_complete = False
        self._headers: dict[bytes, bytes] = {}
        self._header = (bytearray(), bytearray())
        self._content = bytearray()
        self._name = ""
        self._filename: str | None = None
        self._parts = 0

    def callbacks(self) -> Any:
        return {
            "on_part_begin": self._on_part_begin,
            "on_part_data": self._on_part_data,
            "on_part_end": self._on_part_end,
            "on_header_begin": self._on_header_begin,
            "on_header_field": self._on_header_field,
            "on_header_value": self._on_header_value,
            "on_header_end": self._on_header_end,
            "on_headers_finished": self._on_headers_finished,
            "on_end": self._on_end,
        }

    def _on_part_begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise RestError(400, f"The form has more than {MAX_PARTS} parts.")
        self._headers = {}
        self._content = bytearray()

    def _on_header_begin(self) -> None:
        self._header = (bytearray(), bytearray())

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header[0].extend(data[start:end])

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1].extend(data[start:end])

    def _on_header_end(self) -> None:
        self._headers[bytes(self._header[0]).lower()] = bytes(self._header[1])

    def _on_headers_finished(self) -> None:
        disposition, options = parse_options_header(self._headers.get(b"content-disposition"))
        if disposition != b"form-data" or b"name" not in options:
            raise RestError(400, "A part of the form has no name (Content-Disposition: form-data; name=…).")
        self._name = _text(options[b"name"], "a field's name")
        filename = options.get(b"filename")
        self._filename = None if filename is None else safe_filename(_text(filename, "a file's name"))
        if self._name in self.fields or self._name in self.uploads:
            raise RestError(400, f"The form has two parts named {self._name!r}.")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._content += data[start:end]
        if self._filename is None and len(self._content) > MAX_FIELD_BYTES:
            raise RestError(413, f"The field {self._name!r} of the form is larger than {MAX_FIELD_BYTES} bytes.")

    def _on_part_end(self) -> None:
        if self._filename is None:
            self.fields[self._name] = _text(bytes(self._content), f"the field {self._name!r}")
        else:
            self.uploads[self._name] = Upload(self._filename, bytes(self._content))
        self._content = bytearray()

    def _on_end(self) -> None:
        self.is_complete = True

    def decode(self, type: Any) -> Any:
        """The fields as the body of a request: from the field ``request`` if there is one, else each by its name."""
        if REQUEST_FIELD in self.fields:
            return decode_body(self.fields[REQUEST_FIELD].encode(), type)
        try:
            return msgspec.convert(self.fields, type, strict=False)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RestError(400, f"The fields of the form are invalid: {error}") from None


def _text(value: bytes, what: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise RestError(400, f"The form is not in UTF-8: {what}.") from None


def safe_filename(name: str) -> str:
    """A name that is nothing but a name: no directories, nothing hidden, no odd characters.

    >>> safe_filename("C:\\\\jobs\\\\word count.py")
    'word count.py'
    """
    base = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2].strip()
    if not _FILENAME.fullmatch(base) or base.startswith(".") or len(base.encode()) > MAX_NAME_LENGTH:
        raise RestError(
            400,
            f"{name[:MAX_NAME_LENGTH]!r} is not a name for an uploaded file.",
            hint=f"It takes letters, digits, spaces and . - + = @ , ( ), no leading dot, {MAX_NAME_LENGTH} bytes.",
        )
    return base


async def read_form(receive: Receive, limit: int, headers: Mapping[bytes, bytes]) -> Form:
    """A multipart/form-data body."""
    content_type, options = parse_options_header(headers.get(b"content-type"))
    boundary = options.get(b"boundary")
    if content_type != b"multipart/form-data" or not boundary:
        raise RestError(415, "The request's body must be multipart/form-data, with a boundary.")
    form = Form()
    chunks = _Chunks(receive, limit, headers.get(b"content-length"))
    try:
        parser = MultipartParser(boundary, form.callbacks())
        more = True
        while more:
            body, more = await chunks.next()
            if body:
                parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise RestError(400, f"The request's body is not multipart/form-data: {error}") from None
    if not form.is_complete:
        raise RestError(400, "The request's body ends before its last boundary.")
    return form


def decode_body(body: bytes, type: Any) -> Any:
    """A JSON body as the endpoint's type; none at all is an empty object."""
    try:
        return msgspec.json.decode(body or b"{}", type=type)
    except msgspec.ValidationError as error:
        raise RestError(400, f"Request did not match expected format {_name(type)}: {error}") from None
    except (ValueError, RecursionError) as error:
        # also msgspec.DecodeError
        raise RestError(400, f"The request's body is not JSON: {error}") from None


def _name(type: Any) -> str:
    return getattr(type, "__name__", str(type))
