"""What a program has configured in Python's ``logging``, as options of its job."""

from __future__ import annotations

import logging
import sys

from firesteel.config.configuration import Configuration
from firesteel.config.log_options import LOG_DATE_FORMAT, LOG_FORMAT, LOG_LEVEL, LOGGER_LEVELS

__all__ = ["add_program_format", "add_program_levels"]

_NAMES = (
    (logging.DEBUG, "DEBUG"),
    (logging.INFO, "INFO"),
    (logging.WARNING, "WARN"),
    (logging.ERROR, "ERROR"),
    (logging.CRITICAL, "FATAL"),
)
_NOT_OF_PROGRAMS = ("_pytest", "py4j", "python_multipart")


def add_program_levels(configuration: Configuration) -> Configuration:
    """Adds the levels of the program's loggers. What the configuration sets itself is kept."""
    root = logging.getLogger()
    if not configuration.contains(LOG_LEVEL) and (root.level != logging.WARNING or _handlers(root)):
        configuration.set(LOG_LEVEL, _name(root.level))
    levels = {}
    for name, logger in sorted(logging.Logger.manager.loggerDict.items()):
        # a library that is loaded in the program is often not loaded in its slots, but a level does no harm there
        if isinstance(logger, logging.Logger) and not name.startswith(_NOT_OF_PROGRAMS):
            if logger.disabled and not name.startswith("firesteel"):
                levels[name] = "OFF"
            elif logger.level != logging.NOTSET:
                levels[name] = _name(logger.level)
    if levels:
        configured: dict[str, str] | None = configuration.get_optional(LOGGER_LEVELS)
        configuration.set(LOGGER_LEVELS, levels | (configured or {}))
    return configuration


def add_program_format(configuration: Configuration) -> Configuration:
    """Adds the format of the program's log lines on its terminal, unless it has none of its own."""
    for handler in _handlers(logging.getLogger()):
        formatter = handler.formatter
        if type(handler) is not logging.StreamHandler or handler.stream not in (sys.stderr, sys.stdout):
            continue
        if type(formatter) is logging.Formatter and formatter._fmt not in (None, logging.BASIC_FORMAT):
            if not configuration.contains(LOG_FORMAT):
                configuration.set(LOG_FORMAT, formatter._fmt)
                if formatter.datefmt is not None:
                    configuration.set(LOG_DATE_FORMAT, formatter.datefmt)
            break
    return configuration


def _handlers(root: logging.Logger) -> list[logging.Handler]:
    """The program's own."""
    return [handler for handler in root.handlers if not type(handler).__module__.startswith(_NOT_OF_PROGRAMS)]


def _name(level: int) -> str:
    """The name of a level in configurations. An unset level of the root logger lets everything pass."""
    return next((name for number, name in _NAMES if level <= number), "OFF")
