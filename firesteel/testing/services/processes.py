"""Server processes of tests: started on loopback, awaited, stopped by their own process id."""

from __future__ import annotations

import ctypes
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from firesteel.common.errors import FiresteelError

__all__ = [
    "ServerProcess",
    "ServiceUnavailable",
    "cache_directory",
    "die_with_parent",
    "free_ports",
    "is_listening",
    "require_package",
]

_TAIL = 2000
_FIRST_PORT = 10_000
_GIVEN_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_MANY = 5_000


class ServiceUnavailable(FiresteelError):
    """A server is not available on this machine, or does not start; the message has the reason."""


def require_package(name: str, server: str) -> None:
    """Raises ServiceUnavailable if the client library of a server is not installed."""
    if find_spec(name) is None:
        raise ServiceUnavailable(
            f"{server} needs the package {name}, which is not installed.", hint="pip install 'firesteel[services]'"
        )


def free_ports(count: int) -> list[int]:
    """Free ports of loopback, all different.

    They are not in the system's range of ephemeral ports: one of these could be taken
    before the server listens, or while it is away.
    """
    sockets: list[socket.socket] = []
    ports = _ports_not_given()
    try:
        while len(sockets) < count:
            each = socket.socket()
            try:
                each.bind(("127.0.0.1", next(ports)))
            except OSError:
                each.close()
            else:
                sockets.append(each)
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _ports_not_given() -> Iterator[int]:
    """Ports to try, in an order of its own for each process; 0, which is any, where the system gives nearly all."""
    try:
        first_given = int(_GIVEN_PORTS.read_text(encoding="utf-8").split()[0])
    except (OSError, ValueError, IndexError):
        first_given = 0
    if first_given < _FIRST_PORT + _MANY:
        return itertools.repeat(0)
    # not of the shared generator: tests give it the same seed in each process
    order = random.SystemRandom().sample(range(_FIRST_PORT, first_given), _MANY)
    return itertools.chain(order, itertools.repeat(0))


def is_listening(port: int) -> bool:
    """Whether a process accepts connections at a port of loopback."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def cache_directory(name: str) -> Path:
    """Where what was fetched for a server is kept from one run to the next."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = base / "firesteel" / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Makes the kernel kill this process when the one that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class ServerProcess:
    """A server in a process of its own, which leads a process group and ends with its parent process."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        user: str | None = None,
        directory: str | None = None,
        outlives: bool = False,
    ) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - a command of ours
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if environment is None else {**os.environ, **environment},
                cwd=directory or tempfile.gettempdir(),
                user=user,
                start_new_session=True,
                preexec_fn=None if outlives else die_with_parent,  # noqa: PLW1509 - it calls the kernel, no more
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def await_ready(self, is_ready: Callable[[], bool], timeout_s: float = 180.0) -> None:
        """Waits until the server reports that it is ready; ServiceUnavailable if it ends or takes too long."""
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            if self._process.poll() is not None:
                raise ServiceUnavailable(f"{self.name} ended with status {self._process.returncode}:\n{self._tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise ServiceUnavailable(f"{self.name} was not ready after {timeout_s:g} s:\n{self._tail()}")
            time.sleep(0.02)

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 60.0) -> None:
        """Asks the server to stop, and kills it if it does not."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout_s)
        self.kill()

    def kill(self) -> None:
        """Ends the server and what it has started, at once."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def _tail(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-_TAIL:] if self._log.exists() else ""
