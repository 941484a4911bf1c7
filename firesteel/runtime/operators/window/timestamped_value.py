"""An element of a window with its timestamp, as evictors see it and as their windows keep it."""

from __future__ import annotations

from typing import Any, NamedTuple

from firesteel.common.errors import StateIncompatibleError

__all__ = ["TimestampedValue", "check_written_without_evictor"]


class TimestampedValue(NamedTuple):
    """A record and its timestamp, None if it has none."""

    value: Any
    timestamp: int | None = None

    def get_value(self) -> Any:
        """The record."""
        return self.value

    def get_timestamp(self) -> int:
        """The timestamp; an error if there is none."""
        if self.timestamp is None:
            raise ValueError("The record has no timestamp.")
        return self.timestamp

    def has_timestamp(self) -> bool:
        """Whether the record has a timestamp."""
        return self.timestamp is not None


def check_written_without_evictor(element: Any) -> None:
    """Refuses an element of restored contents that a window with an evictor has written."""
    if element.__class__ is TimestampedValue:
        raise StateIncompatibleError(
            "The restored windows were written by an operator with an evictor.",
            state="window-contents",
            hint="Keep the evictor, or give the window another uid.",
        )
