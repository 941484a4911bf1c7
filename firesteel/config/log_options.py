"""The configuration options of logs."""

from __future__ import annotations

from firesteel.config.option import ConfigOptions

__all__ = [
    "LOGGER_LEVELS",
    "LOG_DATE_FORMAT",
    "LOG_DIRECTORY",
    "LOG_FILES",
    "LOG_FORMAT",
    "LOG_LEVEL",
    "LOG_RATE_LIMIT",
]

_key = ConfigOptions.key

LOG_LEVEL = (
    _key("env.log.level")
    .choice_type("TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR", "FATAL", "OFF")
    .default_value("INFO")
    .with_description(
        "Minimum level of log records of user functions, and of a JobManager. The default for functions is the level "
        "that the program has given its root logger, if any."
    )
)
LOGGER_LEVELS = (
    _key("env.log.loggers")
    .map_type()
    .no_default_value()
    .with_description(
        "Minimum levels of single loggers in user functions, such as my.rules:DEBUG,urllib3:ERROR, in addition to "
        "those that the program has set."
    )
)
LOG_FORMAT = (
    _key("env.log.format")
    .string_type()
    .no_default_value()
    .with_description(
        "Format of the log lines of user functions, as of logging.Formatter; %(task)s is the name of the task. The "
        "default on the program's own terminal is the format that the program has set, if any."
    )
)
LOG_DATE_FORMAT = (
    _key("env.log.date-format")
    .string_type()
    .no_default_value()
    .with_description("Format of %(asctime)s in env.log.format, as of logging.Formatter.")
)
LOG_RATE_LIMIT = (
    _key("env.log.rate-limit")
    .int_type()
    .default_value(1000)
    .with_description(
        "Number of log records per second that a subtask may write, with bursts of five times as many. Records of "
        "level WARNING and above have a limit of their own of the same size. More are left out, and counted in a log "
        "line. 0 disables the limit."
    )
)
LOG_DIRECTORY = (
    _key("env.log.dir")
    .string_type()
    .no_default_value()
    .with_description("The directory of a cluster's log files; default: log in the cluster's directory.")
)
LOG_FILES = (
    _key("env.log.max")
    .int_type()
    .default_value(5)
    .with_description("The number of files of each log that are kept, of up to 10 mb each. In Flink: 10.")
)
