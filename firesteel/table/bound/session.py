"""What expressions depend on besides their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
    find_function: Any = field(default=None, repr=False, compare=False)
    """Returns the definition of a function of the user, or None, by the parts of its name, and all their ``names``;
    for binding only."""
    scope: Any = field(default=None, repr=False, compare=False)
    """What opens the functions of the user in an operator."""

    def __getstate__(self) -> dict[str, Any]:
        # neither belongs to another process
        return {**self.__dict__, "find_function": None, "scope": None}
