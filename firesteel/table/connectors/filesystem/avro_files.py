"""Tables of Avro container files, with the schema that Flink derives of columns."""

from __future__ import annotations

import datetime as dt
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

from firesteel.common.serialization import BulkWriterFactory
from firesteel.config.option import ConfigOptions
from firesteel.formats.avro.file import AvroBulkFormat, AvroReader
from firesteel.formats.avro.schema import import_fastavro
from firesteel.formats.format_reader import FetchedBatch, FormatReader, SplitInput
from firesteel.formats.stream_format import BulkFormat
from firesteel.runtime.columns.batch import ColumnBatch
from firesteel.spi.source import ReaderOutput
from firesteel.table.bound.errors import ValidationError
from firesteel.table.connectors.filesystem.bulk_files import BatchWriter, BulkFiles, compression_of, writing_with
from firesteel.table.formats.avro import avro_schema, from_avro, to_avro
from firesteel.types import logical as t
from firesteel.types.arrow import require_pyarrow
from firesteel.types.internal import columns_schema, from_column, to_column
from firesteel.types.logical import RowType

__all__ = ["CODEC", "AvroFiles"]

CODEC = ConfigOptions.key("avro.codec").string_type().default_value("deflate")
_CODECS = {"NULL": "null", "DEFLATE": "deflate", "BZIP2": "bzip2", "XZ": "xz", "SNAPPY": "snappy"}
_NAMESPACE = "org.apache.flink.avro.generated"
_DAY_ZERO = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)


class _Columns(AvroBulkFormat):
    def __init__(self, row_type: RowType) -> None:
        super().__init__()
        self.row_type = row_type

    def open_split(self, source: SplitInput) -> FormatReader:
        return _ColumnReader(source, self.row_type)


class _ColumnReader(AvroReader):
    """Reads blocks with the schema of the file; what it has no field for is null."""

    def __init__(self, source: SplitInput, row_type: RowType) -> None:
        super().__init__(source, None)
        self._row_type = row_type
        self._fields = [(part.name, part.type, _reader(part.type)) for part in row_type.fields]

    def unpack(self, batch: FetchedBatch, output: ReaderOutput) -> Sequence[Any]:
        records = super().unpack(batch, output)
        arrays = [
            to_column([read(record.get(name)) for record in records], type_) for name, type_, read in self._fields
        ]
        schema = columns_schema(self._row_type)
        return ColumnBatch(require_pyarrow("SQL").RecordBatch.from_arrays(arrays, schema=schema))


def _reader(type_: t.LogicalType) -> Callable[[Any], Any]:
    """From what fastavro makes of logical types, or of plain ones, to what a row holds."""
    match type_:
        case t.ArrayType():
            element = _reader(type_.element_type)
            return lambda value: None if value is None else [element(part) for part in value]
        case t.MapType():
            item = _reader(type_.value_type)
            return lambda value: None if value is None else {key: item(part) for key, part in value.items()}
        case t.RowType():
            parts = [(part.name, _reader(part.type)) for part in type_.fields]
            return lambda value: None if value is None else tuple(read(value.get(name)) for name, read in parts)
    plain = from_avro(type_)

    def read(value: Any) -> Any:
        match value:
            case None:
                return None
            case dt.datetime():
                epoch = _EPOCH if value.tzinfo is None else _EPOCH_UTC
                return (value - epoch) // _MICROSECOND * 1000
            case dt.date():
                return (value - _DAY_ZERO).days
            case dt.time():
                return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
        is_plain = not isinstance(type_, t.DecimalType) or isinstance(value, bytes)
        return plain(value) if is_plain else value

    return read


class _Writer(BatchWriter):
    def __init__(self, stream: BinaryIO, row_type: RowType, codec: str) -> None:
        super().__init__(stream)
        self._fields = [(part.name, part.type, to_avro(part.type)) for part in row_type.fields]
        schema = {**avro_schema(row_type, logical_types=True), "namespace": _NAMESPACE}
        fastavro = import_fastavro()
        self._writer = fastavro.write.Writer(stream, fastavro.parse_schema(schema), codec)

    def write(self, batches: Sequence[Any]) -> None:
        names = [name for name, _, _ in self._fields]
        for batch in batches:
            columns = [
                [write(value) for value in from_column(batch.column(index), type_)]
                for index, (_, type_, write) in enumerate(self._fields)
            ]
            for row in zip(*columns, strict=True):
                self._writer.write(dict(zip(names, row, strict=True)))

    def end(self) -> None:
        self._writer.flush()


@dataclass(frozen=True)
class AvroFiles(BulkFiles):
    """Avro container files."""

    codec: str = "deflate"
    name: ClassVar[str] = "avro"

    @staticmethod
    def of(options: Mapping[str, str]) -> AvroFiles:
        """The format with the options of a table."""
        return AvroFiles(compression_of(options, CODEC, _CODECS))

    def reader(self, row_type: RowType) -> BulkFormat:
        return _Columns(row_type)

    def writer(self, row_type: RowType) -> BulkWriterFactory:
        if self.codec == "snappy" and importlib.util.find_spec("cramjam") is None:
            raise ValidationError("'avro.codec' = 'snappy' needs the package cramjam.", hint="Use deflate.")
        return writing_with(_Writer, row_type, self.codec)

    def check_types(self, row_type: RowType) -> None:
        avro_schema(row_type)
