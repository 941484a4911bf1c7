"""The identity of a job."""

from __future__ import annotations

import re
import uuid

__all__ = ["JobID"]

_HEX = re.compile(r"[0-9a-f]{32}")


class JobID:
    """Identifies one submitted job: 32 hexadecimal digits, random unless given."""

    __slots__ = ("_hex",)

    def __init__(self, hex_string: str | None = None):
        value = uuid.uuid4().hex if hex_string is None else hex_string.lower()
        if not _HEX.fullmatch(value):
            raise ValueError(f"A job id has 32 hexadecimal digits, not {hex_string!r}")
        self._hex = value

    @staticmethod
    def generate() -> JobID:
        """A new random id."""
        return JobID()

    @staticmethod
    def from_hex_string(hex_string: str) -> JobID:
        """The id with those 32 digits."""
        return JobID(hex_string)

    def to_hex_string(self) -> str:
        """The 32 digits, in lower case."""
        return self._hex

    def __str__(self) -> str:
        return self._hex

    def __repr__(self) -> str:
        return f"JobID({self._hex!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobID) and self._hex == other._hex

    def __hash__(self) -> int:
        return hash(self._hex)
