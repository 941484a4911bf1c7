"""TCP connections of processes, read from /proc."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["established_sockets"]

_ESTABLISHED = "01"


def established_sockets(pid: int) -> list[tuple[int, int, int]]:
    """Descriptor, own port and the other side's port of each connection of a process."""
    table = _connections()
    return [(descriptor, *table[inode]) for descriptor, inode in _sockets_of(pid) if inode in table]


def _connections() -> dict[str, tuple[int, int]]:
    found = {}
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        for text in Path(name).read_text().splitlines()[1:]:
            fields = text.split()
            if fields[3] == _ESTABLISHED:
                local, remote = (int(address.rpartition(":")[2], 16) for address in fields[1:3])
                found[fields[9]] = local, remote
    return found


def _sockets_of(pid: int) -> Iterator[tuple[int, str]]:
    try:
        entries = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return  # the process has ended
    for entry in entries:
        try:
            target = str(entry.readlink())
        except OSError:
            continue  # closed meanwhile
        if target.startswith("socket:["):
            yield int(entry.name), target.removeprefix("socket:[").removesuffix("]")
