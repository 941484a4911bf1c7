"""CSV files: types, quotes, nulls, empty lines."""

import tempfile
from pathlib import Path

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource
from pyflink.datastream.formats.csv import CsvReaderFormat, CsvSchema
from pyflink.table import DataTypes

PLAIN = '''1,ada,1.5,true
2,"bob, the builder",-2e3,false
3,"say ""hi""",0,TRUE
'''
OPTIONS = """id;name;score
7;'x;y';1
8;NULL;2
"""


def main():
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        (root / "plain.csv").write_text(PLAIN, encoding="utf-8")
        (root / "options.csv").write_text(OPTIONS, encoding="utf-8")
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        plain = (
            CsvSchema.builder()
            .add_number_column("id", DataTypes.BIGINT())
            .add_string_column("name")
            .add_number_column("score", DataTypes.DOUBLE())
            .add_boolean_column("good")
            .build()
        )
        source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(plain), str(root / "plain.csv")).build()
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "plain")
        rows.map(lambda row: str(row), Types.STRING()).print("plain")
        options = (
            CsvSchema.builder()
            .add_number_column("id", DataTypes.INT())
            .add_string_column("name")
            .add_number_column("score", DataTypes.FLOAT())
            .set_column_separator(";")
            .set_quote_char("'")
            .set_null_value("NULL")
            .set_use_header()
            .set_strict_headers()
            .build()
        )
        source = FileSource.for_record_stream_format(
            CsvReaderFormat.for_schema(options), str(root / "options.csv")
        ).build()
        rows = env.from_source(source, WatermarkStrategy.no_watermarks(), "options")
        rows.map(lambda row: f"{row.id} {row.name!r} {row.score}", Types.STRING()).print("options")
        env.execute()


if __name__ == "__main__":
    main()
