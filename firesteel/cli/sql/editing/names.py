"""The names that completion offers: those of the session, asked for by statements and remembered."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from firesteel.common.errors import FiresteelError
from firesteel.config.options import all_options
from firesteel.table.connector.factory import BUILT_IN

__all__ = ["Names", "SessionNames"]

_NAME = re.compile(r"[A-Za-z_]\w*")
_FORMATS = ("json", "csv", "avro", "raw", "debezium-json", "canal-json", "maxwell-json", "ogg-json", "parquet", "orc")
_COMMON_OPTIONS = ("connector", "format")


class Names(Protocol):
    """What can be written at a place."""

    def catalogs(self) -> Sequence[str]:
        """The catalogs."""
        ...

    def databases(self, catalog: str | None = None) -> Sequence[str]:
        """The databases of a catalog, or of the current one."""
        ...

    def tables(self, path: Sequence[str] = ()) -> Sequence[str]:
        """The tables and views of a database, or of the current one."""
        ...

    def columns(self, path: Sequence[str]) -> Sequence[str]:
        """The columns of a table."""
        ...

    def functions(self) -> Sequence[str]:
        """The functions."""
        ...

    def jobs(self) -> Sequence[str]:
        """The ids of jobs."""
        ...

    def option_keys(self) -> Sequence[str]:
        """The keys of SET."""
        ...

    def option_values(self, key: str) -> Sequence[str]:
        """The values of an option that has only some."""
        ...

    def table_options(self, connector: str | None) -> Sequence[str]:
        """The keys of WITH, for a connector."""
        ...

    def table_option_values(self, key: str) -> Sequence[str]:
        """The values of a key of WITH that has only some."""
        ...


class SessionNames:
    """The names of a session. They are asked for once until ``forget``, which each statement calls."""

    def __init__(self, ask: Callable[[str], list[Sequence[str]]]) -> None:
        self._ask = ask
        self._known: dict[str, list[str]] = {}

    def forget(self) -> None:
        """Asks again for what statements may have changed."""
        self._known = {sql: names for sql, names in self._known.items() if sql == "SHOW FUNCTIONS"}

    def catalogs(self) -> Sequence[str]:
        """The catalogs."""
        return self._column("SHOW CATALOGS")

    def databases(self, catalog: str | None = None) -> Sequence[str]:
        """The databases of a catalog, or of the current one."""
        return self._column("SHOW DATABASES" if catalog is None else f"SHOW DATABASES FROM {_quoted([catalog])}")

    def tables(self, path: Sequence[str] = ()) -> Sequence[str]:
        """The tables and views of a database, or of the current one."""
        return self._column(f"SHOW TABLES FROM {_quoted(path)}" if path else "SHOW TABLES")

    def columns(self, path: Sequence[str]) -> Sequence[str]:
        """The columns of a table; none if there is no such table."""
        return self._column(f"DESCRIBE {_quoted(path)}")

    def functions(self) -> Sequence[str]:
        """The functions that have a name."""
        return [name.upper() for name in self._column("SHOW FUNCTIONS") if _NAME.fullmatch(name)]

    def jobs(self) -> Sequence[str]:
        """The ids of jobs."""
        self._known.pop("SHOW JOBS", None)
        return self._column("SHOW JOBS")

    def option_keys(self) -> Sequence[str]:
        """The keys of all options."""
        return [option.key for option in all_options()]

    def option_values(self, key: str) -> Sequence[str]:
        """Words, or true and false."""
        option = next((option for option in all_options() if option.key == key), None)
        if option is None:
            return ()
        if option.type_name.startswith("one of "):
            return option.type_name.removeprefix("one of ").split(", ")
        return ("true", "false") if option.type_name == "boolean" else ()

    def table_options(self, connector: str | None) -> Sequence[str]:
        """The keys that the connector has."""
        if connector not in BUILT_IN:
            return _COMMON_OPTIONS
        factory: Any = importlib.import_module(BUILT_IN[connector]).FACTORY
        return list(dict.fromkeys([*_COMMON_OPTIONS, *factory.required_options, *sorted(factory.optional_options)]))

    def table_option_values(self, key: str) -> Sequence[str]:
        """Connectors and formats."""
        if key == "connector":
            return sorted(BUILT_IN)
        return _FORMATS if key.endswith("format") else ()

    def _column(self, sql: str) -> Sequence[str]:
        if sql not in self._known:
            try:
                self._known[sql] = [row[0] for row in self._ask(sql)]
            except FiresteelError:
                self._known[sql] = []  # such as columns of a table that does not exist
        return self._known[sql]


def _quoted(path: Sequence[str]) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in path)
