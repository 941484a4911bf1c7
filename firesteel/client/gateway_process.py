"""The process of a SQL Gateway on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from firesteel.client.cluster_processes import end_processes, log_tail, run_in_foreground
from firesteel.client.connection import ClusterAddress
from firesteel.client.errors import UsageError
from firesteel.common.errors import FiresteelError

__all__ = ["GatewayProcess"]

GATEWAY = "firesteel.cluster.sql_gateway_main"
_POLL_S = 0.05
_STOP_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class GatewayProcess:
    """A gateway whose files are in a directory: where it listens, what it was told, and its log."""

    directory: Path

    @property
    def _presence(self) -> Path:
        return self.directory / "sql-gateway.json"

    @property
    def log(self) -> Path:
        """The log of a gateway in the background."""
        return self.directory / "sql-gateway.log"

    def running(self) -> tuple[int, str] | None:
        """The process id and the URL of the gateway that runs, if one does."""
        try:
            told = json.loads(self._presence.read_bytes())
        except (OSError, ValueError):
            return None
        return (told["pid"], told["url"]) if psutil.pid_exists(told["pid"]) else None

    def start(self, settings: Mapping[str, str], cluster: ClusterAddress | None, timeout_s: float) -> str:
        """Starts it in the background; its URL, once it listens."""
        with self.log.open("ab") as log:
            process = self._launch(settings, cluster, log)
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and process.poll() is None:
            found = self.running()
            if found is not None:
                process.returncode = 0  # it is not waited for on purpose: avoids a warning
                return found[1]
            time.sleep(_POLL_S)
        end_processes([process.pid], 0)
        raise FiresteelError(f"The SQL Gateway did not start.\n{log_tail(self.log, 0)}", hint=f"Its log is {self.log}.")

    def run(self, settings: Mapping[str, str], cluster: ClusterAddress | None, started: Callable[[str], None]) -> int:
        """Runs it in the foreground; ``started`` is called with its URL. Returns its exit code."""
        process = self._launch(settings, cluster, None)

        def watch() -> bool:
            found = self.running()
            if found is not None:
                started(found[1])
            return found is not None

        return run_in_foreground(process, _STOP_TIMEOUT_S, watch)

    def stop(self) -> bool:
        """Ends it; False if none runs."""
        found = self.running()
        if found is None:
            return False
        end_processes([found[0]], _STOP_TIMEOUT_S)
        self._presence.unlink(missing_ok=True)
        return True

    def _launch(
        self, settings: Mapping[str, str], cluster: ClusterAddress | None, log: IO[bytes] | None
    ) -> subprocess.Popen[bytes]:
        found = self.running()
        if found is not None:
            raise UsageError(f"A SQL Gateway is running at {found[1]}.", hint="firesteel sql-gateway stop ends it.")
        told = {
            "configuration": dict(settings),
            "urls": [] if cluster is None else cluster.urls,
            "token_file": None if cluster is None else cluster.token_file,
            "presence": str(self._presence),
        }
        launch = self.directory / "sql-gateway.launch"
        launch.touch(mode=0o600)
        launch.write_text(json.dumps(told))
        return subprocess.Popen(  # noqa: S603 - this Python
            [sys.executable, "-m", GATEWAY, str(launch)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT if log is not None else None,
            start_new_session=log is not None,
        )
