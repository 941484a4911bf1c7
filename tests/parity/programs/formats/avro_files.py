"""Avro files of generic records: written, read, and read by a part of the schema's fields."""

import json
import tempfile
from pathlib import Path

from pyflink.common import Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, OutputFileConfig
from pyflink.datastream.formats.avro import AvroBulkWriters, AvroInputFormat, AvroSchema, GenericRecordAvroTypeInfo

SCHEMA = {
    "type": "record",
    "name": "Product",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string"},
        {"name": "price", "type": "double"},
        {"name": "weight", "type": ["null", "float"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["BOOK", "TOY"]}},
        {"name": "rank", "type": ["null", "int"]},
        # the last one: PyFlink loses the fields behind an array
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
PRODUCTS = [
    (1, "dictionary", 9.5, 1.25, "BOOK", ["thick", "blue"], 1),
    (2, "räuber & gendarm", 1e20, None, "TOY", [], None),
    (3, "", -0.1, 0.5, "TOY", [""], -7),
]


def record_of(product):
    number, name, price, weight, kind, tags, rank = product
    return {
        "id": number,
        "name": name,
        "price": price,
        "weight": weight,
        "kind": kind,
        "tags": tags,
        "rank": rank,
    }


def text(record):
    return json.dumps(record, sort_keys=True)


def main():
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, "products"))
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        schema = AvroSchema.parse_string(json.dumps(SCHEMA))
        sink = (
            FileSink.for_bulk_format(path, AvroBulkWriters.for_generic_record(schema))
            .with_output_file_config(OutputFileConfig.builder().with_part_suffix(".avro").build())
            .build()
        )
        products = env.from_collection(PRODUCTS)
        products.map(record_of, GenericRecordAvroTypeInfo(schema)).sink_to(sink)
        env.execute()
        written = list(Path(path).rglob("part-*.avro"))
        print(len(written), [file.read_bytes()[:4] for file in written])
        # only the files of the directory itself are read
        env.create_input(AvroInputFormat(path, schema)).print("nothing")
        path = str(written[0].parent)
        narrow = {**SCHEMA, "fields": SCHEMA["fields"][:2]}
        for name, wanted in {"all": schema, "some": AvroSchema.parse_string(json.dumps(narrow))}.items():
            records = env.create_input(AvroInputFormat(path, wanted))
            records.map(text, Types.STRING()).print(name)
            records.map(lambda record: record["name"], Types.STRING()).print(f"{name} names")
        env.execute()


if __name__ == "__main__":
    main()
