"""Log records of user functions: formatted in the slot, printed with the program's output."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any, TextIO

from firesteel.config.configuration import Configuration
from firesteel.config.slot_options import LOG_LEVEL

__all__ = ["setup_function_logging"]

FORMAT = "%(asctime)s %(levelname)-8s %(name)s - %(message)s"
_LEVELS = {"TRACE": logging.DEBUG, "WARN": logging.WARNING, "FATAL": logging.CRITICAL, "OFF": logging.CRITICAL + 1}
"""Level names that Python does not have."""
_QUIET = ("firesteel", "py4j")
"""Loggers below user functions, which log at WARNING and above unless DEBUG is set."""


if TYPE_CHECKING:
    _StreamHandler = logging.StreamHandler[TextIO]
else:
    _StreamHandler = logging.StreamHandler  # on Python 3.10 it takes no parameter


class _FunctionLogHandler(_StreamHandler):
    """Writes to what ``sys.stderr`` is at that moment: in a slot it leads to the program that runs the job."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter(FORMAT))

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _stream: Any) -> None:
        raise AttributeError("the stream of this handler is sys.stderr")


def setup_function_logging(configuration: Configuration) -> None:
    """Configures the root logger of a slot's process, unless the program has done so itself.

    A process serves one job after the other, so it may be called again.
    """
    root = logging.getLogger()
    if any(not isinstance(handler, _FunctionLogHandler) for handler in root.handlers):
        return
    if not root.handlers:
        root.addHandler(_FunctionLogHandler())
    name = configuration.get(LOG_LEVEL)
    level = _LEVELS.get(name) or logging.getLevelName(name)
    root.setLevel(level)
    for quiet in _QUIET:
        logging.getLogger(quiet).setLevel(max(level, logging.WARNING) if level > logging.DEBUG else level)
