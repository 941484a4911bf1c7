"""Peer credentials: which local user is at the other end of a connection."""

from __future__ import annotations

import ipaddress
import os
import sys
from pathlib import Path
from typing import Any

__all__ = ["is_same_user", "peer_uid"]

_TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
_LOCAL, _REMOTE, _UID, _INODE = 1, 2, 7, 9
"""Columns of the tables."""
_NOBODYS = "0"
"""The inode of an end that its process has closed: the tables then have root for its user."""
_ROOT = 0


def is_same_user(peer: Any, own: Any) -> bool:
    """Whether a connection over loopback comes from a process of this process's user, or of root.

    ``peer`` and ``own`` are the addresses of its two ends. False where that is unknown.
    """
    uid = peer_uid(peer, own)
    return uid is not None and uid in (os.geteuid(), _ROOT)


def peer_uid(peer: Any, own: Any) -> int | None:
    """The user that the other end of a connection over loopback belongs to; None if unknown.

    It is unknown for an end that was already closed.
    """
    try:
        address = ipaddress.ip_address(peer[0])
        if not (getattr(address, "ipv4_mapped", None) or address).is_loopback:
            return None
        # the peer's own end: there its address is the local one
        local, remote = _column(peer), _column(own)
        table = _TABLES[address.version].read_text()
    except (OSError, ValueError, TypeError, IndexError):
        return None
    for line in table.splitlines()[1:]:
        columns = line.split()
        if len(columns) > _INODE and columns[_LOCAL] == local and columns[_REMOTE] == remote:
            return None if columns[_INODE] == _NOBODYS else int(columns[_UID])
    return None


def _column(address: Any) -> str:
    """An address as the tables have it: groups of four bytes in the machine's order, and the port.

    >>> _column(("127.0.0.1", 8081)) if sys.byteorder == "little" else "0100007F:1F91"
    '0100007F:1F91'
    """
    packed = ipaddress.ip_address(address[0]).packed
    groups = (packed[start : start + 4] for start in range(0, len(packed), 4))
    text = "".join(f"{int.from_bytes(group, sys.byteorder):08X}" for group in groups)
    return f"{text}:{address[1]:04X}"
