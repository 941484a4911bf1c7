"""Types of the Table API, which formats take as schemas of rows."""

from firesteel.table.types import DataTypes

__all__ = ["DataTypes"]
