"""TCP sockets of processes, read from /proc: which ports they listen on and what they are connected to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["established_sockets", "listening_ports"]

_LISTEN = "0A"
_ESTABLISHED = "01"


def listening_ports(pids: Iterable[int]) -> set[int]:
    """The ports that any of the processes waits for connections on."""
    table = _table(_LISTEN)
    return {table[inode][0] for pid in pids for _, inode in _sockets_of(pid) if inode in table}


def established_sockets(pid: int) -> list[tuple[int, int, int]]:
    """Descriptor, own port and the other side's port of each connection of a process."""
    table = _table(_ESTABLISHED)
    return [(descriptor, *table[inode]) for descriptor, inode in _sockets_of(pid) if inode in table]


def _table(state: str) -> dict[str, tuple[int, int]]:
    found = {}
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        for text in Path(name).read_text().splitlines()[1:]:
            fields = text.split()
            if fields[3] == state:
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
