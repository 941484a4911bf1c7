"""CSV files as the bulk writer writes them: quotes, numbers, nulls, arrays."""

import tempfile
from decimal import Decimal
from pathlib import Path

from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink
from pyflink.datastream.formats.csv import CsvBulkWriters, CsvSchema
from pyflink.table import DataTypes

ROWS = [
    Row(1, "plain", 1.5, True, Decimal("1.10"), [1, 2]),
    Row(2, "with, comma", 1e20, False, Decimal("1E+3"), []),
    Row(3, 'say "hi"', 1e-7, True, Decimal("0.000"), [3]),
    Row(4, "", 100.0, True, Decimal("12345678901234567890.123"), [1]),
    Row(5, "line\nbreak", 12345678.9, True, Decimal(-1), [1]),
    Row(6, " space ", 0.1, True, Decimal(1), [1]),
    Row(7, "#hash", -0.0, False, Decimal(1), [1]),
    Row(8, "ünï ☃", 3.0e-5, False, Decimal(1), [1]),
    Row(9, "a;b'c|d\te", 123456789012.0, False, Decimal(1), [1]),
    Row(10, None, None, None, None, None),
]


def main():
    schema = (
        CsvSchema.builder()
        .add_number_column("id", DataTypes.INT())
        .add_string_column("text")
        .add_number_column("number", DataTypes.DOUBLE())
        .add_boolean_column("flag")
        .add_number_column("decimal", DataTypes.DECIMAL(38, 3))
        .add_array_column("items", ";", DataTypes.BIGINT())
        .build()
    )
    row_type = Types.ROW_NAMED(
        ["id", "text", "number", "flag", "decimal", "items"],
        [
            Types.INT(),
            Types.STRING(),
            Types.DOUBLE(),
            Types.BOOLEAN(),
            Types.BIG_DEC(),
            Types.BASIC_ARRAY(Types.LONG()),
        ],
    )
    with tempfile.TemporaryDirectory() as directory:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        sink = FileSink.for_bulk_format(directory, CsvBulkWriters.for_schema(schema)).build()
        env.from_collection(list(range(len(ROWS))), Types.INT()).map(lambda i: ROWS[i], row_type).sink_to(sink)
        env.execute()
        for path in Path(directory).rglob("*part*"):
            print(path.read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
