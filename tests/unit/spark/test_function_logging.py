"""What functions log: levels, format, rate limit, and that one job does not change the logging of the next."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from firesteel.config.configuration import Configuration
from firesteel.jobmaster.model.log_line import LogLine
from firesteel.process.current_task import CURRENT_TASK
from firesteel.spark.blocking.printed_output import Printed
from firesteel.spark.session.function_logging import HANDLER, MAX_TEXT, FunctionLogHandler, function_logging
from firesteel.spark.session.log_rates import LogRate
from firesteel.spark.session.user_output import MAX_PENDING_LOG_CHARACTERS, UserOutput

PLAIN = {"env.log.format": "%(levelname)s %(name)s %(message)s"}


@pytest.fixture(autouse=True)
def _unchanged() -> Iterator[None]:
    """The loggers of the test process are after each test as they were."""
    root, names = logging.getLogger(), ("a", "a.b", "firesteel", "py4j", "py.warnings")
    handlers, levels = list(root.handlers), [root.level, *(logging.getLogger(name).level for name in names)]
    yield
    assert root.handlers == handlers
    assert [root.level, *(logging.getLogger(name).level for name in names)] == levels
    assert HANDLER.offer is None


def logged(settings: dict[str, Any], say: Any, *, resumes: bool = False, job_id: str = "job") -> list[str]:
    with function_logging(Configuration.from_dict(settings), job_id, "Map (1/2)#0", resumes=resumes):
        with Printed() as printed:
            say()
        return [line.text for stream, lines in printed.take() if stream == "log" for line in lines]


def all_levels(name: str = "a") -> None:
    for level in ("debug", "info", "warning", "error", "critical"):
        getattr(logging.getLogger(name), level)("text")


def test_a_line_has_time_level_logger_and_task() -> None:
    (line,) = logged({}, lambda: logging.getLogger("a.b").info("x is %d", 1))
    time, rest = line[:23], line[23:]
    assert time[4] == time[7] == "-"
    assert time[19] == ","
    assert rest == " INFO     a.b [Map (1/2)#0] - x is 1"


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, ["INFO", "WARNING", "ERROR", "CRITICAL"]),
        ({"env.log.level": "TRACE"}, ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
        ({"env.log.level": "WARN"}, ["WARNING", "ERROR", "CRITICAL"]),
        ({"env.log.level": "OFF"}, []),
        ({"env.log.loggers": "a:ERROR"}, ["ERROR", "CRITICAL"]),
        ({"env.log.level": "OFF", "env.log.loggers": "a:fatal"}, ["CRITICAL"]),
    ],
)
def test_levels(settings: dict[str, str], shown: list[str]) -> None:
    assert [line.split()[0] for line in logged({**PLAIN, **settings}, all_levels)] == shown


def test_firesteel_itself_logs_at_warning_and_above() -> None:
    assert len(logged(PLAIN, lambda: all_levels("firesteel.x"))) == 3


def test_exceptions_come_with_their_traceback_and_warnings_as_records() -> None:
    def say() -> None:
        try:
            raise ValueError("no")
        except ValueError:
            logging.getLogger("a").exception("failed")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("careful", UserWarning, stacklevel=1)

    failed, careful = logged(PLAIN, say)
    assert failed.startswith("ERROR a failed\nTraceback (most recent call last):\n")
    assert failed.endswith("\nValueError: no")
    assert careful.startswith("WARNING py.warnings ")
    assert "UserWarning: careful" in careful


def test_arguments_that_do_not_fit_and_long_texts_do_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    def say() -> None:
        log = logging.getLogger("a")
        log.addHandler(HANDLER)
        log.propagate = False  # pytest has handlers, too
        log.info("%d", "x")
        log.info("y" * (MAX_TEXT + 1))
        log.propagate = True
        log.removeHandler(HANDLER)

    (line,) = logged(PLAIN, say)
    assert len(line) < MAX_TEXT + 100
    assert line.endswith("characters)")


def test_a_console_handler_that_a_module_has_installed_gives_no_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    logging.getLogger().addHandler(handler)
    try:
        assert logged(PLAIN, lambda: logging.getLogger("a").info("once")) == ["INFO a once"]
    finally:
        logging.getLogger().removeHandler(handler)
    assert capsys.readouterr().err == ""


def test_functions_may_configure_logging_themselves_for_as_long_as_their_job_is_here() -> None:
    records: list[logging.LogRecord] = []

    class Own(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    def configure() -> None:
        logging.basicConfig(handlers=[Own()], level=logging.DEBUG, force=True)
        logging.getLogger("a").debug("one")

    def log() -> None:
        logging.getLogger("a").debug("two")

    assert logged(PLAIN, configure) == []
    assert logged(PLAIN, log, resumes=True) == []
    assert [record.getMessage() for record in records] == ["one", "two"]
    assert logged({**PLAIN, "env.log.level": "DEBUG"}, log, job_id="another") == ["DEBUG a two"]
    assert logged(PLAIN, log, job_id="another") == []


def test_more_than_the_rate_limit_is_left_out_and_counted() -> None:
    now = [100.0]
    lines: list[LogLine] = []
    handler = FunctionLogHandler(lambda: now[0])
    handler.configure(logging.Formatter("%(levelname)s [%(task)s] %(message)s"), 10)
    handler.offer = lambda line: lines.append(line) is None
    logger = logging.Logger("x")  # noqa: LOG001 - none that the process shares
    logger.addHandler(handler)
    before, CURRENT_TASK.name = CURRENT_TASK.name, "Map (1/1)"
    try:
        for number in range(60):
            logger.info("%d", number)
        assert [line.text for line in lines] == [f"INFO [Map (1/1)] {number}" for number in range(50)]
        logger.error("not lost")
        assert lines.pop().text == "ERROR [Map (1/1)] not lost"
        now[0] += 0.5
        logger.info("still too early")
        now[0] += 0.5
        logger.info("again")
        assert [(line.level, line.text) for line in lines[50:]] == [
            (30, "WARNING [Map (1/1)] 11 log records were left out: more than 10 per second (env.log.rate-limit)."),
            (20, "INFO [Map (1/1)] again"),
        ]
        CURRENT_TASK.name = "Filter (1/1)"
        logger.info("another subtask has its own limit")
        assert len(lines) == 53
    finally:
        CURRENT_TASK.name = before


def test_no_limit() -> None:
    rate = LogRate(0, lambda: 0.0)
    assert all(rate.admit() for _ in range(10_000))
    assert rate.take_refused() == 0


def test_a_receiver_that_is_behind_costs_lines_and_no_time() -> None:
    sent: list[Any] = []
    output = UserOutput(sent.append, attempt=0, slot=0, stopped=lambda: False)
    with function_logging(Configuration.from_dict({**PLAIN, "env.log.rate-limit": "0"}), "job"), output:
        for _ in range(MAX_PENDING_LOG_CHARACTERS // 1000 + 100):
            logging.getLogger("a").info("x" * 1000)
        assert len(sent) == 1  # nothing is acknowledged
        output.flush(end=True)
        assert len(sent) == 2
        output.flush(end=True)
    texts = [line.text for payload in sent for line in _lines(payload)]
    (told,) = [text for text in texts if text.startswith("WARNING firesteel.logging")]
    left_out = int(told.split()[2])
    assert left_out > 0
    assert len(texts) - 1 + left_out == MAX_PENDING_LOG_CHARACTERS // 1000 + 100


def _lines(payload: Any) -> list[LogLine]:
    from firesteel.runtime.model.serialization import deserialize_batch

    name, lines = deserialize_batch(payload.payload).values
    assert name == "log"
    return list(lines)
