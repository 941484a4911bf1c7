"""Statements that show, describe, use, set, load and explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from firesteel.table.parser.nodes import Call
from firesteel.table.parser.statements.base import ObjectPath, Options, Statement
from firesteel.table.parser.statements.dml import PartitionSpec

__all__ = [
    "AnalyzeTable",
    "CompilePlan",
    "DescribeJob",
    "DescribeObject",
    "DescribeStatement",
    "Execute",
    "ExecutePlan",
    "Explain",
    "Jar",
    "LikePattern",
    "LoadModule",
    "ProcedureCall",
    "ResetOption",
    "SetOption",
    "Show",
    "ShowCreate",
    "ShowPartitions",
    "StopJob",
    "UnloadModule",
    "UseCatalog",
    "UseDatabase",
    "UseModules",
]


@dataclass(frozen=True)
class LikePattern:
    """``[NOT] LIKE 'pattern'`` of SHOW."""

    pattern: str
    negated: bool = False
    ignore_case: bool = False
    """ILIKE."""


@dataclass(frozen=True)
class Show(Statement):
    """SHOW of a list.

    ``what`` is CATALOGS, CURRENT CATALOG, CURRENT DATABASE, DATABASES, TABLES, VIEWS, MATERIALIZED TABLES, COLUMNS,
    FUNCTIONS, USER FUNCTIONS, PROCEDURES, MODELS, CONNECTIONS, MODULES, FULL MODULES, JARS or JOBS.
    """

    what: str
    path: ObjectPath | None = None
    """Of FROM or IN: the catalog, database or table."""
    like: LikePattern | None = None


@dataclass(frozen=True)
class ShowCreate(Statement):
    """SHOW CREATE."""

    kind: Literal["TABLE", "VIEW", "CATALOG", "MODEL", "CONNECTION", "MATERIALIZED TABLE"]
    path: ObjectPath


@dataclass(frozen=True)
class ShowPartitions(Statement):
    """SHOW PARTITIONS."""

    path: ObjectPath
    partition: PartitionSpec = ()


@dataclass(frozen=True)
class DescribeObject(Statement):
    """DESCRIBE of a catalog, database, table, function, model or connection."""

    kind: Literal["CATALOG", "DATABASE", "TABLE", "FUNCTION", "MODEL", "CONNECTION"]
    path: ObjectPath
    extended: bool = False
    column: str | None = None


@dataclass(frozen=True)
class DescribeStatement(Statement):
    """DESCRIBE of a query or a statement that changes tables."""

    statement: Statement


@dataclass(frozen=True)
class DescribeJob(Statement):
    """DESCRIBE JOB."""

    job_id: str


@dataclass(frozen=True)
class StopJob(Statement):
    """STOP JOB."""

    job_id: str
    with_savepoint: bool = False
    with_drain: bool = False


@dataclass(frozen=True)
class UseCatalog(Statement):
    """USE CATALOG."""

    name: str


@dataclass(frozen=True)
class UseDatabase(Statement):
    """USE."""

    path: ObjectPath


@dataclass(frozen=True)
class UseModules(Statement):
    """USE MODULES."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class LoadModule(Statement):
    """LOAD MODULE."""

    name: str
    options: Options = ()


@dataclass(frozen=True)
class UnloadModule(Statement):
    """UNLOAD MODULE."""

    name: str


@dataclass(frozen=True)
class SetOption(Statement):
    """SET; without a key it lists the options."""

    key: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class ResetOption(Statement):
    """RESET; without a key all options."""

    key: str | None = None


@dataclass(frozen=True)
class Jar(Statement):
    """ADD JAR and REMOVE JAR."""

    action: Literal["ADD", "REMOVE"]
    path: str


@dataclass(frozen=True)
class AnalyzeTable(Statement):
    """ANALYZE TABLE."""

    path: ObjectPath
    partition: PartitionSpec = ()
    columns: tuple[str, ...] = ()
    all_columns: bool = False


@dataclass(frozen=True)
class ProcedureCall(Statement):
    """CALL."""

    call: Call


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN with its details."""

    statement: Statement
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Execute(Statement):
    """EXECUTE of a query, an INSERT or a statement set."""

    statement: Statement


@dataclass(frozen=True)
class ExecutePlan(Statement):
    """EXECUTE PLAN."""

    path: str


@dataclass(frozen=True)
class CompilePlan(Statement):
    """COMPILE [AND EXECUTE] PLAN."""

    path: str
    statement: Statement
    if_not_exists: bool = False
    execute: bool = False
