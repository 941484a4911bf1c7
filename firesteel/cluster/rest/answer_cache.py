"""Response cache of the REST server, with a short time-to-live."""

from __future__ import annotations

import time
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus

from firesteel.cluster.rest.replies import Reply

__all__ = ["AnswerCache"]

MAX_ANSWERS = 512


@dataclass(frozen=True)
class _Answer:
    until: float
    reply: Reply
    wire: bytes


class AnswerCache:
    """Answers by the target of the request: its path and query."""

    def __init__(self) -> None:
        self._answers: dict[bytes, _Answer] = {}

    def get(self, target: bytes) -> Reply | None:
        """An answer that is not too old."""
        answer = self._answers.get(target)
        return answer.reply if answer is not None and answer.until > time.monotonic() else None

    def wire(self, target: bytes) -> bytes | None:
        """The same, just as it goes over the wire."""
        answer = self._answers.get(target)
        return answer.wire if answer is not None and answer.until > time.monotonic() else None

    def put(self, target: bytes, reply: Reply, seconds: float) -> None:
        if len(self._answers) >= MAX_ANSWERS:
            self._answers.clear()
        self._answers[target] = _Answer(time.monotonic() + seconds, reply, _wire(reply))


def _wire(reply: Reply) -> bytes:
    headers = [*reply.headers, (b"date", formatdate(usegmt=True).encode())]
    return b"".join(
        [
            f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n".encode(),
            *(b"%b: %b\r\n" % header for header in headers),
            b"\r\n",
            reply.body,
        ]
    )
