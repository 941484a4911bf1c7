"""Frames survive any way a stream of bytes is cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.runtime.network.errors import ProtocolError
from firesteel.runtime.network.frames import CREDIT, DATA, EVENT, HEADER_SIZE, FrameDecoder, pack_header


def receive(decoder: FrameDecoder, data: bytes, most: int) -> tuple[list[tuple[int, int, int, bytes]], int]:
    """Scatters bytes into the decoder's buffers as recvmsg_into does."""
    taken = 0
    for buffer in decoder.buffers():
        n = min(len(buffer), len(data) - taken, most - taken)
        buffer[:n] = data[taken : taken + n]
        taken += n
    return [(c, k, n, bytes(p)) for c, k, n, p in decoder.received(taken)], taken


frames = st.lists(
    st.tuples(
        st.integers(0, 2**32 - 1),
        st.sampled_from([DATA, EVENT]),
        st.integers(0, 2**32 - 1),
        st.binary(max_size=200),
    )
)


@given(st.lists(frames, min_size=2, max_size=2), st.lists(st.integers(1, 300), min_size=1))
@settings(deadline=None)
def test_two_streams_cut_anywhere_share_one_scratch_buffer(
    streams: list[list[tuple[int, int, int, bytes]]], cuts: list[int]
) -> None:
    scratch = bytearray(64)
    decoders = [FrameDecoder(scratch, 1000) for _ in streams]
    data = [b"".join(pack_header(c, k, n, len(p)) + p for c, k, n, p in stream) for stream in streams]
    received: list[list[tuple[int, int, int, bytes]]] = [[] for _ in streams]
    turn = 0
    while any(data):
        which = turn % 2
        got, taken = receive(decoders[which], data[which], cuts[turn % len(cuts)])
        received[which] += got
        data[which] = data[which][taken:]
        turn += 1
    assert received == streams


def test_a_header_takes_17_bytes() -> None:
    assert HEADER_SIZE == 17
    assert len(pack_header(1, CREDIT, 2, 0)) == 17


def test_a_frame_over_the_limit_is_refused_before_its_payload_is_stored() -> None:
    decoder = FrameDecoder(bytearray(100), 1000)
    with pytest.raises(ProtocolError, match="1001 bytes is larger than the 1000 bytes"):
        receive(decoder, pack_header(1, DATA, 0, 1001), 100)


def test_an_unknown_kind_is_refused() -> None:
    decoder = FrameDecoder(bytearray(100), 1000)
    with pytest.raises(ProtocolError, match="unknown kind 77"):
        receive(decoder, pack_header(1, 77, 0, 0), 100)
