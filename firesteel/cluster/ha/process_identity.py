"""Process identity, by which another process on the same machine detects that this one is dead."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path

import msgspec

__all__ = ["ProcessIdentity", "this_process"]

_INCARNATION = uuid.uuid4().hex
"""A process that restarts itself (exec) keeps its id and its start time, but is another one."""
_STATE, _START_TIME = 0, 19
"""Places in /proc/<pid>/stat behind the program's name."""


class ProcessIdentity(msgspec.Struct, frozen=True):
    """A process, and the machine and container in whose terms its id is to be understood."""

    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    started: str
    incarnation: str

    def is_gone(self) -> bool:
        """Whether the process is known to have ended; False wherever that cannot be known from here."""
        here = this_process()
        if not self.boot_id or (self.boot_id, self.pid_namespace) != (here.boot_id, here.pid_namespace):
            return False
        if (self.pid, self.started) == (here.pid, here.started):
            return self.incarnation != here.incarnation
        status = _status(self.pid)
        return status is None or status[_STATE] in "ZX" or status[_START_TIME] != self.started


def this_process() -> ProcessIdentity:
    """The calling process; without /proc, one of which it is unknown whether it is gone."""
    pid = os.getpid()
    status = _status(pid)
    return ProcessIdentity(
        host=socket.gethostname(),
        boot_id=_read(Path("/proc/sys/kernel/random/boot_id")) if status else "",
        pid_namespace=_link("/proc/self/ns/pid"),
        pid=pid,
        started=status[_START_TIME] if status else "",
        incarnation=_INCARNATION,
    )


def _status(pid: int) -> list[str] | None:
    """The kernel's fields of a process, after its name, which may contain anything; None if there is none."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields if len(fields) > _START_TIME else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - no path: pid:[4026531836]
    except OSError:
        return ""
