"""The source and the options of the connector ``datagen``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config.option import ConfigOptions
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connector.factory import DynamicTableFactory, FactoryContext, check_options
from firesteel.table.connector.options import option_of
from firesteel.table.connector.source import ScanContext, ScanTableSource
from firesteel.table.connectors.datagen.field_options import FieldOptions
from firesteel.table.connectors.datagen.generators import Generator, own_bits
from firesteel.table.connectors.nexmark.events import mix_all
from firesteel.table.runtime.generator_source import ColumnGenerator, ColumnGeneratorSource
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema
from firesteel.types.logical import RowType

if TYPE_CHECKING:
    from firesteel.datastream import DataStream

__all__ = ["FACTORY", "DataGenTableSource"]

ROWS_PER_SECOND = ConfigOptions.key("rows-per-second").long_type().default_value(10_000)
NUMBER_OF_ROWS = ConfigOptions.key("number-of-rows").long_type().no_default_value()
PARALLELISM = ConfigOptions.key("scan.parallelism").int_type().no_default_value()


@dataclass(frozen=True)
class DataGenColumns(ColumnGenerator):
    """Makes the columns that are read."""

    row_type: RowType
    fields: tuple[tuple[str, Generator], ...]
    """Names, by which random bits differ, and generators."""

    def generate(self, indexes: range) -> Any:
        numbers = np.arange(indexes.start, indexes.stop, indexes.step, dtype=np.int64)
        bits = mix_all(numbers)
        columns = [field.make(numbers, mix_all(bits ^ np.uint64(own_bits(name)))) for name, field in self.fields]
        return require_pyarrow("SQL").RecordBatch.from_arrays(columns, schema=columns_schema(self.row_type))


@dataclass(frozen=True)
class DataGenTableSource(ScanTableSource):
    """Random rows."""

    type: RowType
    fields: tuple[tuple[str, Generator], ...]
    rate: float
    number_of_rows: int | None
    """None if the table is not bounded by an option."""
    sequence_rows: int | None
    """The rows of the shortest sequence; there are no more."""
    parallelism: int | None = None
    supports_watermark_push_down = True

    @property
    def produced_type(self) -> RowType:
        return self.type

    @property
    def is_bounded(self) -> bool:
        # as in Flink: sequences end, but do not make a table bounded
        return self.number_of_rows is not None

    def create_stream(self, context: ScanContext) -> DataStream[Any]:
        limits = [limit for limit in (self.number_of_rows, self.sequence_rows) if limit is not None]
        source = ColumnGeneratorSource(DataGenColumns(self.type, self.fields), min(limits, default=None), self.rate)
        strategy = context.watermark_strategy or WatermarkStrategy.no_watermarks()
        stream = context.environment.from_source(source, strategy, context.name)
        return stream if self.parallelism is None else stream.set_parallelism(self.parallelism)

    def with_projection(self, columns: Sequence[int]) -> DataGenTableSource | None:
        if not columns:
            return None
        row_type = RowType([self.type.fields[column] for column in columns], nullable=False)
        return replace(self, type=row_type, fields=tuple(self.fields[column] for column in columns))

    def with_limit(self, limit: int) -> DataGenTableSource:
        rows = limit if self.number_of_rows is None else min(limit, self.number_of_rows)
        return replace(self, number_of_rows=rows)

    def as_summary_string(self) -> str:
        return "DataGenTableSource"


class _Factory(DynamicTableFactory):
    identifier = "datagen"
    optional_options = (ROWS_PER_SECOND.key, NUMBER_OF_ROWS.key, PARALLELISM.key, "fields.#")

    def create_source(self, context: FactoryContext) -> DataGenTableSource:
        options, row_type = context.options, context.physical_type
        rate = option_of(options, ROWS_PER_SECOND)
        if rate < 1:
            raise ValidationError(f"Invalid value for option 'rows-per-second'.\n\n{rate} is less than 1.")
        reader = FieldOptions(options)
        fields = tuple((part.name, reader.generator(f"fields.{part.name}", part.type)) for part in row_type.fields)
        own = [name for name in self.optional_options if "#" not in name]
        check_options(self.identifier, options, (), [*own, *reader.read])
        return DataGenTableSource(
            row_type,
            fields,
            float(rate),
            option_of(options, NUMBER_OF_ROWS),
            reader.rows,
            option_of(options, PARALLELISM),
        )


FACTORY = _Factory()
