"""Bulk writers of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import BulkWriter, BulkWriterFactory, RowDataBulkWriterFactory
from firesteel.common.typeinfo import RowTypeInfo, TupleTypeInfo, from_logical
from firesteel.types.arrow import require_pyarrow, to_arrow_schema
from firesteel.types.arrow_encoding import ArrowBatchEncoder
from firesteel.types.logical import RowType

__all__ = ["ParquetBulkWriters", "ParquetWriterFactory"]

COMPRESSIONS = ("snappy", "gzip", "zstd", "lz4", "brotli")
BATCH_ROWS = 8_192
GROUP_ROWS = 512 * 1024
GROUP_BYTES = 32 * 1024 * 1024
"""What a row group has at most, before it is compressed: written at once, it must not take long."""


class ParquetBulkWriters:
    """Makes factories of writers of Parquet files, for ``FileSink.for_bulk_format``."""

    @staticmethod
    def for_row_type(
        row_type: Any,
        hadoop_config: Any = None,  # noqa: ARG004 - Flink's
        utc_timestamp: bool = False,
        *,
        compression: str = "snappy",
    ) -> BulkWriterFactory:
        """For records of a type: ``DataTypes.ROW(…)``, ``Types.ROW_NAMED(…)`` or a tuple type (``f0``, ``f1``, …).

        Records may also be dicts, tuples or objects with these fields. ``hadoop_config`` is taken and not used. With
        ``utc_timestamp`` a timestamp without a zone is written as a point in time, taken for one of UTC.
        """
        if isinstance(row_type, RowType):
            schema, known = to_arrow_schema(row_type), from_logical(row_type)
            return ParquetWriterFactory(schema, compression, utc_timestamp=utc_timestamp, row_type=known)
        if not isinstance(row_type, (RowTypeInfo, TupleTypeInfo)):
            raise InvalidProgramError(
                f"ParquetBulkWriters.for_row_type needs a row type, not {row_type!r}.",
                hint="For example Types.ROW_NAMED(['name', 'total'], [Types.STRING(), Types.LONG()]).",
            )
        schema = to_arrow_schema(row_type.to_logical())
        return ParquetWriterFactory(schema, compression, utc_timestamp=utc_timestamp, row_type=row_type)

    @staticmethod
    def for_schema(schema: Any, *, compression: str = "snappy") -> BulkWriterFactory:
        """For records that fit a ``pyarrow.Schema``; not in Flink."""
        pa = require_pyarrow("ParquetBulkWriters.for_schema")
        if not isinstance(schema, pa.Schema):
            raise InvalidProgramError(f"ParquetBulkWriters.for_schema needs a pyarrow.Schema, not {schema!r}.")
        return ParquetWriterFactory(schema, compression)


class ParquetWriterFactory(RowDataBulkWriterFactory):
    """Writers of files of one Arrow schema."""

    def __init__(
        self, schema: Any, compression: str = "snappy", *, utc_timestamp: bool = False, row_type: Any = None
    ) -> None:
        super().__init__(row_type)
        pa = require_pyarrow("ParquetBulkWriters")
        if not schema.names:
            raise InvalidProgramError("A Parquet file needs at least one column.")
        if compression not in COMPRESSIONS or not pa.Codec.is_available(compression):
            raise InvalidProgramError(
                f"ParquetBulkWriters: there is no compression '{compression}'.",
                hint=f"There is {', '.join(COMPRESSIONS)}.",
            )
        self._schema = schema
        self._compression = compression
        self._utc_timestamp = utc_timestamp

    def create(self, stream: BinaryIO) -> BulkWriter:
        """A writer into that stream."""
        return _ParquetWriter(self._schema, self._file_schema(), self._compression, stream)

    def _file_schema(self) -> Any:
        pa = require_pyarrow("ParquetBulkWriters")
        if not self._utc_timestamp:
            return self._schema
        return pa.schema(
            field.with_type(pa.timestamp(field.type.unit, "UTC"))
            if pa.types.is_timestamp(field.type) and field.type.tz is None
            else field
            for field in self._schema
        )


class _ParquetWriter(BulkWriter):
    """Makes columns of records, some thousands at a time, and row groups of those."""

    def __init__(self, schema: Any, file_schema: Any, compression: str, stream: BinaryIO) -> None:
        import pyarrow.parquet

        self._pa = pyarrow
        self._encoder = ArrowBatchEncoder(schema)
        self._schema = file_schema
        self._is_cast = file_schema is not schema
        self._writer = pyarrow.parquet.ParquetWriter(stream, file_schema, compression=compression)
        self._records: list[Any] = []
        self._batches: list[Any] = []
        self._rows = 0
        self._bytes = 0

    def add_element(self, element: Any) -> None:
        self._records.append(element)
        if len(self._records) >= BATCH_ROWS:
            self._encode_gathered()

    def add_elements(self, elements: Sequence[Any]) -> None:
        if len(elements) < BATCH_ROWS:
            self._records.extend(elements)
            if len(self._records) >= BATCH_ROWS:
                self._encode_gathered()
        else:
            self._encode_gathered()
            self._encode(elements)

    def flush(self) -> None:
        self._encode_gathered()
        self._write_group()

    def finish(self) -> None:
        self.flush()
        self._writer.close()

    def _encode_gathered(self) -> None:
        if self._records:
            records, self._records = self._records, []
            self._encode(records)

    def _encode(self, records: Sequence[Any]) -> None:
        batch = self._encoder.to_batch(records)
        if self._is_cast:
            batch = batch.cast(self._schema)
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        if self._batches:
            table = self._pa.Table.from_batches(self._batches, self._schema)
            self._batches, self._rows, self._bytes = [], 0, 0
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
