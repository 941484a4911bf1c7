"""Forwards the printed output of user functions from a slot's process to the program's terminal."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel.runtime.model import messages
from firesteel.runtime.model.serialization import serialize_records

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

__all__ = ["UserOutput"]

MAX_PENDING_LINES = 1000
"""Lines that wait for the client; a function that prints more has to wait as well."""
MAX_LINE_BYTES = 1 << 16
_CHECK_INTERVAL_S = 1.0

Send = Callable[[messages.SlotMessage], None]


class _LineStream(io.RawIOBase):
    """Sends whole lines as payloads of its own; while one is on its way further lines gather for the next."""

    def __init__(self, name: str, send: Send, attempt: int, slot: int, stopped: Callable[[], bool]):
        super().__init__()
        self.channel = f"print#{name}"
        self._name = name
        self._send = send
        self._attempt = attempt
        self._slot = slot
        self._stopped = stopped
        self._changed = threading.Condition(threading.RLock())
        self._partial = b""
        self._pending: list[str] = []
        self._sequence = 0
        self._acknowledged = -1
        self._draining = False

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Buffer, /) -> int:
        """Takes text; waits while the client is far behind."""
        text = bytes(data)
        with self._changed:
            *lines, self._partial = (self._partial + text).split(b"\n")
            if len(self._partial) > MAX_LINE_BYTES:
                lines.append(self._partial)
                self._partial = b""
            self._pending += [line.decode("utf-8", "replace") for line in lines]
            if self._acknowledged == self._sequence - 1:
                self._send_pending()
            while len(self._pending) >= MAX_PENDING_LINES and not self._draining and not self._stopped():
                self._changed.wait(_CHECK_INTERVAL_S)
        return len(text)

    def acknowledged(self, sequence: int) -> None:
        """The client has taken a payload; called from another thread."""
        with self._changed:
            self._acknowledged = max(self._acknowledged, sequence)
            self._send_pending()
            self._changed.notify_all()

    def drain(self, text: io.TextIOWrapper, *, end: bool) -> None:
        """Sends everything at once, and at the end also a line that is not complete."""
        with self._changed:
            self._draining = True
            try:
                text.flush()
                if end and self._partial:
                    self.write(b"\n")
                self._send_pending()
            finally:
                self._draining = False

    def _send_pending(self) -> None:
        if not self._pending:
            return
        lines, self._pending = self._pending, []
        payload = serialize_records((self._name, lines), None)
        sequence = self._sequence
        self._sequence += 1
        try:
            self._send(messages.ClientPayload(self._attempt, self.channel, self._slot, sequence, payload))
        except ConnectionError:
            pass  # the JobMaster is gone: no receiver is left


class UserOutput:
    """While entered, ``sys.stdout`` and ``sys.stderr`` lead to the client."""

    def __init__(self, send: Send, attempt: int, slot: int, stopped: Callable[[], bool]):
        self._streams = {name: _LineStream(name, send, attempt, slot, stopped) for name in ("stdout", "stderr")}
        self._texts: dict[str, io.TextIOWrapper] = {}
        self._saved: dict[str, Any] = {}

    def __enter__(self) -> Self:
        for name, stream in self._streams.items():
            self._texts[name] = io.TextIOWrapper(
                io.BufferedWriter(stream), encoding="utf-8", errors="backslashreplace", line_buffering=True
            )
            self._saved[name] = getattr(sys, name)
            setattr(sys, name, self._texts[name])
        return self

    def __exit__(self, *_exception: object) -> None:
        for name, saved in self._saved.items():
            setattr(sys, name, saved)

    def flush(self, *, end: bool = False) -> None:
        """Sends the printed output so far, before any message that could end the job."""
        for name, text in self._texts.items():
            self._streams[name].drain(text, end=end)

    def acknowledge(self, message: object) -> bool:
        """Takes the client's acknowledgement, if it is one for printed lines."""
        if isinstance(message, messages.ClientAck):
            for stream in self._streams.values():
                if stream.channel == message.channel:
                    stream.acknowledged(message.sequence)
                    return True
        return False
