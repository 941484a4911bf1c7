"""What expressions depend on besides their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Session"]


@dataclass(frozen=True)
class Session:
    """The settings of a session that expressions read."""

    local_time_zone: str = "UTC"
    now: Callable[[], int] | None = None
    """Returns the nanoseconds since 1970; tests and replays have a clock of their own."""
    current_database: str = "default_database"
    is_streaming: bool = True
    """Whether queries run as streams, in which windows need time attributes."""
    watermark: Callable[[], int | None] | None = None
    """Returns the watermark of an operator in milliseconds; None before the first one."""
