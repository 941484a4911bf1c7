"""Every format through the round trips of the conformance suite."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.common.typeinfo import ListTypeInfo, MapTypeInfo, ObjectArrayTypeInfo, RowTypeInfo, TypeInformation
from firesteel.connectors.files.parquet_source import ParquetSource
from firesteel.connectors.files.source import FileSource
from firesteel.datastream.formats.avro import AvroRowDeserializationSchema, AvroRowSerializationSchema
from firesteel.datastream.formats.csv import (
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from firesteel.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from firesteel.formats.parquet.writer import ParquetBulkWriters
from firesteel.formats.writers.encoders import CsvEncoder
from firesteel.testing.conformance import RoundTripConformance, SourceHarness
from firesteel.testing.conformance.sample_values import BYTES, SCALAR_TYPES

PATIENCE_S = 120.0


def read_file(source: Any, fetch_bytes: int | None = None) -> Any:
    source.fetch_bytes = fetch_bytes
    with SourceHarness(source, call_timeout_s=PATIENCE_S) as harness:
        harness.run(timeout_s=PATIENCE_S)
        return harness.records


class TestJson(RoundTripConformance):
    @pytest.fixture(autouse=True)
    def _library(self, library: Any) -> None:
        """Both of them."""

    def round_trip(self, row_type: Any, rows: Any) -> Any:
        sink = JsonRowSerializationSchema.builder().with_type_info(row_type).build()
        source = JsonRowDeserializationSchema.builder().type_info(row_type).fail_on_missing_field().build()
        messages = sink.serialize_batch(rows)
        assert messages == [sink.serialize(row) for row in rows]
        return source.deserialize_batch(messages)


class TestCsvMessages(RoundTripConformance):
    """One message, one row; None is written as an empty column."""

    holds_none = False

    def round_trip(self, row_type: Any, rows: Any) -> Any:
        sink = CsvRowSerializationSchema.Builder(row_type).build()
        source = CsvRowDeserializationSchema.Builder(row_type).build()
        messages = sink.serialize_batch(rows)
        assert messages == [sink.serialize(row) for row in rows]
        return source.deserialize_batch(messages)

    def nested_types(self) -> Sequence[TypeInformation]:
        """Lists of numbers: there are no quotes within a column, and what needs some is refused."""
        return [Types.LIST(each) for each in self.types if each in (Types.LONG(), Types.SQL_DATE(), Types.BOOLEAN())]

    def may_refuse(self, type_info: Any, value: Any) -> bool:
        return isinstance(value, list) and None in value


DIALECTS = {
    "plain": {},
    "escape": {"escape_char": "\\"},
    "comments": {"allow_comments": True},
    "escape and comments": {"escape_char": "\\", "allow_comments": True, "column_separator": ";"},
    "odd": {"quote_char": "'", "escape_char": "!", "column_separator": "\t", "line_separator": "\r\n"},
    "spark": {"escape_char": '"', "use_header": True},
    "null": {"null_value": "a null that no value is"},
}


@pytest.mark.parametrize("fetch_bytes", [7, None], ids=["small pieces", "large pieces"])
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
class TestCsvFiles(RoundTripConformance):
    nested = False
    seeds = range(2)

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path, dialect: Any, fetch_bytes: int | None) -> None:
        self.path, self.dialect = tmp_path / "values.csv", dialect
        self.fetch_bytes = fetch_bytes
        self.holds_none = "null_value" in dialect

    def round_trip(self, row_type: Any, rows: Any) -> Any:
        # the value first: it is what a line begins with
        schema = CsvSchema.of(
            Types.ROW_NAMED(["value", "nr"], list(reversed(row_type.get_field_types()))), **self.dialect
        )
        file = io.BytesIO()
        CsvEncoder(schema).encode_batch(rows, file)
        self.path.write_bytes(file.getvalue())
        source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), self.path).build()
        small = self.fetch_bytes if file.tell() < 5000 else None
        return read_file(source, small)


class TestParquet(RoundTripConformance):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self.path = tmp_path / "values.parquet"

    def round_trip(self, row_type: Any, rows: Any) -> Any:
        file = io.BytesIO()
        writer = ParquetBulkWriters.for_row_type(row_type).create(file)
        writer.add_elements(rows)
        writer.finish()
        self.path.write_bytes(file.getvalue())
        return read_file(ParquetSource(self.path))


class TestAvro(RoundTripConformance):
    """Avro has neither whole numbers of any size nor points in time of Flink's kind."""

    types = tuple(each for each in SCALAR_TYPES if each not in (Types.BIG_INT(), Types.INSTANT()))

    def round_trip(self, row_type: Any, rows: Any) -> Any:
        names = (f"R{number}" for number in itertools.count())
        text = json.dumps(avro_type(row_type, names))
        sink = AvroRowSerializationSchema(avro_schema_string=text)
        source = AvroRowDeserializationSchema(avro_schema_string=text)
        messages = sink.serialize_batch(rows)
        assert messages == [sink.serialize(row) for row in rows]
        return source.deserialize_batch(messages)


AVRO = {
    **dict.fromkeys((Types.STRING(), Types.CHAR()), "string"),
    Types.BOOLEAN(): "boolean",
    **dict.fromkeys((Types.BYTE(), Types.SHORT(), Types.INT()), "int"),
    Types.LONG(): "long",
    Types.FLOAT(): "float",
    Types.DOUBLE(): "double",
    Types.BIG_DEC(): {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18},
    Types.SQL_DATE(): {"type": "int", "logicalType": "date"},
    Types.SQL_TIME(): {"type": "long", "logicalType": "time-micros"},
    Types.SQL_TIMESTAMP(): {"type": "long", "logicalType": "timestamp-micros"},
    BYTES: "bytes",
}


def avro_type(type_info: Any, names: Any) -> Any:
    if isinstance(type_info, RowTypeInfo):
        fields = [
            {"name": name, "type": ["null", avro_type(part, names)]}
            for name, part in zip(type_info.get_field_names(), type_info.get_field_types(), strict=True)
        ]
        return {"type": "record", "name": next(names), "fields": fields}
    if isinstance(type_info, (ListTypeInfo, ObjectArrayTypeInfo)):
        return {"type": "array", "items": ["null", avro_type(type_info.get_element_type(), names)]}
    if isinstance(type_info, MapTypeInfo):
        return {"type": "map", "values": ["null", avro_type(type_info.get_value_type(), names)]}
    return AVRO[type_info]
