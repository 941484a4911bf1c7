"""Event history of a simulation."""

from __future__ import annotations

import hashlib
import re

__all__ = ["Story"]

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


class Story:
    """Events with their virtual time, and who they concern; the same for every run of one seed."""

    def __init__(self, limit: int = 100_000):
        self._lines: list[str] = []
        self._limit = limit
        self._last: dict[str, str] = {}

    def add(self, now_us: int, who: str, what: str) -> None:
        """Adds an event. Addresses of objects are left out: they differ from run to run."""
        if self._last.get(who) == what:
            return  # a repetition, as by retries
        self._last[who] = what
        if len(self._lines) < self._limit:
            text = _ADDRESS.sub("0x", what) if "0x" in what else what
            self._lines.append(f"{now_us / 1_000_000:12.6f}  {who:<14} {text}")

    def lines(self) -> list[str]:
        """All events."""
        return self._lines

    def digest(self) -> str:
        """A short text that is the same for two runs if and only if their stories are, with high probability."""
        return hashlib.sha256("\n".join(self._lines).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return "\n".join(self._lines)
