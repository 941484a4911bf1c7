"""INSERT, UPDATE, DELETE, TRUNCATE and statement sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from firesteel.table.parser.nodes import HintCall
from firesteel.table.parser.statements.base import ObjectPath, Statement

__all__ = [
    "BeginStatementSet",
    "Delete",
    "EndStatementSet",
    "Insert",
    "PartitionSpec",
    "Query",
    "StatementSet",
    "TruncateTable",
    "Update",
]

PartitionSpec = tuple[tuple[str, exp.Expression | None], ...]
"""Partition keys with their literals; only ANALYZE TABLE has keys without."""


@dataclass(frozen=True)
class Query(Statement):
    """A query."""

    query: exp.Expression


@dataclass(frozen=True)
class Insert(Statement):
    """INSERT INTO and INSERT OVERWRITE."""

    path: ObjectPath
    query: exp.Expression
    columns: tuple[ObjectPath, ...] = ()
    partition: PartitionSpec = ()
    hints: tuple[HintCall, ...] = ()
    overwrite: bool = False
    upsert: bool = False
    on_conflict: Literal["ERROR", "NOTHING", "DEDUPLICATE"] | None = None
    target: int = field(default=0, compare=False, repr=False)
    """The offset of the name of the table."""


@dataclass(frozen=True)
class Update(Statement):
    """UPDATE."""

    path: ObjectPath
    assignments: tuple[tuple[str, exp.Expression], ...]
    where: exp.Expression | None = None
    alias: str | None = None
    hints: tuple[HintCall, ...] = ()


@dataclass(frozen=True)
class Delete(Statement):
    """DELETE FROM."""

    path: ObjectPath
    where: exp.Expression | None = None
    alias: str | None = None
    hints: tuple[HintCall, ...] = ()


@dataclass(frozen=True)
class TruncateTable(Statement):
    """TRUNCATE TABLE."""

    path: ObjectPath


@dataclass(frozen=True)
class StatementSet(Statement):
    """STATEMENT SET BEGIN … END, which runs as one job."""

    statements: tuple[Insert, ...]


@dataclass(frozen=True)
class BeginStatementSet(Statement):
    """BEGIN STATEMENT SET: the statements up to END are one set."""


@dataclass(frozen=True)
class EndStatementSet(Statement):
    """END of a statement set."""
