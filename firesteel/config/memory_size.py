"""Amounts of memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["MemorySize"]

_UNITS = {
    "bytes": (1, ("b", "bytes")),
    "kb": (1 << 10, ("k", "kb", "kibibytes")),
    "mb": (1 << 20, ("m", "mb", "mebibytes")),
    "gb": (1 << 30, ("g", "gb", "gibibytes")),
    "tb": (1 << 40, ("t", "tb", "tebibytes")),
}
_FACTOR_OF_LABEL = {label: factor for factor, labels in _UNITS.values() for label in labels}
_AMOUNT = re.compile(r"(\d+)\s*(.*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, order=True)
class MemorySize:
    """A number of bytes; units are powers of 1024, as in Flink."""

    bytes: int

    def __post_init__(self) -> None:
        if self.bytes < 0:
            raise ValueError(f"A memory size cannot be negative: {self.bytes}")

    @staticmethod
    def parse(text: str) -> MemorySize:
        """Reads ``32kb``, ``1 gb``, or a number of bytes.

        >>> MemorySize.parse("32 kb").bytes
        32768
        """
        match = _AMOUNT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a memory size: use an integer and a unit, such as '32 kb'")
        label = match[2].strip().lower()
        factor = _FACTOR_OF_LABEL.get(label) if label else 1
        if factor is None:
            raise ValueError(f"{text!r} is not a memory size: {label!r} is not one of the units {', '.join(_UNITS)}")
        return MemorySize(int(match[1]) * factor)

    def __str__(self) -> str:
        name, factor = next(
            (name, factor)
            for name, (factor, _) in reversed(_UNITS.items())
            if factor == 1 or (self.bytes and self.bytes % factor == 0)
        )
        return f"{self.bytes // factor} {name}"
