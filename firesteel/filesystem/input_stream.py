"""Reads a file of a store through requests for ranges of it, as if it were open."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from typing import Any

__all__ = ["READ_AHEAD", "RangedInputStream"]

READ_AHEAD = 4 << 20
"""Bytes that are asked for at least when a file is read from front to back: a request costs more than they do."""


class RangedInputStream(io.RawIOBase):
    """A stream that can be read and seeked; asks for what is not in its buffer, and for ``read_ahead`` bytes at least.

    ``fetch(offset, length)`` gives bytes of the file, none of which lie behind its end.
    """

    def __init__(
        self,
        fetch: Callable[[int, int], bytes],
        size: int,
        read_ahead: int = READ_AHEAD,
        close: Callable[[], object] | None = None,
    ) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size
        self._read_ahead = read_ahead
        self._close = close
        self._position = 0
        self._buffer = b""
        self._buffer_at = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    @property
    def size(self) -> int:
        """How long the file is."""
        return self._size

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Goes to another place; nothing is asked for yet."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to so many bytes, fewer only at the end of the file; all that are left if no number is given."""
        left = max(self._size - self._position, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if not wanted:
            return b""
        begin = self._position - self._buffer_at
        if begin >= 0 and begin + wanted <= len(self._buffer):
            data = self._buffer[begin : begin + wanted]
        else:
            data = self._read_on(wanted)
        self._position += len(data)
        return data

    def readinto(self, buffer: Any, /) -> int:
        """Reads into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Lets go of the file."""
        if not self.closed:
            self._buffer = b""
            if self._close is not None:
                self._close()
        super().close()

    def _read_on(self, wanted: int) -> bytes:
        begin = self._position - self._buffer_at
        have = self._buffer[begin:] if 0 <= begin < len(self._buffer) else b""
        start = self._position + len(have)
        length = min(max(wanted - len(have), self._read_ahead), self._size - start)
        fetched = self._fetch(start, length)
        if len(fetched) < length:
            raise OSError(errno.EIO, f"{length} bytes at {start} were requested, {len(fetched)} were received")
        used = wanted - len(have)
        if self._read_ahead:
            self._buffer, self._buffer_at = fetched, start
        return have + fetched[:used] if have else fetched if used == length else fetched[:used]
