"""How bytes become lines: charsets, line ends and compression."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, Any

from firesteel.common.errors import InvalidProgramError

__all__ = ["DECOMPRESSION_ERRORS", "LineCodec", "StreamFormat", "is_compressed", "open_bytes"]

DECOMPRESSION_ERRORS = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".gzip": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def is_compressed(path: str) -> bool:
    """Whether the file's name says that it is compressed; such a file cannot be read from the middle."""
    return PurePath(path).suffix.lower() in _OPENERS


def open_bytes(path: str) -> IO[bytes]:
    """Opens a file for reading its decompressed bytes."""
    opener = _OPENERS.get(PurePath(path).suffix.lower())
    stream: IO[bytes] = open(path, "rb", buffering=0) if opener is None else opener(path, "rb")  # noqa: PTH123, SIM115 - the reader closes it
    return stream


@dataclass(frozen=True)
class LineCodec:
    """The charset as one file has it: ``bom_length`` bytes to pass over, then text in ``charset``."""

    charset: str
    bom_length: int
    newline: bytes

    @property
    def unit(self) -> int:
        """How many bytes a line end takes; characters begin at multiples of it."""
        return len(self.newline)

    def find_newline(self, data: bytes, start: int) -> int:
        """The index just behind the first line end that ends behind ``start``, or -1."""
        unit = self.unit
        index = data.find(self.newline, max(start - unit + 1, 0))
        while index >= 0 and index % unit:
            index = data.find(self.newline, index + 1)
        return -1 if index < 0 else index + unit

    def find_last_newline(self, data: bytes) -> int:
        """The index just behind the last line end, or -1."""
        unit = self.unit
        index = data.rfind(self.newline)
        while index >= 0 and index % unit:
            index = data.rfind(self.newline, 0, index + unit - 1)
        return -1 if index < 0 else index + unit

    def split_lines(self, data: bytes) -> list[str]:
        r"""Decodes whole lines; ``\n``, ``\r\n`` and ``\r`` end a line, the last one may lack its end."""
        if not data:
            return []
        text = data.decode(self.charset)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            del lines[-1]
        return lines


@dataclass(frozen=True)
class StreamFormat:
    """Turns the bytes of a file into records: here, into lines of text."""

    charset_name: str

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        """Each line is a record, a ``str`` without its line end.

        Bytes that are not text in the charset fail the job. (Flink puts a replacement character.)
        """
        try:
            "".encode(charset_name)
        except LookupError:
            raise InvalidProgramError(
                f"There is no charset '{charset_name}'.",
                hint="Some that exist: utf-8, utf-16, latin-1, cp1252.",
            ) from None
        return StreamFormat(charset_name)

    @property
    def splittable(self) -> bool:
        """Whether a line end can be found from anywhere in the file."""
        return self._resolve(b"").unit == 1

    def codec_for(self, head: bytes) -> LineCodec:
        """The codec for a file that begins with these bytes (four are enough)."""
        return self._resolve(head)

    def _resolve(self, head: bytes) -> LineCodec:
        charset = codecs.lookup(self.charset_name).name
        bom_length = 0
        if charset == "utf-8-sig":
            charset = "utf-8"
            bom_length = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
        elif charset in ("utf-16", "utf-32"):
            little = codecs.BOM_UTF16_LE if charset == "utf-16" else codecs.BOM_UTF32_LE
            big = codecs.BOM_UTF16_BE if charset == "utf-16" else codecs.BOM_UTF32_BE
            bom_length = len(little) if head.startswith((little, big)) else 0
            # Java's rule, and that of the standard: without a mark, big-endian.
            charset += "-le" if head.startswith(little) else "-be"
        return LineCodec(charset, bom_length, "\n".encode(charset))
