"""What is known of the size of tables, partitions and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CatalogColumnStatistics", "CatalogTableStatistics", "ColumnStatistics"]

UNKNOWN = -1


class CatalogTableStatistics:
    """Rows, files and bytes of a table; -1 where they are not known."""

    def __init__(
        self,
        row_count: int = UNKNOWN,
        field_count: int = UNKNOWN,
        total_size: int = UNKNOWN,
        raw_data_size: int = UNKNOWN,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._row_count = row_count
        self._field_count = field_count
        self._total_size = total_size
        self._raw_data_size = raw_data_size
        self._properties = dict(properties or {})

    def get_row_count(self) -> int:
        """The number of rows."""
        return self._row_count

    def get_field_count(self) -> int:
        """The number of files. PyFlink has this name for it."""
        return self._field_count

    def get_total_size(self) -> int:
        """Bytes of the files."""
        return self._total_size

    def get_raw_data_size(self) -> int:
        """Bytes of the rows, not compressed."""
        return self._raw_data_size

    def get_properties(self) -> dict[str, str]:
        """More, by name."""
        return dict(self._properties)

    def copy(self) -> CatalogTableStatistics:
        """The same; it does not change."""
        return self


@dataclass(frozen=True)
class ColumnStatistics:
    """What ANALYZE TABLE has found of a column; None where it does not apply to the type, or there are no values."""

    null_count: int
    distinct_count: int | None = None
    min: Any = None
    max: Any = None
    max_length: int | None = None
    """Of strings in characters, of bytes in bytes."""
    average_length: float | None = None
    true_count: int | None = None
    false_count: int | None = None


class CatalogColumnStatistics:
    """Statistics of columns, by name."""

    def __init__(
        self, column_statistics_data: Mapping[str, Any] | None = None, properties: Mapping[str, str] | None = None
    ) -> None:
        self._data = dict(column_statistics_data or {})
        self._properties = dict(properties or {})

    def get_column_statistics_data(self) -> dict[str, Any]:
        """Statistics by column."""
        return dict(self._data)

    def get_properties(self) -> dict[str, str]:
        """More, by name."""
        return dict(self._properties)

    def copy(self) -> CatalogColumnStatistics:
        """The same; it does not change."""
        return self
