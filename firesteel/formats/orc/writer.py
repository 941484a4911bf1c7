"""Bulk writers of ORC files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from firesteel.common.errors import InvalidProgramError
from firesteel.common.serialization import BulkWriter, BulkWriterFactory, RowDataBulkWriterFactory
from firesteel.common.typeinfo import from_logical
from firesteel.types.arrow import require_pyarrow, to_arrow_schema
from firesteel.types.arrow_encoding import ArrowBatchEncoder
from firesteel.types.logical import RowType

__all__ = ["OrcBulkWriters", "OrcWriterFactory"]

COMPRESSIONS = ("none", "zlib", "snappy", "lz4", "zstd")
COMPRESS = "orc.compress"
BATCH_ROWS = 8_192


class OrcBulkWriters:
    """Makes factories of writers of ORC files, for ``FileSink.for_bulk_format``."""

    @staticmethod
    def for_row_type(
        row_type: RowType,
        writer_properties: Any = None,
        hadoop_config: Any = None,  # noqa: ARG004 - Flink's
    ) -> BulkWriterFactory:
        """For rows of a type: ``DataTypes.ROW(…)``.

        Of the properties only ``orc.compress`` is used. ``hadoop_config`` is taken and not used.
        """
        if not isinstance(row_type, RowType):
            raise TypeError("row_type must be an instance of RowType")
        properties = {} if writer_properties is None else writer_properties.to_dict()
        return OrcWriterFactory(row_type, str(properties.get(COMPRESS, "zlib")).lower())


class OrcWriterFactory(RowDataBulkWriterFactory):
    """Writers of files of one row type."""

    def __init__(self, row_type: RowType, compression: str) -> None:
        super().__init__(from_logical(row_type))
        require_pyarrow("OrcBulkWriters")
        if compression not in COMPRESSIONS:
            raise InvalidProgramError(
                f"OrcBulkWriters: there is no compression '{compression}'.", hint=f"There is {', '.join(COMPRESSIONS)}."
            )
        self._schema = to_arrow_schema(row_type)
        self._compression = "uncompressed" if compression == "none" else compression

    def create(self, stream: BinaryIO) -> BulkWriter:
        """A writer into that stream."""
        return _OrcWriter(self._schema, self._compression, stream)


class _OrcWriter(BulkWriter):
    """Makes columns of records, some thousands at a time."""

    def __init__(self, schema: Any, compression: str, stream: BinaryIO) -> None:
        import pyarrow.orc

        self._pa = pyarrow
        self._schema = schema
        self._encoder = ArrowBatchEncoder(schema)
        self._writer = pyarrow.orc.ORCWriter(stream, compression=compression)
        self._records: list[Any] = []
        self._is_empty = True

    def add_element(self, element: Any) -> None:
        self.add_elements((element,))

    def add_elements(self, elements: Sequence[Any]) -> None:
        self._records.extend(elements)
        if len(self._records) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes what was gathered."""
        if self._records or self._is_empty:
            self._is_empty = False
            batches = [self._encoder.to_batch(self._records)] if self._records else []
            self._writer.write(self._pa.Table.from_batches(batches, self._schema))
            self._records = []

    def finish(self) -> None:
        """Writes the end of the file."""
        self.flush()
        self._writer.close()
