"""Parquet files of Avro's generic records: written and read."""

import json
import tempfile
from pathlib import Path

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from pyflink.datastream.formats.parquet import AvroParquetReaders, AvroParquetWriters

SCHEMA = """
{
  "type": "record",
  "name": "Reading",
  "fields": [
    {"name": "sensor", "type": "string"},
    {"name": "second", "type": "int"},
    {"name": "value", "type": "double"},
    {"name": "good", "type": "boolean"}
  ]
}
"""
READINGS = [("north", 1, 20.5, True), ("south", 2, -1e-9, False), ("ost", 3, 1e100, True)]


def record_of(reading):
    return dict(zip(("sensor", "second", "value", "good"), reading, strict=True))


def main():
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, "readings"))
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        schema = AvroSchema.parse_string(SCHEMA)
        sink = FileSink.for_bulk_format(path, AvroParquetWriters.for_generic_record(schema)).build()
        env.from_collection(READINGS).map(record_of, GenericRecordAvroTypeInfo(schema)).sink_to(sink)
        env.execute()
        print(len(list(Path(path).rglob("part-*"))))
        source = FileSource.for_record_stream_format(AvroParquetReaders.for_generic_record(schema), path).build()
        readings = env.from_source(source, WatermarkStrategy.no_watermarks(), "readings")
        readings.map(lambda record: json.dumps(record, sort_keys=True), Types.STRING()).print("record")
        readings.map(lambda record: record["value"] * 2, Types.DOUBLE()).print("twice")
        env.execute()


if __name__ == "__main__":
    main()
