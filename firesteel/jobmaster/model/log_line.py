"""A log record of a user function, as it is sent to the JobMaster."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LOG_STREAM", "LogLine"]

LOG_STREAM = "log"
"""The name of the stream of log lines, beside ``stdout`` and ``stderr``."""


class LogLine(NamedTuple):
    """A formatted record; a traceback in it makes the text several lines."""

    level: int
    text: str
