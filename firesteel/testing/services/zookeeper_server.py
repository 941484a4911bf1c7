"""A real ZooKeeper for tests, from the distribution's package."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from firesteel.testing.services.processes import ServerProcess, ServiceUnavailable, free_ports

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ZooKeeperServer", "zookeeper_jar"]

_JAR = Path("/usr/share/java/zookeeper.jar")
_LOGGING = Path("/usr/share/java/slf4j-nop.jar")
_TICK_MS = 100


class ZooKeeperServer:
    """One server on loopback; the data is deleted with it. The port stays the same over a restart."""

    def __init__(self) -> None:
        self._jar = zookeeper_jar()
        self.port = free_ports(1)[0]
        self._server: ServerProcess | None = None
        self._directory = Path(tempfile.mkdtemp(prefix="firesteel-zookeeper-"))
        settings = {
            "dataDir": str(self._directory / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            # sessions end on a tick: short ones, so that tests need not wait
            "tickTime": str(_TICK_MS),
            "minSessionTimeout": str(2 * _TICK_MS),
            "maxSessionTimeout": "60000",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
        }
        self._configuration = self._directory / "zoo.cfg"
        lines = [f"{key}={value}" for key, value in settings.items()]
        self._configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")

    @property
    def address(self) -> str:
        """Where clients connect to."""
        return f"127.0.0.1:{self.port}"

    @property
    def is_running(self) -> bool:
        """Whether the server was started and not killed; it may be paused."""
        return self._server is not None

    @property
    def pid(self) -> int:
        """The server's process id."""
        assert self._server is not None, "the server is not running"
        return self._server.pid

    def start(self) -> ZooKeeperServer:
        """Starts the server; returns when it answers."""
        java = shutil.which("java")
        assert java is not None
        command = [
            *(java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
            # tests kill it, not the machine
            *("-Dzookeeper.forceSync=no", "-Dzookeeper.jmx.log4j.disable=true"),
            *("-cp", f"{self._jar}:{_LOGGING}"),
            *("org.apache.zookeeper.server.ZooKeeperServerMain", str(self._configuration)),
        ]
        self._server = ServerProcess("ZooKeeper", command, log=self._directory / "server.log")
        self._server.await_ready(self._answers)
        return self

    def stop(self) -> None:
        """Stops the server and deletes its data."""
        if self._server is not None:
            self._server.stop()
            self._server = None
        shutil.rmtree(self._directory, ignore_errors=True)

    def kill(self) -> None:
        """Kills the server; its data stays, and ``start`` reuses it."""
        assert self._server is not None, "the server is not running"
        self._server.kill()
        self._server = None

    def pause(self) -> None:
        """Stops the server's process: connections stay open, without answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Lets the server go on."""
        os.kill(self.pid, signal.SIGCONT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.settimeout(10)
            connection.sendall(b"srvr")
            # before it serves, it answers with a sentence
            return b"Mode:" in connection.makefile("rb").read()
        return False


def zookeeper_jar() -> Path:
    """The server's jar, which names the others it needs."""
    if shutil.which("java") is None:
        raise ServiceUnavailable("Java is not installed.")
    if not _JAR.exists():
        raise ServiceUnavailable("ZooKeeper is not installed.")
    return _JAR
