"""TableConfig: the options of a table environment."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

from firesteel.config import python_options, table_options
from firesteel.config.configuration import Configuration
from firesteel.table.sql_dialect import SqlDialect

__all__ = ["TableConfig"]

_MAX_CODE_LENGTH = "table.generated-code.max-length"
_LOCAL_TIME = Path("/etc/localtime")


class TableConfig:
    """The options of a table environment: typed access to its one configuration.

    >>> TableConfig().set("table.local-time-zone", "Asia/Shanghai").get_local_timezone()
    'Asia/Shanghai'
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    @staticmethod
    def get_default() -> TableConfig:
        """The default options."""
        return TableConfig()

    def get(self, key: str, default_value: str) -> str:
        """The value of a key as text."""
        return self._configuration.get_string(key, default_value)

    def set(self, key: str, value: str) -> TableConfig:
        """Sets a key."""
        self._configuration.set_string(key, value)
        return self

    def get_configuration(self) -> Configuration:
        """The configuration itself: what is set there, is set here."""
        return self._configuration

    def add_configuration(self, configuration: Configuration) -> None:
        """Takes over all entries of a configuration."""
        self._configuration.add_all(configuration)

    def to_map(self) -> dict[str, str]:
        """All entries as text."""
        return self._configuration.to_dict()

    def get_local_timezone(self) -> str:
        """The time zone of the session."""
        name = self._configuration.get(table_options.LOCAL_TIME_ZONE)
        return _zone_of_machine() if name == "default" else name

    def set_local_timezone(self, timezone_id: str) -> None:
        """Sets the time zone of the session, such as ``Europe/Berlin`` or ``GMT-08:00``."""
        if not isinstance(timezone_id, str):
            raise TypeError(f"TableConfig.timezone should be a string, got {timezone_id!r}.")
        self._configuration.set(table_options.LOCAL_TIME_ZONE, timezone_id)

    def set_idle_state_retention(self, duration: dt.timedelta) -> None:
        """Sets for how long the state of a key is kept that gets no rows."""
        self._configuration.set_string("table.exec.state.ttl", f"{int(duration.total_seconds() * 1000)} ms")

    def get_idle_state_retention(self) -> dt.timedelta:
        """For how long the state of a key is kept that gets no rows; zero for ever."""
        return dt.timedelta(milliseconds=self._configuration.get(table_options.IDLE_STATE_RETENTION).to_millis())

    def get_max_generated_code_length(self) -> int:
        """The largest length of a generated method in Flink; here it has no effect."""
        return int(self._configuration.get_string(_MAX_CODE_LENGTH, "4000"))

    def set_max_generated_code_length(self, max_generated_code_length: int) -> None:
        """Has no effect: generated Python has no largest length."""
        if not isinstance(max_generated_code_length, int):
            raise TypeError("TableConfig.max_generated_code_length should be a int value!")
        self._configuration.set_string(_MAX_CODE_LENGTH, str(max_generated_code_length))

    def get_sql_dialect(self) -> int:
        """The dialect of SQL: ``SqlDialect.DEFAULT``."""
        return SqlDialect.DEFAULT

    def set_sql_dialect(self, sql_dialect: int) -> None:
        """Sets the dialect of SQL, which can be ``SqlDialect.DEFAULT`` only."""
        if sql_dialect != SqlDialect.DEFAULT:
            raise ValueError("Only SqlDialect.DEFAULT is supported.")

    def set_python_executable(self, python_exec: str) -> None:
        """Sets the Python interpreter that runs functions."""
        self._configuration.set(python_options.EXECUTABLE, python_exec)

    def get_python_executable(self) -> str | None:
        """The Python interpreter that runs functions; None for the usual one."""
        return self._configuration.get_optional(python_options.EXECUTABLE)


def _zone_of_machine() -> str:
    name = os.environ.get("TZ", "").lstrip(":")
    if name:
        return name
    try:
        _, found, name = str(_LOCAL_TIME.resolve(strict=True)).partition("/zoneinfo/")
    except OSError:
        return "UTC"
    return name if found else "UTC"
