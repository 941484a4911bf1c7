"""Line codec: charsets and line ends."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from firesteel.common.errors import InvalidProgramError

__all__ = ["LineCodec", "check_charset", "is_splittable_charset", "line_codec"]


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


def check_charset(name: str) -> str:
    """The name of a charset that exists."""
    try:
        "".encode(name)
    except LookupError:
        raise InvalidProgramError(
            f"There is no charset '{name}'.",
            hint="Some that exist: utf-8, utf-16, latin-1, cp1252.",
        ) from None
    return name


def is_splittable_charset(name: str) -> bool:
    """Whether a line end can be found from anywhere in a file."""
    return line_codec(name, b"").unit == 1


def line_codec(charset_name: str, head: bytes, *, passes_mark: bool = False) -> LineCodec:
    """The codec for a file that begins with these bytes (four are enough).

    ``passes_mark`` has a byte order mark passed over in UTF-8 too, where it is a character by the standard.
    """
    charset = codecs.lookup(charset_name).name
    bom_length = 0
    if charset == "utf-8-sig" or (passes_mark and charset == "utf-8"):
        charset = "utf-8"
        bom_length = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
    elif charset in ("utf-16", "utf-32"):
        little = codecs.BOM_UTF16_LE if charset == "utf-16" else codecs.BOM_UTF32_LE
        big = codecs.BOM_UTF16_BE if charset == "utf-16" else codecs.BOM_UTF32_BE
        bom_length = len(little) if head.startswith((little, big)) else 0
        # Java's rule, and that of the standard: without a mark, big-endian.
        charset += "-le" if head.startswith(little) else "-be"
    return LineCodec(charset, bom_length, "\n".encode(charset))
