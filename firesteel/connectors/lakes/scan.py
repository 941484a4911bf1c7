"""The interface of a scan: finding the files of versions of a table, and reading one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.lakes.columns import ColumnRows, to_schema
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

__all__ = ["Discovery", "LakeScan", "LakeSplit", "as_columns"]


@dataclass(frozen=True)
class LakeSplit:
    """A file of a version of a table; ``position`` rows of it have been read."""

    split_id: str
    file: Mapping[str, Any]
    position: int = 0


@dataclass(frozen=True)
class Discovery:
    """What a look at a table found: splits, and the version up to which it has been read."""

    splits: Sequence[LakeSplit]
    position: Any


class LakeScan(ABC):
    """What is read of a table. Scans are picklable; what they connect to stays in a process."""

    row_type: RowType
    """The columns that are read."""
    interval_ms: int | None = None
    """How often to look for new versions; None for a scan that ends."""
    in_order: bool = False
    """Whether one reader has to read all splits, one after the other."""

    @abstractmethod
    def discover(self, position: Any) -> Discovery:
        """The splits behind a position, None for the beginning. May wait for a store."""

    @abstractmethod
    def read(self, split: LakeSplit) -> Iterator[ColumnRows]:
        """The rows of a split, from its first one on, the same in each attempt."""

    @abstractmethod
    def close(self) -> None:
        """Disconnects from the table."""

    def is_remote(self) -> bool:
        """Whether files are fetched in a thread of their own."""
        return True


def as_columns(data: Any, row_type: RowType) -> Any:
    """A RecordBatch of rows with the types of SQL's columns."""
    schema = columns_schema(row_type)
    table = to_schema(data, schema).combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else require_pyarrow("Lakes").RecordBatch.from_pylist([], schema=schema)
