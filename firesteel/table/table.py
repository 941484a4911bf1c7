"""Table, and the tables between two of its steps."""

from firesteel.table.environment.table import Table
from firesteel.table.environment.tables.grouped import (
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    WindowGroupedTable,
)

__all__ = ["GroupWindowedTable", "GroupedTable", "OverWindowedTable", "Table", "WindowGroupedTable"]
