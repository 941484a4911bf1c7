"""Parser of logical replication: the frames of the stream and pgoutput's messages in them.

Only version 1 of pgoutput's protocol: a transaction comes as a whole, after its commit. Values are text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from firesteel.connectors.postgres.errors import PostgresError

__all__ = [
    "UNCHANGED",
    "Begin",
    "Commit",
    "Delete",
    "Frame",
    "Insert",
    "Keepalive",
    "Message",
    "Relation",
    "RelationColumn",
    "Truncate",
    "Tuple",
    "Unchanged",
    "Update",
    "WalData",
    "decode_frame",
    "decode_message",
    "format_lsn",
    "parse_lsn",
    "status_update",
]

_POSTGRES_EPOCH_US = 946_684_800_000_000
"""2000-01-01 in microseconds since 1970."""

_FRAME = struct.Struct(">QQQ")
_KEEPALIVE = struct.Struct(">QQB")
_BEGIN = struct.Struct(">QQI")
_COMMIT = struct.Struct(">BQQQ")
_COLUMN_END = struct.Struct(">Ii")
_UINT16 = struct.Struct(">H")
_UINT32 = struct.Struct(">I")
_STATUS = struct.Struct(">cQQQQB")


class Unchanged:
    """Stands for a large value that an update left as it was, and that is therefore not sent."""

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED = Unchanged()

Tuple: TypeAlias = "list[bytes | Unchanged | None]"
"""The values of a row as the server writes them, by column."""


class ProtocolError(PostgresError):
    """Bytes that violate the replication protocol."""


# -- frames ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class WalData:
    """One message of the output plugin."""

    lsn: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Keepalive:
    """How far the server has read its log; everything of interest before has been sent."""

    lsn: int
    wants_reply: bool


Frame: TypeAlias = "WalData | Keepalive"


def decode_frame(data: bytes) -> Frame:
    """What came in one piece."""
    kind = data[:1]
    if kind == b"w" and len(data) > _FRAME.size:
        start, _end, _clock = _FRAME.unpack_from(data, 1)
        return WalData(start, data[1 + _FRAME.size :])
    if kind == b"k" and len(data) > _KEEPALIVE.size:
        end, _clock, wants_reply = _KEEPALIVE.unpack_from(data, 1)
        return Keepalive(end, wants_reply == 1)
    raise ProtocolError(f"The replication stream has a frame that is not understood: {data[:32]!r}.")


def status_update(received: int, flushed: int, now_us: int, *, wants_reply: bool = False) -> bytes:
    """A status update of the client: the position it has received, and the one it never needs again (0: unset)."""
    return _STATUS.pack(b"r", received, flushed, flushed, max(now_us - _POSTGRES_EPOCH_US, 0), int(wants_reply))


def format_lsn(lsn: int) -> str:
    """A position in the log as the server writes it.

    >>> format_lsn(0x16B374D48)
    '1/6B374D48'
    """
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """A position as a number.

    >>> parse_lsn("1/6B374D48") == 0x16B374D48
    True
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


# -- messages -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins; ``commit_lsn`` is where its commit is, the position by which transactions are in order."""

    commit_lsn: int
    timestamp_ms: int
    xid: int
    """32 bits."""


@dataclass(frozen=True, slots=True)
class Commit:
    """The transaction is complete."""

    commit_lsn: int
    end_lsn: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as it is at this place in the log."""

    name: str
    type_oid: int
    is_identity: bool
    """Whether it is part of the replica identity."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as it is at this place in the log; comes before the first change of it, and after each alteration."""

    relation_id: int
    schema: str
    name: str
    replica_identity: str
    """d: primary key, n: nothing, f: all columns, i: an index."""
    columns: tuple[RelationColumn, ...]


@dataclass(slots=True)
class Insert:
    """A new row."""

    relation_id: int
    new: Tuple


@dataclass(slots=True)
class Update:
    """A changed row. ``old`` is the whole row if ``is_full``, else the old key where that has changed, or None."""

    relation_id: int
    old: Tuple | None
    is_full: bool
    new: Tuple


