"""A source whose column batches are a function of the indexes of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from firesteel.connectors.base.rate_limiter import RateLimiterStrategy
from firesteel.connectors.generators.datagen import DataGeneratorReader, DataGeneratorSource
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.spi.source import InputStatus, ReaderContext, ReaderOutput

__all__ = ["ColumnGenerator", "ColumnGeneratorSource"]


class ColumnGenerator(ABC):
    """Makes columns of indexes: the same for the same index, however many are asked for."""

    indexes_per_row: float = 1.0
    """How many indexes bring one row on average, if some bring none."""

    @abstractmethod
    def generate(self, indexes: range) -> Any:
        """The RecordBatch of the rows of indexes."""

    def open(self, subtask_index: int) -> None:  # noqa: B027 - not all prepare something
        """Called once per reader, before the first rows."""


class ColumnGeneratorSource(DataGeneratorSource):
    """Emits the rows of the indexes 0 to ``count`` - 1, without end if that is None."""

    name: ClassVar[str] = "Column Generator"
    emits_columns = True

    def __init__(self, generator: ColumnGenerator, count: int | None, rate: float | None) -> None:
        strategy = RateLimiterStrategy.no_op() if rate is None else RateLimiterStrategy.per_second(rate)
        super().__init__(_refuse, count, strategy)
        self.generator = generator

    def create_reader(self, context: ReaderContext) -> DataGeneratorReader:
        """A reader of columns."""
        limiter = self.rate_limiter_strategy.create_rate_limiter(
            context.parallelism, self.clock, catches_up=context.execution.has_idle_gaps
        )
        self.generator.open(context.subtask_index)
        return _ColumnReader(self.generator, context, limiter, self.clock)


class _ColumnReader(DataGeneratorReader):
    def __init__(self, generator: ColumnGenerator, context: ReaderContext, *others: Any) -> None:
        super().__init__(context, _refuse, *others)
        self._columns = generator

    def read_split(self, index: int, output: ReaderOutput, max_records: int) -> InputStatus:
        return super().read_split(index, output, max(int(max_records * self._columns.indexes_per_row), 1))

    def generate(self, indexes: range) -> Sequence[Any]:
        return ColumnBatch(self._columns.generate(indexes))


def _refuse(_index: int) -> Any:
    raise AssertionError("rows are generated as columns")
