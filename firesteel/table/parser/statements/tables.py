"""CREATE TABLE, CREATE VIEW and CREATE MATERIALIZED TABLE, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from firesteel.table.parser.nodes import TemporalLiteral
from firesteel.table.parser.statements.base import ObjectPath, Options, Statement
from firesteel.table.parser.types import SqlType

__all__ = [
    "Column",
    "ComputedColumn",
    "CreateMaterializedTable",
    "CreateTable",
    "CreateView",
    "Distribution",
    "LikeOption",
    "MetadataColumn",
    "PhysicalColumn",
    "StartMode",
    "TableConstraint",
    "TableLike",
    "TableSchema",
    "Watermark",
]


@dataclass(frozen=True)
class TableConstraint:
    """PRIMARY KEY or UNIQUE."""

    kind: Literal["PRIMARY KEY", "UNIQUE"]
    columns: tuple[str, ...]
    name: str | None = None
    enforced: bool | None = None
    """``None`` if the text does not say it."""


@dataclass(frozen=True)
class Column:
    """A column of a table; its name has several parts if it is a field of a row, in ALTER TABLE."""

    path: ObjectPath

    @property
    def name(self) -> str:
        """The name, with dots between its parts."""
        return ".".join(self.path)


@dataclass(frozen=True)
class PhysicalColumn(Column):
    """``name TYPE``."""

    type: SqlType
    constraint: TableConstraint | None = None
    comment: str | None = None


@dataclass(frozen=True)
class MetadataColumn(Column):
    """``name TYPE METADATA FROM 'key' VIRTUAL``."""

    type: SqlType
    key: str | None = None
    virtual: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class ComputedColumn(Column):
    """``name AS expression``."""

    expression: exp.Expression
    comment: str | None = None


@dataclass(frozen=True)
class Watermark:
    """``WATERMARK FOR column AS expression``."""

    column: ObjectPath
    expression: exp.Expression


@dataclass(frozen=True)
class Distribution:
    """``DISTRIBUTED BY HASH(a) INTO 4 BUCKETS``."""

    kind: Literal["HASH", "RANGE"] | None = None
    columns: tuple[str, ...] = ()
    buckets: int | None = None


@dataclass(frozen=True)
class LikeOption:
    """``INCLUDING ALL``, ``EXCLUDING OPTIONS``, …"""

    strategy: str
    feature: str


@dataclass(frozen=True)
class TableLike:
    """``LIKE table (options)``."""

    table: ObjectPath
    options: tuple[LikeOption, ...] = ()


@dataclass(frozen=True)
class TableSchema:
    """The columns, constraints and watermark of a table, or only names for the columns of a query."""

    columns: tuple[Column, ...] = ()
    constraints: tuple[TableConstraint, ...] = ()
    watermark: Watermark | None = None
    column_names: tuple[ObjectPath, ...] = ()

    @property
    def primary_key(self) -> TableConstraint | None:
        """The primary key, of the table or of one of its columns."""
        of_columns = [part.constraint for part in self.columns if isinstance(part, PhysicalColumn)]
        keys = [key for key in (*self.constraints, *of_columns) if key is not None and key.kind == "PRIMARY KEY"]
        return keys[0] if keys else None


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE, also AS a query and LIKE a table; REPLACE TABLE AS and CREATE OR REPLACE TABLE AS."""

    path: ObjectPath
    schema: TableSchema | None = None
    comment: str | None = None
    distribution: Distribution | None = None
    partition_keys: tuple[str, ...] = ()
    options: Options = ()
    like: TableLike | None = None
    query: exp.Expression | None = None
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False
    or_create: bool = True
    """False for REPLACE TABLE."""


@dataclass(frozen=True)
class StartMode:
    """Where a materialized table starts to read: ``FROM_BEGINNING``, ``RESUME_OR_FROM_TIMESTAMP(…)``, …"""

    kind: str
    interval: exp.Expression | None = None
    timestamp: TemporalLiteral | None = None


@dataclass(frozen=True)
class CreateMaterializedTable(Statement):
    """CREATE [OR ALTER] MATERIALIZED TABLE."""

    path: ObjectPath
    query: exp.Expression
    schema: TableSchema | None = None
    comment: str | None = None
    distribution: Distribution | None = None
    partition_keys: tuple[str, ...] = ()
    options: Options = ()
    start_mode: StartMode | None = None
    freshness: exp.Expression | None = None
    refresh_mode: Literal["FULL", "CONTINUOUS"] | None = None
    or_alter: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE [TEMPORARY] VIEW."""

    path: ObjectPath
    query: exp.Expression
    columns: tuple[str, ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False
    replace: bool = False
