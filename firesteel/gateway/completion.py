"""What can be written at a place of a statement: keywords, functions, tables and columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from firesteel.table import TableEnvironment
from firesteel.table.parser import parse_path
from firesteel.table.parser.reserved import KEYWORDS

__all__ = ["candidates"]

_WORD = re.compile(r"[\w.`$]*$")
_BEFORE = re.compile(r"(\w+)\s*$")
_TABLES = re.compile(r"\b(?:FROM|JOIN|INTO|TABLE|VIEW|DESCRIBE|DESC)\s+([\w.`$]+)", re.IGNORECASE)
_BEFORE_TABLE = ("FROM", "JOIN", "INTO", "TABLE", "VIEW", "DESCRIBE", "DESC", "UPDATE")
_FIRST = (
    *("ALTER", "ANALYZE", "BEGIN STATEMENT SET", "CALL", "COMPILE PLAN", "CREATE", "DELETE FROM", "DESCRIBE", "DROP"),
    *("END", "EXECUTE", "EXPLAIN", "INSERT INTO", "LOAD MODULE", "RESET", "SELECT", "SET", "SHOW", "STOP JOB"),
    *("UNLOAD MODULE", "UPDATE", "USE", "VALUES", "WITH"),
)
_SHOWN = (
    *("CATALOGS", "COLUMNS", "CREATE TABLE", "CREATE VIEW", "CURRENT CATALOG", "CURRENT DATABASE", "DATABASES"),
    *("FUNCTIONS", "JOBS", "MODULES", "TABLES", "USER FUNCTIONS", "VIEWS"),
)


def candidates(environment: TableEnvironment, statement: str, position: int) -> list[str]:
    """What the word at a position can become, the most specific first; all of it replaces the word.

    >>> from firesteel.table import EnvironmentSettings, TableEnvironment
    >>> candidates(TableEnvironment.create(EnvironmentSettings.in_streaming_mode()), "SHOW TA", 7)
    ['TABLES']
    """
    text = statement[: max(position, 0)]
    found = _WORD.search(text)
    assert found is not None
    word, before = found[0], text[: found.start()]
    last = _BEFORE.search(before)
    keyword = "" if last is None else last[1].upper()
    if not before.strip() or before.rstrip().endswith(";"):
        return _matching(_FIRST, word)
    if keyword == "SHOW":
        return _matching(_SHOWN, word)
    if keyword == "USE":
        return _matching(["CATALOG", *_quietly(environment.list_databases)], word)
    if keyword == "CATALOG":
        return _matching(_quietly(environment.list_catalogs), word)
    tables = _tables(environment, word)
    if keyword in _BEFORE_TABLE:
        return _matching(tables, word)
    columns = list(dict.fromkeys(_columns(environment, statement)))
    others = [*environment.list_functions(), *sorted(KEYWORDS)] if word else []
    functions = [name.upper() for name in others]
    return _matching(dict.fromkeys([*columns, *tables, *functions]), word)


def _matching(names: Iterable[str], word: str) -> list[str]:
    prefix = word.lower()
    return [name for name in names if name.lower().startswith(prefix) and name.lower() != prefix]


def _tables(environment: TableEnvironment, word: str) -> list[str]:
    """Tables of the current database; with a dot, those of the catalog or database before it."""
    if "." not in word:
        return [*_quietly(environment.list_tables), *_quietly(environment.list_catalogs)]
    manager = environment._manager
    outer = word.rpartition(".")[0]
    with suppress(Exception):  # it may not be a name yet
        path = parse_path(outer)
        if len(path) == 1 and manager.find_catalog(path[0]) is not None:
            return [f"{outer}.{name}" for name in manager.get_catalog(path[0]).list_databases()]
        catalog = path[0] if len(path) == 2 else manager.require_catalog()
        return [f"{outer}.{name}" for name in manager.list_tables(catalog, path[-1])]
    return []


def _columns(environment: TableEnvironment, statement: str) -> Iterator[str]:
    """The columns of all tables that the statement names."""
    for found in _TABLES.finditer(statement):
        with suppress(Exception):  # it may not be a table
            table = environment._manager.find_table(environment._manager.qualify(parse_path(found[1])))
            if table is not None:
                yield from environment._session.resolved_schema(table.table).get_column_names()


def _quietly(listed: Callable[[], Iterable[str]]) -> list[str]:
    with suppress(Exception):  # there may be no current catalog, and others are servers
        return list(listed())
    return []
