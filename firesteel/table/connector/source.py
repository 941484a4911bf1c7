"""Sources of tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.table.bound.nodes import Expression
from firesteel.table.changelog_mode import ChangelogMode
from firesteel.table.connector.lookups import FullCacheOptions, LookupCacheOptions
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.datastream import DataStream, StreamExecutionEnvironment

__all__ = ["DynamicTableSource", "LookupFunction", "LookupTableSource", "ScanContext", "ScanTableSource"]


@dataclass(frozen=True)
class ScanContext:
    """What a source gets when its stream is created."""

    environment: StreamExecutionEnvironment
    name: str
    """The name of the operator."""
    watermark_strategy: WatermarkStrategy | None = None
    """Only for sources which support it: the watermarks that the reader generates, for each split."""


class DynamicTableSource(ABC):
    """Where the rows of a table come from. Sources are immutable, hashable and picklable."""

    @abstractmethod
    def as_summary_string(self) -> str:
        """What EXPLAIN shows."""


class ScanTableSource(DynamicTableSource):
    """A source that reads all rows of a table."""

    supports_watermark_push_down = False
    """Whether its reader generates the watermarks, of each split apart."""
    emits_watermarks_periodically = False
    """Whether the reader emits watermarks once in an interval unless asked otherwise, not between rows."""
    belongs_to_program = False
    """Whether its operators are those of the program, which gives them their names."""
    filters_before_watermarks = False
    """Whether conditions may be pushed into it although its watermarks then come from the rows that are left."""

    @property
    @abstractmethod
    def produced_type(self) -> RowType:
        """The columns of its rows: physical columns, then those of metadata, as far as they are read."""

    @property
    @abstractmethod
    def is_bounded(self) -> bool:
        """Whether the rows end."""

    @property
    def changelog_mode(self) -> ChangelogMode:
        """The kinds of its rows."""
        return ChangelogMode.insert_only()

    @abstractmethod
    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        """A stream of column batches with the produced type."""

    def to_dataframe(self, session: Any) -> Any:
        """The rows as a DataFrame that Spark reads itself; None if only ``create_stream`` can read them."""
        return None

    def spark_reader(self, session: Any) -> str:
        """What reads the rows of a bounded query on Spark, and why; EXPLAIN shows it.

        ``session`` is that of the process, None before the first query.
        """
        return "a job of Firesteel"

    def narrowed(self, conditions: Sequence[Expression], limit: int | None) -> ScanTableSource:
        """For bounded queries on Spark: a source that may leave out rows which do not meet all of the conditions.

        With a limit it may stop after so many of the others. Conditions and limit are evaluated again on its rows.
        """
        return self

    # -- what planners push down: each returns the changed source, or None if it cannot --------------------------

    def with_projection(self, columns: Sequence[int]) -> ScanTableSource | None:
        """A source of some of its columns, in this order."""
        return None

    def with_nested_projection(self, paths: Sequence[tuple[int, ...]], type: RowType) -> ScanTableSource | None:
        """A source of some of its columns, and of fields of those that are rows.

        Each path is a column and the fields within it; ``type`` is the produced type. A field of a row that is null is
        null.
        """
        return None

    def with_filters(self, conditions: Sequence[Expression]) -> tuple[ScanTableSource, Sequence[Expression]] | None:
        """A source that filters by some of the conditions, and those that remain to be evaluated on its rows."""
        return None

    def with_limit(self, limit: int) -> ScanTableSource | None:
        """A source that reads at least this number of rows and may stop then."""
        return None

    def with_metadata(self, keys: Sequence[str], produced_type: RowType) -> ScanTableSource | None:
        """A source whose rows end with these columns of metadata; ``produced_type`` is that of all columns."""
        return None


class LookupTableSource(DynamicTableSource):
    """A source that finds rows by keys, for lookup joins."""

    @property
    def lookup_cache(self) -> LookupCacheOptions | FullCacheOptions | None:
        """The cache of the rows that were found, from the options of the table; None for none."""
        return None

    @abstractmethod
    def create_lookup(self, key_columns: Sequence[int]) -> LookupFunction:
        """What finds the rows with values of these columns."""


class LookupFunction(ABC):
    """Finds rows in an external system; picklable until it is opened."""

    def open(self) -> None:  # noqa: B027 - not all connect
        """Connects."""

    @abstractmethod
    def lookup_many(self, keys: Sequence[tuple[Any, ...]]) -> Sequence[Sequence[tuple[Any, ...]]]:
        """The rows of each key, with the values that rows hold inside of the engine (``firesteel.types.internal``)."""

    def read_all(self) -> Iterator[tuple[Any, ...]]:
        """All rows, for a cache of the whole table."""
        raise NotImplementedError(f"{type(self).__name__} cannot read all rows")

    def close(self) -> None:  # noqa: B027
        """Disconnects."""
