"""Names of log levels in configurations."""

from __future__ import annotations

import logging

__all__ = ["LEVELS"]

LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "CRITICAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 1,
}
"""Names of levels: Flink's, and those of Python."""
