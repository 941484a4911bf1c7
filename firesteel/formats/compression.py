"""Decompression of files, by file name extension."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, BinaryIO, cast

from firesteel.common.errors import FiresteelError

__all__ = ["DECOMPRESSION_ERRORS", "MissingCodecError", "decompressed", "is_compressed"]

DECOMPRESSION_ERRORS = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)

_BUFFER_BYTES = 256 * 1024
_HEAD_BYTES = 1024


class MissingCodecError(FiresteelError):
    """A file is compressed in a way that needs a package that is not installed."""


def is_compressed(path: str) -> bool:
    """Whether a file is compressed, by its name; such a file cannot be read from the middle."""
    return PurePosixPath(path).suffix.lower() in _OPENERS


def decompressed(path: str, stream: BinaryIO) -> BinaryIO:
    """The decompressed bytes of a file; the stream itself if the file is not compressed, by its name."""
    opener = _OPENERS.get(PurePosixPath(path).suffix.lower())
    if opener is None:
        return stream
    return opener(stream)


class _ForwardStream(io.RawIOBase):
    """Bytes that are decompressed once, from front to back: to go forward, it reads."""

    def __init__(self, more: Callable[[], bytes]) -> None:
        super().__init__()
        self._more = more
        self._ready = b""
        self._position = 0
        self._head: bytes | None = b""
        """What was read so far, if that is little: a reader looks at the first bytes and goes back."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or (offset < self._position and self._head is None):
            raise io.UnsupportedOperation("cannot go back in a compressed file")
        if self._head is not None and offset < self._position:
            self._ready = self._head[offset:] + self._ready
            self._head, self._position = self._head[:offset], offset
        while self._position < offset and self.read(min(offset - self._position, _BUFFER_BYTES)):
            pass
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        everything = size is None or size < 0
        while (everything or not self._ready) and (piece := self._more()):
            self._ready += piece
        count = len(self._ready) if size is None or size < 0 else size
        data, self._ready = self._ready[:count], self._ready[count:]
        self._position += len(data)
        if self._head is not None:
            self._head = self._head + data if self._position <= _HEAD_BYTES else None
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _deflate(stream: BinaryIO) -> BinaryIO:
    """As Flink reads ``.deflate``: the format of zlib."""
    inflater = zlib.decompressobj()

    def more() -> bytes:
        while not inflater.eof:
            piece = inflater.unconsumed_tail or stream.read(_BUFFER_BYTES)
            if not piece:
                raise EOFError("the compressed data ends in the middle")
            if data := inflater.decompress(piece, 4 * _BUFFER_BYTES):
                return data
        return b""

    return cast(BinaryIO, _ForwardStream(more))


def _zstandard(stream: BinaryIO) -> BinaryIO:
    try:
        reader = importlib.import_module("pyarrow").CompressedInputStream(stream, "zstd")
    except ImportError:
        try:
            module = importlib.import_module("zstandard")
        except ImportError as error:
            raise MissingCodecError(
                "Files that end in .zst need a package that is not installed.",
                hint="pip install 'firesteel[dataframes]', or zstandard, on every host.",
            ) from error
        return cast(BinaryIO, _ForwardStream(_zstandard_frames(stream, module)))
    return cast(BinaryIO, _ForwardStream(lambda: bytes(reader.read(_BUFFER_BYTES))))


def _zstandard_frames(stream: BinaryIO, module: Any) -> Callable[[], bytes]:
    """Reads frame by frame: zstandard's own reader takes a frame that is cut off for the end of the file."""
    frame: Any = None
    rest = b""

    def more() -> bytes:
        nonlocal frame, rest
        while True:
            piece = rest or stream.read(_BUFFER_BYTES)
            if not piece:
                if frame is not None:
                    raise EOFError("the compressed data ends in the middle")
                return b""
            frame = frame or module.ZstdDecompressor().decompressobj()
            try:
                data: bytes = frame.decompress(piece)
            except module.ZstdError as error:
                raise OSError(str(error)) from error
            rest = frame.unused_data
            if frame.eof:
                frame = None
            if data:
                return data

    return more


_OPENERS: dict[str, Callable[[BinaryIO], BinaryIO]] = {
    ".gz": lambda stream: cast(BinaryIO, gzip.GzipFile(fileobj=stream)),
    ".gzip": lambda stream: cast(BinaryIO, gzip.GzipFile(fileobj=stream)),
    ".bz2": lambda stream: cast(BinaryIO, bz2.BZ2File(stream)),
    ".xz": lambda stream: cast(BinaryIO, lzma.LZMAFile(stream)),  # noqa: SIM115 - the reader closes it
    ".deflate": _deflate,
    ".zst": _zstandard,
    ".zstd": _zstandard,
}
