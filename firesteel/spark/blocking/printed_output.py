"""Captures the printed output and the log lines of user functions in a Python worker until the task is done."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from firesteel.jobmaster.model.log_line import LOG_STREAM, LogLine
from firesteel.spark.session.function_logging import HANDLER

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["MAX_CHARACTERS", "Printed"]

MAX_CHARACTERS = 1 << 20
"""The maximum size of a task's printed output that is kept until it is read."""


class _Stream(io.TextIOBase):
    def __init__(self, name: str, printed: Printed):
        self._name = name
        self._printed = printed

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self._printed.add(self._name, text)
        return len(text)


class Printed:
    """While entered, ``sys.stdout``, ``sys.stderr`` and the log are kept. Is the ``PrintedLines`` of tasks.

    >>> with Printed() as printed:
    ...     print("a", 1)
    ...     print("b")
    >>> printed.take()
    [('stdout', ['a 1', 'b'])]
    """

    def __init__(self) -> None:
        self._parts: list[tuple[str, list[str]]] = []
        self._length = 0
        self._log: list[LogLine] = []
        self._log_length = 0
        self._saved: dict[str, Any] = {}

    def __enter__(self) -> Self:
        for name in ("stdout", "stderr"):
            self._saved[name] = getattr(sys, name)
            setattr(sys, name, _Stream(name, self))
        HANDLER.offer = self.add_log
        return self

    def __exit__(self, *_exception: object) -> None:
        HANDLER.offer = None
        for name, saved in self._saved.items():
            setattr(sys, name, saved)

    def add(self, name: str, text: str) -> None:
        """Keeps a text; the first one that is too much is replaced by a remark."""
        if self._length > MAX_CHARACTERS:
            return
        self._length += len(text)
        if self._length > MAX_CHARACTERS:
            text = f"\n(more than {MAX_CHARACTERS} characters were printed; the rest is left out)\n"
        if self._parts and self._parts[-1][0] == name:
            self._parts[-1][1].append(text)
        else:
            self._parts.append((name, [text]))

    def add_log(self, line: LogLine) -> bool:
        """Keeps a log line, unless there are too many."""
        if self._log_length > MAX_CHARACTERS:
            return False
        self._log_length += len(line.text)
        self._log.append(line)
        return True

    def take(self) -> list[tuple[str, Sequence[Any]]]:
        """What was printed and logged since the last call: the stream and lines."""
        HANDLER.tell_left_out()
        parts, self._parts, self._length = self._parts, [], 0
        printed: list[tuple[str, Sequence[Any]]] = [
            (name, "".join(texts).removesuffix("\n").split("\n")) for name, texts in parts
        ]
        lines, self._log, self._log_length = self._log, [], 0
        return [*printed, (LOG_STREAM, lines)] if lines else printed
