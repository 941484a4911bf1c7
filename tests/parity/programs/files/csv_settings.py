"""CSV with separators, quotes, escapes, nulls and headers of one's own, written and read."""

import tempfile
from pathlib import Path

from pyflink.common import Row, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from pyflink.table import DataTypes

ROWS = [Row("a", 1.25, [True]), Row("b|c", -1.0, [True, False]), Row("it's", 1e9, []), Row(None, 0.5, [False])]


def schema():
    return (
        CsvSchema.builder()
        .add_string_column("name")
        .add_number_column("value", DataTypes.FLOAT())
        .add_array_column("flags", "#", DataTypes.BOOLEAN())
        .set_column_separator("|")
        .set_quote_char("'")
        .set_null_value("n/a")
        .build()
    )


def main():
    row_type = Types.ROW_NAMED(
        ["name", "value", "flags"], [Types.STRING(), Types.FLOAT(), Types.BASIC_ARRAY(Types.BOOLEAN())]
    )
    with tempfile.TemporaryDirectory() as directory:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        sink = FileSink.for_bulk_format(directory, CsvBulkWriters.for_schema(schema())).build()
        env.from_collection(list(range(len(ROWS))), Types.INT()).map(lambda i: ROWS[i], row_type).sink_to(sink)
        env.execute()
        for path in Path(directory).rglob("*part*"):
            print(path.read_text(encoding="utf-8"), end="")
        source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema()), directory).build()
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "csv")
        rows.map(lambda row: repr(row), Types.STRING()).print("read")
        env.execute()


if __name__ == "__main__":
    main()
