"""The processes of a chaos run: a driver that is started again and again, and everything it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from firesteel.testing.services.processes import die_with_parent
from tests.support.chaos.job import Directories
from tests.support.processes import command_line, descendants

__all__ = ["DriverProcess", "Family", "kill"]

ROOT = Path(__file__).parents[3]


def kill(pid: int, number: int = signal.SIGKILL) -> bool:
    """Sends a signal; whether there was a process to send it to."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Family:
    """All that a process has started, also what outlives it; told from others by the time of their start."""

    def __init__(self) -> None:
        self._members: dict[int, str] = {}

    def look(self, pid: int) -> None:
        """Takes note of the descendants of a process."""
        for member in {pid, *descendants(pid)}:
            started = _started(member)
            if started is not None:
                self._members[member] = started

    def alive(self) -> list[int]:
        """Those that still run."""
        self._members = {pid: started for pid, started in self._members.items() if _started(pid) == started}
        return sorted(self._members)

    def describe(self) -> list[str]:
        """Those that still run, with their commands."""
        return [f"{pid} {command_line(pid)[:120]}" for pid in self.alive()]

    def kill(self) -> None:
        """Ends those that still run."""
        for pid in self.alive():
            kill(pid)


def _started(pid: int) -> str | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


class DriverProcess:
    """One run of the driver."""

    def __init__(
        self, directories: Directories, run: int, configuration: Mapping[str, str], environment: Mapping[str, str]
    ):
        self.run = run
        self.started_at = time.time()
        self.family = Family()
        self.log = directories.control / f"driver-{run}.log"
        request = {"root": str(directories.root), "run": run, "configuration": dict(configuration)}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("driver.py")), json.dumps(request)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                cwd=directories.root,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def kill(self) -> None:
        """SIGKILL."""
        self.family.look(self.process.pid)
        self.process.kill()
        self.process.wait(120)

    def close(self) -> None:
        """Ends the driver and whatever is left of it."""
        self.kill()
        self.family.kill()
