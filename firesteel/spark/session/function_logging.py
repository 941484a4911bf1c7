"""Log records of user functions: formatted in their process, and sent to the program or the JobManager.

Logging never makes a task wait. Records beyond ``env.log.rate-limit``, and records that cannot be sent because the
receiver is behind, are left out; a line tells how many.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from firesteel.config.configuration import Configuration
from firesteel.config.log_options import (
    LOG_DATE_FORMAT,
    LOG_FORMAT,
    LOG_LEVEL,
    LOG_RATE_LIMIT,
    LOGGER_LEVELS,
)
from firesteel.jobmaster.model.log_line import LogLine
from firesteel.process.current_task import CURRENT_TASK
from firesteel.process.log_levels import LEVELS
from firesteel.spark.session.log_rates import LogRate

__all__ = ["HANDLER", "FunctionLogHandler", "function_logging"]

FORMAT = "%(asctime)s %(levelname)-8s %(name)s [%(task)s] - %(message)s"
MAX_TEXT = 1 << 16
"""The maximum length of a record's text."""
_QUIET = ("firesteel", "py4j")
"""Loggers below user functions, which log at WARNING and above unless DEBUG is set."""

Offer = Callable[[LogLine], bool]
"""Takes a line, or returns False if there is no room for it."""


class FunctionLogHandler(logging.Handler):
    """The root logger's handler in a process that runs tasks."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(FORMAT))
        self.offer: Offer | None = None
        """Where lines go while tasks run; standard error otherwise."""
        self._monotonic = monotonic
        self._per_second = 0
        self._rates: dict[tuple[str, bool], LogRate] = {}
        self._undelivered = 0
        self._process = os.getpid()

    def createLock(self) -> None:  # noqa: N802 - logging's name
        """No lock: what takes the lines has its own, and two would be taken in either order."""
        self.lock = None

    def configure(self, formatter: logging.Formatter, per_second: int) -> None:
        """Sets the format and the rate limit of the lines from now on."""
        self.setFormatter(formatter)
        self._per_second = per_second
        self._rates.clear()
        self._undelivered = 0
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        """Sends a record."""
        try:
            task = CURRENT_TASK.name or record.threadName or ""
            scope = (task, record.levelno >= logging.WARNING)
            rate = self._rates.get(scope)
            if rate is None:
                rate = self._rates[scope] = LogRate(self._per_second, self._monotonic)
            if rate.admit():
                self._tell_refused(task, rate)
                self._send(record, task)
        except Exception:  # noqa: BLE001 - arguments that do not fit the message, for example
            self.handleError(record)

    def tell_left_out(self) -> None:
        """Sends the lines that tell of records that were left out."""
        for (task, _), rate in list(self._rates.items()):
            self._tell_refused(task, rate)
        undelivered, self._undelivered = self._undelivered, 0
        if undelivered and not self._say("-", f"{undelivered} log records were left out: too many waited."):
            self._undelivered = undelivered

    def _tell_refused(self, task: str, rate: LogRate) -> None:
        if refused := rate.take_refused():
            limit = f"more than {self._per_second} per second (env.log.rate-limit)"
            if not self._say(task, f"{refused} log records were left out: {limit}."):
                self._undelivered += refused - 1  # not the line itself

    def _say(self, task: str, text: str) -> bool:
        record = logging.LogRecord("firesteel.logging", logging.WARNING, __file__, 0, text, None, None)
        return self._send(record, task)

    def _send(self, record: logging.LogRecord, task: str) -> bool:
        record.task = task
        text = self.format(record).rstrip("\n")
        if len(text) > MAX_TEXT:
            text = f"{text[:MAX_TEXT]}… ({len(text)} characters)"
        # a process that a function has forked must not use the connection of its parent
        if self.offer is None or os.getpid() != self._process:
            if sys.__stderr__ is not None:
                sys.__stderr__.write(f"{text}\n")
            return True
        taken = self.offer(LogLine(record.levelno, text))
        self._undelivered += not taken
        return taken


HANDLER = FunctionLogHandler()
"""The handler of this process."""


@dataclass
class _LoggingState:
    handlers: list[logging.Handler]
    levels: dict[logging.Logger, int]

    @classmethod
    def now(cls) -> _LoggingState:
        root = logging.getLogger()
        loggers = [each for each in logging.Logger.manager.loggerDict.values() if isinstance(each, logging.Logger)]
        return cls(list(root.handlers), {logger: logger.level for logger in [root, *loggers]})

    def restore(self) -> None:
        """Sets all loggers to this state, also those that have been created since."""
        logging.getLogger().handlers[:] = self.handlers
        for logger, level in _LoggingState.now().levels.items():
            before = self.levels.get(logger, logging.NOTSET)
            if before != level:
                logger.setLevel(before)


_kept: dict[str, _LoggingState] = {}
"""By job, what its functions have made of the configuration: of the last job of this process."""


@contextmanager
def function_logging(
    configuration: Configuration, job_id: str, task: str = "", *, resumes: bool = False
) -> Iterator[None]:
    """Has functions log to HANDLER. A process serves one job after the other, each with its own levels.

    A handler of the root logger for the console, as ``basicConfig`` in a module of the program creates it, is replaced.
    Functions may replace HANDLER in turn, in ``open``. With ``resumes``, what they have configured is used again: their
    task has been kept in this process, and is not opened again.
    """
    before, previous = _LoggingState.now(), CURRENT_TASK.name
    captured: Any = logging._warnings_showwarning  # type: ignore[attr-defined]
    kept = _kept.pop(job_id, None)
    _kept.clear()
    if kept is None or not resumes:
        _apply(configuration)
    else:
        kept.restore()
    logging.captureWarnings(capture=True)
    CURRENT_TASK.name = task
    try:
        yield
    finally:
        CURRENT_TASK.name = previous
        _kept[job_id] = _LoggingState.now()
        if captured is None:
            logging.captureWarnings(capture=False)
        before.restore()


def _apply(configuration: Configuration) -> None:
    template = configuration.get(LOG_FORMAT) or FORMAT
    style = "%" if "%(" in template else "{" if "{message" in template else "$" if "$" in template else "%"
    formatter = logging.Formatter(template, configuration.get(LOG_DATE_FORMAT), style)  # type: ignore[arg-type]
    HANDLER.configure(formatter, configuration.get(LOG_RATE_LIMIT))
    root = logging.getLogger()
    root.handlers[:] = [HANDLER, *(each for each in root.handlers if each is not HANDLER and not _is_console(each))]
    level = LEVELS[configuration.get(LOG_LEVEL)]
    root.setLevel(level)
    for quiet in _QUIET:
        logging.getLogger(quiet).setLevel(max(level, logging.WARNING) if level > logging.DEBUG else level)
    for name, named_level in (configuration.get(LOGGER_LEVELS) or {}).items():
        number = LEVELS.get(named_level.upper())
        if number is None:
            HANDLER._say("-", f"{named_level!r}, the level of logger {name}, is none of {', '.join(LEVELS)}.")
        else:
            logging.getLogger(name).setLevel(number)


def _is_console(handler: logging.Handler) -> bool:
    return type(handler) is logging.StreamHandler and handler.stream in (
        sys.stderr,
        sys.stdout,
        sys.__stderr__,
        sys.__stdout__,
    )
