"""What runs on this machine, read from /proc: children, listening sockets, who is who."""

from __future__ import annotations

import os
import signal
import sys
from collections import defaultdict
from pathlib import Path

__all__ = [
    "command_line",
    "descendants",
    "exit_by_sigterm",
    "has_children",
    "is_alive",
    "is_of_worker_daemon",
    "listening_processes",
    "own_open_files",
]

_LISTEN = "0A"
AGAIN_S = 0.05
"""After so long an exit that was ignored is tried again."""


def _parent(pid: int) -> tuple[int, str] | None:
    """Parent and state of a process; None if it has ended."""
    try:
        # without pathlib, which takes several times as long: this is done twice for every test
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123
            stat = file.read(4096)
    except OSError:
        return None
    # the command between parentheses may hold blanks and parentheses itself
    state, parent = stat.rpartition(b")")[2].split(maxsplit=2)[:2]
    return int(parent), state.decode()


def _parents() -> dict[int, tuple[int, str]]:
    """Parent and state of every process."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (parent := _parent(int(name))) is not None:
            found[int(name)] = parent
    return found


def descendants(pid: int) -> set[int]:
    """Children of a process and their children, as long as they run: a zombie holds nothing but its number."""
    children = defaultdict(list)
    parents = _parents()
    for child, (parent, _) in parents.items():
        children[parent].append(child)
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children[waiting.pop()]:
            found.add(child)
            waiting.append(child)
    return {child for child in found if parents[child][1] not in "ZX"}


def has_children() -> bool:
    """Whether this process has any, zombies included: one call, where ``descendants`` reads a file of every process."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def is_alive(pid: int) -> bool:
    """Whether a process still runs."""
    found = _parent(pid)
    return found is not None and found[1] not in "ZX"


def command_line(pid: int) -> str:
    """The command of a process, empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def is_of_worker_daemon(pid: int) -> bool:
    """Whether it is the daemon of Spark's Python workers, PySpark's or Firesteel's own, or a worker that it forked.

    The daemon's module is an argument of its own; a JVM has it as a part of a setting.
    """
    return not {"pyspark.daemon", "firesteel.spark.session.worker_daemon"}.isdisjoint(command_line(pid).split())


def listening_processes(pids: set[int]) -> set[int]:
    """Those of the processes that wait for TCP connections."""
    if not pids:
        return set()  # the tables of all sockets take the kernel milliseconds
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN:
                inodes.add(f"socket:[{fields[9]}]")
    return {pid for pid in pids if inodes & set(_open_files(pid).values())}


def _open_files(pid: int | str) -> dict[int, str]:
    """What each file descriptor of a process stands for."""
    files = {}
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            try:
                files[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")  # noqa: PTH115
            except OSError:
                continue  # closed meanwhile
    except OSError:
        pass  # the process has ended
    return files


def own_open_files() -> dict[int, str]:
    """What each file descriptor of this process stands for."""
    return _open_files("self")


def exit_by_sigterm() -> None:
    """From now on SIGTERM ends this process as an exception does, so that what it has started is ended first."""
    report = sys.unraisablehook

    def end(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + signal.SIGTERM)

    def end_later(ignored: sys.UnraisableHookArgs) -> None:
        """Python ignores what a handler raises during a hook of ``fork`` or a ``__del__``: it is raised again."""
        report(ignored)
        if isinstance(ignored.exc_value, SystemExit):
            signal.signal(signal.SIGTERM, end)
            signal.signal(signal.SIGALRM, end)
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)

    sys.unraisablehook = end_later
    signal.signal(signal.SIGTERM, end)
