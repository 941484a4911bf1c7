"""What can be written at the place of the cursor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from firesteel.cli.sql.editing.names import Names
from firesteel.cli.sql.editing.tables import tables_of
from firesteel.table.parser.reserved import RESERVED

__all__ = ["Candidate", "complete"]


def _listed(text: str) -> list[str]:
    return text.split()


_STATEMENTS = _listed(
    """
    ALTER ANALYZE BEGIN CALL CLEAR COMPILE CREATE DELETE DESCRIBE DROP END EXECUTE EXIT EXPLAIN HELP INSERT LOAD QUIT
    RESET SELECT SET SHOW STOP TRUNCATE UNLOAD UPDATE USE VALUES WITH
    """
)
_KINDS = _listed("CATALOG DATABASE FUNCTION TABLE VIEW MATERIALIZED MODEL")
_AFTER: dict[str, Sequence[str]] = {
    "SHOW": _listed(
        """
        CATALOGS COLUMNS CREATE CURRENT DATABASES FUNCTIONS JOBS MODULES PARTITIONS TABLES USER VIEWS FULL MATERIALIZED
        JARS MODELS PROCEDURES
        """
    ),
    "CREATE": [*_KINDS, "OR", "TEMPORARY"],
    "DROP": [*_KINDS, "TEMPORARY"],
    "ALTER": _KINDS,
    "INSERT": ["INTO", "OVERWRITE"],
    "BEGIN": ["STATEMENT"],
    "STATEMENT": ["SET"],
    "STOP": ["JOB"],
    "GROUP": ["BY"],
    "ORDER": ["BY"],
    "PARTITION": ["BY"],
    "CURRENT": ["CATALOG", "DATABASE"],
}
_DETAILS = _listed("SELECT INSERT PLAN CHANGELOG_MODE ESTIMATED_COST JSON_EXECUTION_PLAN STATEMENT")
_TABLE_PLACES = ("FROM", "JOIN", "INTO", "OVERWRITE", "TABLE", "VIEW", "DESCRIBE", "DESC", "UPDATE", "COLUMNS")
_KEYWORDS = _listed(
    """
    ALL AND AS ASC BETWEEN BY CASE CAST CROSS DESC DISTINCT ELSE END EXCEPT EXISTS FALSE FILTER FOR FROM FULL GROUP
    HAVING IN INNER INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OUTER OVER
    PARTITION PRIMARY KEY RIGHT ROW ROWS SELECT SET SYSTEM_TIME TABLE THEN TRUE UNION UNNEST USING VALUES WATERMARK WHEN
    WHERE WITH WITHIN
    """
)
_TYPES = _listed(
    """
    ARRAY BIGINT BOOLEAN BYTES DATE DECIMAL DOUBLE FLOAT INT MAP MULTISET SMALLINT STRING TIME TIMESTAMP TIMESTAMP_LTZ
    TINYINT VARCHAR
    """
)
_DDL_WORDS = _listed("COMMENT CONSTRAINT IF EXISTS LIKE METADATA ADD DROP MODIFY RENAME")
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|`(?:[^`]|``)*`|[\w$]+|\S", re.DOTALL)


class Candidate(NamedTuple):
    """A text that replaces what is before the cursor."""

    text: str
    start: int
    """Where the replaced text begins, relative to the cursor: zero or negative."""
    kind: str


def complete(before: str, after: str, names: Names) -> list[Candidate]:
    """The candidates at the end of ``before``; ``after`` is the text behind the cursor."""
    statement = before[_statement_start(before) :]
    opened = _open_string(statement)
    if opened is not None:
        return _in_string(statement[:opened], statement[opened + 1 :], names)
    word = _word_before(statement)
    previous = _words(statement[: len(statement) - len(word)])
    if "." in word:
        return _qualified(word, statement + after.split(";", maxsplit=1)[0], names)
    return _matching(word, _here(previous, statement + after.split(";", maxsplit=1)[0], names))


def _here(previous: list[str], statement: str, names: Names) -> Iterable[tuple[str, str]]:
    """Names and keywords for the place after some words, the likeliest first."""
    last = previous[-1].upper() if previous else ""
    if not previous:
        return _as("keyword", _STATEMENTS)
    if previous[0].upper() in ("SET", "RESET") and len(previous) == 1:
        return [(f"'{key}'", "option") for key in names.option_keys()]
    if last == "USE":
        return [*_as("database", names.databases()), *_as("keyword", ["CATALOG", "MODULES"])]
    if last == "CATALOG":
        return _as("catalog", names.catalogs())
    if last == "JOB":
        return [(f"'{job}'", "job") for job in names.jobs()]
    if last == "DATABASE" or (previous[0].upper() == "SHOW" and last in ("FROM", "IN")):
        return [*_as("database", names.databases()), *_as("catalog", names.catalogs())]
    if last in _TABLE_PLACES or (last == "," and _clause(previous) == "FROM"):
        return [
            *_as("table", names.tables()),
            *_as("database", names.databases()),
            *_as("catalog", names.catalogs()),
            *(_as("keyword", ["TABLE", "LATERAL"]) if last in ("FROM", "JOIN", ",") else ()),
        ]
    if last in _AFTER:
        return _as("keyword", _AFTER[last])
    if previous[0].upper() == "EXPLAIN" and len(previous) == 1:
        return _as("keyword", _DETAILS)
    if previous[0].upper() in ("CREATE", "ALTER") and "AS" not in (word.upper() for word in previous):
        words = [
            *_TYPES,
            "COMMENT",
            "CONSTRAINT",
            "IF",
            "EXISTS",
            "LIKE",
            "METADATA",
            "ADD",
            "DROP",
            "MODIFY",
            "RENAME",
        ]
        return _as("keyword", [*words, *_KEYWORDS])
    found = tables_of(statement)
    columns = dict.fromkeys(column for path in found.values() for column in names.columns(path))
    return [
        *_as("column", columns),
        *_as("alias", found),
        *_as("keyword", _KEYWORDS),
        *_as("function", names.functions()),
        *_as("keyword", _TYPES if last == "AS" else ()),
    ]


def _qualified(word: str, statement: str, names: Names) -> list[Candidate]:
    """Names after a dot: the columns of a table or alias, the tables of a database, the databases of a catalog."""
    *path, prefix = (part.strip("`") for part in word.split("."))
    tables = tables_of(statement)
    offered: list[tuple[str, str]] = []
    if len(path) == 1 and path[0] in tables:
        offered += _as("column", names.columns(tables[path[0]]))
    elif len(path) == 1 and path[0] in names.tables():
        offered += _as("column", names.columns(path))
    if len(path) == 1 and path[0] in names.databases():
        offered += _as("table", names.tables(path))
    if len(path) == 1 and path[0] in names.catalogs():
        offered += _as("database", names.databases(path[0]))
    if len(path) == 2:
        offered += _as("table", names.tables(path))
        offered += _as("column", names.columns(path))
    return _matching(prefix, offered)


def _in_string(before: str, prefix: str, names: Names) -> list[Candidate]:
    """Candidates within a string: keys and values of options, ids of jobs."""
    words = _words(before)
    first = words[0].upper() if words else ""
    key = words[-2].strip("'") if len(words) >= 2 and words[-1] == "=" else None
    if first in ("SET", "RESET"):
        found = names.option_keys() if key is None else names.option_values(key)
        return _closed(prefix, "option", found)
    if words and words[-1].upper() == "JOB":
        return _closed(prefix, "job", names.jobs())
    if _is_in_with(words):
        if key is not None:
            return _closed(prefix, "value", names.table_option_values(key))
        connector = next(
            (words[at + 2].strip("'") for at, word in enumerate(words[:-2]) if word == "'connector'"),
            None,
        )
        return _closed(prefix, "option", names.table_options(connector))
    return []


def _is_in_with(words: Sequence[str]) -> bool:
    """Whether the last parenthesis that is open follows WITH or OPTIONS."""
    depth = 0
    for index in range(len(words) - 1, -1, -1):
        if words[index] == ")":
            depth += 1
        elif words[index] == "(":
            if depth == 0:
                return index > 0 and words[index - 1].upper() in ("WITH", "OPTIONS", "SET")
            depth -= 1
    return False


def _closed(prefix: str, kind: str, found: Iterable[str]) -> list[Candidate]:
    return [Candidate(name, -len(prefix), kind) for name in found if name.startswith(prefix)]


def _matching(prefix: str, offered: Iterable[tuple[str, str]]) -> list[Candidate]:
    lowered = prefix.strip("`").lower()
    found: dict[str, Candidate] = {}
    for name, kind in offered:
        bare = name.strip("'")
        if not bare.lower().startswith(lowered):
            continue
        text = name
        if kind in ("keyword", "function"):
            text = name.lower() if prefix.islower() else name
        elif kind not in ("option", "job") and (not _PLAIN_NAME.fullmatch(name) or name.upper() in RESERVED):
            text = f"`{name}`"
        found.setdefault(text, Candidate(text, -len(prefix), kind))
    return list(found.values())


def _as(kind: str, found: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, kind) for name in found]


def _clause(words: Sequence[str]) -> str:
    clauses = ("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "SET", "VALUES")
    return next((word.upper() for word in reversed(words) if word.upper() in clauses), "")


def _words(text: str) -> list[str]:
    return [word for word in _TOKEN.findall(text) if not word.startswith(("--", "/*"))]


def _word_before(text: str) -> str:
    found = re.search(r"(?:[\w$.]|`[^`]*`|`[^`]*$)+$", text)
    return found.group() if found else ""


def _statement_start(text: str) -> int:
    start = 0
    for match in _TOKEN.finditer(text):
        if match.group() == ";":
            start = match.end()
    return start


def _open_string(text: str) -> int | None:
    """Where a string begins that does not end."""
    last = None
    for match in _TOKEN.finditer(text):
        last = match.start() if match.group() == "'" else last
    return last
