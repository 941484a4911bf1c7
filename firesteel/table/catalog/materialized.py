"""Materialized tables: tables that a query keeps up to date."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from firesteel.table.catalog.objects import CatalogBaseTable

__all__ = ["CatalogMaterializedTable", "Freshness", "RefreshMode", "RefreshStatus"]

_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 7 * 86400}


class RefreshMode(Enum):
    """How a materialized table is kept up to date: by a stream, or by batches."""

    CONTINUOUS = "CONTINUOUS"
    FULL = "FULL"


class RefreshStatus(Enum):
    """Whether a materialized table is kept up to date."""

    INITIALIZING = "INITIALIZING"
    ACTIVATED = "ACTIVATED"
    SUSPENDED = "SUSPENDED"


@dataclass(frozen=True)
class Freshness:
    """How old the rows of a materialized table may be.

    >>> Freshness(3, "MINUTE").seconds
    180
    """

    count: int
    unit: str
    """SECOND, MINUTE, HOUR, DAY or WEEK."""

    @property
    def seconds(self) -> int:
        """The time in seconds."""
        return self.count * _SECONDS[self.unit]

    def __str__(self) -> str:
        return f"INTERVAL '{self.count}' {self.unit}"

    @staticmethod
    def of_seconds(seconds: int) -> Freshness:
        """A time in the largest unit in which it is a whole number, up to days."""
        unit = next(unit for unit in ("DAY", "HOUR", "MINUTE", "SECOND") if seconds % _SECONDS[unit] == 0)
        return Freshness(seconds // _SECONDS[unit], unit)


@dataclass(frozen=True)
class CatalogMaterializedTable(CatalogBaseTable):
    """A table with its query, which a job or a schedule keeps up to date."""

    freshness: Freshness = Freshness(3, "MINUTE")
    refresh_mode: RefreshMode = RefreshMode.CONTINUOUS
    refresh_status: RefreshStatus = RefreshStatus.INITIALIZING
    start_mode: str = "FROM_BEGINNING"
    savepoint_path: str | None = None
    """Where a suspended continuous refresh goes on."""
    query_columns: tuple[str, ...] = ()
    """For each column of the query the column of the table."""
