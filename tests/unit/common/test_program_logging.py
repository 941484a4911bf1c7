"""The program's own logging configuration becomes options of its job."""

from __future__ import annotations

import logging
import logging.config

import pytest

from firesteel.config.configuration import Configuration
from firesteel.config.log_options import LOG_DATE_FORMAT, LOG_FORMAT, LOG_LEVEL, LOGGER_LEVELS
from firesteel.process.program_logging import add_program_format, add_program_levels


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> logging.Manager:
    """Loggers as a new process has them; with ``force``, without the handlers of pytest."""
    root = logging.RootLogger(logging.WARNING)
    manager = logging.Manager(root)
    monkeypatch.setattr(logging, "root", root)
    monkeypatch.setattr(logging.Logger, "root", root)
    monkeypatch.setattr(logging.Logger, "manager", manager)
    return manager


def test_a_program_that_configures_nothing_adds_nothing(manager: logging.Manager) -> None:
    assert add_program_format(add_program_levels(Configuration())).to_dict() == {}


def test_levels_of_loggers(manager: logging.Manager) -> None:
    logging.getLogger("a").setLevel(logging.DEBUG)
    logging.getLogger("b").setLevel(35)
    logging.getLogger("c").disabled = True
    logging.getLogger("d")
    configuration = Configuration.from_dict({"env.log.loggers": "a:INFO,e:WARN"})
    assert add_program_levels(configuration).get(LOGGER_LEVELS) == {"a": "INFO", "b": "ERROR", "c": "OFF", "e": "WARN"}
    assert not configuration.contains(LOG_LEVEL)


def test_the_level_of_the_root_logger(manager: logging.Manager) -> None:
    logging.basicConfig(level=logging.DEBUG, force=True)
    assert add_program_levels(Configuration()).get(LOG_LEVEL) == "DEBUG"
    explicit = Configuration.from_dict({"env.log.level": "ERROR"})
    assert add_program_levels(explicit).get(LOG_LEVEL) == "ERROR"


def test_a_root_logger_with_a_handler_keeps_its_default_level(manager: logging.Manager) -> None:
    logging.basicConfig(force=True)
    assert add_program_levels(Configuration()).get(LOG_LEVEL) == "WARN"


def test_the_format_of_the_console(manager: logging.Manager) -> None:
    logging.config.dictConfig(
        {
            "version": 1,
            "formatters": {"short": {"format": "{levelname} {message}", "style": "{", "datefmt": "%H:%M"}},
            "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "short"}},
            "root": {"handlers": ["console"], "level": "INFO"},
        }
    )
    configuration = add_program_format(Configuration())
    assert configuration.get(LOG_FORMAT) == "{levelname} {message}"
    assert configuration.get(LOG_DATE_FORMAT) == "%H:%M"


def test_the_default_format_of_basic_config_is_no_choice(manager: logging.Manager) -> None:
    logging.basicConfig(force=True)
    assert not add_program_format(Configuration()).contains(LOG_FORMAT)
