"""Table, and the tables between two of its steps."""

from firesteel.table.environment.grouped_tables import (
    GroupedTable,
    GroupWindowedTable,
    OverWindowedTable,
    WindowGroupedTable,
)
from firesteel.table.environment.table import Table

__all__ = ["GroupWindowedTable", "GroupedTable", "OverWindowedTable", "Table", "WindowGroupedTable"]
