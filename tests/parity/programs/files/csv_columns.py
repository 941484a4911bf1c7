"""CsvReaderFormat and CsvBulkWriters: columns of every kind, read, written and read again."""

import tempfile
from pathlib import Path

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from pyflink.table import DataTypes


def schema():
    return (
        CsvSchema.builder()
        .add_string_column("name")
        .add_boolean_column("good")
        .add_number_column("tiny", DataTypes.TINYINT())
        .add_number_column("small", DataTypes.SMALLINT())
        .add_number_column("int", DataTypes.INT())
        .add_number_column("big", DataTypes.BIGINT())
        .add_number_column("float", DataTypes.FLOAT())
        .add_number_column("double", DataTypes.DOUBLE())
        .add_array_column("tags", "#", DataTypes.STRING())
        .add_array_column("sizes", ";", DataTypes.INT())
        .build()
    )


ROW = Types.ROW_NAMED(
    ["name", "good", "tiny", "small", "int", "big", "float", "double", "tags", "sizes"],
    [
        *(Types.STRING(), Types.BOOLEAN(), Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG()),
        *(Types.FLOAT(), Types.DOUBLE(), Types.OBJECT_ARRAY(Types.STRING()), Types.OBJECT_ARRAY(Types.INT())),
    ],
)
LINES = '''ada,true,1,-300,70000,9000000000,0.1,1e-7,a#b,1;2
"b, ""quoted""",false,-128,32767,-1,0,1.5,100000000.0,single,7
'''


def text(row):
    return " ".join(repr(value) for value in row)


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "in.csv").write_text(LINES, encoding="utf-8")
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema()), str(root / "in.csv")).build()
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "csv")
        rows.map(text, Types.STRING()).print("read")
        sink = FileSink.for_bulk_format(str(root / "out"), CsvBulkWriters.for_schema(schema())).build()
        rows.map(lambda row: Row(*(list(row))), ROW).sink_to(sink)
        env.execute()
        for path in sorted((root / "out").rglob("part-*")):
            print(path.read_text(encoding="utf-8"))
        source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema()), str(root / "out")).build()
        env.from_source(source, WatermarkStrategy.no_watermarks(), "again").map(text, Types.STRING()).print("again")
        env.execute()


if __name__ == "__main__":
    main()
