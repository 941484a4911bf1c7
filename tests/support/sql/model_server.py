"""A small service with OpenAI's interface, on the loopback, which tests tell what to answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["ModelServer", "chat", "embedding", "model_server"]

Answer = tuple[int, dict[str, str], Any]


def chat(*texts: str) -> Answer:
    """The answer of a chat, with a choice for each text."""
    return 200, {}, {"choices": [{"message": {"role": "assistant", "content": text}} for text in texts]}


def embedding(*values: float) -> Answer:
    """The answer with one embedding."""
    return 200, {}, {"data": [{"embedding": list(values)}]}


class ModelServer:
    """Requests that came, and the function that answers them."""

    def __init__(self, url: str, answer: Callable[[dict[str, Any]], Answer]) -> None:
        self.url = url
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()
        self.running = 0
        self.most_running = 0


@contextmanager
def model_server(answer: Callable[[dict[str, Any]], Answer]) -> Iterator[ModelServer]:
    """Runs the service; its URL has no path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with server.lock:
                server.requests.append({"path": self.path, **body})
                server.headers.append(dict(self.headers))
                server.running += 1
                server.most_running = max(server.most_running, server.running)
            try:
                status, headers, content = server.answer(body)
            finally:
                with server.lock:
                    server.running -= 1
            data = json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = ModelServer(f"http://127.0.0.1:{http.server_port}", answer)
    thread = threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join(30)
