"""Interface for progress reports of a client."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress", "duration_text"]


class Progress(Protocol):
    """Shows progress to the user; passed in by the caller."""

    @property
    def shows_figures(self) -> bool:
        """Whether ``show`` displays figures, which have to be requested from the cluster."""

    def show(self, text: str, figures: str = "") -> None:
        """Shows what is being waited for, until the next call."""

    def say(self, text: str) -> None:
        """Shows a text that stays."""

    def clear(self) -> None:
        """Removes what ``show`` has shown."""


def duration_text(milliseconds: float) -> str:
    """A duration as text.

    >>> duration_text(2400), duration_text(3_725_000), duration_text(200_000_000)
    ('2 s', '1 h 02 min', '2 d 07 h')
    """
    seconds = int(milliseconds / 1000)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes:02} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours:02} h"
