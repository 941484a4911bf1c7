"""Forwards the printed output and the log lines of user functions from a slot's process to the program's terminal."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.jobmaster.model.log_line import LOG_STREAM, LogLine
from firesteel.runtime.model import messages
from firesteel.runtime.model.serialization import serialize_records
from firesteel.spark.session.function_logging import HANDLER

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

__all__ = ["UserOutput"]

MAX_PENDING_LINES = 1000
"""Lines that wait for the client; a function that prints more has to wait as well."""
MAX_PENDING_LOG_CHARACTERS = 4 << 20
"""Size of the log lines that wait for the client; more are left out."""
MAX_LINE_BYTES = 1 << 16
_CHECK_INTERVAL_S = 1.0

Send = Callable[[messages.SlotMessage], None]


class _Payloads:
    """Sends lines as payloads. While one is on its way, further lines gather for the next."""

    def __init__(self, name: str, send: Send, attempt: int, slot: int):
        self.channel = f"print#{name}"
        self.pending: list[Any] = []
        self._name = name
        self._send = send
        self._attempt = attempt
        self._slot = slot
        self._sequence = 0
        self._acknowledged = -1

    def add(self, lines: Sequence[Any]) -> None:
        self.pending += lines
        if self._acknowledged == self._sequence - 1:
            self.send_pending()

    def acknowledged(self, sequence: int) -> None:
        self._acknowledged = max(self._acknowledged, sequence)
        self.send_pending()

    def send_pending(self) -> None:
        if not self.pending:
            return
        lines, self.pending = self.pending, []
        payload = serialize_records((self._name, lines), None)
        sequence = self._sequence
        self._sequence += 1
        try:
            self._send(messages.ClientPayload(self._attempt, self.channel, self._slot, sequence, payload))
        except ConnectionError:
            pass  # the JobMaster is gone: no receiver is left


class _LineStream(io.RawIOBase):
    """Sends whole lines of text."""

    def __init__(self, payloads: _Payloads, stopped: Callable[[], bool]):
        super().__init__()
        self._payloads = payloads
        self._stopped = stopped
        self._changed = threading.Condition(threading.RLock())
        self._partial = b""
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
            self._payloads.add([line.decode("utf-8", "replace") for line in lines])
            while len(self._payloads.pending) >= MAX_PENDING_LINES and not self._draining and not self._stopped():
                self._changed.wait(_CHECK_INTERVAL_S)
        return len(text)

    def acknowledge(self, message: messages.ClientAck) -> bool:
        """The client has taken a payload; called from another thread."""
        if message.channel != self._payloads.channel:
            return False
        with self._changed:
            self._payloads.acknowledged(message.sequence)
            self._changed.notify_all()
        return True

    def drain(self, text: io.TextIOWrapper, *, end: bool) -> None:
        """Sends everything at once, and at the end also a line that is not complete."""
        with self._changed:
            self._draining = True
            try:
                text.flush()
                if end and self._partial:
                    self.write(b"\n")
                self._payloads.send_pending()
            finally:
                self._draining = False


class _LogLines:
    """Sends log lines; takes no more of them while many wait."""

    def __init__(self, payloads: _Payloads):
        self._payloads = payloads
        self._lock = threading.RLock()
        self._waiting = 0
        """Characters of pending lines."""

    def offer(self, line: LogLine) -> bool:
        with self._lock:
            if not self._payloads.pending:
                self._waiting = 0
            if self._waiting > MAX_PENDING_LOG_CHARACTERS:
                return False
            self._waiting += len(line.text)
            self._payloads.add([line])
        return True

    def acknowledge(self, message: messages.ClientAck) -> bool:
        """The client has taken a payload; called from another thread."""
        if message.channel != self._payloads.channel:
            return False
        with self._lock:
            self._payloads.acknowledged(message.sequence)
        return True

    def drain(self) -> None:
        with self._lock:
            self._payloads.send_pending()


class UserOutput:
    """While entered, ``sys.stdout``, ``sys.stderr`` and the log lead to the client."""

    def __init__(self, send: Send, attempt: int, slot: int, stopped: Callable[[], bool]):
        self._streams = {
            name: _LineStream(_Payloads(name, send, attempt, slot), stopped) for name in ("stdout", "stderr")
        }
        self._log = _LogLines(_Payloads(LOG_STREAM, send, attempt, slot))
        self._texts: dict[str, io.TextIOWrapper] = {}
        self._saved: dict[str, Any] = {}

    def __enter__(self) -> Self:
        for name, stream in self._streams.items():
            self._texts[name] = io.TextIOWrapper(
                io.BufferedWriter(stream), encoding="utf-8", errors="backslashreplace", line_buffering=True
            )
            self._saved[name] = getattr(sys, name)
            setattr(sys, name, self._texts[name])
        HANDLER.offer = self._log.offer
        return self

    def __exit__(self, *_exception: object) -> None:
        HANDLER.offer = None
        for name, saved in self._saved.items():
            setattr(sys, name, saved)

    def flush(self, *, end: bool = False) -> None:
        """Sends the printed output so far, before any message that could end the job."""
        for name, text in self._texts.items():
            self._streams[name].drain(text, end=end)
        self.tell_left_out()
        self._log.drain()

    def tell_left_out(self) -> None:
        """Tells of log records that were left out; called now and then, from any thread."""
        HANDLER.tell_left_out()

    def acknowledge(self, message: object) -> bool:
        """Takes the client's acknowledgement, if it is one for printed lines."""
        if not isinstance(message, messages.ClientAck):
            return False
        return self._log.acknowledge(message) or any(each.acknowledge(message) for each in self._streams.values())
