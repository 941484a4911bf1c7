"""Tables of Iceberg and Delta Lake for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firesteel.connectors.delta.table import DeltaTable
from firesteel.connectors.iceberg.sink import TableLoader
from firesteel.connectors.iceberg.table import IcebergTable
from firesteel.connectors.iceberg.types import to_iceberg_schema
from firesteel.types import logical as t
from firesteel.types.logical import RowType

NUMBERED = RowType.of(["id", "name"], [t.BigIntType(), t.VarCharType(t.MAX_LENGTH)])


def iceberg_options(directory: Path) -> dict[str, str]:
    """A catalog in SQLite, with tables in a directory."""
    return {"catalog-type": "sql", "uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"file://{directory}/lake"}


def create_iceberg(
    directory: Path, name: str = "db.t", columns: RowType = NUMBERED, key: Sequence[str] = (), **options: Any
) -> IcebergTable:
    table = TableLoader.from_catalog("test", iceberg_options(directory), name)
    table.catalog.create_namespace_if_not_exists(table.identifier[:-1])
    table.catalog.create_table(table.identifier, to_iceberg_schema(columns, tuple(key)), **options)
    return table


def iceberg_rows(table: IcebergTable) -> list[tuple[Any, ...]]:
    """The rows that another reader sees, ordered."""
    table.refresh()
    return sorted(tuple(row.values()) for row in table.loaded.scan().to_arrow().to_pylist())


def create_delta(
    directory: Path, name: str = "t", columns: RowType = NUMBERED, partitions: Sequence[str] = (), **properties: str
) -> DeltaTable:
    table = DeltaTable(str(directory / name))
    table.create(columns, partitions, properties)
    return table


def delta_rows(table: DeltaTable) -> list[tuple[Any, ...]]:
    """The rows that another reader sees, ordered."""
    return sorted(tuple(row.values()) for row in table.at_version().to_pyarrow_table().to_pylist())
