"""A stream made of ranges: like the file itself, with as few requests as its read-ahead allows."""

from __future__ import annotations

import errno
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.filesystem.input_stream import RangedInputStream

DATA = bytes(range(200))
steps = st.lists(
    st.tuples(st.just("read"), st.integers(-1, 60))
    | st.tuples(st.just("seek"), st.integers(0, 230))
    | st.tuples(st.just("end"), st.integers(-200, 10)),
    max_size=30,
)


def stream_of(asked, read_ahead=50, data=DATA):
    def fetch(offset, length):
        asked.append((offset, length))
        assert 0 < length <= len(data) - offset
        return data[offset : offset + length]

    return RangedInputStream(fetch, len(data), read_ahead)


@given(steps=steps, read_ahead=st.sampled_from([0, 1, 7, 50, 1000]))
def test_reads_what_a_file_would_give(steps, read_ahead):
    stream, file = stream_of([], read_ahead), io.BytesIO(DATA)
    for what, number in steps:
        if what == "read":
            assert stream.read(number) == file.read(number)
        elif what == "seek":
            assert stream.seek(number) == file.seek(number)
        else:
            assert stream.seek(number, io.SEEK_END) == file.seek(number, io.SEEK_END)
        assert stream.tell() == file.tell()


def test_asks_for_each_byte_once_from_front_to_back():
    asked = []
    with stream_of(asked) as stream:
        while stream.read(7):
            pass
    assert asked == [(0, 50), (50, 50), (100, 50), (150, 50)]


def test_without_read_ahead_it_asks_for_what_is_wanted():
    asked = []
    stream = stream_of(asked, 0)
    stream.seek(190)
    assert stream.read(40) == DATA[190:]
    stream.seek(3)
    assert io.BufferedReader(stream, 8).read(2) == DATA[3:5]
    assert asked == [(190, 10), (3, 8)]


def test_fewer_bytes_than_there_should_be_are_no_end_of_file():
    stream = RangedInputStream(lambda offset, length: b"x", 100)
    with pytest.raises(OSError, match="100 bytes at 0") as caught:
        stream.read(10)
    assert caught.value.errno == errno.EIO
    with pytest.raises(OSError, match="Invalid"):
        stream.seek(-1)
