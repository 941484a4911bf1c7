"""A machine within the machine for a chaos run: its own network, mounts and processes, and wall clocks that can be set.

Nothing of it is seen outside, and all of it ends with the process that made it.
"""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

from firesteel.testing.services.processes import die_with_parent

__all__ = ["Clock", "Mount", "cut_network", "enter", "is_inside", "mend_network"]

VARIABLE = "CHAOS_NAMESPACE"
SIZE = "192m"
"""Of a file system that can be full."""
TRIES = 200
TRY_S = 0.01


def is_inside() -> bool:
    """Whether this process has namespaces of its own."""
    return os.environ.get(VARIABLE) == "1"


def enter(module: str, arguments: list[str]) -> None:
    """Runs the module again in namespaces of its own, and exits as it does; returns if that cannot be.

    All that runs there ends with this process, however that ends.
    """
    unshare = shutil.which("unshare")
    flags = ("--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
    if unshare is None or not shutil.which("ip"):
        return
    if subprocess.run([unshare, *flags, "true"], capture_output=True, check=False).returncode:
        return
    os.environ[VARIABLE] = "1"
    command = [unshare, *flags, sys.executable, "-m", module, *arguments]
    inside = subprocess.Popen(command, preexec_fn=die_with_parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it goes to all processes of the terminal
    # unshare lets no SIGTERM through; what it has started is killed with it
    signal.signal(signal.SIGTERM, lambda *_: inside.kill())
    code = inside.wait()
    sys.exit(code if code >= 0 else 128 - code)


def cut_network() -> None:
    """From now on nothing arrives: every connection between processes of the run stalls."""
    _run("ip", "link", "set", "lo", "down")


def mend_network() -> None:
    """The network is there again."""
    _run("ip", "link", "set", "lo", "up")


class Mount:
    """A directory with a file system of its own, which can be taken away. What is left then is empty and read-only."""

    def __init__(self, path: Path):
        self.path = path
        self._behind = path.with_name(f"{path.name}-behind")
        for each in (self.path, self._behind):
            each.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "chaos", str(self._behind))
        _run("mount", "-t", "tmpfs", "-o", "ro,size=64k", "chaos", str(self.path))
        self.attach()

    def attach(self) -> None:
        """The file system is there."""
        _run("mount", "--bind", str(self._behind), str(self.path))

    def detach(self) -> None:
        """The file system is gone, whoever has files of it open."""
        _run("umount", "--lazy", str(self.path))

    def refuse(self) -> None:
        """Can be read, but not written. For as long as files are open for writing that cannot be had."""
        for _ in range(TRIES):
            if subprocess.run(self._remount("ro"), capture_output=True, check=False).returncode == 0:
                return
            time.sleep(TRY_S)
        _run(*self._remount("ro"))

    def accept(self) -> None:
        """Can be written again."""
        _run(*self._remount("rw"))

    def _remount(self, how: str) -> list[str]:
        return ["mount", "-o", f"remount,bind,{how}", str(self.path)]

    def fill(self) -> None:
        """Leaves no space."""
        try:
            with (self._behind / ".filler").open("wb", buffering=0) as file:
                while True:
                    file.write(b"\0" * (1 << 20))
        except OSError:
            pass  # that was the last of it

    def empty(self) -> None:
        """Gives the space back."""
        (self._behind / ".filler").unlink(missing_ok=True)

    def close(self) -> None:
        """Unmounts everything."""
        for path in (self.path, self.path, self._behind):
            subprocess.run(["umount", "--lazy", str(path)], capture_output=True, check=False)


class Clock:
    """The wall clock of the processes that have its environment."""

    def __init__(self, directory: Path, name: str):
        self._path = directory / f"clock-{name}"
        self._path.write_bytes(struct.pack("q", 0))
        self._library = directory / "chaos_clock.so"

    @property
    def environment(self) -> dict[str, str]:
        """What processes need to have in their environment; nothing if there is no compiler."""
        compiler = shutil.which("cc")
        if compiler is None:
            return {}
        if not self._library.exists():
            source = Path(__file__).with_name("clock.c")
            _run(compiler, "-O2", "-shared", "-fPIC", "-o", str(self._library), str(source), "-ldl")
        return {"LD_PRELOAD": str(self._library), "CHAOS_CLOCK": str(self._path)}

    def step(self, seconds: int) -> None:
        """Sets it so far forward or back of the machine's."""
        with self._path.open("r+b") as file:
            file.write(struct.pack("q", seconds))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
