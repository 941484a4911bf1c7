"""Progress messages, written to standard error; standard output is for results."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager

from firesteel.config.redaction import printable

__all__ = ["TerminalProgress", "say"]

_WIDTH = 100


def say(text: str) -> None:
    """Prints a message to standard error."""
    print(printable(f"firesteel: {text}"), file=sys.stderr, flush=True)  # noqa: T201 - the terminal is where a command speaks


class TerminalProgress(AbstractContextManager["TerminalProgress"]):
    """A progress line that is updated in place on a terminal; without a terminal, each new text is a line.

    Figures and elapsed seconds, which change constantly, are shown on a terminal only.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._is_terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._shown = ""
        self._said = ""

    @property
    def shows_figures(self) -> bool:
        """Whether figures are displayed."""
        return self._is_terminal

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str, figures: str = "") -> None:
        """Shows what is being waited for."""
        if self._quiet:
            return
        if not self._is_terminal:
            if text != self._said:
                say(text)
                self._said = text
            return
        seconds = time.monotonic() - self._started
        line = f"{printable(text)}{f'  {figures}' if figures else ''}  {seconds:.0f} s"[:_WIDTH]
        if line != self._shown:
            sys.stderr.write(f"\r\x1b[2K{line}")
            sys.stderr.flush()
            self._shown = line

    def say(self, text: str) -> None:
        """Prints a line that stays."""
        self.clear()
        if not self._quiet:
            say(text)

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._shown = ""
