"""ALTER of all objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from firesteel.table.parser.statements.base import ObjectPath, Options, Statement
from firesteel.table.parser.statements.dml import PartitionSpec
from firesteel.table.parser.statements.tables import Column, Distribution, TableConstraint, Watermark

__all__ = [
    "AddOrModifySchema",
    "AddPartitions",
    "Alter",
    "AlterCatalogComment",
    "AlterFreshness",
    "AlterFunction",
    "AlterObject",
    "AlterQuery",
    "AlterRefreshMode",
    "ChangeDistribution",
    "ChangedColumn",
    "DropColumns",
    "DropConstraint",
    "DropDistribution",
    "DropPartitions",
    "DropPrimaryKey",
    "DropWatermark",
    "NewPartition",
    "Refresh",
    "Rename",
    "RenameColumn",
    "ResetOptions",
    "Resume",
    "SetOptions",
    "Suspend",
]


class Alter:
    """A change of an object."""


@dataclass(frozen=True)
class AlterObject(Statement):
    """ALTER of an object by one change."""

    kind: Literal["CATALOG", "DATABASE", "TABLE", "VIEW", "MATERIALIZED TABLE", "FUNCTION", "MODEL", "CONNECTION"]
    path: ObjectPath
    change: Alter
    if_exists: bool = False


@dataclass(frozen=True)
class SetOptions(Alter):
    """``SET (options)``."""

    options: Options


@dataclass(frozen=True)
class ResetOptions(Alter):
    """``RESET (keys)``."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class AlterCatalogComment(Alter):
    """``COMMENT 'text'``."""

    comment: str


@dataclass(frozen=True)
class Rename(Alter):
    """``RENAME TO name``."""

    new_path: ObjectPath


@dataclass(frozen=True)
class RenameColumn(Alter):
    """``RENAME column TO name``."""

    column: ObjectPath
    new_column: ObjectPath


@dataclass(frozen=True)
class ChangedColumn:
    """A column of ADD or MODIFY and its new place; without a place it stays, or goes to the end."""

    column: Column
    first: bool = False
    after: ObjectPath | None = None


@dataclass(frozen=True)
class AddOrModifySchema(Alter):
    """ADD or MODIFY of columns, constraints and the watermark."""

    action: Literal["ADD", "MODIFY"]
    columns: tuple[ChangedColumn, ...] = ()
    constraints: tuple[TableConstraint, ...] = ()
    watermark: Watermark | None = None


@dataclass(frozen=True)
class ChangeDistribution(Alter):
    """ADD or MODIFY DISTRIBUTION."""

    action: Literal["ADD", "MODIFY"]
    distribution: Distribution


@dataclass(frozen=True)
class DropColumns(Alter):
    """DROP of columns."""

    columns: tuple[ObjectPath, ...]


@dataclass(frozen=True)
class DropPrimaryKey(Alter):
    """DROP PRIMARY KEY."""


@dataclass(frozen=True)
class DropConstraint(Alter):
    """DROP CONSTRAINT."""

    name: str


@dataclass(frozen=True)
class DropWatermark(Alter):
    """DROP WATERMARK."""


@dataclass(frozen=True)
class DropDistribution(Alter):
    """DROP DISTRIBUTION."""


@dataclass(frozen=True)
class NewPartition:
    """A partition of ADD PARTITION."""

    partition: PartitionSpec
    options: Options = ()


@dataclass(frozen=True)
class AddPartitions(Alter):
    """ADD PARTITION."""

    partitions: tuple[NewPartition, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropPartitions(Alter):
    """DROP PARTITION."""

    partitions: tuple[PartitionSpec, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class AlterQuery(Alter):
    """``AS query`` of a view or a materialized table."""

    query: exp.Expression


@dataclass(frozen=True)
class AlterFunction(Alter):
    """``AS 'class' LANGUAGE language``."""

    class_name: str
    language: str | None = None
    temporary: bool = False
    system: bool = False


@dataclass(frozen=True)
class Suspend(Alter):
    """SUSPEND of a materialized table."""


@dataclass(frozen=True)
class Resume(Alter):
    """RESUME of a materialized table."""

    options: Options = ()


@dataclass(frozen=True)
class Refresh(Alter):
    """REFRESH of a materialized table."""

    partition: PartitionSpec = ()


@dataclass(frozen=True)
class AlterFreshness(Alter):
    """``SET FRESHNESS = interval``."""

    freshness: exp.Expression


@dataclass(frozen=True)
class AlterRefreshMode(Alter):
    """``SET REFRESH_MODE = mode``."""

    mode: Literal["FULL", "CONTINUOUS"]