@dataclass(slots=True)
class Delete:
    """A row that is gone; ``old`` is the whole row if ``is_full``, else only its key has values."""

    relation_id: int
    old: Tuple
    is_full: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables that were emptied at once."""

    relation_ids: tuple[int, ...]


Message: TypeAlias = "Begin | Commit | Relation | Insert | Update | Delete | Truncate"


def decode_message(data: bytes) -> Message | None:
    """One message of pgoutput; None for those without rows (types, origins, messages of applications)."""
    kind = data[:1]
    try:
        decode = _DECODERS[kind]
    except KeyError:
        if kind in (b"Y", b"O", b"M"):
            return None
        raise ProtocolError(f"pgoutput sent a message that is not understood: {data[:32]!r}.") from None
    try:
        return decode(data)
    except (IndexError, ValueError, struct.error) as error:
        raise ProtocolError(f"pgoutput sent a {kind.decode()} message that cannot be read: {data[:64]!r}.") from error


def _begin(data: bytes) -> Begin:
    commit_lsn, timestamp, xid = _BEGIN.unpack_from(data, 1)
    return Begin(commit_lsn, _to_millis(timestamp), xid)


def _commit(data: bytes) -> Commit:
    _flags, commit_lsn, end_lsn, timestamp = _COMMIT.unpack_from(data, 1)
    return Commit(commit_lsn, end_lsn, _to_millis(timestamp))


def _relation(data: bytes) -> Relation:
    (relation_id,) = _UINT32.unpack_from(data, 1)
    schema, at = _string(data, 5)
    name, at = _string(data, at)
    identity = chr(data[at])
    (count,) = _UINT16.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        column, at = _string(data, at + 1)
        type_oid, _modifier = _COLUMN_END.unpack_from(data, at)
        at += _COLUMN_END.size
        columns.append(RelationColumn(column, type_oid, bool(flags & 1)))
    # the catalog's schema has no name in the protocol
    return Relation(relation_id, schema or "pg_catalog", name, identity, tuple(columns))


def _insert(data: bytes) -> Insert:
    (relation_id,) = _UINT32.unpack_from(data, 1)
    _expect(data, 5, b"N")
    return Insert(relation_id, _tuple(data, 6)[0])


def _update(data: bytes) -> Update:
    (relation_id,) = _UINT32.unpack_from(data, 1)
    kind, at = data[5:6], 5
    old: Tuple | None = None
    if kind in (b"K", b"O"):
        old, at = _tuple(data, 6)
    _expect(data, at, b"N")
    return Update(relation_id, old, kind == b"O", _tuple(data, at + 1)[0])


def _delete(data: bytes) -> Delete:
    (relation_id,) = _UINT32.unpack_from(data, 1)
    kind = data[5:6]
    if kind not in (b"K", b"O"):
        raise ValueError(kind)
    return Delete(relation_id, _tuple(data, 6)[0], kind == b"O")


def _truncate(data: bytes) -> Truncate:
    (count,) = _UINT32.unpack_from(data, 1)
    return Truncate(struct.unpack_from(f">{count}I", data, 6))


_DECODERS: dict[bytes, Callable[[bytes], Message]] = {
    b"B": _begin,
    b"C": _commit,
    b"R": _relation,
    b"I": _insert,
    b"U": _update,
    b"D": _delete,
    b"T": _truncate,
}


def _tuple(data: bytes, at: int) -> tuple[Tuple, int]:
    unpack_length = _UINT32.unpack_from
    (count,) = _UINT16.unpack_from(data, at)
    at += 2
    values: Tuple = []
    add = values.append
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 0x74:  # t
            (length,) = unpack_length(data, at)
            begin, at = at + 4, at + 4 + length
            if at > len(data):
                raise ValueError("a value is cut off")
            add(data[begin:at])
        elif kind == 0x6E:  # n
            add(None)
        elif kind == 0x75:  # u
            add(UNCHANGED)
        else:
            raise ValueError(f"a value of kind {kind}")
    return values, at


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def _expect(data: bytes, at: int, kind: bytes) -> None:
    if data[at : at + 1] != kind:
        raise ValueError(data[at : at + 1])


def _to_millis(microseconds: int) -> int:
    return (microseconds + _POSTGRES_EPOCH_US) // 1000
