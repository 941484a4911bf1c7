"""Sends requests at a fixed rate over kept connections, and notes how long each takes from when it was due.

A late answer delays those behind it; counted from when it was due, that shows in their figures too.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import sys
import time
from collections import deque
from typing import Any

__all__ = ["main"]

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_PATIENCE_S = 10.0


class _Connection:
    def __init__(self, host: str, port: int, request: bytes) -> None:
        self.socket = socket.create_connection((host, port), timeout=_PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.due = 0.0
        self._request = request
        self._received = b""

    def send(self, due: float) -> None:
        self.due = due
        self._received = b""
        self.socket.sendall(self._request)

    def receive(self) -> int | None:
        """The status once the whole answer is here."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server closed a connection")
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator:
            return None
        length = _LENGTH.search(head)
        if length is None:
            raise ValueError(f"an answer without a length: {head[:200]!r}")
        return int(head.split(b" ", 2)[1]) if len(body) >= int(length[1]) else None


def main(host: str, port: int, path: str, rate: float, seconds: float, connections: int = 16) -> dict[str, Any]:
    """Figures of ``rate`` requests a second for that long."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    selector = selectors.DefaultSelector()
    idle: deque[_Connection] = deque()
    for _ in range(connections):
        connection = _Connection(host, port, request)
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        idle.append(connection)
    latencies: list[float] = []
    failed = 0
    began = time.perf_counter()
    total = int(rate * seconds)
    sent = 0
    while len(latencies) + failed < total:
        now = time.perf_counter()
        while sent < total and idle and began + sent / rate <= now:
            idle.popleft().send(began + sent / rate)
            sent += 1
        wait = began + sent / rate - now if sent < total and idle else _PATIENCE_S
        ready = selector.select(max(wait, 0.0))
        if not ready and wait >= _PATIENCE_S:
            raise TimeoutError(f"no answer for {_PATIENCE_S:g} s after {len(latencies)} requests")
        for key, _ in ready:
            connection = key.data
            status = connection.receive()
            if status is not None:
                latencies.append(time.perf_counter() - connection.due)
                if status != 200:
                    failed += 1
                    latencies.pop()
                idle.append(connection)
    elapsed = time.perf_counter() - began
    for key in list(selector.get_map().values()):
        key.data.socket.close()
    latencies.sort()
    return {
        "requests": total,
        "failed": failed,
        "requests_per_s": total / elapsed,
        **{f"p{p}_ms": 1000 * latencies[int(len(latencies) * p / 100)] for p in (50, 99)},
        "max_ms": 1000 * latencies[-1],
    }


if __name__ == "__main__":
    host, port, path, rate, seconds = sys.argv[1:]
    print(json.dumps(main(host, int(port), path, float(rate), float(seconds))))
