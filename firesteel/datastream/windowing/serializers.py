"""Windows as bytes."""

from __future__ import annotations

import struct
from io import BytesIO

from firesteel.common.serializer import TypeSerializer
from firesteel.common.windows import CountWindow, GlobalWindow, TimeWindow

__all__ = ["CountWindowSerializer", "GlobalWindowSerializer", "TimeWindowSerializer"]

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Start and end as two longs."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        """Writes 16 bytes."""
        stream.write(_TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        """Reads 16 bytes."""
        return TimeWindow(*_TWO_LONGS.unpack(stream.read(_TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """The id as one long."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        """Writes 8 bytes."""
        stream.write(_LONG.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        """Reads 8 bytes."""
        return CountWindow(*_LONG.unpack(stream.read(_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """One byte, since there is only one window."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        """Writes one byte."""
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        """Reads one byte."""
        stream.read(1)
        return GlobalWindow.get()
