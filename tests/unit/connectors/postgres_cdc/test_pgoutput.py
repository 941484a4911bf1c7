"""The replication protocol, byte by byte."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.connectors.postgres.cdc.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Keepalive,
    ProtocolError,
    Relation,
    RelationColumn,
    Truncate,
    Update,
    WalData,
    decode_frame,
    decode_message,
    format_lsn,
    parse_lsn,
    status_update,
)


def row(*values):
    """A tuple as the server writes it."""
    out = struct.pack(">H", len(values))
    for value in values:
        if value is None:
            out += b"n"
        elif value is UNCHANGED:
            out += b"u"
        else:
            out += b"t" + struct.pack(">I", len(value)) + value
    return out


def test_frames():
    assert decode_frame(b"w" + struct.pack(">QQQ", 7, 9, 0) + b"Ipayload") == WalData(7, b"Ipayload")
    assert decode_frame(b"k" + struct.pack(">QQB", 9, 0, 1)) == Keepalive(9, True)
    assert decode_frame(b"k" + struct.pack(">QQB", 9, 0, 0)) == Keepalive(9, False)


# as a server of version 15 sent them
BEGIN = b"B\x00\x00\x00\x00\x01R\x86\xf8\x00\x03\x03SJ\xd5\xde\x9b\x00\x00\x02\xd6"
COMMIT = b"C\x00\x00\x00\x00\x00\x01R\x86\xf8\x00\x00\x00\x00\x01R\x87(\x00\x03\x03SJ\xd5\xde\x9b"
RELATION = (
    b"R\x00\x00@\x00public\x00t\x00d\x00\x03\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff"
    b"\x00a\x00\x00\x00\x00\x19\xff\xff\xff\xff\x00n\x00\x00\x00\x06\xa4\xff\xff\xff\xff"
)
UPDATE_OF_A_KEY = (
    b"U\x00\x00@\x00K\x00\x03t\x00\x00\x00\x011nnN\x00\x03t\x00\x00\x00\x012t\x00\x00\x00\x01yt\x00\x00\x00\x041.50"
)


def test_what_a_server_sent():
    begin = decode_message(BEGIN)
    assert isinstance(begin, Begin)
    assert (begin.commit_lsn, begin.xid) == (0x15286F8, 726)
    assert decode_message(COMMIT) == Commit(0x15286F8, 0x1528728, begin.timestamp_ms)
    assert begin.timestamp_ms == 1_794_766_002_831
    assert decode_message(RELATION) == Relation(
        0x4000,
        "public",
        "t",
        "d",
        (RelationColumn("id", 23, True), RelationColumn("a", 25, False), RelationColumn("n", 1700, False)),
    )
    assert decode_message(UPDATE_OF_A_KEY) == Update(0x4000, [b"1", None, None], False, [b"2", b"y", b"1.50"])
    assert decode_message(b"D\x00\x00@\x00K\x00\x03t\x00\x00\x00\x012nn") == Delete(0x4000, [b"2", None, None], False)
    assert decode_message(b"T\x00\x00\x00\x01\x00\x00\x00@\x00") == Truncate((0x4000,))


values = st.lists(st.one_of(st.none(), st.just(UNCHANGED), st.binary(max_size=20)), max_size=5)


@given(values, values)
def test_rows_are_read_as_they_were_written(old, new):
    relation = struct.pack(">I", 5)
    assert decode_message(b"I" + relation + b"N" + row(*new)) == Insert(5, new)
    assert decode_message(b"U" + relation + b"N" + row(*new)) == Update(5, None, False, new)
    assert decode_message(b"U" + relation + b"O" + row(*old) + b"N" + row(*new)) == Update(5, old, True, new)
    assert decode_message(b"D" + relation + b"O" + row(*old)) == Delete(5, old, True)


def test_messages_that_say_nothing_of_rows():
    assert decode_message(b"Y\x00\x00\x00\x01public\x00mood\x00") is None
    assert decode_message(b"O" + bytes(8) + b"origin\x00") is None
    assert decode_message(b"M" + bytes(20)) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"?",
        b"I\x00",
        b"I\x00\x00\x00\x01X",
        b"I\x00\x00\x00\x01N\x00\x01t\x00\x00\x00\x05ab",
        b"I\x00\x00\x00\x01N\x00\x01?",
        b"D\x00\x00\x00\x01N\x00\x00",
        b"R\x00\x00\x00\x01public",
        BEGIN[:10],
    ],
)
def test_bytes_that_are_no_message(data):
    with pytest.raises(ProtocolError):
        decode_message(data)


@pytest.mark.parametrize("data", [b"", b"w\x00", b"k\x00", b"x" + bytes(30)])
def test_bytes_that_are_no_frame(data):
    with pytest.raises(ProtocolError):
        decode_frame(data)


def test_an_answer_says_how_far_and_what_is_not_needed():
    kind, written, flushed, applied, clock, wants_reply = struct.unpack(
        ">cQQQQB", status_update(5, 3, 946_684_800_000_007)
    )
    assert (kind, written, flushed, applied, clock, wants_reply) == (b"r", 5, 3, 3, 7, 0)


@given(st.integers(0, 2**64 - 1))
def test_positions_are_written_as_the_server_does(lsn):
    assert parse_lsn(format_lsn(lsn)) == lsn
