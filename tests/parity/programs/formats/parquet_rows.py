"""Parquet files of rows: written, and read by columns, with a projection."""

import tempfile
from pathlib import Path

from pyflink.common import Configuration, Row, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from pyflink.table import DataTypes

FIELDS = [
    ("name", DataTypes.STRING(), Types.STRING()),
    ("good", DataTypes.BOOLEAN(), Types.BOOLEAN()),
    ("tiny", DataTypes.TINYINT(), Types.BYTE()),
    ("small", DataTypes.SMALLINT(), Types.SHORT()),
    ("number", DataTypes.INT(), Types.INT()),
    ("big", DataTypes.BIGINT(), Types.LONG()),
    ("ratio", DataTypes.FLOAT(), Types.FLOAT()),
    ("exact", DataTypes.DOUBLE(), Types.DOUBLE()),
]
ROW_TYPE = DataTypes.ROW([DataTypes.FIELD(name, kind) for name, kind, _ in FIELDS])
TYPE_INFO = Types.ROW_NAMED([name for name, _, _ in FIELDS], [info for _, _, info in FIELDS])
ROWS = [
    Row("ada", True, 1, -300, 70000, 2**40, 0.5, 0.1),
    Row("bob", False, -128, 32767, -1, 0, 1.25, 1e300),
    Row(None, None, None, None, None, None, None, None),
]


def text(row):
    return " ".join(repr(value) for value in row)


def main():
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, "table"))
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        sink = FileSink.for_bulk_format(path, ParquetBulkWriters.for_row_type(ROW_TYPE, Configuration(), True)).build()
        env.from_collection(ROWS, TYPE_INFO).map(lambda row: row, TYPE_INFO).sink_to(sink)
        env.execute()
        print(len(list(Path(path).rglob("part-*"))))
        everything = ParquetColumnarRowInputFormat(ROW_TYPE, Configuration(), 2, True, True)
        some = DataTypes.ROW(
            [DataTypes.FIELD("exact", DataTypes.DOUBLE()), DataTypes.FIELD("name", DataTypes.STRING())]
        )
        projected = ParquetColumnarRowInputFormat(some, Configuration(), 100, True, False)
        for name, bulk_format in {"all": everything, "some": projected}.items():
            source = FileSource.for_bulk_file_format(bulk_format, path).build()
            rows = env.from_source(source, WatermarkStrategy.no_watermarks(), name)
            rows.map(text, Types.STRING()).print(name)
            rows.map(lambda row: str(row.name), Types.STRING()).print(f"{name} by name")
        env.execute()


if __name__ == "__main__":
    main()
