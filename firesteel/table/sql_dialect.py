"""SqlDialect: the dialects of SQL that PyFlink names."""

from __future__ import annotations

__all__ = ["SqlDialect"]


class SqlDialect:
    """Dialects of SQL. Firesteel has Flink's own; Hive's is refused."""

    DEFAULT = 0
    """Flink's dialect."""
    HIVE = 1
    """Hive's dialect."""
