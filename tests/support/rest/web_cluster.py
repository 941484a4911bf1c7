"""A JobManager in a process of its own, for the tests of the web pages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from firesteel.testing import eventually
from tests.support.processes import command_line, descendants

__all__ = ["START_S", "Cluster"]

START_S = 360.0
"""How long a start may take on a busy machine."""


def _program(pid: int) -> str:
    """The command of a process, empty while it is still Spark's launcher."""
    command = command_line(pid)
    return "" if "launcher.Main" in command or "spark-class" in command else command


class Cluster:
    """A JobManager process with an embedded Spark of two slots; it starts while others go on."""

    def __init__(self, directory: Path):
        self.directory = directory
        settings = {
            "rest.bind-port": "0",
            "cluster.directory": str(directory),
            "taskmanager.numberOfTaskSlots": "2",
            "web.refresh-interval": "500 ms",
            "rest.flamegraph.num-samples": "10",
            "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
        }
        launch = directory / "launch.json"
        launch.write_text(json.dumps({"mode": "session", "configuration": settings}))
        with (directory / "out.txt").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "firesteel.cluster.main", str(launch)],
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            )
        self.url = ""

    def await_java(self) -> None:
        """Waits until its Spark begins: what that starts is nobody's leak."""
        eventually(self._has_java, timeout=START_S, interval=0.05)

    def _has_java(self) -> bool:
        self._check_alive()
        return any("deploy.SparkSubmit" in _program(pid) for pid in descendants(self._process.pid))

    def await_start(self) -> None:
        """Waits until it takes jobs."""
        self.url = self.url or eventually(self._address, timeout=START_S, interval=0.05).rstrip("/")

    def _check_alive(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(f"The JobManager has ended: {(self.directory / 'out.txt').read_text()}")

    def _address(self) -> str:
        self._check_alive()
        entry = self.directory / "jobmanagers" / f"{self._process.pid}.json"
        assert entry.exists()
        url = str(json.loads(entry.read_text())["url"])
        try:
            with urllib.request.urlopen(f"{url.rstrip('/')}/overview", timeout=START_S) as answer:
                assert answer.status == 200
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read()) from None
        except OSError as error:
            raise AssertionError(f"{url}: {error}") from None
        return url

    def login_link(self) -> str:
        """What ``firesteel cluster link`` prints: running a program takes the token."""
        token = (self.directory / "token").read_text().strip()
        request = urllib.request.Request(
            f"{self.url}/login/codes", method="POST", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            return f"{self.url}/#/login/{json.loads(answer.read())['code']}"

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(START_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
