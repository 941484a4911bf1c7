"""The tables that a statement names, also one that is not finished."""

from __future__ import annotations

import re

from firesteel.table.parser.reserved import RESERVED

__all__ = ["tables_of"]

_NAME = r"(?:`(?:[^`]|``)+`|[A-Za-z_$][\w$]*)"
_PATH = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_TABLE = re.compile(
    rf"\b(?:FROM|JOIN|INTO|UPDATE|TABLE)\s+({_PATH})(?:\s+FOR\s+SYSTEM_TIME\s+AS\s+OF\s+{_PATH})?(?:\s+(?:AS\s+)?({_NAME}))?"
    rf"((?:\s*,\s*{_PATH}(?:\s+(?:AS\s+)?{_NAME})?)*)",
    re.IGNORECASE,
)
_NEXT = re.compile(rf",\s*({_PATH})(?:\s+(?:AS\s+)?({_NAME}))?", re.IGNORECASE)
_HIDDEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'?", re.DOTALL)


def tables_of(statement: str) -> dict[str, list[str]]:
    """The paths of tables by the name that columns are qualified with.

    >>> tables_of("SELECT | FROM orders AS o, db.people JOIN `my table` ON ")
    {'o': ['orders'], 'people': ['db', 'people'], 'my table': ['my table']}
    """
    found: dict[str, list[str]] = {}
    for match in _TABLE.finditer(_HIDDEN.sub(" ", statement)):
        _add(found, match[1], match[2])
        for other in _NEXT.finditer(match[3] or ""):
            _add(found, other[1], other[2])
    return found


def _add(found: dict[str, list[str]], path: str, alias: str | None) -> None:
    parts = [part.strip("`").replace("``", "`") for part in re.findall(_NAME, path)]
    if len(parts) == 1 and path.upper() in RESERVED:
        return
    if alias is None or alias.upper() in RESERVED:
        alias = parts[-1]
    found[alias.strip("`")] = parts
