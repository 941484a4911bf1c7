"""Sinks of tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.row_changes import RowChanges
from firesteel.types.logical import LogicalType, RowType

if TYPE_CHECKING:
    from firesteel.datastream import DataStream

__all__ = ["DynamicTableSink", "SinkContext"]


@dataclass(frozen=True)
class SinkContext:
    """What a sink gets when it is added to a stream."""

    name: str
    """The name of the operator."""
    row_type: RowType
    """The columns that are written."""
    primary_key: tuple[int, ...] = ()
    """The columns of the primary key of the table."""
    is_insert_only: bool = True
    """Whether the rows are insertions, all of them."""


class DynamicTableSink(ABC):
    """Where rows of a table are written. Sinks are immutable, hashable and picklable."""

    overwrites: bool = False
    """Whether the rows replace others. All of them are then committed at once, at the end of a batch."""

    @abstractmethod
    def get_changelog_mode(self, requested: ChangelogMode) -> ChangelogMode:
        """The kinds of rows that it accepts of a query that produces ``requested``.

        If the query produces kinds that are not among these, it is refused. UPDATE_BEFORE is dropped before sinks that
        do not accept it.
        """

    @abstractmethod
    def consume(self, stream: DataStream[Any], context: SinkContext) -> Any:
        """Adds the sink to a stream of column batches; returns the DataStreamSink."""

    def with_overwrite(self) -> DynamicTableSink | None:
        """A sink for INSERT OVERWRITE; None if it cannot overwrite."""
        return None

    def with_partition(self, values: dict[str, str]) -> DynamicTableSink | None:
        """A sink for a static partition; None if it has none."""
        return None

    @property
    def writable_metadata(self) -> Mapping[str, LogicalType]:
        """The keys of metadata that can be written, and their types."""
        return {}

    def with_metadata(self, columns: Mapping[str, str]) -> DynamicTableSink:
        """A sink of rows that have metadata: the column of each key."""
        raise NotImplementedError(f"{type(self).__name__} has metadata that it does not write")

    def replacing_all(self) -> DynamicTableSink | None:
        """A sink whose rows replace all of the table at once; None if there is none."""
        return None

    def row_changes(self) -> RowChanges | None:
        """What changes single rows; None if nothing does."""
        return None

    def truncate(self) -> bool:
        """Deletes all rows; False if it cannot."""
        return False

    @abstractmethod
    def as_summary_string(self) -> str:
        """What EXPLAIN shows."""
