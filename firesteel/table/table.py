"""Table: a query of a table environment."""

from firesteel.table.environment.table import Table

__all__ = ["Table"]
