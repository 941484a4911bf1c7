"""CREATE and DROP of catalogs, databases, functions, models and connections, and DROP of tables and views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from firesteel.table.parser.statements.base import ObjectPath, Options, Statement
from firesteel.table.parser.statements.tables import TableSchema

__all__ = [
    "CreateCatalog",
    "CreateConnection",
    "CreateDatabase",
    "CreateFunction",
    "CreateModel",
    "Drop",
    "DropDatabase",
    "FunctionResource",
]


@dataclass(frozen=True)
class CreateCatalog(Statement):
    """CREATE CATALOG."""

    name: str
    options: Options = ()
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateDatabase(Statement):
    """CREATE DATABASE."""

    path: ObjectPath
    options: Options = ()
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class FunctionResource:
    """``JAR 'path'`` or ``ARTIFACT 'path'`` of CREATE FUNCTION … USING."""

    kind: Literal["JAR", "ARTIFACT"]
    path: str


@dataclass(frozen=True)
class CreateFunction(Statement):
    """CREATE [TEMPORARY [SYSTEM]] FUNCTION."""

    path: ObjectPath
    class_name: str
    language: str | None = None
    resources: tuple[FunctionResource, ...] = ()
    options: Options = ()
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateModel(Statement):
    """CREATE [TEMPORARY] MODEL."""

    path: ObjectPath
    input: TableSchema | None = None
    output: TableSchema | None = None
    comment: str | None = None
    options: Options = ()
    query: exp.Expression | None = None
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateConnection(Statement):
    """CREATE [TEMPORARY [SYSTEM]] CONNECTION."""

    path: ObjectPath
    options: Options
    comment: str | None = None
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """DROP of an object that is not a database."""

    kind: Literal["CATALOG", "TABLE", "VIEW", "MATERIALIZED TABLE", "FUNCTION", "MODEL", "CONNECTION"]
    path: ObjectPath
    temporary: bool = False
    system: bool = False
    if_exists: bool = False


@dataclass(frozen=True)
class DropDatabase(Statement):
    """DROP DATABASE."""

    path: ObjectPath
    if_exists: bool = False
    cascade: bool = False
