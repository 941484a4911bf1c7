"""The binary frames of a connection: a fixed header and, for some kinds, a payload."""

from __future__ import annotations

import struct
from typing import TypeAlias

from firesteel.runtime.network.errors import ProtocolError

__all__ = ["BYE", "CREDIT", "DATA", "EVENT", "HEADER_SIZE", "Frame", "FrameDecoder", "pack_header"]

DATA = 1
"""Records; the second field is the backlog."""
EVENT = 2
"""A pickled control event; the second field is the backlog."""
CREDIT = 3
"""No payload; the second field is the credit, the channel is one the receiver of the frame sends on."""
BYE = 4
"""No payload: the sender is about to close the connection and needs nothing more from it."""

_HEADER = struct.Struct("!IBIQ")
HEADER_SIZE = _HEADER.size

pack_header = _HEADER.pack
"""(channel id, kind, backlog or credit, payload length) to bytes."""

_unpack_header = _HEADER.unpack_from


Frame: TypeAlias = tuple[int, int, int, bytes | bytearray]
"""A received frame: channel id, kind, backlog or credit, payload."""


class FrameDecoder:
    """Cuts a stream of bytes into frames.

    Bytes are received into ``scratch``, which many decoders may share as nothing stays there between calls. A
    payload that is not complete gets a buffer of its exact size, into which the rest is received directly.
    """

    __slots__ = ("_filled", "_head", "_max_length", "_partial", "_partial_header", "_partial_view", "_view")

    def __init__(self, scratch: bytearray, max_length: int):
        self._view = memoryview(scratch)
        self._max_length = max_length
        self._head = b""
        self._partial: bytearray | None = None
        self._partial_view = memoryview(b"")
        self._partial_header = (0, 0, 0)
        self._filled = 0

    def buffers(self) -> list[memoryview]:
        """Where the next bytes belong, in this order; to be filled before any other decoder is used."""
        if self._partial is not None:
            return [self._partial_view[self._filled :], self._view]
        head = self._head
        if head:
            self._view[: len(head)] = head
            return [self._view[len(head) :]]
        return [self._view]

    def received(self, n: int) -> list[Frame]:
        """The frames that n more bytes complete."""
        frames: list[Frame] = []
        end = n + len(self._head)
        if self._partial is not None:
            missing = len(self._partial) - self._filled
            if n < missing:
                self._filled += n
                return frames
            frames.append((*self._partial_header, self._partial))
            self._partial = None
            self._partial_view = memoryview(b"")
            end = n - missing
        view = self._view
        at = 0
        while end - at >= HEADER_SIZE:
            channel_id, kind, count, length = _unpack_header(view, at)
            if length > self._max_length or not DATA <= kind <= BYE:
                raise self._bad_header(kind, length)
            at += HEADER_SIZE
            if end - at < length:
                self._start_partial((channel_id, kind, count), length, view[at:end])
                at = end
                break
            frames.append((channel_id, kind, count, bytes(view[at : at + length])))
            at += length
        self._head = bytes(view[at:end])
        return frames

    def _start_partial(self, header: tuple[int, int, int], length: int, begun: memoryview) -> None:
        self._partial = bytearray(length)
        self._partial_view = memoryview(self._partial)
        self._partial_header = header
        self._filled = len(begun)
        self._partial_view[: self._filled] = begun

    def _bad_header(self, kind: int, length: int) -> ProtocolError:
        if DATA <= kind <= BYE:
            return ProtocolError(
                f"a frame of {length} bytes is larger than the {self._max_length} bytes allowed",
                hint="All processes of a job must run the same version with the same configuration.",
            )
        return ProtocolError(f"a frame has the unknown kind {kind}: the stream is corrupt")
